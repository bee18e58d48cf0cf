"""report.html of one store: one self-contained page. No script, no request to anywhere; a policy in the page forbids both.

All that a store holds goes through `markup`, so that hostile names stay text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from jobs.report.ranking import EXIT_WORDS, SEVERITIES, lost_of
from jobs.report.report_style import STYLE
from jobs.report.text import bytes_text, count_text, markup, span_text
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, EXTENT_UNWRITTEN, AuditOutcome, Finding, Row

_CELLS = 240  # of a segment's bar: a cell shows the worst kind of bytes in it
_BEYOND, _PLAUSIBLE = "beyond", "plausible"
_WORST = (EXTENT_DAMAGED, _PLAUSIBLE, _BEYOND, EXTENT_MESSAGE, EXTENT_FILLER, EXTENT_UNWRITTEN)
_KIND_WORDS = {
    EXTENT_MESSAGE: "messages",
    _BEYOND: "messages beyond the cut",
    _PLAUSIBLE: "messages found behind damage",
    EXTENT_DAMAGED: "damaged",
    EXTENT_FILLER: "filler",
    EXTENT_UNWRITTEN: "unwritten",
}
_EXAMPLES = 20  # findings shown of one code
_ROWS = 500  # of any other table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_html(outcome: AuditOutcome) -> str:
    """The whole page."""
    broker = outcome.plan.get("broker")
    parts = [
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
        f'<meta http-equiv=Content-Security-Policy content="{_POLICY}">',
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>{markup(outcome.name)}: store audit</title><style>{STYLE}</style></head><body>\n",
        *_head(outcome, broker),
        *_loss(outcome),
        *_segments(outcome, broker),
        *_findings(outcome),
        *_steps(outcome),
        *_settings(outcome),
        *_limits(outcome),
        "</body></html>\n",
    ]
    return "".join(parts)


def _head(outcome: AuditOutcome, broker: Row | None) -> Iterator[str]:
    style = {0: "good", 10: "rebuildable", 3: "rebuildable", 20: "loss"}[outcome.exit_code]
    where = f"<bdi>{markup(outcome.name)}</bdi>, <bdi>{markup(outcome.location_text)}</bdi>"
    yield f"<p class=faint>Audit of {where}, rules of RocketMQ {markup(outcome.release)}</p>\n"
    yield f"<h1 class={style}>{markup(outcome.verdict)}</h1>\n<div class=facts>"
    yield _fact(f"{outcome.exit_code}", f"exit code: {EXIT_WORDS[outcome.exit_code]}", style)
    if broker is None:
        yield _fact("not known", "whether this release would start", "rebuildable")
    elif not broker.get("starts"):
        yield _fact("does not start", markup(broker.get("refusal")), "loss")
    else:
        after = "after a clean stop" if broker.get("exit") == "clean" else "after a crash"
        yield _fact("starts", f"as {after}; reads from segment {markup(broker.get('start_segment'))}", "good")
        reason = markup(STOP_REASONS.get(str(broker.get("stop_reason")), broker.get("stop_reason")))
        yield _fact(f"{int(broker.get('truncate_at') or 0):,}", f"physical offset at which the log would end. {reason}")
        messages, size = lost_of(outcome)
        yield _fact(count_text(messages, "message"), f"would be lost, {bytes_text(size)}", "loss" if messages else "good")
    told = ", ".join(f"<span class={s}>{outcome.counts.get(s, 0):,} {s}</span>" for s in SEVERITIES)
    yield _fact(count_text(sum(outcome.counts.values()), "finding"), told)
    held = f"in {count_text(outcome.segment_count, 'segment')}"
    if outcome.messages:
        held += f", {span_text(outcome.first_store_time, outcome.last_store_time)}"
    yield _fact(count_text(outcome.messages, "message"), held)
    yield f"</div>\n<p class=faint>{bytes_text(outcome.bytes_read)} read.</p>\n"
    if outcome.incomplete:
        yield "<h2>What was not audited</h2><ul>"
        yield from (f"<li>{markup(sentence)}</li>" for sentence in outcome.incomplete)
        yield "</ul>\n"


def _fact(value: str, words: str, style: str = "") -> str:
    """A value (ours) with words (already markup)."""
    return f"<div><b{f' class={style}' if style else ''}>{value}</b>{words}</div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], total: int, limit: int = _ROWS) -> Iterator[str]:
    """heads: a leading "#" marks a column of numbers. Cells are markup already."""
    numbers = [head.startswith("#") for head in heads]
    mark = [" class=n" if number else "" for number in numbers]
    yield "<div class=wide><table><thead><tr>"
    yield "".join(f"<th{m}>{head.lstrip('#')}</th>" for head, m in zip(heads, mark, strict=True))
    yield "</tr></thead><tbody>\n"
    for place, row in enumerate(rows):
        if place == limit:
            break
        yield "<tr>" + "".join(f"<td{m}>{cell}</td>" for cell, m in zip(row, mark, strict=True)) + "</tr>\n"
    yield "</tbody></table></div>\n"
    if total > limit:
        yield f"<p class=faint>{total - limit:,} more rows are in the files beside this page.</p>\n"


def _loss(outcome: AuditOutcome) -> Iterator[str]:
    topics = outcome.loss.get("by_topic", ())
    groups, levels = outcome.loss.get("groups", ()), outcome.loss.get("delay_levels", ())
    if not topics and not groups and not levels:
        return
    yield "<h2>What would be lost</h2>\n"
    if topics:
        ranked = sorted(topics, key=lambda t: (-t["messages"], t["topic"]))
        rows = (
            (f"<bdi>{markup(t['topic'])}</bdi>", f"{t['messages']:,}", span_text(t["first_store_time"], t["last_store_time"]))
            for t in ranked
        )
        yield from _table(("topic", "#messages", "stored"), rows, len(ranked))
    if groups:
        yield "<p>Consumer groups that stand beyond a queue's new end:</p>"
        group_rows = (
            (
                f"<bdi>{markup(g['group'])}</bdi>",
                f"<bdi>{markup(g['topic'])}</bdi>/{g['queue_id']}",
                f"{g['offset']:,}",
                f"{g['new_max']:,}",
            )
            for g in groups
        )
        yield from _table(("group", "queue", "#stands at", "#new end"), group_rows, len(groups))
    if levels:
        yield "<p>Delay levels that stand beyond their queue's new end:</p>"
        level_rows = ((f"{v['level']}", f"{v['offset']:,}", f"{v['new_max']:,}") for v in levels)
        yield from _table(("level", "#stands at", "#new end"), level_rows, len(levels))


def _segments(outcome: AuditOutcome, broker: Row | None) -> Iterator[str]:
    yield "<h2>Segments</h2>\n"
    if not outcome.segments:
        yield "<p>There is no CommitLog file.</p>\n"
        return
    cut = int(broker["truncate_at"]) if broker and broker.get("starts") else None
    words = "".join(f"<i class=k-{kind}></i>{word}" for kind, word in _KIND_WORDS.items())
    yield f"<p class='key faint'>{words}</p>\n"
    rows = (
        (
            f"<code>{markup(str(s['file']).rpartition('/')[2])}</code>",
            f"{s['size_bytes']:,}",
            f"{s.get('messages') or 0:,}",
            f"{s.get('damaged_bytes') or 0:,}",
            markup(s["problem"]) if s.get("problem") else _bar(s, cut),
        )
        for s in outcome.segments
    )
    yield from _table(("segment", "#bytes", "#messages", "#damaged", "bytes by kind"), rows, len(outcome.segments))


def _bar(segment: Row, cut: int | None) -> str:
    """The segment's bytes from left to right, as at most _CELLS cells; neighbouring equal ones are one element."""
    size = int(segment["size_bytes"])
    if size <= 0:
        return ""
    cells = [len(_WORST) - 1] * _CELLS
    edge = size if cut is None else min(size, max(0, cut - int(segment.get("base_offset") or 0)))
    for extent in segment.get("extents") or ():
        start, end, kind = int(extent["start"]), int(extent["end"]), str(extent["kind"])
        pieces = [(start, end, _PLAUSIBLE if kind == EXTENT_MESSAGE and extent.get("plausible") else kind)]
        if kind == EXTENT_MESSAGE and end > edge and not extent.get("plausible"):
            pieces = [(start, max(start, edge), kind), (max(start, edge), end, _BEYOND)]
        for first, last, shown in pieces:
            if first < last:
                rank = _WORST.index(shown)
                for cell in range(first * _CELLS // size, (last * _CELLS - 1) // size + 1):
                    cells[cell] = min(cells[cell], rank)
    counts = Counter(cells)
    told = ", ".join(_KIND_WORDS[_WORST[rank]] for rank in sorted(counts))
    parts, begin = [], 0
    for place in range(1, _CELLS + 1):
        if place == _CELLS or cells[place] != cells[begin]:
            parts.append(f"<i class=k-{_WORST[cells[begin]]} style=flex:{place - begin}></i>")
            begin = place
    return f"<div class=bar role=img title='{told}' aria-label='{told}'>{''.join(parts)}</div>"


def _findings(outcome: AuditOutcome) -> Iterator[str]:
    yield "<h2>Findings</h2>\n"
    if not outcome.findings:
        yield "<p>None.</p>\n"
    groups: dict[tuple[int, str], list[Finding]] = {}
    for finding in outcome.findings:
        groups.setdefault((SEVERITIES.index(finding.severity), finding.code), []).append(finding)
    for (rank, code), found in sorted(groups.items(), key=lambda item: item[0]):
        severity = SEVERITIES[rank]
        total = sum(f.count for f in found) + outcome.findings_dropped.get(code, 0)
        entry = CATALOGUE.get(code)
        meaning = markup(entry.meaning) if entry else ""
        opened = "" if severity == "note" else " open"
        head = f"<b class={severity}>{severity}</b> <code>{markup(code)}</code> {total:,}: {meaning}"
        yield f"<details{opened}><summary>{head}</summary>\n"
        for step in dict.fromkeys(f.next for f in found):
            yield f"<p>{markup(step)}</p>\n"
        rows = (
            (
                f"<code>{markup(f.file)}</code>",
                "" if f.start is None else f"{f.start:,}",
                "" if f.end is None else f"{f.end:,}",
                markup(f.message, 300),
                markup("" if f.expected is None else f.expected, 120),
                markup("" if f.actual is None else f.actual, 120),
            )
            for f in found
        )
        yield from _table(("file", "#from", "#to", "what", "expected", "actual"), rows, len(found), _EXAMPLES)
        yield "</details>\n"


def _steps(outcome: AuditOutcome) -> Iterator[str]:
    steps = outcome.plan.get("steps", ())
    if not steps:
        return
    yield "<h2>Plan</h2>\n<p>What would make the copy consistent. Nothing of it was carried out.</p>\n"
    rows = (
        (
            markup(s["action"]),
            f"<code>{markup(s['file'])}</code>",
            "" if s.get("start") is None else f"{s['start']:,}",
            "" if s.get("end") is None else f"{s['end']:,}",
            markup(s["reason"], 300),
            f"{s.get('lost_messages') or 0:,}",
        )
        for s in steps
    )
    yield from _table(("step", "file", "#from", "#to", "why", "#lost messages"), rows, len(steps))


def _settings(outcome: AuditOutcome) -> Iterator[str]:
    settings = outcome.plan.get("settings", {})
    if not settings:
        return
    yield "<h2>Settings</h2>\n"
    rows = ((f"<code>{markup(k)}</code>", markup(s["value"]), markup(s["from"])) for k, s in sorted(settings.items()))
    yield from _table(("setting", "value", "from"), rows, len(settings))


def _limits(outcome: AuditOutcome) -> Iterator[str]:
    yield (
        "<h2>What this check cannot know</h2>\n<p>Bodies are covered by a checksum, headers and properties are not, unless the "
        "broker was told to append one. What the copy does not hold, it cannot show: a missing last segment looks like the end "
        "of the log.</p>\n"
    )
    dropped = sum(outcome.findings_dropped.values())
    if dropped:
        yield f"<p>{dropped:,} further disagreements were counted and are not listed.</p>\n"
