"""What `report`, `runs`, `diff`, `coverage` and `tables` say, as values: their texts, pages and JSON are made of these alone.

A field is a key of the JSON (`jobs.report.values_as_rows`). Times are µs since 1970. Lists of two hold run A's and run B's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jobs.report.values_as_rows import FLAT, HIDDEN, IF_ELSEWHERE, IF_KNOWN, SETTINGS, TIME
from store_io.base.exit_codes import worst

WORST = {"read": worst}
COUNTED: dict[str, Callable[[list[int]], dict[str, int]]] = {
    "read": lambda codes: {str(code): number for code, number in sorted(Counter(codes).items())}
}


@dataclass(frozen=True, slots=True)
class View:
    """The head of every view."""

    schema_version: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class OfRun:
    """A row of any table: one store in one run."""

    run_id: str
    store: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class KnownRun(OfRun):
    """A row of `runs`."""

    started_at: int | None = field(metadata=TIME)


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run by its name and its time."""

    run_id: str
    started_at: int | None = field(metadata=TIME)


# ---- report --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judged(KnownRun):
    exit_code: int
    complete: bool
    verdict: str
    starts: bool | None
    lost_messages: int | None
    lost_bytes: int | None
    losses: int | None
    rebuildable: int | None
    notes: int | None
    messages: int | None
    segment_count: int | None
    damaged_extents: int | None
    bytes_read: int | None
    seconds: float | None
    truncate_at: int | None
    location: str | None
    release: str | None
    tool_version: str | None
    rules_version: str | None


@dataclass(frozen=True, slots=True)
class TrendRun(_Judged):
    """A run in a store's trend. page: its report on this machine."""

    folder: str | None = field(metadata=HIDDEN)
    out: str | None = field(metadata=HIDDEN)
    page: str | None = None


@dataclass(frozen=True, slots=True)
class CodeCount:
    """The findings of one code in a store's latest run. file: the first. findings: rows; count: what these hold."""

    store: str = field(metadata=HIDDEN)
    severity: str
    code: str
    count: int
    findings: int
    file: str | None


@dataclass(frozen=True, slots=True)
class LatestRun(_Judged):
    """A store's latest run. What the store's own part of the view says is hidden here."""

    safety: str | None = field(metadata=HIDDEN)
    answer: str | None = field(metadata=HIDDEN)
    steps: Sequence[str] | None = field(metadata=HIDDEN)
    settings: dict[str, str] = field(metadata=SETTINGS)
    replica_group: str | None
    folder: str | None
    out: str | None
    refusal: str | None
    exit_kind: str | None
    stop_reason: str | None
    min_phy_offset: int | None
    lacks_messages: int | None
    diverged: bool | None
    findings_dropped: int | None
    codes: Sequence[CodeCount] = ()


@dataclass(frozen=True, slots=True)
class StoreInFleet:
    """A store's part of a report.

    lost_timers: timer messages that are never delivered. runs: how many there are, of which the trend has the newest.
    """

    store: str
    name: str
    broker_name: str | None
    safety: str
    answer: str | None
    steps: Sequence[str] | None
    lost_timers: int
    age_seconds: int
    latest: LatestRun
    runs: int
    trend: Sequence[TrendRun]


@dataclass(frozen=True, slots=True)
class NotSeen:
    """A store that no run of the time has. last: when its last run began."""

    store: str
    name: str
    last: int | None = field(metadata=TIME)


@dataclass(frozen=True, slots=True)
class FleetView(View):
    """The latest run of each store. totals: numbers by their names, and stores by their safety."""

    tables: str
    made_at: int = field(metadata=TIME)
    since: int | None = field(metadata=TIME)
    runs: int
    totals: dict[str, int]
    stores: Sequence[StoreInFleet]
    not_audited_since: Sequence[NotSeen]


