"""A run's result as Markdown, for the summary page of a CI job; made from result.json alone.

What a store holds is hostile: of its names no character is left that Markdown or HTML reads, and none names a user of a forge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.report.texts.judgement import SHORT
from jobs.report.texts.text import bytes_text, count_text, printable, seconds_text
from jobs.report.texts.words.run_words import exit_meaning
from store_io.base.exit_codes import SEVERITIES, rank

ROWS = 500  # a summary page has its limits
_NAME, _VERDICT = 100, 400
_MARKUP = re.compile(r"[^\w\s,.;%'/…-]|_", re.ASCII)
Row = dict[str, Any]


def summary_markdown(result: Row) -> str:
    """The whole file. result: as result.json holds it."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Row) -> Iterator[str]:
    code = result["exit_code"]
    stores = sorted(result["stores"], key=lambda store: (-rank(store["code"]), -(store.get("lost_messages") or 0), store["name"]))
    yield f"## RocketMQ store audit: exit code {code} ({exit_meaning(code)})"
    yield ""
    for sentence in (*_assumed(stores), *map(_text, result.get("problems") or ())):
        yield f"* {sentence}"
    unfinished = sum(not store["complete"] for store in stores)
    if unfinished:
        yield f"* Not audited completely: {count_text(unfinished, 'store')} of {len(stores):,}"
    yield f"* {_run_line(result, stores)}"
    yield ""
    yield "| code | store | safe to start? | lost messages | " + " | ".join(SEVERITIES) + " | verdict |"
    yield "|---:|---|---|---:|" + "---:|" * len(SEVERITIES) + "---|"
    for store in stores[:ROWS]:
        lost = f"{store['lost_messages']:,}" if store.get("starts") and store.get("lost_messages") is not None else "not known"
        counts = [f"{(store.get('counts') or {}).get(severity, 0):,}" for severity in SEVERITIES]
        name, safe = f"<code>{_text(store['name'], _NAME)}</code>", SHORT.get(store.get("safety"), "not known")
        cells = (str(store["code"]), name, safe, lost, *counts, _text(store["verdict"], _VERDICT))
        yield f"| {' | '.join(cells)} |"
    if len(stores) > ROWS:
        yield ""
        yield f"and {count_text(len(stores) - ROWS, 'more store')}: result.json has all"


def _assumed(stores: Sequence[Row]) -> Iterator[str]:
    """Yield a line on each premise of the verdicts that nobody named."""
    assumed = [store for store in stores if store.get("release_from", "named") != "named"]
    if assumed:
        releases = ", ".join(sorted({_text(store.get("release")) for store in assumed}))
        yield f"Release {releases} was assumed for {count_text(len(assumed), 'store')}: nobody named a known one (`--release`)"


def _run_line(result: Row, stores: Sequence[Row]) -> str:
    read = f"{bytes_text(result.get('bytes_read') or 0)} read in {seconds_text(result.get('seconds') or 0.0)}"
    began = str(result["started_at"]).replace("T", " ").rstrip("Z")
    versions = f"tool {_text(result.get('tool_version'))}, rules {_text(result.get('rules_version'))}"
    return f"{count_text(len(stores), 'store')}, {read}; run <code>{_text(result['run_id'])}</code> of {began} UTC; {versions}"


def _text(value: object, limit: int = 0) -> str:
    """Text that stays text in Markdown, in HTML and in a cell of a table."""
    shown = _MARKUP.sub(_entity, printable(value, limit))
    return shown.replace("//", "/<span>/</span>").replace("www.", "www<span>.</span>")


def _entity(match: re.Match[str]) -> str:
    character = match[0]
    if not character.isascii():
        return character
    return "<span>@</span>" if character == "@" else f"&#{ord(character)};"
