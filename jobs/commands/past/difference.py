"""diff: what two runs say of the same stores. New, fixed and persisting findings; and bytes that changed where a broker no longer
writes.

A finding persists where the later run has one of the same code in the same place. Places move, because neighbouring findings fold
into one range that grows: ranges that overlap are one finding. One that the later run does not have is fixed only where that run
has read its file, and the segment of the message that it is about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from jobs.cli.option_values import LAST_RUN, near
from jobs.cli.options import Command
from jobs.report.past_views import (
    Amount,
    ChangedFile,
    DerivedCompared,
    DifferenceView,
    FilesCompared,
    Found,
    KnownRun,
    LastSegment,
    LastView,
    LogCompared,
    Persisting,
    RunCompared,
    StoreDifference,
    Told,
    Was,
)  # fmt: skip
from jobs.report.texts.history_text import difference_text, last_text
from jobs.report.texts.run_words import short_names
from jobs.report.values_as_rows import IN_PLACE, SETTINGS, columns_of
from jobs.tables import past_runs
from jobs.tables.delta_query import text
from jobs.tables.past_runs import History, began, by_store
from schemas.advice import exit_code_of
from store_io.base.errors import StoreError, UsageError
from store_io.base.exit_codes import DERIVED, GAP_CODES, INCOMPLETE, LOST, SEVERITIES, of_severity, severity_rank, worst

T = TypeVar("T")
FINDINGS_AT_ONCE = 400_000  # of both runs, compared in memory: about 1 KiB each


def run(command: Command) -> int:
    """Run the command.

    Returns 0 if nothing is new, 10 or 20 as the most severe new finding, 3 if a run is missing or incomplete.
    """
    uri = past_runs.tables_of(command)
    last = list(command.arguments) == [LAST_RUN]
    if not last and len(command.arguments) != 2:
        raise UsageError(f"diff takes two runs, RUN_A RUN_B, or {LAST_RUN}, not {len(command.arguments)}")
    history = History(uri)
    view: LastView | DifferenceView
    if last:
        view = read_last(history, command.options.get("--store"))
        past_runs.write_view(command, view, last_text, [place for one in view.comparisons for place in _places(one)])
    else:
        view = read_difference(history, command.arguments[0], command.arguments[1], command.options.get("--store"))
        past_runs.write_view(command, view, difference_text, _places(view))
    return view.exit_code


def _places(view: DifferenceView) -> list[str]:
    return [place for store in view.stores for place in store.locations]


# ---- out of the tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run(KnownRun):
    """A store in one of the two runs. gaps: causes; None if the run's version wrote none."""

    level: str | None
    exit_code: int
    complete: bool
    gaps: Sequence[str] | None
    verdict: str
    answer: str | None
    location: str | None
    release: str | None
    settings: dict[str, str] = field(metadata=SETTINGS)
    tool_version: str | None
    rules_version: str | None
    lacks_messages: int | None
    diverged: bool | None


@dataclass(frozen=True, slots=True)
class File:
    """A file in one of the two runs. later: in run B. digest: None if not all of it was read."""

    store: str
    later: bool
    file: str
    size_bytes: int | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class Segment(File):
    """A segment. wrote: the byte after the last written one, None if none is. known: whether that was looked for at all."""

    size_bytes: int
    base_offset: int
    modified_ns: int | None
    wrote: int | None
    known: bool


F = TypeVar("F", bound=File)


@dataclass(frozen=True, slots=True)
class Compared:
    """What two runs have of some stores.

    moved: findings in places that the runs do not have alike, of both.
    persisting: the other places of run B, summed up.
    """

    moved: Sequence[Found]
    persisting: Sequence[Persisting]
    segments: Sequence[Segment]
    index: Sequence[File] = ()
    queues: Sequence[File] = ()


