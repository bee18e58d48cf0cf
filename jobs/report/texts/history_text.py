"""The text of report, runs, diff and coverage. All that a store holds goes through `printable`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jobs.cli.terminal import BOLD, CODE_COLOUR, GREEN, RED, YELLOW, Paint, code_colour, in_columns
from jobs.report import past_views as views  # fmt: skip
from jobs.report.texts.run_words import store_title, would_be_lost
from jobs.report.texts.safety_text import SHORT
from jobs.report.texts.text import printable, seconds_text
from jobs.report.values_as_rows import time_of
from store_io.base.exit_codes import GAP_CODES, severity_rank
from store_io.base.wording import bytes_text, count_text

_NAME = 40
_TREND = 8  # codes of a store's line
_DETAILED = 3  # stores at most whose runs are listed one by one
_RUNS = 20  # of these, the newest
_LINES = 20  # of a list of findings or files
_DIFF_WORDS = {
    0: "nothing new",
    **dict.fromkeys(GAP_CODES, "a run is missing or incomplete"),
    10: "new: derived data differ",
    20: "new: loss, or changed bytes",
}
_LISTED = 10  # runs


def when_text(micros: int | None) -> str:
    """Return a time of the tables as people read it, in UTC to the second."""
    return (time_of(micros) or "never").replace("T", " ").rstrip("Z")


def answer_text(answer: str | None) -> str:
    """Return the answer of a run as a table shows it. A run of an earlier version kept none."""
    return "-" if answer is None else printable(answer, _NAME)


def _more(rest: int, noun: str) -> list[str]:
    return [f"  and {count_text(rest, 'more ' + noun)} (--format json has all)"] if rest > 0 else []


# ---- report --------------------------------------------------------------------------------------------------------


def fleet_text(view: views.FleetView, colour: bool = False) -> str:
    """Return the whole text of a fleet's view (`jobs.commands.past.fleet`)."""
    return "\n".join(_fleet(view, Paint(colour))) + "\n"


def _fleet(view: views.FleetView, paint: Paint) -> Iterator[str]:
    stores = view.stores
    head = ("code", "store", "answer", "safe to start?", "lost messages", "audited", "runs", "why")
    rows: list[Sequence[str]] = [head]
    paints = [BOLD]
    for store in stores:
        latest = store.latest
        lost = "?" if latest.lost_messages is None or not latest.starts else count_text(latest.lost_messages)
        if store.lost_timers and lost != "?":
            lost += f" + {count_text(store.lost_timers, 'timer')}"
        codes = " ".join(str(run.exit_code) for run in store.trend[-_TREND:])
        name, why = printable(store_title(store.name, store.broker_name, _NAME), _NAME), printable(latest.verdict, 120)
        answer, when = answer_text(store.answer), when_text(latest.started_at)
        rows.append((str(latest.exit_code), name, answer, SHORT[store.safety], lost, when, codes, why))
        paints.append(code_colour(latest.exit_code, bool(latest.diverged)))
    yield from in_columns(rows, (0, 4), paints, paint)
    totals = view.totals
    answers = ", ".join(f"{totals[kind]:,} {word}" for kind, word in SHORT.items() if totals[kind])
    lost_text = f"{count_text(totals['lost_messages'], 'message')} ({bytes_text(totals['lost_bytes'])})"
    timers = f"; {count_text(totals['lost_timers'], 'timer message')} never delivered" if totals["lost_timers"] else ""
    unknown = sum(store.latest.lost_messages is None or not store.latest.starts for store in stores)
    yield paint(BOLD, f"{count_text(totals['stores'], 'store')}: {answers}; {would_be_lost(lost_text, unknown)}{timers}")
    window = f" since {when_text(view.since)} UTC" if view.since is not None else ""
    yield f"{count_text(view.runs, 'run')}{window} in {printable(view.tables)}; the latest run of each store counts"
    for gone in view.not_audited_since:
        yield paint(YELLOW, f"not audited since then: {printable(gone.name, _NAME)} (last {when_text(gone.last)} UTC)")
    if len(stores) <= _DETAILED:
        for store in stores:
            yield from _trend(store, paint)


