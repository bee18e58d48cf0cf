"""The page of `report`: each store's latest run, the most dangerous to start first, and how it came to be so.

A page like the others (`jobs.report.pages.page`): it loads nothing and runs nothing, and what a store holds is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.report.pages.page import code_of, fact, fold, hint, name_of, page, table
from jobs.report.pages.report_html import SEVERITY_STYLE, icon, style_of
from jobs.report.texts.judgement import (
    CARE,
    GONE,
    KINDS,
    LACKS,
    PARTED,
    REFUSES,
    SAFE,
    SHORT,
    STOP,
    UNKNOWN,
    damaged_sentence,
    lacking_sentence,
)
from jobs.report.texts.text import bytes_text, count_text, markup, seconds_text

Row = dict[str, Any]
_RUNS = 100  # of a store's table, the newest
_STRIP = 60  # runs in the strip of a store's row
_STORES = 5000  # with a row
_CODES = 500  # of a store
_CODE_STYLE = {0: "safe", 3: "unknown", 10: "care", 20: "stop"}
_BAR, _HEIGHT = 6, 22  # of a strip, in pixels


def fleet_html(view: Row) -> Iterator[str]:
    """The whole page of a fleet's view (`jobs.history.fleet`), in pieces."""
    return page("RocketMQ store audits", _body(view))


def _body(view: Row) -> Iterator[str]:
    stores, totals = view["stores"], view["totals"]
    window = f", runs since {_when(view['since'])} UTC" if view["since"] else ""
    yield '<header><p class="kicker">RocketMQ store audits</p>\n'
    yield f"<h1>{count_text(totals['stores'], 'store')}, most dangerous first</h1>\n"
    yield f'<p class="where">Latest run of each in {code_of(view["tables"])}{window}</p></header>\n<main>\n'
    worst = stores[0]["safety"] if stores else SAFE
    style = style_of(worst, stores[0]["latest"]["exit_code"] if stores else 0)
    yield f'<section class="answer a-{style}" aria-labelledby="answer">{icon(worst, style)}<div>\n'
    yield f'<h2 id="answer" class="c-{style}">{_sentence(totals)}</h2>\n<ul>'
    yield from (f"<li>{totals[kind]:,}: {SHORT[kind]}</li>" for kind in KINDS if totals[kind])
    for gone in view["not_audited_since"]:
        yield f"<li>not audited since then: {name_of(gone['store'])}, last audit {_when(gone['last'])} UTC</li>"
    yield '</ul></div></section>\n<dl class="facts">\n'
    style = "c-stop" if totals["lost_messages"] else "c-safe"
    yield fact(
        count_text(totals["lost_messages"], "message"), f"would be lost by starts, {bytes_text(totals['lost_bytes'])}", style
    )
    yield fact(f"{view['runs']:,}", "runs")
    yield fact(_when(view["made_at"]), "this page was made, UTC")
    yield '</dl>\n<section aria-labelledby="stores"><h2 id="stores">Stores</h2>\n'
    yield hint(
        "<b>Runs</b>: a bar per run, the newest on the right, as high as what a start would lose; its colour is the exit code:"
        " 20 loss, 3 incomplete, 10 derived data differ, 0 consistent."
    )
    heads = ("store", "safe to start?", "+why", "#lost", "#exit code", "~audited", "runs")
    rows = (_row(place, store) for place, store in enumerate(stores))
    yield from table("Stores", heads, rows, len(stores), _STORES, "--format json has all", stack=True)
    yield "</section>\n"
    for place, store in enumerate(stores[:_STORES]):
        yield from _store(place, store)
    yield "</main>\n<footer><p>Made from the tables of the audits; no store was read again.</p></footer>\n"