def read_difference(
    history: History, run_a: str, run_b: str, store: str | None = None, stores: Collection[str] = ()
) -> DifferenceView:
    """Compare two runs. Raises StoreError if a run or the store is missing.

    store: as a user names one. stores: names of those alone that are compared; empty: all.
    """
    found = history.runs(Run, [run_a, run_b])
    of_a, of_b = ({run.store: run for run in found if run.run_id == run_id} for run_id in (run_a, run_b))
    if not of_a or not of_b:
        missing = run_b if of_a else run_a
        known = {run.run_id for run in history.known}
        raise StoreError(
            f"run {missing!r}: no such run in {history.uri}, or it was stopped before it was whole{near(missing, known)}"
        )
    store = past_runs.chosen_store((*of_a, *of_b), store, f"run {run_a} or {run_b}")
    if wanted := [store] if store is not None else stores:
        of_a, of_b = ({name: run for name, run in found.items() if name in wanted} for found in (of_a, of_b))
    compared: list[StoreDifference] = []
    for names in _batches(history, [run_a, run_b], sorted(of_a.keys() | of_b.keys())):
        compared += compare_stores(names, of_a, of_b, _compared(history, run_a, run_b, names))
    return difference_view(of_a, of_b, compared)


def read_last(history: History, store: str | None = None) -> LastView:
    """Compare the two newest runs of each store. Raises StoreError if no store has two runs."""
    store, known = history.runs_of(store)
    of_store = by_store(known)
    pairs: defaultdict[tuple[str, str], list[KnownRun]] = defaultdict(list)
    for runs in of_store.values():
        if len(runs) > 1:
            pairs[runs[-2].run_id, runs[-1].run_id].append(runs[-1])
    if not pairs:
        whose = "no store has" if store is None else f"store {store!r} does not have"
        raise StoreError(f"{history.uri}: {whose} two runs that could be compared")
    newest_first = sorted(pairs, key=lambda pair: (-max(map(began, pairs[pair])), pair))
    views = [read_difference(history, *pair, stores=frozenset(run.store for run in pairs[pair])) for pair in newest_first]
    alone = sorted(name for name, runs in of_store.items() if len(runs) == 1)
    return LastView(worst(view.exit_code for view in views), views, alone)


@dataclass(frozen=True, slots=True)
class _Counted:
    store: str
    findings: int


def _batches(history: History, run_ids: Sequence[str], stores: Sequence[str]) -> Iterator[list[str]]:
    """Yield the stores in groups that have few findings together: the places of a group are compared in memory."""
    statement = "SELECT store, count(*) AS findings FROM findings GROUP BY store"
    findings = {one.store: one.findings for one in history.query(_Counted, statement, run_ids, stores)}
    batch: list[str] = []
    held = 0
    for store in stores:
        more = findings.get(store, 0)
        if batch and held + more > FINDINGS_AT_ONCE:
            yield batch
            batch, held = [], 0
        batch.append(store)
        held += more
    yield batch


# A greater rank is graver; a severity of a later version counts as the gravest. The gravest finding of a place is the first in
# it: DataFusion's first_value with an order would take time by the square of the places.
_PLACE = 'store, code, file, start, "end", phy_offset, topic, queue_id, queue_offset'
_WORDS = ("severity", "message", "expected", "actual", "next")
_RANKS = " ".join(f"WHEN '{severity}' THEN {-severity_rank(severity)}" for severity in SEVERITIES)
_GRAVEST = ", ".join(f"{name} DESC NULLS LAST" for name in ("rank", *_WORDS))
_SIDES = [
    f"""max(rank) FILTER (WHERE {side}) AS rank_{name}, sum("count") FILTER (WHERE {side}) AS count_{name},
    named_struct('later', {name == "b"}, 'count', sum("count") FILTER (WHERE {side}),
        {", ".join(f"'{word}', max({word}) FILTER (WHERE {side} AND in_place = 1)" for word in _WORDS)}) AS side_{name}"""
    for name, side in (("a", "NOT later"), ("b", "later"))
]
_SAME = f"""
    WITH ranked AS (SELECT *, CASE severity {_RANKS} ELSE {-severity_rank("")} END AS rank, {{later}} FROM findings),
    numbered AS (SELECT *, row_number() OVER (PARTITION BY later, {_PLACE} ORDER BY {_GRAVEST}) AS in_place FROM ranked),
    places AS (SELECT {_PLACE}, {", ".join(_SIDES)} FROM numbered GROUP BY {_PLACE}),
    compared AS (SELECT *, coalesce(count_b <= count_a AND rank_b <= rank_a, FALSE) AS same FROM places)"""