def _trend(store: views.StoreInFleet, paint: Paint) -> Iterator[str]:
    runs = store.trend
    yield ""
    name = printable(store_title(store.name, store.broker_name, _NAME), _NAME)
    yield paint(BOLD, f"{name}: {printable(store.latest.verdict)}")
    head = "started (UTC)|code|lost|losses|rebuildable|notes|segments|messages|damaged|read|took|run".split("|")
    rows: list[Sequence[str]] = [head]
    paints = [""]
    for run in runs[-_RUNS:]:
        numbers = [
            "?" if number is None else f"{number:,}"
            for number in (
                run.lost_messages, run.losses, run.rebuildable, run.notes, run.segment_count, run.messages, run.damaged_extents,
            )
        ]  # fmt: skip
        tail = (bytes_text(run.bytes_read or 0), seconds_text(run.seconds or 0.0), printable(run.run_id))
        rows.append((when_text(run.started_at), str(run.exit_code), *numbers, *tail))
        paints.append(code_colour(run.exit_code, False))
    yield from ("  " + line for line in in_columns(rows, range(1, 11), paints, paint))
    if store.runs > min(len(runs), _RUNS):
        yield f"  and {count_text(store.runs - min(len(runs), _RUNS), 'earlier run')} (--format json has more)"
    places = Counter(run.location for run in runs)
    if len(places) > 1:
        yield f"  under this name, copies in {count_text(len(places), 'place')}; the latest in {printable(runs[-1].location)}"
    for before, after in pairwise(runs):
        changed = [
            f"{word} {printable(old)} -> {printable(new)}"
            for word, old, new in (
                ("release", before.release, after.release),
                ("tool", before.tool_version, after.tool_version),
                ("rules", before.rules_version, after.rules_version),
            )
            if old != new
        ]
        if changed:
            yield f"  other rules from {when_text(after.started_at)}: {', '.join(changed)}"


# ---- runs ----------------------------------------------------------------------------------------------------------


def runs_text(view: views.RunsView, colour: bool = False) -> str:
    """Return the whole text of a list of runs (`jobs.commands.past.run_list`)."""
    return "\n".join(_run_list(view, Paint(colour))) + "\n"


def _run_list(view: views.RunsView, paint: Paint) -> Iterator[str]:
    head = "started (UTC)|code|stores|lost messages|losses|rebuildable|read|run".split("|")
    rows: list[Sequence[str]] = [head]
    paints = [BOLD]
    for run in view.runs:
        lost = "?" if run.stores_not_known == run.stores else f"{run.lost_messages:,}"
        lost += " + ?" if 0 < run.stores_not_known < run.stores else ""
        numbers = (str(run.exit_code), f"{run.stores:,}", lost, f"{run.losses:,}", f"{run.rebuildable:,}")
        rows.append((when_text(run.started_at), *numbers, bytes_text(run.bytes_read), printable(run.run_id)))
        paints.append(CODE_COLOUR.get(run.exit_code, ""))
    yield from in_columns(rows, range(1, 7), paints, paint)
    rest = view.runs_in_all - len(view.runs)
    of = f" of store {printable(view.store, _NAME)}" if view.store is not None else ""
    since = f" since {when_text(view.since)} UTC" if view.since is not None else ""
    more = f"; listed: the newest {len(view.runs):,} (--limit)" if rest else ""
    yield f"{count_text(view.runs_in_all, 'run')}{of}{since} in {printable(view.tables)}{more}"
    if any(run.stores_not_known for run in view.runs):
        yield "?: it is not known what starts on some of the stores would lose"


# ---- diff ----------------------------------------------------------------------------------------------------------


