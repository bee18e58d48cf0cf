"""The page of `report`: one self-contained file. No script, no request to anywhere; a policy in the page forbids both.

All that a store holds goes through `markup`, so that hostile names stay text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobs.report.report_style import STYLE
from jobs.report.text import bytes_text, count_text, markup, seconds_text

Row = dict[str, Any]
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_RUNS = 100  # of a store's table, the newest
_STRIP = 60  # runs in the strip of a store's row
_STYLE = """
.strip { display: flex; align-items: flex-end; gap: 1px; height: 1.4rem; min-width: 8rem; }
.strip i { display: block; width: 5px; min-height: 3px; }
.c-0 { background: var(--good); } .c-10 { background: var(--beyond); }
.c-3 { background: var(--plausible); } .c-20 { background: var(--damaged); }
@media print { .strip i { print-color-adjust: exact; } }
"""
_TONES = {0: "good", 10: "rebuildable", 3: "rebuildable", 20: "loss"}
_SAFETY = {
    "unsafe": ("unsafe to start", "loss"),
    "unknown": ("not known", "rebuildable"),
    "refuses": ("would not start", "rebuildable"),
    "rebuild": ("starts; rebuild derived data", "rebuildable"),
    "safe": ("safe to start", "good"),
}


def fleet_html(view: Row) -> str:
    """The whole page of a fleet's view (`jobs.history.fleet`)."""
    return "".join(
        [
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
            f'<meta http-equiv=Content-Security-Policy content="{_POLICY}">',
            "<meta name=viewport content='width=device-width,initial-scale=1'>",
            f"<title>Store audits: fleet</title><style>{STYLE}{_STYLE}</style></head><body>\n",
            *_head(view),
            *_ranking(view["stores"]),
            *(part for place, store in enumerate(view["stores"]) for part in _store(place, store)),
            "</body></html>\n",
        ]
    )


def _head(view: Row) -> Iterator[str]:
    totals = view["totals"]
    window = f", runs since {markup(_when(view['since']))} UTC" if view["since"] else ""
    yield f"<p class=faint>Audits in {markup(view['tables'])}{window}; made {markup(_when(view['made_at']))} UTC</p>\n"
    unsafe = totals["unsafe"]
    if unsafe:
        verb = "is" if unsafe == 1 else "are"
        yield f"<h1 class=loss>{count_text(unsafe, 'copy', 'copies')} of {totals['stores']:,} {verb} unsafe to start</h1>\n"
    elif totals["safe"] == totals["stores"]:
        yield f"<h1 class=good>All {count_text(totals['stores'], 'copy', 'copies')} would start and lose nothing</h1>\n"
    else:
        yield f"<h1 class=rebuildable>{totals['stores'] - totals['safe']:,} of {totals['stores']:,} copies need a look</h1>\n"
    yield "<div class=facts>"
    for kind, (words, tone) in _SAFETY.items():
        if totals[kind]:
            yield f"<div><b class={tone}>{totals[kind]:,}</b>{words}</div>"
    tone = "loss" if totals["lost_messages"] else "good"
    yield (
        f"<div><b class={tone}>{count_text(totals['lost_messages'], 'message')}</b>"
        f"would be lost by starts, {bytes_text(totals['lost_bytes'])}</div>"
    )
    yield f"<div><b>{view['runs']:,}</b>runs</div></div>\n"
    if view["not_audited_since"]:
        yield "<h2>Not audited since then</h2><ul>"
        for gone in view["not_audited_since"]:
            yield f"<li><bdi>{markup(gone['store'])}</bdi>, last {markup(_when(gone['last']))} UTC</li>"
        yield "</ul>\n"


