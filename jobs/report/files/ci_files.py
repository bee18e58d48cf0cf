"""A run's result for other tools, made from result.json alone: Markdown and JUnit's XML for CI, metrics for Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from jobs.report.texts.run_words import exit_meaning
from jobs.report.texts.safety_text import SHORT
from jobs.report.texts.text import bytes_text, count_text, printable, seconds_text
from schemas.advice import exit_code_of
from store_io.base.exit_codes import CONSISTENT, SEVERITIES, rank
from store_io.outcome.safety import Safety, is_unsafe

ROWS = 500  # a summary page has its limits
_NAME, _VERDICT, _STEP = 100, 400, 300
_CASE_STEP = 2000  # characters of a step in JUnit's text
_MARKUP = re.compile(r"[^\w\s,.;%'/…-]|_", re.ASCII)
Row = dict[str, Any]
_SUITE = "RocketMQ store audit"
PREFIX = "rocketmq_store_audit_"
# (name, meaning, its key in a store's part of result.json), in the order in which they are written
_GAUGES = (
    (
        "exit_code",
        "0 consistent, 3 not fully audited, 10 derived data differ, 20 CommitLog damaged, messages lost or no start.",
        "code",
    ),
    ("complete", "1 if all of the store was read and is modelled, else 0.", "complete"),
    ("starts", "1 if the release would start on this copy, 0 if it would refuse; absent where that is not known.", "starts"),
    ("unsafe", "1 if the copy is not safe to start, as the pages count it, else 0; absent where that is not known.", "safety"),
    ("lost_messages", "Valid messages of the copy that consumers would not get after a start.", "lost_messages"),
    ("lost_bytes", "Bytes of the messages that consumers would not get after a start.", "lost_bytes"),
    (
        "emptied",
        "1 if something proves that the CommitLog held messages that are gone, from its end or altogether, else 0.",
        "emptied",
    ),
    (
        "earlier_messages",
        "Valid messages of this store in the earlier audit that saw its log reach furthest; absent without one.",
        "earlier_messages",
    ),
    (
        "changed_segments",
        "CommitLog segments whose bytes are not those that an earlier audit read under the same modification time.",
        "changed_segments",
    ),
    ("lacks_messages", "Messages that other copies of its replica group hold and this one lacks.", "lacks_messages"),
    ("diverged", "1 if another copy of its group holds other messages at the same physical offsets, else 0.", "diverged"),
    ("truncate_at", "Physical offset, in bytes, at which the CommitLog would end after a start.", "truncate_at"),
    ("messages", "Valid messages in the copy.", "messages"),
    ("segments", "CommitLog segments.", "segments"),
    ("commitlog_bytes", "Length of all CommitLog segments together.", "commitlog_bytes"),
    ("damaged_extents", "Damaged byte ranges of the CommitLog.", "damaged_extents"),
    ("damaged_bytes", "Damaged bytes of the CommitLog.", "damaged_bytes"),
    ("unverified_bytes", "Length of the CommitLog segments that no run of this result has fully read.", "unverified_bytes"),
    ("findings_dropped", "Disagreements beyond the bound on findings, counted only.", "findings_dropped"),
    ("read_bytes", "Bytes read of the store.", "bytes_read"),
    ("duration_seconds", "Duration of this store's audit.", "seconds"),
)


def summary_markdown(result: Row) -> str:
    """Return the run's result as a Markdown file. result: as result.json holds it."""
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
    yield "| code | store | answer | safe to start? | lost messages | " + " | ".join(SEVERITIES) + " | verdict | first step |"
    yield "|---:|---|---|---|---:|" + "---:|" * len(SEVERITIES) + "---|---|"
    for store in stores[:ROWS]:
        lost = f"{store['lost_messages']:,}" if store.get("starts") and store.get("lost_messages") is not None else "not known"
        counts = [f"{(store.get('counts') or {}).get(severity, 0):,}" for severity in SEVERITIES]
        name, safe = f"<code>{_text(store['name'], _NAME)}</code>", SHORT.get(store.get("safety"), "not known")
        first = next((_text(step["text"], _STEP) for step in store["steps"]), "")
        answer = f"<code>{_text(store['answer'])}</code>"
        cells = (str(store["code"]), name, answer, safe, lost, *counts, _text(store["verdict"], _VERDICT), first)
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
    """Return text that stays text in Markdown, in HTML and in a cell of a table."""
    shown = _MARKUP.sub(_entity, printable(value, limit))
    return shown.replace("//", "/<span>/</span>").replace("www.", "www<span>.</span>")


def _entity(match: re.Match[str]) -> str:
    character = match[0]
    if not character.isascii():
        return character
    return "<span>@</span>" if character == "@" else f"&#{ord(character)};"