def difference_text(view: views.DifferenceView, colour: bool = False) -> str:
    """Return the whole text of a difference (`jobs.commands.past.difference`)."""
    return "\n".join(_difference(view, Paint(colour))) + "\n"


def _difference(view: views.DifferenceView, paint: Paint) -> Iterator[str]:
    for side, run in (("a", view.run_a), ("b", view.run_b)):
        yield f"run {side.upper()}  {printable(run.run_id)}, {when_text(run.started_at)} UTC"
    for sentence in view.other_rules:
        yield paint(YELLOW, f"other rules: {printable(sentence)}; they may judge the same bytes differently")
    alike = 0
    for store in view.stores:
        lines = list(_store_difference(store, paint))
        if store.code == 0 and not lines:
            alike += 1
            continue
        yield ""
        yield paint(BOLD + CODE_COLOUR[store.code], f"{printable(store.name, _NAME)}: {_difference_head(store)}")
        yield from lines
    if alike:
        yield f"{count_text(alike, 'store')} without a difference"
    code = view.exit_code
    yield paint(CODE_COLOUR[code], f"exit code {code} ({_DIFF_WORDS[code]})")


def last_text(view: views.LastView, colour: bool = False) -> str:
    """Return the whole text of the differences between each store's two newest runs."""
    paint = Paint(colour)
    parts = [difference_text(one, colour) for one in view.comparisons]
    if len(parts) > 1:
        code = view.exit_code
        parts.append(paint(CODE_COLOUR[code], f"all {len(parts):,} pairs of runs: exit code {code} ({_DIFF_WORDS[code]})") + "\n")
    if alone := view.one_run_only:
        shown = ", ".join(printable(name, _NAME) for name in alone[:_LINES])
        more = f" and {len(alone) - _LINES:,} more" if len(alone) > _LINES else ""
        parts.append(f"only one run, so nothing was compared: {shown}{more}\n")
    return "\n".join(parts)


def _difference_head(store: views.StoreDifference) -> str:
    a, b = store.exit_codes
    if a is None:
        return f"first seen in run B, code {b}"
    if b is None:
        return f"not in run B; code {a} in run A"
    kinds = (("new", store.new), ("grown", store.grown), ("fixed", store.fixed))
    found = [count_text(len(rows), f"{kind} finding") for kind, rows in kinds if rows]
    if store.unreadable_now:
        found.insert(0, f"it could be read in run A, and {'only in part' if store.commitlog else 'not'} in run B")
    return f"code {a} -> {b}; " + (", ".join(found) or "no new finding")


def _store_difference(store: views.StoreDifference, paint: Paint) -> Iterator[str]:
    for side, complete, verdict in zip("AB", store.complete, store.verdicts, strict=True):
        if complete is False:
            yield paint(YELLOW, f"  run {side} is incomplete: {printable(verdict)}")
    for sentence in store.other_settings:
        yield paint(YELLOW, f"  other rules: {printable(sentence)}")
    before, now = store.answers
    if None not in (before, now) and before != now:
        yield paint(YELLOW, f"  answer          {answer_text(before)} -> {answer_text(now)}")
    yield from _of_its_group(store, paint)
    log = store.commitlog
    if log:
        for changed in log.compared.changed[:_LINES]:
            yield paint(RED, f"  bytes changed   {_changed_text(changed)}")
        yield from _more(len(log.compared.changed) - _LINES, "segment")
        if log.none_left:
            yield paint(RED, f"  missing         all segments of the CommitLog, {len(log.missing):,} of them with messages")
        else:
            for file in log.missing[:_LINES]:
                yield paint(RED, f"  missing         {printable(file)}, though older segments are still there")
            yield from _more(len(log.missing) - _LINES, "segment")
        if log.shrank:
            yield paint(RED, f"  log's end       moved back from {log.end[0]:,} to {log.end[1]:,}")
        for file in log.appeared[:_LINES]:
            yield paint(YELLOW, f"  appeared        {printable(file)}, older than the last segment of run A")
    for derived in filter(None, (store.index, store.queues)):
        for changed in derived.compared.changed[:_LINES]:
            yield paint(YELLOW, f"  bytes changed   {_changed_text(changed)}")
        yield from _more(len(derived.compared.changed) - _LINES, "file")
    for kind, found, colour in (("new", store.new, RED), ("grown", store.grown, RED), ("fixed", store.fixed, GREEN)):
        rows = sorted(found, key=lambda row: severity_rank(row.severity))
        for row in rows[:_LINES]:
            yield paint(colour if row.severity != "note" else "", f"  {kind:<15} {_finding_text(row)}")
        yield from _more(len(rows) - _LINES, f"{kind} finding")
    if store.not_read:
        number = count_text(len(store.not_read), "finding")
        where = "in files that run B did not read, or about messages there"
        yield paint(YELLOW, f"  not read        {number} of run A {where}: not compared")
    if log and (log.end[1] > log.end[0] or any(amount.files for amount in (log.added, log.retired, log.compared.not_compared))):
        yield f"  as expected     {_growth_text(log)}"
    if store.persisting and (store.new or store.grown or store.fixed):
        codes = ", ".join(f"{row.code} {row.count:,}" for row in store.persisting[:_LINES])
        yield f"  persisting      {printable(codes)}"


