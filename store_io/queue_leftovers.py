"""ConsumeQueue entries that lead to no message of their queue: what each is, by where it leads.

Only the entries that the scan's probe left unmatched are read, in bounded windows; neighbours of one kind fold into ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schemas import consumequeue_layout as layout
from schemas.rows import Finding, MappedFile, QueueKey
from store_io import log_map as lm
from store_io.byte_source import ByteSource, StoreLocation, open_source
from store_io.consumequeue_reader import entry_address, read_entries
from store_io.errors import StoreError
from store_io.ranges import union

WINDOW_ENTRIES = 1 << 16
MAX_FINDINGS = 1000
MAX_LOST = 1000


@dataclass(frozen=True)
class LeftoverTask:
    """One queue's unmatched entry numbers. missing: entry numbers whose message has no entry; covered: matched ones."""

    store: int
    location: StoreLocation
    key: QueueKey
    batch: bool
    files: tuple[MappedFile, ...]
    leftover: tuple[tuple[int, int], ...]
    missing: tuple[tuple[int, int], ...]
    covered: tuple[tuple[int, int], ...]
    log: lm.LogMap
    not_after: float = 0


@dataclass
class LeftoverResult:
    """Findings of the queue's files, and what the entries prove about messages that the copy lacks.

    lost: (queue offset, phy_offset, size, kind) of messages that an entry knows and the CommitLog no longer holds, at most
    MAX_LOST; lost_count and lost_bytes count all of them, by kind; beyond_end: the largest physical end among them.
    """

    key: QueueKey
    findings: list[Finding] = field(default_factory=list)
    findings_dropped: dict[str, int] = field(default_factory=dict)
    lost: list[tuple[int, int, int, int]] = field(default_factory=list)
    lost_count: dict[int, int] = field(default_factory=dict)
    lost_bytes: dict[int, int] = field(default_factory=dict)
    lost_first: dict[int, int] = field(default_factory=dict)
    beyond_end: int = 0
    disputed: int = 0
    wrong: list[tuple[int, int]] = field(default_factory=list)  # entry numbers reported as wrong, of those missing
    answered: list[tuple[int, int]] = field(default_factory=list)  # entry numbers without a message that lead to the next one
    problem: str = ""


def classify_leftovers(task: LeftoverTask, source: ByteSource | None = None) -> LeftoverResult:
    """Read the task's unmatched entries and say what each one is; `problem` alone where a file can no longer be read."""
    try:
        return _classified(task, source or open_source(task.location))
    except StoreError as error:
        return LeftoverResult(task.key, problem=str(error))


def _classified(task: LeftoverTask, own: ByteSource) -> LeftoverResult:
    result = LeftoverResult(task.key)
    missing = union(task.missing)
    starts = np.array([r[0] for r in missing], np.int64)
    ends = np.array([r[1] for r in missing], np.int64)
    for first, last in task.leftover:
        for at in range(first, last, WINDOW_ENTRIES):
            rows = read_entries(own, task.files, at, min(last, at + WINDOW_ENTRIES), task.batch)
            if len(rows):
                _classify(task, own, result, at, rows, starts, ends)
    result.wrong = union(result.wrong)
    return result


def _classify(
    task: LeftoverTask,
    source: ByteSource,
    result: LeftoverResult,
    first: int,
    rows: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    numbers = np.arange(first, first + len(rows))
    phy, size = rows["phy_offset"].astype(np.int64), rows["size"].astype(np.int64)
    valid = (phy >= 0) & (size > 0)
    blank = (phy == 0) & (size == layout.PRE_BLANK_SIZE)
    place = np.searchsorted(starts, numbers, side="right") - 1
    awaited = (place >= 0) & (numbers < ends[np.maximum(place, 0)]) if len(starts) else np.zeros(len(rows), bool)
    where = task.log.kind_at(phy)
    answered = valid & ~blank & ~awaited & _answers(task, source, numbers, rows)
    lost = valid & ~blank & ~answered & np.isin(where, (lm.DAMAGED, lm.UNWRITTEN, lm.MISSING, lm.BEYOND)) & ~awaited
    for kind in (lm.DAMAGED, lm.UNWRITTEN, lm.MISSING, lm.BEYOND):
        chosen = lost & (where == kind)
        count = int(chosen.sum())
        if count:
            result.lost_count[kind] = result.lost_count.get(kind, 0) + count
            result.lost_bytes[kind] = result.lost_bytes.get(kind, 0) + int(size[chosen].sum())
            result.lost_first[kind] = min(result.lost_first.get(kind, 1 << 62), int(phy[chosen].min()))
            if kind == lm.BEYOND:
                result.beyond_end = max(result.beyond_end, int((phy + size)[chosen].max()))
            room = MAX_LOST - len(result.lost)
            for i in np.nonzero(chosen)[0][: max(room, 0)]:
                result.lost.append((int(numbers[i]), int(phy[i]), int(size[i]), kind))
    code = np.full(len(rows), 0, np.int8)  # 0: no finding of its own
    code[awaited & ~blank & (where != lm.UNREAD)] = 1  # one that leads to what was not read may be right
    code[~awaited & ~valid] = 2
    code[~awaited & blank] = 3
    code[~awaited & valid & ~blank & (where == lm.EXPIRED)] = 4
    inside = ~awaited & valid & ~blank & ~answered & np.isin(where, (lm.MESSAGE, lm.FILLER))
    code[inside] = 5
    result.answered = union([*result.answered, *((int(n), int(n) + 1) for n in numbers[answered])])
    for i in np.nonzero(inside)[0][:MAX_FINDINGS]:
        if _known_elsewhere(task, source, int(phy[i]), int(numbers[i])):
            code[i] = 6
    for i in np.nonzero(code == 5)[0]:
        _dispute(task, result, int(numbers[i]), int(phy[i]), int(size[i]))
    behind_data = (where == lm.UNWRITTEN) & (phy >= task.log.data_end)
    code[~awaited & valid & ~blank & (behind_data | (where == lm.BEYOND))] = 7
    code[answered] = 8
    names = (
        "",
        "queue_entry_wrong",
        "queue_entry_invalid",
        "queue_pre_blank",
        "queue_entry_below_minimum",
        "queue_entry_unexpected",
        "queue_entry_twice",
        "queue_entry_beyond_end",
        "queue_position_answered",
    )
    edges = np.nonzero(np.diff(code))[0] + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(rows)], strict=True):
        name = names[code[start]]
        if not name:
            continue
        if code[start] == 1:
            result.wrong.append((int(numbers[start]), int(numbers[end - 1]) + 1))
        _report(task, result, name, rows, int(numbers[0]), start, end)


