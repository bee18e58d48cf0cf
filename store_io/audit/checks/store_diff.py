"""What only the whole store shows: names and sizes, gaps, queues against the log both ways, sequences, loss.

Input are the summaries of all scans; nothing is read here. Ranges are entry numbers or bytes, half-open.
Source of the rules: pitfalls.md, audits A to D.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

import numpy as np

from schemas import consumequeue_layout, index_layout
from schemas.rows import (
    EXTENT_DAMAGED,
    LOSS,
    MATCH_EQUAL,
    MATCH_MISSING,
    MATCH_SHIFTED,
    NOTE,
    REBUILDABLE,
    RUN_LMQ,
    RUN_QUEUE,
    WALK_AUDIT,
    Finding,
    IndexFileSummary,
    MappedFile,
    QueueKey,
    QueueSummary,
    SegmentSummary,
)
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from store_io.audit import log_map as lm
from store_io.audit.checks.live_copy import LiveCopy
from store_io.audit.queue_leftovers import LeftoverResult
from store_io.audit.queue_runs import FAR, QueueRuns, StoreRuns, matched, stretches
from store_io.base.java_compat import int64, parse_number
from store_io.base.ranges import Ranges, intersect, subtract, union
from store_io.base.wording import count_text
from store_io.rules.loading import Tree, is_folder, queue_folder
from store_io.rules.releases import BrokerRules

MAX_MISSING_NAMES = 100
MAX_LOST_SIDE_BY_SIDE = 20  # lost messages that are told one by one although their bytes touch


@dataclass
class QueueView:
    """One queue seen from both sides. Entry numbers; for a BatchConsumeQueue `missing` counts from the last matched entry."""

    key: QueueKey
    batch: bool
    folder: str
    files: tuple[MappedFile, ...] = ()
    summary: QueueSummary | None = None
    runs: QueueRuns = field(default_factory=QueueRuns)
    covered: Ranges = field(default_factory=list)
    missing: Ranges = field(default_factory=list)
    leftover: Ranges = field(default_factory=list)
    deleted_topic: bool = False
    of_other_kind: bool = False  # config/topics.json wants the other kind of queue: a start refuses, nothing is compared
    lmq: bool = False

    @property
    def unit(self) -> int:
        return consumequeue_layout.BATCH_ENTRY_BYTES if self.batch else consumequeue_layout.ENTRY_BYTES


def queue_views(
    segments: Sequence[SegmentSummary],
    summaries: Mapping[QueueKey, QueueSummary],
    files: Mapping[QueueKey, tuple[MappedFile, ...]],
    folders: Mapping[QueueKey, str],
    batch_topics: frozenset[str],
    topics: frozenset[str] | None,
    lmq_expected: bool,
) -> dict[QueueKey, QueueView]:
    """Every queue that the log or the disk knows, with its matched, missing and unmatched entry numbers."""
    views: dict[QueueKey, QueueView] = {}
    known_topics = {key[0] for key in folders}

    def view(key: QueueKey) -> QueueView:
        found = views.get(key)
        if found is None:
            batch = key[0] in batch_topics
            folder = folders.get(key, queue_folder(batch, key))
            of_other_kind = folder.startswith(BATCH_QUEUES + "/") != batch
            found = views[key] = QueueView(key, batch != of_other_kind, folder, files.get(key, ()), summaries.get(key))
            found.of_other_kind = of_other_kind
            found.deleted_topic = topics is not None and key[0] not in topics and key[0] not in known_topics
        return found

    for key in folders:
        view(key)
    runs = StoreRuns(segments).by_queue(segments, lmq_expected, folders)
    for key, own in runs:
        view(key).runs = own
    views = dict(sorted(views.items()))
    for found in views.values():
        if found.of_other_kind:
            found.runs = QueueRuns()
        else:
            _match(found, lmq_expected)
    return views


def _match(view: QueueView, lmq_expected: bool) -> None:
    covered, missing = [], []
    awaited = 0
    rows = view.runs.rows
    if len(rows):
        lmq, records = rows["kind"] == RUN_LMQ, rows["records"]
        view.lmq = bool(lmq.any())
        led_to = matched(rows)
        absent = (rows["match"] == MATCH_MISSING) & ~(lmq & (not lmq_expected))
        if view.batch:
            absent &= ~_never_put(rows)
        entry = rows["delta"] if view.batch else rows["queue_offset"] + rows["delta"]  # wraps, as in Java
        covered = stretches(entry[led_to], records[led_to])
        if view.batch:
            awaited = int(records[absent].sum())
        else:
            missing = stretches(rows["queue_offset"][absent], records[absent])
    view.covered = union(covered)
    if awaited:
        end = view.covered[-1][1] if view.covered else 0
        missing.append((end, end + awaited))
    view.missing = union((a, b) for a, b in missing if a >= 0)
    if view.summary is not None:
        used = union(view.summary.used)
        # Very many ranges are told as one, over what a missing file would hold; a file whose name is negative holds nothing.
        held = union((f.start // view.unit, (f.start // view.unit) + f.size // view.unit) for f in view.files)
        expired = [(0, view.summary.expired_end)] if view.summary.expired_end else []
        view.leftover = intersect(subtract(subtract(used, view.covered), expired), held)


def _never_put(rows: np.ndarray) -> np.ndarray:
    """Batches for which no broker makes an entry: their base or their number is negative (BatchConsumeQueue)."""
    never: np.ndarray = (rows["queue_offset"] < 0) | (rows["messages"] < 0)
    return never


# ---- names and sizes -----------------------------------------------------------------------------------------------


def name_findings(tree: Tree, rules: BrokerRules) -> list[Finding]:
    """Files and folders that no broker makes, wrong lengths, gaps in the files' names (audit A, C6 to C10, I6, I7)."""
    found: list[Finding] = []
    found += _log_names(tree, rules)
    for kind, size in ((QUEUES, rules.queue_file_bytes), (BATCH_QUEUES, rules.batch_file_bytes), (EXT, rules.ext_file_bytes)):
        for topic in tree.children(kind):
            if not is_folder(topic):
                found.append(
                    Finding("file_unrecognised", topic.path, severity=REBUILDABLE, message="a file where topics' folders lie")
                )
                continue
            for child in tree.children(topic.path):
                name = child.path.rpartition("/")[2]
                if parse_number(name, 32) is None:
                    found.append(
                        Finding("file_unrecognised", child.path, severity=REBUILDABLE, message="its name is no queue id")
                    )
                elif not is_folder(child):
                    found.append(
                        Finding(
                            "file_unrecognised",
                            child.path,
                            severity=REBUILDABLE,
                            message="a file where a queue's folder is expected",
                        )
                    )
                else:
                    found += _queue_names(tree, child.path, size, kind)
    for entry in tree.children(INDEX):
        name = entry.path.rpartition("/")[2]
        if parse_number(name, 64) is None:
            found.append(Finding("file_unrecognised", entry.path, severity=REBUILDABLE, message="its name is no number"))
        elif is_folder(entry):
            found.append(
                Finding(
                    "file_unrecognised", entry.path, severity=REBUILDABLE, message="a directory where an index file is expected"
                )
            )
        elif entry.size != rules.index_file_bytes:
            found.append(
                Finding(
                    "index_file_wrong_size", entry.path, expected=f"{rules.index_file_bytes} bytes", actual=f"{entry.size} bytes"
                )
            )
    return found