def _of_its_group(store: views.StoreDifference, paint: Paint) -> Iterator[str]:
    """Yield a line if the copy lacks more of its group now than before, or no longer lacks any.

    Nothing if run B compared no copies.
    """
    before, now = store.lacks_messages
    if now is not None and now > (before or 0):
        was = "copies were not compared in run A" if before is None else f"{before:,} in run A"
        yield paint(RED, f"  lacks           {count_text(now, 'message')} that other copies of its group hold ({was})")
    elif now == 0 and before:
        yield paint(GREEN, f"  lacks           no message of its group any more ({before:,} in run A)")
    if store.diverged[1] and not store.diverged[0]:
        yield paint(RED, "  diverged        another copy of its group holds other messages at the same physical offsets")


def _changed_text(changed: views.ChangedFile) -> str:
    before, after = changed.size_bytes
    size = f"{before:,} bytes" if before == after else f"{before:,} -> {after:,} bytes"
    time = {True: "with a new modification time", False: "with the old modification time", None: ""}[changed.modified]
    return f"{printable(changed.file)}, {size} {time}".rstrip()


def _finding_text(row: views.Found) -> str:
    place = "" if row.start is None else f" [{row.start:,}, {row.end:,})"
    count = f" {row.count:,} times" if row.count != 1 else ""
    what = f"{printable(row.severity, 20)} {row.code}{count}"
    where = f", {printable(row.file, 100)}{place}" if row.file else ""
    text = f"{what}{where}: {printable(row.message, 160)}"
    if isinstance(row, views.Told) and row.was:
        text += f" (was {row.was.severity}, {row.was.count:,} times)"
    if isinstance(row, views.Told) and row.bytes_changed is False:
        text += " (this file's bytes are the same in both runs)"
    return text


def _growth_text(log: views.LogCompared) -> str:
    amounts = (
        (log.added.files, "segment", "new"),
        (log.retired.files, "segment", "retired from the front"),
        (log.compared.same.files, "older segment", "unchanged"),
        (log.compared.not_compared.files, "older segment", "not compared (not fully read in both runs)"),
    )
    parts = [f"the log grew by {bytes_text(log.end[1] - log.end[0])}"] if log.end[1] > log.end[0] else []
    parts += [f"{count_text(files, noun)} {words}" for files, noun, words in amounts if files]
    return ", ".join(parts)


# ---- coverage ------------------------------------------------------------------------------------------------------


def coverage_text(view: views.CoverageView, colour: bool = False) -> str:
    """Return the whole text of a coverage (`jobs.commands.past.coverage`)."""
    return "\n".join(_coverage(view, Paint(colour))) + "\n"


