"""ConsumeQueue entries against the messages of the log: those that are missing, at another queue offset, or zero.

Source of the rules: pitfalls.md, ConsumeQueue audit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from schemas.advice import Advice, Step
from schemas.finding_codes import STARTS_DISPATCH, Code
from schemas.rows import MATCH_MISSING, MATCH_SHIFTED, Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.java.java_compat import int64
from store_io.base.ranges import Ranges, intersect, subtract, total, union
from store_io.broker.loading import why_no_folder
from store_io.broker.prediction import Memory
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import BrokerRules
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.model.evidence import Evidence
from store_io.model.queue_views import QueueView, never_put


def queue_entries(evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings on each queue's entries, if all queues could be read."""
    table = evidence.copy[ROCKS_QUEUES].served_table
    entries_known = table is None or table.opened  # else nobody knows which entries the database holds
    for key, view in evidence.views.items() if evidence.queues_whole else ():
        leftover = evidence.leftovers.get(key)
        if entries_known:
            missing = missing_findings(view, evidence.copy.rules, leftover.wrong if leftover else [], evidence.held_back)
            missing = _put_again(missing, view) if _not_flushed(evidence, view) else _written_since(evidence, view, missing)
            yield from _dispatched(evidence, view, missing)
        yield from shifted_findings(view)
        if evidence.log_whole and evidence.all_read:
            yield from hole_findings(view)
            yield from spare_file_findings(view)
        if leftover is not None and evidence.log_whole:
            yield from leftover.findings


def _not_flushed(evidence: Evidence, view: QueueView) -> bool:
    """Say whether a start after an unclean exit puts all that a queue in RocksDB lacks.

    The store has queues in files, too (rocksdb.md 8).
    """
    if not evidence.copy.queues_in_files.double_write or not view.keyed or not evidence.copy.unclean or not view.missing:
        return False
    rows = view.runs.rows
    rows = rows[rows["match"] == MATCH_MISSING]
    return evidence.puts_at_start(int(rows["first_phy_offset"].min()), int(rows["last_phy_offset"].max()))


def _put_again(missing: list[Finding], view: QueueView) -> list[Finding]:
    mended = severity_in(Code.QUEUE_ENTRY_MISSING, Case.START_MENDS)
    return missing if view.deleted_topic else [replace(found, severity=mended, next=STARTS_DISPATCH) for found in missing]


def _dispatched(evidence: Evidence, view: QueueView, missing: list[Finding]) -> list[Finding]:
    """Return the findings with the next step of those whose entries a start puts, all of them at their places."""
    if not missing or evidence.prediction is None or evidence.prediction.after_dispatch is None:
        return missing
    put = _put_at_start(evidence, evidence.prediction.after_dispatch, view)

    def is_put(found: Finding) -> bool:
        first = found.queue_offset or 0
        return found.code == Code.QUEUE_ENTRY_MISSING and not subtract([(first, first + found.count)], put)

    return [replace(found, next=STARTS_DISPATCH) if is_put(found) else found for found in missing]


def _put_at_start(evidence: Evidence, caught_up: Memory, view: QueueView) -> Ranges:
    """Return the numbers of entries that a start puts, if they are missing."""
    if evidence.loss is None:
        return []
    if evidence.copy.rules.rocksdb_queues:
        return [] if evidence.loss.messages else view.missing
    queue = caught_up.queues.get(view.key)
    if not isinstance(queue, QueueState):
        return []
    if view.batch:  # its entries have no place of their own
        return [] if view.key in evidence.loss.by_queue else view.missing
    return queue.put_entries()


def _written_since(evidence: Evidence, view: QueueView, missing: list[Finding]) -> list[Finding]:
    """Make notes of missing entries before the day on which light queues were first written to RocksDB (rocksdb.md 8).

    The database is then empty, or their minimum is at the place that a start has set without an entry.
    """
    table = evidence.copy[ROCKS_QUEUES].light_table
    if table is None or not view.keyed or not missing or view.deleted_topic:
        return missing
    minimum = table.ends.minima.get(view.key)
    since = minimum.queue_offset if minimum is not None and minimum.phy_offset == 0 else 0
    if not table.ends.mark and not table.ends.maxima:
        since = view.missing[-1][1]
    unwritten = severity_in(Code.QUEUE_ENTRY_MISSING, Case.NOT_WRITTEN_YET)
    return [replace(f, severity=unwritten) if (f.queue_offset or 0) + f.count <= since else f for f in missing]