def _log_names(tree: Tree, rules: BrokerRules) -> list[Finding]:
    found: list[Finding] = []
    size = rules.segment_bytes
    expected: int | None = None
    seen: set[int] = set()
    for entry in tree.children(COMMITLOG):
        name = entry.path.rpartition("/")[2]
        start = parse_number(name, 64)
        if is_folder(entry):
            found.append(Finding("file_unrecognised", entry.path, severity=REBUILDABLE, message="a directory among the segments"))
            continue
        if start is None:
            found.append(Finding("file_unrecognised", entry.path, severity=REBUILDABLE, message="its name is no number"))
            continue
        if entry.size == 0:
            found.append(Finding("segment_empty", entry.path, severity=REBUILDABLE, expected=f"{size} bytes", actual="0 bytes"))
            continue
        if entry.size != size:
            found.append(Finding("segment_wrong_size", entry.path, expected=f"{size} bytes", actual=f"{entry.size} bytes"))
        if start % size:
            found.append(Finding("segment_misnamed", entry.path, expected=f"a multiple of {size}", actual=name))
        if start in seen:
            found.append(Finding("segment_twice", entry.path, message="two files of this name"))
            continue
        seen.add(start)
        if expected is not None and start > expected:
            missing = range(expected, start, size)
            for base in missing[:MAX_MISSING_NAMES]:
                found.append(Finding("segment_missing", f"{COMMITLOG}/{base:020d}", phy_offset=base, message="a gap in the log"))
            if len(missing) > MAX_MISSING_NAMES:
                base = missing[MAX_MISSING_NAMES]
                found.append(
                    Finding(
                        "segment_missing", f"{COMMITLOG}/{base:020d}", phy_offset=base, count=len(missing) - MAX_MISSING_NAMES
                    )
                )
        elif expected is not None and start < expected:
            found.append(
                Finding("segment_misnamed", entry.path, expected=f"{expected:020d}", actual=name, message="segments overlap")
            )
        expected = max(expected or 0, start + size)
    return found