_MOVED = f"""{_SAME} SELECT {_PLACE}, {", ".join(f"side['{word}'] AS {word}" for word in ("later", "count", *_WORDS))}
    FROM (SELECT {_PLACE}, unnest(make_array(side_a, side_b)) AS side FROM compared WHERE NOT same)
    WHERE side['count'] IS NOT NULL"""
_PERSISTING = f"""{_SAME} SELECT store, side_b['severity'] AS severity, code, count(*) AS findings, sum(count_b) AS count
    FROM compared WHERE same GROUP BY store, side_b['severity'], code"""
_WHOLE = "CASE WHEN problem IS NULL AND digest <> '' {known} THEN digest END AS digest"
_INDEX = f"SELECT store, {{later}}, file, size_bytes, {_WHOLE.format(known='')} FROM index_files"
_QUEUES = """SELECT store, later, of_queue['file'] AS file, of_queue['size_bytes'] AS size_bytes, of_queue['digest'] AS digest
    FROM (SELECT store, {later}, unnest(files) AS of_queue FROM queues)"""
# A segment that run B took as an earlier run had verified it: what its bytes are now, run B does not know.
_SEGMENTS = f"""
    WITH ends AS (
        SELECT run_id, store, file, max(extent['end']) FILTER (WHERE extent['kind'] <> 'unwritten') AS wrote
        FROM (SELECT run_id, store, file, unnest(extents) AS extent FROM segments) GROUP BY run_id, store, file
    ),
    both AS (SELECT *, {{later}} FROM segments)
    SELECT store, later, file, size_bytes, {_WHOLE.format(known="AND (NOT later OR coalesce(verified_run, run_id) = run_id)")},
        base_offset, modified_ns, wrote, extents IS NOT NULL AS known
    FROM both LEFT JOIN ends USING (run_id, store, file)"""


def _compared(history: History, run_a: str, run_b: str, stores: Sequence[str]) -> Compared:
    def ask(shape: type[T], statement: str) -> list[T]:
        later = f"run_id = {text(run_b)} AS later"
        return history.query(shape, statement.format(later=later), [run_a, run_b], stores)

    moved, persisting = ask(Found, _MOVED), ask(Persisting, _PERSISTING)
    return Compared(moved, persisting, ask(Segment, _SEGMENTS), ask(File, _INDEX), ask(File, _QUEUES))


# ---- the comparison ------------------------------------------------------------------------------------------------


def compare_stores(
    stores: Sequence[str], of_a: Mapping[str, Run], of_b: Mapping[str, Run], compared: Compared
) -> Iterator[StoreDifference]:
    """Yield the difference of each store. of_a, of_b: the runs by store."""
    moved, persisting = by_store(compared.moved), by_store(compared.persisting)
    segments, index, queues = by_store(compared.segments), by_store(compared.index), by_store(compared.queues)
    shown_as = short_names((*of_a, *of_b))
    for name in stores:
        before, after = (
            _Side(runs.get(name), _of(segments[name], later), _of(index[name], later), _of(queues[name], later))
            for runs, later in ((of_a, False), (of_b, True))
        )
        yield _store(shown_as[name], name, (before, after), moved[name], persisting[name])


def _of(files: Iterable[F], later: bool) -> list[F]:
    return [file for file in files if file.later is later]


def difference_view(of_a: Mapping[str, Run], of_b: Mapping[str, Run], stores: Sequence[StoreDifference]) -> DifferenceView:
    """Return the whole difference. of_a, of_b: the runs by store. stores: as `compare_stores` has them."""
    a, b = (next(iter(found.values()), None) for found in (of_a, of_b))
    run_a, run_b = (
        RunCompared(run.run_id, run.tool_version, run.rules_version, run.started_at) if run else RunCompared() for run in (a, b)
    )
    other_rules = []
    if a and b:
        versions = (("tool", a.tool_version, b.tool_version), ("rules", a.rules_version, b.rules_version))
        other_rules = [f"{words} {old} -> {new}" for words, old, new in versions if old != new]
    return DifferenceView(run_a, run_b, worst(store.code for store in stores), other_rules, stores)


@dataclass(frozen=True, slots=True)
class _Side:
    """One store in one run, None if the run did not have it, with its files."""

    run: Run | None
    segments: list[Segment]
    index: list[File]
    queues: list[File]

    @property
    def files(self) -> Iterator[File]:
        yield from self.segments
        yield from self.index
        yield from self.queues

    @property
    def unlisted(self) -> bool:
        """Say whether the run could not even list the store, as one that was not mounted. Then nothing is known of it."""
        return self.run is not None and not self.run.complete and next(self.files, None) is None

    def digests(self) -> dict[str | None, str]:
        """Return the digests of the files that were fully read."""
        return {file.file: file.digest for file in self.files if file.digest}