def _coverage(view: views.CoverageView, paint: Paint) -> Iterator[str]:
    rows: list[Sequence[str]] = [("verified", "store", "of", "segments", "runs", "listed (UTC)")]
    paints = [BOLD]
    for store in view.stores:
        name, size, share = printable(store.name, _NAME), bytes_text(store.bytes), store.fraction
        segments = f"{store.segments_verified:,} of {store.segments:,}"
        listed = when_text(store.listed.started_at)
        rows.append((_percent(share), name, size, segments, f"{store.runs_within:,}", listed))
        paints.append("" if share is None else GREEN if share == 1 else YELLOW if share else RED)
    yield from in_columns(rows, (0, 2, 3, 4), paints, paint)
    read = f"{_percent(view.fraction)} of the fleet's CommitLog bytes fully read since {when_text(view.since)} UTC"
    yield paint(BOLD, f"{read}: {bytes_text(view.bytes_verified)} of {bytes_text(view.bytes)}")
    if unknown := sum(not store.segments for store in view.stores):
        yield paint(YELLOW, f"not in this figure: {count_text(unknown, 'store')} of which no run could list a segment")
    for store in view.stores:
        waiting, gone = store.least_recently, store.gone
        if gone:
            found = "could not read it" if gone.exit_code in GAP_CODES else "found no CommitLog segment any more"
            why = f"run {printable(gone.run_id)} {found}, so nothing counts as verified"
            yield paint(RED, f"{printable(store.name, _NAME)}: {why} ({printable(gone.verdict)})")
        elif waiting:
            yield ""
            yield paint(BOLD, f"{printable(store.name, _NAME)}: segments that were read longest ago")
            for segment in waiting[:_LINES]:
                last = f"{when_text(segment.verified)} UTC" if segment.verified else f"not within {view.looked_back}"
                yield f"  {printable(segment.file)}  {bytes_text(segment.size_bytes)}, {last}"
            yield from _more(len(waiting) + store.unlisted - _LINES, "segment")


def _percent(fraction: float | None) -> str:
    """Return the share, rounded down: 100 % is all of it."""
    return "-" if fraction is None else f"{int(fraction * 1000) / 10:.1f} %"


def tables_text(view: views.TablesView, colour: bool = False) -> str:
    """Return the whole text of a view of `jobs.commands.tables_command`."""
    paint, found = Paint(colour), view.found
    if isinstance(found, views.Pruned):
        lines = _prune(found, view.dry_run, paint)
    elif isinstance(found, views.Compacted):
        lines = _compact(found, paint)
    elif isinstance(found, views.TableViews):
        return _sql(found, view.tables)
    else:
        lines = _vacuum(found, paint) if isinstance(found, views.Vacuumed) else _info(found, paint)
    return "\n".join([*lines, *_end(view, paint)]) + "\n"


def _prune(view: views.Pruned, dry_run: bool, paint: Paint) -> Iterator[str]:
    gone, needed = view.gone, view.needed
    kept = [f"began since {when_text(view.since)} UTC"] if view.since is not None else []
    kept += [f"are among the {count_text(view.keep_runs, 'newest run')} of a store"] if view.keep_runs is not None else []
    yield paint(BOLD, f"{len(gone):,} of {count_text(view.runs, 'run')} go; those stay that {' or '.join(kept)}")
    if needed:
        why = "the latest one of a store, its latest full one, or the one that saw its log reach furthest"
        yield f"  kept all the same: {count_text(len(needed), 'older run')}, each {why}"
    yield from _runs("goes", gone)
    yield from _runs("kept", needed)
    yield from _columns(("table", "rows that go"), [(t.table, f"{t.rows:,}") for t in view.by_table], paint)
    stopped = {run_id for table in view.by_table for run_id in table.unfinished_runs}
    if stopped:
        yield f"  of them rows of {count_text(len(stopped), 'run')} that were stopped before they were whole, over 7 days ago"
    if gone and not dry_run:
        yield "their files stay for readers that are at work; `tables vacuum` removes them once they are 7 days old"