def _queue_names(tree: Tree, folder: str, size: int, kind: str) -> list[Finding]:
    found: list[Finding] = []
    expected: int | None = None
    files = 0
    for entry in tree.children(folder):
        name = entry.path.rpartition("/")[2]
        start = parse_number(name, 64)
        if is_folder(entry) or start is None or start < 0:
            name_fault = "its name is no number" if start is None else "its name is a negative number"
            what = "a directory among the queue's files" if is_folder(entry) else name_fault
            found.append(Finding("file_unrecognised", entry.path, severity=REBUILDABLE, message=what))
            continue
        files += 1
        if entry.size == 0:
            found.append(
                Finding("queue_file_empty", entry.path, severity=REBUILDABLE, expected=f"{size} bytes", actual="0 bytes")
            )
            continue
        if entry.size != size:
            found.append(Finding("queue_file_wrong_size", entry.path, expected=f"{size} bytes", actual=f"{entry.size} bytes"))
        if expected is not None and start != expected:
            found.append(Finding("queue_file_missing", f"{folder}/{expected:020d}", message="a gap in the queue's files"))
        expected = start + size
    if not files and kind != EXT and not found:
        found.append(Finding("queue_without_files", folder, message="an empty folder, which a broker lists as a queue"))
    return found


# ---- the log as a whole --------------------------------------------------------------------------------------------


def sequence_findings(
    views: Mapping[QueueKey, QueueView],
    segments: Sequence[SegmentSummary],
    log: lm.LogMap,
    rules: BrokerRules,
    answered: Mapping[QueueKey, Ranges],
) -> list[Finding]:
    """Queue offsets that do not follow one another along the log (audit A; C13, P14).

    What a repair has bridged counts as damaged.  answered: positions without a message whose entries lead to the queue's next
    one, as a repair leaves them.
    """
    found: list[Finding] = []
    bridged = sorted(f.phy_offset or 0 for s in segments for f in s.findings if f.code == "commitlog_bridged")
    for key, view in views.items():
        if len(view.runs):
            found += _sequence_findings(view, segments, log, rules, answered.get(key, []), bridged)
    return found


@dataclass(frozen=True)
class _Run:
    """One run of a queue's own messages. position: its physical offset by its place; end: behind its last record."""

    segment: int
    position: int
    start: int  # byte in the segment
    size: int  # of the first record
    end: int
    first: int  # queue offset
    steps: int
    single: bool
    match: int