def _answers(task: LeftoverTask, source: ByteSource, numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which entries stand where no message does and are what a repair writes there: they lead to the queue's next message, or to
    the last byte of the segment before that one's."""
    starts = np.array(sorted(first for first, _ in task.covered), np.int64)
    found = np.zeros(len(numbers), bool)
    if task.batch or not len(starts):
        return found
    place = np.searchsorted(starts, numbers, side="right")
    nowhere = (rows["size"] == layout.ANSWER_SIZE) & (rows["tags_code"] == 0)
    for number in np.unique(place[place < len(starts)]):
        following = read_entries(source, task.files, int(starts[number]), int(starts[number]) + 1, False)[0]
        phy = int(following["phy_offset"])
        same = (rows["phy_offset"] == phy) & (rows["size"] == following["size"])
        before = nowhere & (rows["phy_offset"] == phy - phy % task.log.segment_bytes - 1)
        found |= (place == number) & (same | before)
    return found


def _report(task: LeftoverTask, result: LeftoverResult, code: str, rows: np.ndarray, base: int, start: int, end: int) -> None:
    """One finding per file for entries [start, end) of `rows`, whose first has number `base`."""
    unit = layout.BATCH_ENTRY_BYTES if task.batch else layout.ENTRY_BYTES
    at = start
    while at < end:
        path, position = entry_address(task.files, base + at, task.batch)
        file = next(f for f in task.files if f.path == path)
        n = min(end - at, (file.size - position) // unit)
        if n <= 0:
            return
        if len(result.findings) >= MAX_FINDINGS:
            result.findings_dropped[code] = result.findings_dropped.get(code, 0) + n
        else:
            row = rows[at]
            result.findings.append(
                Finding(
                    code,
                    path,
                    position,
                    position + n * unit,
                    phy_offset=int(row["phy_offset"]),
                    topic=task.key[0],
                    queue_id=task.key[1],
                    queue_offset=int(row["base"]) if task.batch else base + at,
                    actual=f"phy_offset {int(row['phy_offset'])}, size {int(row['size'])}, tags code {int(row['tags_code'])}",
                    count=n,
                )
            )
        at += n


def _dispute(task: LeftoverTask, result: LeftoverResult, number: int, phy_offset: int, size: int) -> None:
    """An entry of this queue leads into messages, and none there is of this queue and number: one of the two is wrong.

    A damaged topic, queue id or queue offset looks like this, and no checksum covers them.
    """
    if phy_offset + size > task.log.range_end(phy_offset):
        return
    if result.disputed >= MAX_FINDINGS:
        result.findings_dropped["message_disputed"] = result.findings_dropped.get("message_disputed", 0) + 1
        return
    result.disputed += 1
    path, position = task.log.segment_of(phy_offset)
    result.findings.append(
        Finding(
            "message_disputed",
            path,
            position,
            position + size,
            phy_offset=phy_offset,
            topic=task.key[0],
            queue_id=task.key[1],
            queue_offset=number,
            expected="a message of this queue and queue offset, as its ConsumeQueue entry says",
        )
    )


def _known_elsewhere(task: LeftoverTask, source: ByteSource, phy_offset: int, number: int) -> bool:
    """Whether a matched entry of the queue leads to the same physical offset: a binary search over the covered ranges."""
    for first, last in task.covered:
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            rows = read_entries(source, task.files, middle, middle + 1, task.batch)
            if not len(rows):
                break
            at = int(rows["phy_offset"][0])
            if at == phy_offset:
                return middle != number
            if at < phy_offset:
                low = middle + 1
            else:
                high = middle
    return False