def _store(
    shown_as: str, name: str, sides: tuple[_Side, _Side], moved: Sequence[Found], persisting: Sequence[Persisting]
) -> StoreDifference:
    before, after = sides
    a, b = before.run, after.run
    matched = match_findings(moved)
    was, now = before.digests(), after.digests()
    unread: set[str | None] = {file.file for file in (*after.segments, *after.index) if file.digest is None}
    if b is not None and b.level == "quick":  # which leaves out queue and index files too
        unread |= {finding.file for finding in matched.gone if finding.file not in now}
    emptied = bool(a and b and before.segments and not after.segments)  # what is gone is not fixed
    of_b = _Places(after.segments, b is None or bool(b.complete))
    fixed: list[Found] = []
    not_read: list[Found] = []
    for finding in matched.gone:
        read = not (after.unlisted or emptied or finding.file in unread) and of_b.was_read(finding, finding.file in now)
        (fixed if read else not_read).append(finding)
    log = index = queues = None
    if a and b and not after.unlisted:
        log = compare_log(before.segments, after.segments)
        index, queues = (compare_derived(*files) for files in ((before.index, after.index, True), (before.queues, after.queues)))

    def told(finding: Found, earlier: Was | None) -> Told:
        one, other = was.get(finding.file), now.get(finding.file)  # None if one of the runs has not read the whole file
        changed = None if one is None or other is None else one != other
        return Told(**{name: getattr(finding, name) for name in _FIELDS}, was=earlier, bytes_changed=changed)

    codes = [of_severity(finding.severity) for finding in (*matched.new, *(finding for finding, _ in matched.grown))]
    codes += [LOST] * bool(log and (log.compared.changed or log.missing or log.shrank))
    codes += [DERIVED] * any(files.compared.changed for files in (index, queues) if files)
    codes += [INCOMPLETE] * (b is None)  # a store without a baseline is new, which is no fault
    codes += [code for run in (a, b) if run is not None and not run.complete for code in _codes_of_gaps(run)]

    def both(read: Callable[[Run], T]) -> list[T | None]:
        return [None if run is None else read(run) for run in (a, b)]

    return StoreDifference(
        store=name,
        name=shown_as,
        code=worst(codes),
        exit_codes=both(lambda run: run.exit_code),
        verdicts=both(lambda run: run.verdict),
        answers=both(lambda run: run.answer),
        complete=both(lambda run: run.complete),
        lacks_messages=both(lambda run: run.lacks_messages),
        diverged=both(lambda run: run.diverged),
        unreadable_now=bool(a and b and a.complete and b.exit_code in GAP_CODES),
        locations=[run.location or "" for run in (a, b) if run],
        other_settings=_other_settings(a, b) if a and b and not (after.unlisted or emptied or before.unlisted) else [],
        new=[told(finding, None) for finding in matched.new],
        grown=[told(*found) for found in matched.grown],
        fixed=fixed,
        not_read=not_read,
        persisting=_summed(persisting, matched.still),
        commitlog=log,
        index=index,
        queues=queues,
    )


def _summed(persisting: Sequence[Persisting], still: Sequence[Found]) -> list[Persisting]:
    """Return the sums by code, with those findings that are still there elsewhere."""
    places: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for key, findings, count in (
        *(((one.severity, one.code), one.findings, one.count) for one in persisting),
        *(((one.severity, one.code), 1, one.count) for one in still),
    ):
        places[key] += findings
        total[key] += count
    return [
        Persisting("", *key, places[key], total[key]) for key in sorted(total, key=lambda key: (severity_rank(key[0]), key[1]))
    ]


def _codes_of_gaps(run: Run) -> list[int]:
    """Return the exit code of each gap of an incomplete run. If the run's version wrote no causes, it is the usual code."""
    return [exit_code_of(cause) for cause in run.gaps or ()] or [INCOMPLETE]