def _sequence_findings(
    view: QueueView,
    segments: Sequence[SegmentSummary],
    log: lm.LogMap,
    rules: BrokerRules,
    answered: Ranges,
    bridged: Sequence[int],
) -> list[Finding]:
    rows, positions, places = view.runs.rows, view.runs.positions, view.runs.segments
    own = np.flatnonzero(rows["kind"] == RUN_QUEUE)
    own = own[np.argsort(positions[own], kind="stable")]
    rows = rows[own]
    firsts, steps = rows["queue_offset"], rows["messages" if view.batch else "records"]
    if not (np.abs(firsts) > FAR).any() and (firsts[1:] == firsts[:-1] + steps[:-1]).all():
        return []
    by_place = ~(rows["regular"] != 0)
    ends = np.where(by_place, positions[own] + rows["first_size"], rows["last_phy_offset"] + rows["last_size"])
    columns = (
        places[own], positions[own], rows["first_position"], rows["first_size"], ends, firsts, steps, rows["records"] == 1,
        rows["match"],
    )  # fmt: skip
    runs = [_Run(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
    found: list[Finding] = []
    expected: int | None = None
    before = -1
    for i, run in enumerate(runs):
        first = run.first
        if expected is None or first == expected:
            expected, before = first + run.steps, run.end
            continue
        following = runs[i + 1].first if i + 1 < len(runs) else None
        if run.single and following is not None and following == expected + run.steps:
            found.append(_sequence(view, segments, run, "queue_offset_wrong", LOSS, expected, first))
            expected, before = expected + run.steps, run.end
            continue
        if run.single and following is not None and following == expected and first < expected:
            # A record out of line, behind which the sequence goes on as if it were not there.
            found.append(_sequence(view, segments, run, "queue_offset_wrong", LOSS, expected, first))
            before = run.end
            continue
        if first > expected:
            if not _broken_between(log, before, run.position) and bisect_left(bridged, before) == bisect_left(
                bridged, run.position
            ):
                old = rules.at_least("5.0.0") and not rules.at_least("5.1.1")
                old = old or not subtract([(expected, first)], answered)
                found.append(_sequence(view, segments, run, "queue_offset_gap", NOTE if old else REBUILDABLE, expected, first))
        elif first == 0 and (not run.single or run.match == MATCH_EQUAL):
            # The queue began anew: a topic deleted and made again, or a ConsumeQueue that was lost (P1).
            found.append(_sequence(view, segments, run, "queue_offset_back", NOTE, expected, first))
        else:
            found.append(
                _sequence(view, segments, run, "queue_offset_back", LOSS if run.single else REBUILDABLE, expected, first)
            )
        expected, before = first + run.steps, run.end
    return found


def _broken_between(log: lm.LogMap, start: int, end: int) -> bool:
    """Whether bytes between two physical offsets are damaged, missing or zero, so that messages may be gone there."""
    low = int(np.searchsorted(log.starts, start, side="right")) - 1
    high = int(np.searchsorted(log.starts, end, side="left"))
    kinds = log.kinds[max(low, 0) : high]
    return bool(np.isin(kinds, (lm.DAMAGED, lm.MISSING, lm.UNWRITTEN, lm.UNREAD)).any())


def _sequence(
    view: QueueView, segments: Sequence[SegmentSummary], run: _Run, code: str, severity: str, expected: int, actual: int
) -> Finding:
    segment = segments[run.segment]
    return Finding(
        code,
        segment.path,
        run.start,
        run.start + run.size,
        severity,
        segment.base_offset + run.start,
        view.key[0],
        view.key[1],
        actual,
        f"queue offset {expected}",
        f"queue offset {actual}",
    )


# ---- queues --------------------------------------------------------------------------------------------------------


def missing_findings(view: QueueView, segments: Sequence[SegmentSummary], rules: BrokerRules, wrong: Ranges) -> list[Finding]:
    """One finding per file and run of entries that the log's messages should have and the queue has not."""
    found: list[Finding] = []
    size = rules.batch_file_bytes if view.batch else rules.queue_file_bytes
    size -= size % view.unit
    by_start = {f.start: f for f in view.files}
    severity = NOTE if view.deleted_topic else ""
    code = "queue_topic_unknown" if view.deleted_topic else "queue_entry_missing"
    ranges = subtract(view.missing, union(wrong))
    run_at = _MissingRuns(view) if ranges else None
    for first, last in ranges:
        at = first
        while at < last:
            start = at * view.unit // size * size
            end = min(last, (start + size) // view.unit)
            known = by_start.get(start)
            assert run_at is not None
            run = run_at(at)
            phy, expected = None, None
            if run is not None and (run[0] == at or view.batch):
                phy = run[2]
                expected = f"phy_offset {phy}, size {run[3]}"
            found.append(
                Finding(
                    code,
                    known.path if known else f"{view.folder}/{start:020d}",
                    at * view.unit - start if known else None,
                    end * view.unit - start if known else None,
                    severity,
                    phy,
                    view.key[0],
                    view.key[1],
                    at,
                    expected,
                    "no entry" if known else "no file",
                    count=end - at,
                )
            )
            at = end
    return found


class _MissingRuns:
    """The runs whose entries are missing, to be asked for the first of them that holds a queue offset."""

    def __init__(self, view: QueueView):
        rows = view.runs.rows
        rows = rows[rows["match"] == MATCH_MISSING]
        rows = rows[~_never_put(rows)] if view.batch else rows
        names = ("queue_offset", "records", "first_phy_offset", "first_size")
        runs = list(zip(*(rows[name].tolist() for name in names), strict=True))
        self._batch, self._first = view.batch, runs[:1]
        self._runs = sorted((run[0], run[0] + run[1], place, run) for place, run in enumerate(runs))
        self._starts = [run[0] for run in self._runs]
        self._reach = list(accumulate((run[1] for run in self._runs), max))

    def __call__(self, number: int) -> tuple[int, int, int, int] | None:
        """(queue offset, records, physical offset, size of the first record); of a BatchConsumeQueue its first run."""
        if self._batch:
            return self._first[0] if self._first else None
        at, best = bisect_right(self._starts, number), None
        while at and self._reach[at - 1] > number:
            at -= 1
            if self._runs[at][1] > number and (best is None or self._runs[at][2] < best[2]):
                best = self._runs[at]
        return best[3] if best is not None else None


def shifted_findings(view: QueueView) -> list[Finding]:
    """Entries that lead to the right message from the wrong entry number (P4)."""
    found: list[Finding] = []
    if view.batch or not len(view.runs):
        return found
    rows = view.runs.rows
    rows = rows[rows["match"] == MATCH_SHIFTED]
    for row in rows:
        expected, n = int(row["queue_offset"]), int(row["records"])
        first = int64(expected + int(row["delta"]))
        for file in view.files:
            low, high = max(first, file.start // view.unit), min(first + n, (file.start + file.size) // view.unit)
            if low < high:
                found.append(
                    Finding(
                        "queue_entry_shifted",
                        file.path,
                        low * view.unit - file.start,
                        high * view.unit - file.start,
                        "",
                        int(row["first_phy_offset"]),
                        view.key[0],
                        view.key[1],
                        low,
                        f"entry {expected}",
                        f"entry {first}",
                        count=high - low,
                    )
                )
    return found


def spare_file_findings(view: QueueView) -> list[Finding]:
    """Files without an entry behind one that still has room: a broker makes the next file only when the last one is full."""
    if view.summary is None:
        return []
    return [
        Finding("queue_file_unexpected", file.path, topic=view.key[0], queue_id=view.key[1], actual="no entry in it")
        for file in view.files[1:]
        if file.start // view.unit > view.summary.used_end
    ]


def hole_findings(view: QueueView) -> list[Finding]:
    """Zero entries between used ones where the log has no message for them."""
    if view.summary is None or not view.summary.used or view.batch:
        return []
    used = union(view.summary.used)
    holes = subtract([(used[0][0], used[-1][1])], union([*used, *view.missing]))
    found = []
    for first, last in holes:
        for file in view.files:
            low, high = max(first, file.start // view.unit), min(last, (file.start + file.size) // view.unit)
            if low < high:
                found.append(
                    Finding(
                        "queue_zero_entry",
                        file.path,
                        low * view.unit - file.start,
                        high * view.unit - file.start,
                        "",
                        None,
                        view.key[0],
                        view.key[1],
                        low,
                        "an entry",
                        "zeros",
                        count=high - low,
                    )
                )
    return found


def lost_findings(
    results: Iterable[LeftoverResult], segments: Sequence[SegmentSummary], log: lm.LogMap, live: LiveCopy, rules: BrokerRules
) -> list[Finding]:
    """Messages that an entry knows and the CommitLog lacks: in damaged bytes, in zeros, in missing or never copied segments."""
    found: list[Finding] = []
    by_name = {s.path.rpartition("/")[2]: s for s in segments}
    damaged: dict[str, set[tuple[int, int]]] = {}  # of segments that were asked for
    beyond: dict[str, int] = {}
    reported: set[int] = set()
    lost: list[_LostMessage] = []

    @cache
    def holding(phy: int) -> SegmentSummary | None:
        return next((s for s in segments if s.base_offset <= phy < s.base_offset + s.size), None)

    for result in results:
        for number, phy, size, kind in result.lost:
            if kind == lm.MISSING:
                continue  # the gap between the segments' names has said so
            if kind == lm.BEYOND:
                name = log.segment_name(phy)
                beyond[name] = beyond.get(name, 0) + 1
                continue
            if live.later and live.proven and phy >= log.data_end:
                continue  # the finding on the whole copy tells of all of these
            name = f"{phy - phy % rules.segment_bytes:020d}"
            segment = by_name.get(name) or holding(phy)
            if segment is None or phy in reported:
                continue
            reported.add(phy)
            start = phy - segment.base_offset
            if segment.path not in damaged:
                damaged[segment.path] = {(e.start, e.end) for e in segment.extents if e.kind == EXTENT_DAMAGED}
            if (start, start + size) in damaged[segment.path]:
                continue  # the scan has found this very message damaged
            severity = REBUILDABLE if live.holes and phy >= log.data_end else ""
            lost.append(_LostMessage(segment, start, min(start + size, segment.size), severity, kind, result.key, number, size))
    found += _folded_lost(lost)
    names = {s.path for s in segments}
    found += live.findings(log)
    for name, count in sorted(beyond.items()):
        if name in names:
            continue
        odd = live and live.holes
        entries = count_text(count, "queue entry leads", "queue entries lead")
        message = "a copy of a running broker: queues and log differ in time" if odd else f"{entries} to messages of this segment"
        found.append(
            Finding(
                "segment_missing",
                name,
                severity=REBUILDABLE if live.holes else "",
                phy_offset=int(name.rpartition("/")[2]),
                expected="a segment",
                actual="no file",
                message=message,
                count=count,
            )
        )
    return found


@dataclass(frozen=True)
class _LostMessage:
    """Bytes [start, end) of a segment where an entry of this queue says that a message lies."""

    segment: SegmentSummary
    start: int
    end: int
    severity: str
    kind: int
    key: QueueKey
    number: int
    size: int


def _folded_lost(lost: list[_LostMessage]) -> list[Finding]:
    """A finding per message; one for all where many lie side by side, as in a page or a disk's block of zeros."""
    lost.sort(key=lambda m: (m.segment.base_offset, m.segment.path, m.start))
    groups: list[list[_LostMessage]] = []
    for message in lost:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and (last.segment.path, last.severity, last.kind) == (message.segment.path, message.severity, message.kind)
            and message.start <= last.end
        ):
            groups[-1].append(message)
        else:
            groups.append([message])
    found = []
    for group in groups:
        for part in [group] if len(group) > MAX_LOST_SIDE_BY_SIDE else [[message] for message in group]:
            first, keys = part[0], {message.key for message in part}
            key = first.key if len(keys) == 1 else (None, None)
            sizes = sum(message.size for message in part)
            known = count_text(len(part), "message")
            where = "a ConsumeQueue has" if len(keys) == 1 else f"{len(keys)} ConsumeQueues have"
            found.append(
                Finding(
                    "message_lost",
                    first.segment.path,
                    first.start,
                    max(message.end for message in part),
                    first.severity,
                    first.segment.base_offset + first.start,
                    key[0],
                    key[1],
                    first.number if len(part) == 1 else None,
                    f"{known} ({sizes:,} bytes) that {where}",
                    "zeros" if first.kind == lm.UNWRITTEN else "damaged bytes",
                    count=len(part),
                )
            )
    return found


# ---- index ---------------------------------------------------------------------------------------------------------


def _all_keys(segment: SegmentSummary) -> tuple[int, int, int, int]:
    """First and last phy_offset, messages and keys of a segment for which there is no index file at all."""
    runs = segment.index_runs[(segment.index_runs["walk"] & WALK_AUDIT != 0) & (segment.index_runs["keys"] > 0)]
    if not len(runs):
        return -1, -1, 0, 0
    low, high = int(runs["first_key_phy_offset"].min()), int(runs["last_key_phy_offset"].max())
    return low, high, int(runs["records"].sum()), int(runs["keys"].sum())


def unindexed_findings(
    segments: Sequence[SegmentSummary], files: Sequence[IndexFileSummary], rules: BrokerRules, unclean: bool
) -> list[Finding]:
    """Messages with keys outside of what the index files cover (I1, I9)."""
    if not rules.builds_index:
        return []
    first = last = -1
    records = keys = 0
    for segment in segments:
        low, high, n, k = segment.index_unindexed if files else _all_keys(segment)
        if k:
            first = low if first < 0 else min(first, low)
            last = max(last, high)
            records, keys = records + n, keys + k
    if not keys:
        return []
    newest = files[-1] if files else None
    return [
        Finding(
            "index_range_missing",
            newest.path if newest else INDEX,
            0 if newest else None,
            index_layout.HEADER_BYTES if newest else None,
            phy_offset=first,
            expected=f"{count_text(keys, 'entry', 'entries')} of {count_text(records, 'message')} from {first:,} to {last:,}",
            actual="none",
            count=keys,
        )
    ]