def missing_findings(view: QueueView, rules: BrokerRules, wrong: Ranges, held_back: int | None = None) -> list[Finding]:
    """Return one finding per file and run of entries that the log's messages should have and the queue has not.

    held_back: physical offset from which on messages wait, on purpose without an entry.
    """
    found: list[Finding] = []
    size = rules.batch_file_bytes if view.batch else rules.queue_file_bytes
    size -= size % view.unit
    by_start = {f.start: f for f in view.files}
    why = "" if view.keyed else why_no_folder(view.key[0])
    severity = severity_in(Code.QUEUE_ENTRY_MISSING, Case.NO_SUCH_QUEUE, bool(why) and not view.deleted_topic)
    code = Code.QUEUE_TOPIC_UNKNOWN if view.deleted_topic else Code.QUEUE_ENTRY_MISSING
    ranges = subtract(view.missing, union(wrong))
    run_at = _MissingRuns(view) if ranges else None
    for first, last in ranges:
        at = first
        while at < last:
            start = at * view.unit // size * size
            end = last if view.keyed else min(last, (start + size) // view.unit)
            known = by_start.get(start)
            assert run_at is not None
            run = run_at(at)
            named = run if run is not None and (run[0] == at or view.batch) else None
            waits = held_back is not None and run is not None and run[2] >= held_back
            found.append(
                Finding(
                    Code.QUEUE_ENTRY_UNCONFIRMED if waits and not view.deleted_topic else code,
                    view.folder if view.keyed else known.path if known else f"{view.folder}/{start:020d}",
                    at * view.unit - start if known else None,
                    end * view.unit - start if known else None,
                    severity,
                    phy_offset=named[2] if named else None,
                    topic=view.key[0],
                    queue_id=view.key[1],
                    queue_offset=at,
                    expected=f"phy_offset {named[2]}, size {named[3]}" if named else None,
                    actual="no entry" if known or view.keyed else "no file",
                    count=end - at,
                    message=f"no start finds such a queue: {why}" if why else "",
                    next=Advice(Step.NO_QUEUE) if why else None,
                )
            )
            at = end
    return found


class _MissingRuns:
    """The runs whose entries are missing, to be asked for the first of them that holds a queue offset."""

    def __init__(self, view: QueueView):
        rows = view.runs.rows
        rows = rows[rows["match"] == MATCH_MISSING]
        rows = rows[~never_put(rows)] if view.batch else rows
        names = ("queue_offset", "records", "first_phy_offset", "first_size")
        runs = list(zip(*(rows[name].tolist() for name in names), strict=True))
        self._batch, self._first = view.batch, runs[:1]
        self._runs = sorted((run[0], run[0] + run[1], place, run) for place, run in enumerate(runs))
        self._starts = [run[0] for run in self._runs]
        self._reach = list(accumulate((run[1] for run in self._runs), max))

    def __call__(self, number: int) -> tuple[int, int, int, int] | None:
        """Return (queue offset, records, physical offset, size of the first record); of a BatchConsumeQueue its first run."""
        if self._batch:
            return self._first[0] if self._first else None
        at, best = bisect_right(self._starts, number), None
        while at and self._reach[at - 1] > number:
            at -= 1
            if self._runs[at][1] > number and (best is None or self._runs[at][2] < best[2]):
                best = self._runs[at]
        return best[3] if best is not None else None


def shifted_findings(view: QueueView) -> list[Finding]:
    """Return entries that lead to the right message from the wrong entry number (P4)."""
    found: list[Finding] = []
    if view.batch or not len(view.runs):
        return found
    rows = view.runs.rows
    for row in rows[rows["match"] == MATCH_SHIFTED]:
        expected = int(row["queue_offset"])
        first = int64(expected + int(row["delta"]))
        shifted, phy_offset = (first, first + int(row["records"])), int(row["first_phy_offset"])
        found += _of_entries(Code.QUEUE_ENTRY_SHIFTED, view, shifted, f"entry {expected}", f"entry {first}", phy_offset)
    return found


def _of_entries(
    code: Code, view: QueueView, entries: tuple[int, int], expected: str, actual: str, phy_offset: int | None = None
) -> Iterator[Finding]:
    """Yield one finding for each file that holds some of the entries [first, last).

    If a key is an entry's place, there is one finding alone.
    """
    unit = view.unit
    if view.keyed:
        yield Finding(
            code, view.folder, phy_offset=phy_offset, topic=view.key[0], queue_id=view.key[1], queue_offset=entries[0],
            expected=expected, actual=actual, count=entries[1] - entries[0],
        )  # fmt: skip
    for file in view.files:
        low, high = max(entries[0], file.start // unit), min(entries[1], (file.start + file.size) // unit)
        if low < high:
            yield Finding(
                code, file.path, low * unit - file.start, high * unit - file.start, phy_offset=phy_offset, topic=view.key[0],
                queue_id=view.key[1], queue_offset=low, expected=expected, actual=actual, count=high - low,
            )  # fmt: skip


def spare_file_findings(view: QueueView) -> list[Finding]:
    """Return findings on files without an entry after one that still has room.

    A broker makes the next file only if the last one is full.
    """
    if view.summary is None:
        return []
    return [
        Finding(Code.QUEUE_FILE_UNEXPECTED, file.path, topic=view.key[0], queue_id=view.key[1], actual="no entry in it")
        for file in view.files[1:]
        if file.start // view.unit > view.summary.used_end
    ]


def hole_findings(view: QueueView) -> list[Finding]:
    """Return findings on zero entries between used ones, if the log has no message for them."""
    if view.summary is None or not view.summary.used or view.batch or view.keyed:  # keys need not follow one another
        return []
    if len(view.summary.used) == 1 and not view.summary.zeros_among_used:  # as in most queues
        return []
    used = union(view.summary.used)
    holes = subtract([(used[0][0], used[-1][1])], union([*used, *view.missing]))
    found = [finding for hole in holes for finding in _of_entries(Code.QUEUE_ZERO_ENTRY, view, hole, "an entry", "zeros")]
    more = view.summary.zeros_among_used
    if more:  # beyond the bound of ranges; those whose message has no entry are findings of their own
        more -= total(intersect(used, view.missing))
    if more > 0:
        first, end = used[-1]
        (one, *_) = _of_entries(Code.QUEUE_ZERO_ENTRY, view, (first, end), "an entry", "zeros")
        found.append(replace(one, count=more, message="zeros among so many used entries that their places are not kept"))
    return found