# ---- runs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run with all of its stores. stores_not_known: those of which it is not known what a start would lose."""

    run_id: str
    started_at: int = field(metadata=TIME)
    exit_code: int = field(metadata=WORST)
    complete: bool
    stores: int
    stores_by_code: dict[str, int] = field(metadata=COUNTED)
    lost_messages: int
    stores_not_known: int
    losses: int
    rebuildable: int
    bytes_read: int
    tool_version: str | None
    rules_version: str | None
    out: str | None
    page: str | None = None


@dataclass(frozen=True, slots=True)
class RunsView(View):
    """The newest runs. store: of which alone; None for all."""

    tables: str
    store: str | None
    since: int | None = field(metadata=TIME)
    runs_in_all: int
    runs: Sequence[ListedRun]


# ---- diff ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """All findings of one run in one place, in the words of the gravest. later: of run B."""

    store: str = field(metadata=HIDDEN)
    later: bool = field(metadata=HIDDEN)
    code: str
    file: str | None
    start: int | None
    end: int | None
    phy_offset: int | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    severity: str
    message: str | None
    expected: str | None
    actual: str | None
    next: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Was:
    """What the earlier run found. file: IN_PLACE, or where else it found it."""

    file: str | None = field(metadata=IF_ELSEWHERE)
    start: int | None
    end: int | None
    count: int
    severity: str


@dataclass(frozen=True, slots=True)
class Told(Found):
    """A new finding, or one that has grown. bytes_changed: None if one of the runs has not read the whole file."""

    was: Was | None = field(metadata=IF_KNOWN)
    bytes_changed: bool | None


@dataclass(frozen=True, slots=True)
class Persisting:
    """What both runs have of one code. findings: places; count: all that were found there."""

    store: str = field(metadata=HIDDEN)
    severity: str
    code: str
    findings: int
    count: int


@dataclass(frozen=True, slots=True)
class Amount:
    """How many files, and their bytes."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file with other bytes. modified: whether its time is another one too; None if that is not known."""

    file: str
    size_bytes: tuple[int | None, int | None]
    digest: tuple[str | None, str | None]
    modified: bool | None


@dataclass(frozen=True, slots=True)
class FilesCompared:
    """Files to which no broker writes any more. not_compared: one of the runs has not read all bytes of these."""

    changed: Sequence[ChangedFile]
    same: Amount
    not_compared: Amount


@dataclass(frozen=True, slots=True)
class LastSegment:
    """The segment that the earlier run saw written last. wrote: the byte after the last written one."""

    file: str
    wrote: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class LogCompared:
    """The CommitLog in two runs.

    compared: segments older than the last written one of the earlier run.
    missing: gone, though older ones still exist.
    none_left: all segments are gone.
    retired: gone from the front, as retention does it.
    added: after the earlier run's last one.
    appeared: new between others.
    shrank: the log's end has moved back.
    """

    compared: FilesCompared = field(metadata=FLAT)
    missing: Sequence[str]
    none_left: bool
    retired: Amount
    added: Amount
    appeared: Sequence[str]
    end: tuple[int, int]
    shrank: bool
    last: LastSegment | None


@dataclass(frozen=True, slots=True)
class DerivedCompared:
    """Index files, or queue files, in two runs."""

    compared: FilesCompared = field(metadata=FLAT)
    gone: Amount
    added: Amount


@dataclass(frozen=True, slots=True)
class StoreDifference:
    """A store in two runs. unreadable_now: all could be read in run A, and not in run B. not_read: as fixed, not looked for."""

    store: str
    name: str
    code: int
    exit_codes: Sequence[int | None]
    verdicts: Sequence[str | None]
    answers: Sequence[str | None]
    complete: Sequence[bool | None]
    lacks_messages: Sequence[int | None]
    diverged: Sequence[bool | None]
    unreadable_now: bool
    locations: Sequence[str]
    other_settings: Sequence[str]
    new: Sequence[Told]
    grown: Sequence[Told]
    fixed: Sequence[Found]
    not_read: Sequence[Found]
    persisting: Sequence[Persisting]
    commitlog: LogCompared | None
    index: DerivedCompared | None
    queues: DerivedCompared | None