def _sentence(totals: Row) -> str:
    stores = count_text(totals["stores"], "store")
    unsafe = totals[STOP] + totals[GONE] + totals[REFUSES]
    if unsafe:
        return f"{unsafe:,} of {stores} {'is' if unsafe == 1 else 'are'} not safe to start"
    if totals[CARE]:
        return damaged_sentence(totals[CARE], totals["stores"])
    if totals[UNKNOWN]:
        return f"For {totals[UNKNOWN]:,} of {stores} it is not known whether a start is safe"
    if totals[SAFE] == totals["stores"]:
        return "All stores are safe to start" if totals["stores"] > 1 else "The store is safe to start"
    if totals[PARTED] or totals[LACKS]:
        return lacking_sentence(totals[PARTED] + totals[LACKS], totals["stores"])
    return "No start loses a message, but some stores need care"


def _row(place: int, store: Row) -> tuple[str, ...]:
    latest = store["latest"]
    return (
        f'<a href="#store-{place}">{name_of(store["store"])}</a>',
        f'<span class="badge c-{style_of(store["safety"], latest["exit_code"])}">{SHORT[store["safety"]]}</span>',
        markup(store["why"], 300),
        _number(latest["lost_messages"]) if latest["starts"] else "not known",
        str(int(latest["exit_code"])),
        f"{seconds_text(store['age_seconds'])} before",
        _strip(store["trend"][-_STRIP:]),
    )


def _strip(trend: Sequence[Row]) -> str:
    most = max((run["lost_messages"] or 0 for run in trend), default=0)
    bars = []
    for place, run in enumerate(trend):
        high = max(4, _HEIGHT * (run["lost_messages"] or 0) // most) if most else _HEIGHT // 2
        told = f"{_when(run['started_at'])} UTC: exit code {run['exit_code']}, {_number(run['lost_messages'])} lost"
        bars.append(
            f'<rect class="c-{_CODE_STYLE.get(run["exit_code"], "unknown")}" fill="currentColor" x="{place * _BAR}"'
            f' y="{_HEIGHT - high}" width="{_BAR - 1}" height="{high}"><title>{told}</title></rect>'
        )
    codes = " ".join(str(int(run["exit_code"])) for run in trend)
    wide = max(1, len(trend) * _BAR)
    return f'<svg width="{wide}" height="{_HEIGHT}" role="img" aria-label="exit codes {codes}">{"".join(bars)}</svg>'


def _store(place: int, store: Row) -> Iterator[str]:
    latest, trend = store["latest"], store["trend"]
    yield f'<section aria-labelledby="store-{place}"><h2 id="store-{place}">{name_of(store["store"])}</h2>\n'
    yield f"<p>{markup(latest['verdict'])}.</p>\n"
    where = f"{name_of(latest['location'])}, rules of RocketMQ {markup(latest['release'])}"
    yield f'<p class="where">{where}; run {code_of(latest["run_id"])}, {_when(latest["started_at"])} UTC</p>\n'
    codes = latest["codes"]
    if codes:
        rows = (
            (
                code_of(row["code"]),
                f'<span class="c-{SEVERITY_STYLE.get(row["severity"], "unknown")}">{markup(row["severity"])}</span>',
                f"{row['count']:,}",
                code_of(row["file"], 120),
            )
            for row in codes
        )
        yield from table("Findings of the latest run", ("finding", "severity", "#number", "first file"), rows, len(codes), _CODES)
    run_rows = (
        (
            code_of(run["run_id"]),
            _when(run["started_at"]),
            f'<span class="c-{_CODE_STYLE.get(run["exit_code"], "unknown")}">{int(run["exit_code"])}</span>',
            *(_number(run[k]) for k in "lost_messages losses rebuildable notes segment_count messages damaged_extents".split()),
            bytes_text(run["bytes_read"] or 0),
            markup(run["rules_version"]),
        )
        for run in reversed(trend[-_RUNS:])
    )
    heads = "run|~began, UTC|#exit code|#lost|#losses|#rebuildable|#notes|#segments|#messages|#damaged ranges|#read|#rules".split(
        "|"
    )
    body = table("Runs", heads, run_rows, store["runs"], min(len(trend), _RUNS), "in the tables")
    yield from fold(count_text(store["runs"], "run"), body)
    yield "</section>\n"


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _when(text: str | None) -> str:
    return "never" if text is None else markup(text.replace("T", " ").rstrip("Z"))