def junit_xml(result: Row) -> str:
    """Return the run's result as an XML file of JUnit's form. result: as result.json holds it."""
    stores, problems = result["stores"], result.get("problems") or ()
    errors = sum(map(_is_error, stores)) + bool(problems)
    failures = sum(not _is_error(store) and _fails(store) for store in stores)
    count = {"tests": str(len(stores) + bool(problems)), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    time = f"{result.get('seconds') or 0:.3f}"
    root = ElementTree.Element("testsuites", {"name": _SUITE, **count, "time": time})
    started = str(result["started_at"]).rstrip("Z")
    suite = ElementTree.SubElement(root, "testsuite", {"name": _SUITE, **count, "time": time, "timestamp": started})
    properties = ElementTree.SubElement(suite, "properties")
    for key in ("run_id", "tool_version", "rules_version", "exit_code", "tables"):
        if result.get(key) is not None:
            ElementTree.SubElement(properties, "property", {"name": key, "value": printable(result[key])})
    for store in stores:
        _case(suite, store)
    if problems:
        case = ElementTree.SubElement(suite, "testcase", {"classname": _SUITE, "name": "results of the run", "time": "0"})
        _verdict(case, "error", "not written", printable(problems[0]), "\n".join(map(printable, problems)))
    ElementTree.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _is_error(store: Row) -> bool:
    """Say whether a gap has earned the store's code: it says nothing of the store."""
    return store["code"] in {exit_code_of(gap["cause"]) for gap in store["gaps"]} - {CONSISTENT}


def _fails(store: Row) -> bool:
    return store["code"] != 0 or bool(store.get("diverged"))


def _case(suite: ElementTree.Element, store: Row) -> None:
    named = {"classname": _SUITE, "name": printable(store["name"]), "time": f"{store.get('seconds') or 0:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", named)
    if not _fails(store):
        return
    counts = store.get("counts") or {}
    lines = [
        f"{key}: {printable(store.get(key))}" for key in ("verdict", "answer", "safety", "release", "release_from", "location")
    ]
    lines += (
        [f"lost_messages: {store['lost_messages']:,}"] if store.get("starts") and store.get("lost_messages") is not None else []
    )
    lines += [f"findings of severity {severity}: {counts[severity]:,}" for severity in SEVERITIES if counts.get(severity)]
    lines += [f"incomplete: {printable(sentence)}" for sentence in store.get("incomplete") or ()]
    lines += _step_lines(store)
    kind = "error" if _is_error(store) else "failure"
    name = f"exit code {store['code']}" if store["code"] else "diverged"
    _verdict(case, kind, name, printable(store["verdict"]), "\n".join(lines))


def _step_lines(store: Row) -> Iterator[str]:
    """Yield the steps under their numbers, each command on a line of its own."""
    for number, step in enumerate(store["steps"], 1):
        yield f"{number}. {step['step']}: {printable(step['text'], _CASE_STEP)}"
        if step["command"]:
            yield f"   {printable(step['command'])}"


def _verdict(case: ElementTree.Element, kind: str, name: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, kind, {"type": name, "message": message}).text = text


def prometheus_text(result: Row, ended_at: float) -> str:
    """Return the run's result as a file of metrics in Prometheus' form.

    result: as result.json holds it.
    ended_at: seconds since 1970.
    """
    return "".join(_samples(result, ended_at))


def _samples(result: Row, ended_at: float) -> Iterator[str]:
    stores = [({"store": store["name"]}, store) for store in result["stores"]]
    versions = {key: result.get(key) for key in ("tool_version", "rules_version")}
    problems = len(result.get("problems") or ())
    info = [({**name, "release": store.get("release"), **versions}, 1) for name, store in stores]
    yield from _family("info", "Versions by which the store was audited; always 1.", info)
    ended = "When the last audit ended, whatever it found, in seconds since 1970."
    yield from _family("last_run_timestamp_seconds", ended, [(name, round(ended_at, 3)) for name, _ in stores])
    unwritten = "Results of the last run that could not be written."
    yield from _family("output_problems", unwritten, [(name, problems) for name, _ in stores])
    answers = [({**name, "answer": store["answer"]}, 1) for name, store in stores]
    yield from _family("answer", "What to do with the copy, by the label; always 1.", answers)
    for metric, meaning, key in _GAUGES:
        known = [(name, _value(store, key)) for name, store in stores]
        yield from _family(metric, meaning, [(name, number) for name, number in known if number is not None])
    severities = [
        ({**name, "severity": severity}, (store.get("counts") or {}).get(severity, 0))
        for name, store in stores
        for severity in SEVERITIES
    ]
    yield from _family("findings", "Findings by severity.", severities)


def _value(store: Row, key: str) -> Any:
    """Return a store's value for a metric, or None if it is not known.

    A store that does not start has no known loss of a start.
    """
    if key == "earlier_messages":
        return (store.get("earlier") or {}).get("messages")
    if key == "safety":
        return None if store["safety"] == Safety.UNKNOWN else is_unsafe(store["safety"])
    return None if key.startswith("lost_") and not store.get("starts") else store.get(key)


def _family(name: str, meaning: str, samples: Sequence[tuple[Row, float]]) -> Iterator[str]:
    """Yield the lines of one metric; no lines without a sample."""
    if not samples:
        return
    yield f"# HELP {PREFIX}{name} {_escaped(meaning, quoted=False)}\n# TYPE {PREFIX}{name} gauge\n"
    for labels, number in samples:
        shown = ",".join(f'{key}="{_escaped(value, quoted=True)}"' for key, value in labels.items() if value is not None)
        yield f"{PREFIX}{name}{{{shown}}} {_number(number)}\n"


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _escaped(text: object, quoted: bool) -> str:
    """Escape a text for the exposition format: backslash and line feed everywhere, the quote in label values."""
    escaped = str(text).replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quoted else escaped