@dataclass(frozen=True, slots=True)
class RunCompared:
    """One of the two runs; all None if no store is known of it."""

    run_id: str | None = None
    tool_version: str | None = None
    rules_version: str | None = None
    started_at: int | None = field(default=None, metadata=TIME)


@dataclass(frozen=True, slots=True)
class DifferenceView(View):
    """Two runs, store by store."""

    run_a: RunCompared
    run_b: RunCompared
    exit_code: int
    other_rules: Sequence[str]
    stores: Sequence[StoreDifference]


@dataclass(frozen=True, slots=True)
class LastView(View):
    """The two newest runs of each store: a comparison for each pair of runs, the newest first."""

    exit_code: int
    comparisons: Sequence[DifferenceView]
    one_run_only: Sequence[str]


# ---- coverage ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gone:
    """A newer run that found none of them any more."""

    started_at: int | None = field(metadata=TIME)
    run_id: str
    exit_code: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A segment that was not read in the time. verified: when it was last read completely."""

    file: str
    size_bytes: int
    verified: int | None = field(metadata=TIME)


@dataclass(frozen=True, slots=True)
class StoreCoverage:
    """How much of a store was read. least_recently: the segments that waited longest; unlisted: how many more wait."""

    store: str
    name: str
    location: str | None
    listed: NamedRun
    gone: Gone | None
    runs_within: int
    segments: int
    segments_verified: int
    bytes: int
    bytes_verified: int
    fraction: float | None
    least_recently: Sequence[Waiting]
    unlisted: int


@dataclass(frozen=True, slots=True)
class CoverageView(View):
    """How much of all CommitLogs was read completely since a time."""

    tables: str
    made_at: int = field(metadata=TIME)
    since: int = field(metadata=TIME)
    looked_back: str
    bytes: int
    bytes_verified: int
    fraction: float | None
    stores: Sequence[StoreCoverage]


# ---- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrunedTable:
    """The rows that go. unfinished_runs: those of runs that were stopped before they were whole."""

    table: str
    rows: int
    unfinished_runs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pruned:
    """The runs that go, and older ones that stay all the same."""

    runs: int
    gone: Sequence[NamedRun]
    needed: Sequence[NamedRun]
    since: int | None = field(metadata=TIME)
    keep_runs: int | None
    by_table: Sequence[PrunedTable]


@dataclass(frozen=True, slots=True)
class CompactedTable:
    """Files and their bytes, before and after."""

    table: str
    files: tuple[int, int]
    bytes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Compacted:
    """Small files put together."""

    by_table: Sequence[CompactedTable]


@dataclass(frozen=True, slots=True)
class VacuumedTable:
    """Files that go; files of the log and their bytes, before and after."""

    table: str
    files: int
    bytes: int
    log_files: tuple[int, int]
    log_bytes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """Old files removed."""

    older_than_hours: int
    by_table: Sequence[VacuumedTable]


@dataclass(frozen=True, slots=True)
class TableSize:
    """What one table takes. old_files: of earlier versions, or of a writer that was stopped."""

    table: str
    rows: int
    files: int
    bytes: int
    old_files: int
    old_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class TableSizes:
    """What the tables hold and take."""

    runs: int
    oldest: int | None = field(metadata=TIME)
    newest: int | None = field(metadata=TIME)
    by_table: Sequence[TableSize]


@dataclass(frozen=True, slots=True)
class TableViews:
    """The views beside the tables, as SQL by their names."""

    views: dict[str, str]


@dataclass(frozen=True, slots=True)
class TablesView(View):
    """What `tables` did, or would do."""

    action: str
    tables: str
    made_at: int = field(metadata=TIME)
    dry_run: bool
    found: Pruned | Compacted | Vacuumed | TableSizes | TableViews = field(metadata=FLAT)
    seconds: float