class _Places:
    """The physical offsets that a run has read.

    complete: whether it could judge all that it listed.
    """

    def __init__(self, segments: Sequence[Segment], complete: bool):
        self._complete = complete
        self._kept = sorted(segments, key=lambda segment: segment.base_offset)
        self._starts = [segment.base_offset for segment in self._kept]

    def was_read(self, finding: Found, file_read: bool) -> bool:
        """Say whether the run would have the finding if it were still there. file_read: it has read the finding's own file.

        A complete run has read all that a finding can be about, but perhaps not the segment of the message that it names. In any
        other run much that was not read has no row, such as a link in place of a segment: there the place itself has to be one
        that was read. If several findings were folded into one, only the first one's place is known.
        """
        first = finding.phy_offset
        at = self._segment_of(first) if first is not None else None
        if self._complete:
            return at is None or at.digest is not None
        return file_read and finding.count == 1 and at is not None and at.digest is not None

    def _segment_of(self, phy_offset: int) -> Segment | None:
        number = bisect_right(self._starts, phy_offset) - 1
        if number < 0 or phy_offset >= self._starts[number] + self._kept[number].size_bytes:
            return None
        return self._kept[number]


def _other_settings(a: Run, b: Run) -> list[str]:
    found = [f"release {a.release} -> {b.release}"] if a.release != b.release else []
    of_a, of_b = a.settings, b.settings
    keys = sorted(key for key in of_a.keys() | of_b.keys() if of_a.get(key) != of_b.get(key))
    return found + [f"{key} {of_a.get(key, 'unset')} -> {of_b.get(key, 'unset')}" for key in keys]


# ---- findings ------------------------------------------------------------------------------------------------------

_FIELDS = columns_of(Found)


@dataclass(frozen=True, slots=True)
class Matched:
    """Findings of places that two runs do not have alike. still: of run B, and no worse. gone: of run A."""

    new: list[Found]
    grown: list[tuple[Found, Was]]
    gone: list[Found]
    still: list[Found]


def match_findings(moved: Iterable[Found]) -> Matched:
    """Match the findings of places that two runs do not have alike.

    Those of one code, file and queue whose ranges overlap, in either run, are one finding: it has grown if the later run counts
    more, covers bytes that the earlier one did not, or judges it graver. The others are matched by their physical offset,
    whichever file holds it now.
    """
    groups: defaultdict[tuple[Any, ...], list[Found]] = defaultdict(list)
    for row in moved:
        groups[row.code, row.file, row.topic, row.queue_id].append(row)
    new: list[Found] = []
    grown: list[tuple[Found, Was]] = []
    gone: list[Found] = []
    still: list[Found] = []
    for _, rows in sorted(groups.items(), key=lambda item: tuple(map(str, item[0]))):
        for cluster in _clusters(rows):
            a, b = ([row for row in cluster if row.later is later] for later in (False, True))
            if not a or not b:
                new += b
                gone += a
                continue
            start = min((row.start for row in a if row.start is not None), default=None)
            end = max((row.end for row in a if row.end is not None), default=None)
            was = Was(IN_PLACE, start, end, sum(row.count for row in a), max((row.severity for row in a), key=of_severity))
            worse = sum(row.count for row in b) > was.count or any(_reaches_out(row, was) for row in b)
            if worse:
                grown += ((row, was) for row in b)
            else:
                still += b
    old_by_message = {_message(row): row for row in gone if row.phy_offset is not None}
    matched: set[int] = set()  # of rows, by identity: there may be very many
    for row in new:
        old = old_by_message.pop(_message(row), None) if row.phy_offset is not None else None
        if old is not None:
            matched |= {id(row), id(old)}
            if row.count > old.count or of_severity(row.severity) > of_severity(old.severity):
                grown.append((row, Was(old.file, old.start, old.end, old.count, old.severity)))
            else:
                still.append(row)
    new, gone = ([row for row in rows if id(row) not in matched] for rows in (new, gone))
    return Matched(new, grown, gone, still)


def _reaches_out(row: Found, was: Was) -> bool:
    """Say whether a finding is graver, or covers bytes that the earlier run's did not."""
    if of_severity(row.severity) > of_severity(was.severity):
        return True
    if row.start is None or row.end is None or was.start is None or was.end is None:
        return False
    return row.start < was.start or row.end > was.end


def _message(row: Found) -> tuple[Any, ...]:
    return row.code, row.phy_offset, row.topic, row.queue_id