def _ranking(stores: Sequence[Row]) -> Iterator[str]:
    yield "<h2>Stores, the worst first</h2>\n<p class=faint>A bar per run, the newest on the right; "
    yield "red: loss, orange: derived data differ, violet: incomplete, green: consistent; its height: what would be lost.</p>\n"
    rows = (
        (
            f"<b class={_TONES.get(s['latest']['exit_code'], 'note')}>{s['latest']['exit_code']}</b>",
            f"<a href='#s{place}'><bdi>{markup(s['store'])}</bdi></a>",
            f"<span class={_SAFETY[s['safety']][1]}>{_SAFETY[s['safety']][0]}</span>",
            _number(s["latest"]["lost_messages"] if s["latest"]["starts"] else None),
            markup(s["why"], 300),
            f"{seconds_text(s['age_seconds'])} ago",
            _strip(s["trend"]),
        )
        for place, s in enumerate(stores)
    )
    yield from _table(("#code", "store", "start", "#lost messages", "why", "audited", "runs"), rows)


def _strip(trend: Sequence[Row]) -> str:
    shown = trend[-_STRIP:]
    most = max((run["lost_messages"] or 0 for run in shown), default=0)
    bars = []
    for run in shown:
        height = 100 * (run["lost_messages"] or 0) // most if most else 40
        told = f"{_when(run['started_at'])} UTC: code {run['exit_code']}, {_number(run['lost_messages'])} lost"
        bars.append(f"<i class=c-{int(run['exit_code'])} style=height:{height}% title='{markup(told)}'></i>")
    return f"<div class=strip role=img aria-label='exit codes of the last {len(shown)} runs'>{''.join(bars)}</div>"


def _store(place: int, store: Row) -> Iterator[str]:
    latest, trend = store["latest"], store["trend"]
    yield f"<h2 id=s{place}><bdi>{markup(store['store'])}</bdi></h2>\n"
    tone = _TONES.get(latest["exit_code"], "note")
    yield f"<p class={tone}>{markup(latest['verdict'])}</p>\n"
    where = f"<bdi>{markup(latest['location'])}</bdi>, rules of RocketMQ {markup(latest['release'])}"
    yield f"<p class=faint>{where}; run {markup(latest['run_id'])}</p>\n"
    if latest["codes"]:
        rows = (
            (
                f"<span class={row['severity']}>{markup(row['severity'])}</span>",
                f"<code>{markup(row['code'])}</code>",
                f"{row['count']:,}",
                f"<code>{markup(row['file'])}</code>",
            )
            for row in latest["codes"]
        )
        yield from _table(("severity", "code", "#findings", "first file"), rows)
    yield f"<details><summary>{count_text(store['runs'], 'run')}</summary>\n"
    run_rows = (
        (
            markup(_when(run["started_at"])),
            f"<span class={_TONES.get(run['exit_code'], 'note')}>{run['exit_code']}</span>",
            *(
                _number(run[key])
                for key in "lost_messages losses rebuildable notes segment_count messages damaged_extents".split()
            ),
            bytes_text(run["bytes_read"] or 0),
            markup(run["rules_version"]),
            f"<code>{markup(run['run_id'])}</code>",
        )
        for run in reversed(trend[-_RUNS:])
    )
    heads = ("started, UTC", "#code", "#lost", "#losses", "#rebuildable", "#notes", "#segments", "#messages", "#damaged ranges")
    yield from _table((*heads, "#read", "#rules", "run"), run_rows)
    if store["runs"] > min(len(trend), _RUNS):
        yield f"<p class=faint>{store['runs'] - min(len(trend), _RUNS):,} earlier runs are in the tables.</p>\n"
    yield "</details>\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """heads: a leading "#" marks a column of numbers. Cells are markup already."""
    mark = [" class=n" if head.startswith("#") else "" for head in heads]
    yield "<div class=wide><table><thead><tr>"
    yield "".join(f"<th{m}>{head.lstrip('#')}</th>" for head, m in zip(heads, mark, strict=True))
    yield "</tr></thead><tbody>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td{m}>{cell}</td>" for cell, m in zip(row, mark, strict=True)) + "</tr>\n"
    yield "</tbody></table></div>\n"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _when(text: str | None) -> str:
    return "never" if text is None else text.replace("T", " ").rstrip("Z")