def _runs(word: str, runs: Sequence[views.NamedRun]) -> Iterator[str]:
    for run in runs[:_LISTED]:
        yield f"  {word}  {printable(run.run_id)}  {when_text(run.started_at)} UTC"
    if len(runs) > _LISTED:
        yield f"  and {count_text(len(runs) - _LISTED, 'more run')}, until {when_text(runs[-1].started_at)} UTC"


def _compact(view: views.Compacted, paint: Paint) -> Iterator[str]:
    rows = [(t.table, *map(_number, t.files), *map(bytes_text, t.bytes)) for t in view.by_table]
    yield from _columns(("table", "files before", "after", "size before", "after"), rows, paint)


def _vacuum(view: views.Vacuumed, paint: Paint) -> Iterator[str]:
    rows = [
        (t.table, _number(t.files), bytes_text(t.bytes), *map(_number, t.log_files), *map(bytes_text, t.log_bytes))
        for t in view.by_table
    ]
    head = ("table", "files that go", "size", "log files before", "after", "log size before", "after")
    yield from _columns(head, rows, paint)
    total = sum(t.bytes for t in view.by_table)
    files = count_text(sum(t.files for t in view.by_table), "file")
    yield paint(BOLD, f"{files}, {bytes_text(total)}, that no version of the last {_span(view.older_than_hours)} has")


def _info(view: views.TableSizes, paint: Paint) -> Iterator[str]:
    rows = [
        (
            t.table, _number(t.rows), _number(t.files), bytes_text(t.bytes), _number(t.old_files),
            bytes_text(t.old_bytes), _number(t.log_files), bytes_text(t.log_bytes),
        )
        for t in view.by_table
    ]  # fmt: skip
    head = ("table", "rows", "files", "size", "old files", "size", "log files", "size")
    yield from _columns(head, rows, paint)
    span = f", {when_text(view.oldest)} to {when_text(view.newest)} UTC" if view.runs else ""
    yield paint(BOLD, f"{count_text(view.runs, 'run')}{span}")
    if any(t.old_files for t in view.by_table):
        yield "old files: of earlier versions, or of a writer that was stopped; `tables vacuum` removes those over 7 days old"


def _sql(found: views.TableViews, tables: str) -> str:
    """Return the views as SQL, first those of the tables themselves, as each program names a table."""
    names = "runs", "findings"
    heads = (("DuckDB, after INSTALL delta; LOAD delta", "delta_scan('{}')"), ("Spark", "delta.`{}`"))
    lines = []
    for program, place in heads:
        lines.append(f"-- {program}:")
        at = tables.replace("'", "''") if "'" in place else tables.replace("`", "``")
        lines += (f"-- CREATE OR REPLACE TEMP VIEW {n} AS SELECT * FROM {place.format(f'{at}/{n}')};" for n in names)
    lines += (f"CREATE OR REPLACE TEMP VIEW {name} AS{sql};" for name, sql in found.views.items())
    return "\n".join(lines) + "\n"


def _end(view: views.TablesView, paint: Paint) -> Iterator[str]:
    if view.dry_run:
        yield paint(YELLOW, f"dry run: nothing in {printable(view.tables)} was changed")
    elif view.action != "info":
        yield f"done in {seconds_text(view.seconds)}: {printable(view.tables)}"


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint) -> Iterator[str]:
    lines = in_columns([head, *rows], range(1, len(head)), [BOLD, *([""] * len(rows))], paint)
    yield from ("  " + line for line in lines)


def _number(value: int) -> str:
    return f"{value:,}"


def _span(hours: int) -> str:
    return count_text(hours // 24, "day") if hours % 24 == 0 else count_text(hours, "hour")