def _clusters(rows: Sequence[Found]) -> Iterator[list[Found]]:
    """Yield rows of one code, file and queue in groups of overlapping ranges; those of whole files are one group."""
    whole = [row for row in rows if row.start is None]
    if whole:
        yield whole
    cluster: list[Found] = []
    reach = 0
    ranges = sorted((row.start, row.end or row.start, number) for number, row in enumerate(rows) if row.start is not None)
    for start, end, number in ranges:
        if cluster and start >= reach and start != cluster[-1].start:
            yield cluster
            cluster = []
        reach = max(reach, end) if cluster else end
        cluster.append(rows[number])
    if cluster:
        yield cluster


# ---- files ---------------------------------------------------------------------------------------------------------


def compare_log(before: Sequence[Segment], after: Sequence[Segment]) -> LogCompared:
    """Compare the CommitLog's segments of two runs. No broker writes to any that is older than the last written one."""
    old, new = ({row.file: row for row in rows} for rows in (before, after))
    last = max((row.base_offset for row in before if row.wrote is not None), default=-1)
    least = min((row.base_offset for row in after), default=None)
    missing: list[Segment] = []
    retired: list[Segment] = []
    closed: list[tuple[File, File]] = []
    for row in sorted(before, key=lambda row: (row.base_offset, row.file)):
        now = new.get(row.file)
        if now is None:
            (retired if least is not None and row.base_offset < least else missing).append(row)
        elif row.base_offset < last:
            closed.append((row, now))
    added = [row for row in after if row.file not in old and row.base_offset > last]
    was, ends = (max((r.base_offset + r.wrote for r in rows if r.wrote is not None), default=0) for rows in (before, after))
    beyond = any(not row.known and row.base_offset + row.size_bytes > ends for row in after)
    tail = next((row for row in before if row.base_offset == last), None)
    tail_now = new.get(tail.file) if tail else None
    return LogCompared(
        compared=_closed_files(closed),
        missing=[row.file for row in missing if row.base_offset <= last],
        none_left=bool(before) and not after,
        retired=_amount(retired),
        added=_amount(added),
        appeared=[row.file for row in after if row.file not in old and row.base_offset <= last],
        end=(was, ends),
        shrank=ends < was and not beyond,
        last=LastSegment(tail.file, (tail.wrote, tail_now.wrote)) if tail and tail_now else None,
    )


def compare_derived(before: Sequence[File], after: Sequence[File], one_series: bool = False) -> DerivedCompared:
    """Compare the index files (one_series) or queue files of two runs; each folder of queue files is a series.

    All but the newest file of each series in the earlier run are full, and no broker writes to them any more.
    """
    new, known = {row.file: row for row in after}, {row.file for row in before}
    newest: dict[str, str] = {}
    for file in known:
        series = "" if one_series else file.rpartition("/")[0]
        newest[series] = max(newest.get(series, ""), file)
    growing = set(newest.values())
    full = [(row, new[row.file]) for row in sorted(before, key=attrgetter("file")) if row.file in new and row.file not in growing]
    return DerivedCompared(
        _closed_files(full),
        gone=_amount(row for row in before if row.file not in new),
        added=_amount(row for row in after if row.file not in known),
    )


def _closed_files(pairs: Iterable[tuple[File, File]]) -> FilesCompared:
    """Compare files that may not change any more with the same ones of a later run."""
    changed: list[ChangedFile] = []
    same: list[File] = []
    not_compared: list[File] = []
    for before, after in pairs:
        if before.size_bytes == after.size_bytes and (before.digest is None or after.digest is None):
            not_compared.append(before)
        elif before.digest != after.digest or before.size_bytes != after.size_bytes:
            times = [file.modified_ns if isinstance(file, Segment) else None for file in (before, after)]
            modified = None if None in times else times[0] != times[1]
            sizes, digests = (before.size_bytes, after.size_bytes), (before.digest, after.digest)
            changed.append(ChangedFile(before.file, sizes, digests, modified))
        else:
            same.append(before)
    return FilesCompared(changed, _amount(same), _amount(not_compared))


def _amount(files: Iterable[File]) -> Amount:
    sizes = [file.size_bytes or 0 for file in files]
    return Amount(len(sizes), sum(sizes))
