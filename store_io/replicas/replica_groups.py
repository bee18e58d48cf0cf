"""Copies of one broker's log, compared by physical offset: where they part, what each lacks, which one to start as master.

A master and its slaves write the same bytes at the same physical offsets (HAService, AutoSwitchHAClient), so a copy that is
behind, or that retention has shortened, differs in its bounds only. What differs between these bounds is damage of one copy, or
messages that were written to a copy after it had been cut off from the others. Segments that are equal by their digests are
not read again; neither are those that another copy has nothing of.

    group = ReplicaGroup(name, audits)
    group.finish([run_task(task) for task in group.tasks()])
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from schemas.rows import EXTENT_MESSAGE, LOSS, RUN_LMQ, WALK_AUDIT, Finding, MappedFile, QueueKey, Row, SegmentSummary
from store_io.audit import log_map
from store_io.audit.log_map import FILLER, LogMap
from store_io.base.wording import count_text
from store_io.replicas.replica_compare import (
    BEYOND,
    DISPUTED,
    EQUAL,
    EXPIRED,
    GAPS,
    LACKING,
    MISSING,
    MOST_COPIES,
    OTHER,
    STATE_NAMES,
    UNKNOWN,
    OtherCopy,
    Piece,
    QueueTotal,
    ReplicaPart,
    ReplicaTask,
)

if TYPE_CHECKING:
    from store_io.audit.audit_store import StoreAudit

SAME, BEHIND, HOLED, IN_DISPUTE, PARTED, APART, NOT_KNOWN = (
    "equal", "behind", "damaged", "disputed", "diverged", "apart", "unknown",
)  # fmt: skip
MOST_RANGES = 1000  # told of what one copy has and another lacks


@dataclass
class _Copy:
    """One copy of the group as far as its audit could read it."""

    audit: StoreAudit
    segments: list[SegmentSummary]  # readable ones, ascending, none over another
    unreadable: tuple[tuple[int, int], ...]
    log: LogMap

    @property
    def name(self) -> str:
        return self.audit.request.name

    @property
    def starts_as_it_is(self) -> bool | None:
        prediction = self.audit.prediction
        return None if prediction is None or self.audit.incomplete else prediction.starts

    @property
    def cut(self) -> int:
        """Messages of this copy that a start would cut or never serve."""
        loss = self.audit.loss
        return loss.messages if loss is not None and self.starts_as_it_is else 0


def replica_groups(audits: Sequence[StoreAudit], absent: Sequence[tuple[str, str]] = ()) -> list[ReplicaGroup]:
    """The groups of two and more of these audits, each of which has ended; in the order of their first copies.

    absent: (group, name) of stores of which there is no audit. Like audits that failed at once they are told, not compared.
    """
    members: dict[str, list[StoreAudit]] = defaultdict(list)
    missing: dict[str, list[str]] = defaultdict(list)
    for name, store in absent:
        missing[name].append(store)
    for audit in audits:
        if audit.failed:
            missing[audit.request.replica_group].append(audit.request.name)
        elif audit.request.replica_group:
            members[audit.request.replica_group].append(audit)
    groups = [ReplicaGroup(name, own) for name, own in members.items() if len(own) > 1]
    for group in groups:
        group.problems += [f"{name}: not compared, it could not be audited" for name in sorted(missing[group.name])]
    return groups


class ReplicaGroup:
    """One group: asks for tasks once, then adds findings to its audits and has `result`, a row of replicas.json."""

    def __init__(self, name: str, audits: Sequence[StoreAudit]):
        self.name = name
        self.copies = [_copy_of(audit) for audit in audits[:MOST_COPIES]]
        self.parts: list[ReplicaPart] = []
        self.problems = [
            f"{audit.request.name}: not compared, the group has {len(audits)} copies" for audit in audits[MOST_COPIES:]
        ]
        self.result: Row = {}

    # ---- what has to be read -----------------------------------------------------------------------------------------

    def tasks(self) -> list[ReplicaTask]:
        """A task for each segment that another copy may have otherwise. All else is folded from what the audits know."""
        tasks = []
        for number, copy in enumerate(self.copies):
            for segment in copy.segments:
                others = [self._other(other, segment) for other in range(len(self.copies)) if other != number]
                known = [self._known(other, segment) for other in others]
                if all(state is not None for state in known):
                    states = [EQUAL] * len(self.copies)
                    for other, state in zip(others, known, strict=True):
                        states[other.copy] = state or EQUAL
                    self.parts.append(_whole_part(number, segment, tuple(states)))
                    continue
                request = copy.audit.request
                tasks.append(
                    ReplicaTask(
                        request.store,
                        number,
                        segment.path,
                        segment.base_offset,
                        segment.size,
                        request.location,
                        tuple((e.start, e.end) for e in segment.extents if e.kind == EXTENT_MESSAGE),
                        copy.audit.rules.delays,
                        tuple(others),
                        request.window_bytes,
                        request.decoder,
                    )
                )
        return tasks

    def _other(self, number: int, segment: SegmentSummary) -> OtherCopy:
        copy = self.copies[number]
        low, high = segment.base_offset, segment.base_offset + segment.size
        near = [s for s in copy.segments if s.base_offset < high and low < s.base_offset + s.size]
        twin = segment.digest and [(s.base_offset, s.size, s.digest) for s in near] == [(low, segment.size, segment.digest)]
        first = max(0, int(np.searchsorted(copy.log.starts, low, "right")) - 1)
        last = int(np.searchsorted(copy.log.starts, high, "left"))
        return OtherCopy(
            number,
            copy.audit.request.location,
            bool(twin),
            tuple(MappedFile(s.path, s.base_offset, s.size) for s in near),
            copy.log.starts[first:last],
            copy.log.kinds[first:last],
            copy.log.start,
            copy.log.data_end,
            tuple((a, b) for a, b in copy.unreadable if a < high and low < b),
        )

    def _known(self, other: OtherCopy, segment: SegmentSummary) -> int | None:
        """What another copy has in the place of all messages of a segment, where no byte is needed to know it."""
        messages = [e for e in segment.extents if e.kind == EXTENT_MESSAGE]
        if other.equal or not messages:
            return EQUAL
        low, high = segment.base_offset + messages[0].start, segment.base_offset + messages[-1].end
        if any(a <= low and high <= b for a, b in other.unreadable):
            return UNKNOWN
        if other.unreadable:
            return None
        if low >= other.end:
            return BEYOND
        if high <= other.start:
            return EXPIRED
        return MISSING if not other.files and other.start <= low and high <= other.end else None

    # ---- what came of it ---------------------------------------------------------------------------------------------

    def finish(self, results: Iterable[ReplicaPart | str]) -> None:
        """Take in the tasks' results, or a sentence in the place of one; add findings to the audits."""
        for part in results:
            if isinstance(part, str):
                self.problems.append(part)
            elif part.problem:
                self._failed(part)
            else:
                self.parts.append(part)
        self.parts.sort(key=lambda part: (part.copy, part.base_offset))
        for copy in self.copies:
            copy.audit.bytes_compared += sum(p.bytes_read for p in self.parts if self.copies[p.copy] is copy)
        self._pieces = [self._merged(number) for number in range(len(self.copies))]
        self._contradicted = [{f.phy_offset for f in copy.audit.findings if f.code == "message_disputed"} for copy in self.copies]
        for number, copy in enumerate(self.copies):
            copy.audit.findings += self._findings(number)
        self.result = self._row()
        for copy in self.copies:
            copy.audit.replicas = self.result

    def _failed(self, part: ReplicaPart) -> None:
        audit = self.copies[part.problem_copy].audit
        self.problems.append(f"{audit.request.name}: {part.problem}")
        if part.problem not in audit.incomplete:
            audit.incomplete.append(part.problem)

    def _merged(self, number: int) -> list[Piece]:
        """A copy's pieces in order; those that only a segment's end parts are one."""
        merged: list[Piece] = []
        log = self.copies[number].log
        for piece in (piece for part in self.parts if part.copy == number for piece in part.pieces):
            last = merged[-1] if merged else None
            if last is not None and (last.states, last.malformed) == (piece.states, piece.malformed):
                filler = log.kind_at(np.array([last.end]))[0] == FILLER and log.range_end(last.end) == piece.start
                if filler or last.end == piece.start:
                    last.end = piece.end
                    last.messages += piece.messages
                    last.bytes += piece.bytes
                    last.first_store_time = min(last.first_store_time, piece.first_store_time)
                    last.last_store_time = max(last.last_store_time, piece.last_store_time)
                    continue
            merged.append(piece)
        return merged

    def _totals(self, holder: int) -> Iterator[tuple[tuple[int, ...], QueueKey, QueueTotal]]:
        for part in self.parts:
            if part.copy == holder:
                for (states, key), total in part.totals.items():
                    yield states, key, total

    def lacks(self, number: int) -> int:
        """Messages that other copies hold and this one does not, each counted once however many hold it."""
        count = 0
        for holder in range(len(self.copies)):
            before = [other for other in range(holder) if other != number]
            for states, _, total in self._totals(holder) if holder != number else ():
                if states[number] in LACKING and all(states[other] != EQUAL for other in before):
                    count += total.messages
        return count

    def _count(self, number: int, wanted: Sequence[int]) -> int:
        """The most messages that one other copy has in such places of this one."""
        counts = [0]
        for holder in range(len(self.copies)):
            if holder != number:
                counts.append(sum(t.messages for states, _, t in self._totals(holder) if states[number] in wanted))
        return max(counts)

    # ---- findings ------------------------------------------------------------------------------------------------------

    def _findings(self, number: int) -> list[Finding]:
        """What the comparison says of one copy. A copy that is merely behind, or begins later, has none."""
        found: list[Finding] = []
        for holder, pieces in enumerate(self._pieces):
            for piece in pieces if holder != number else ():
                if piece.states[number] in GAPS:
                    before = (other for other in range(holder) if other != number)
                    if all(piece.states[other] != EQUAL for other in before):
                        found += self._held_elsewhere(number, holder, piece)
        for piece in self._pieces[number]:
            if DISPUTED in piece.states:
                found += self._disputed(number, piece)
            if OTHER in piece.states:
                found += self._diverged(number, piece)
        return found

    def _places(self, number: int, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """(file, start, end) of a physical range in a copy, file by file, those that it would have among them."""
        copy = self.copies[number]
        at = start
        while at < end:
            inside = [s for s in copy.segments if s.base_offset <= at < s.base_offset + s.size]
            if inside:
                segment = inside[0]
                stop = min(end, segment.base_offset + segment.size)
                yield segment.path, at - segment.base_offset, stop - segment.base_offset
            else:
                size = copy.log.segment_bytes
                behind = min([s.base_offset for s in copy.segments if s.base_offset > at] + [end])
                base = at - at % size
                stop = min(end, base + size, behind)
                yield copy.log.segment_name(at), at - base, stop - base
            at = stop

    def _held_elsewhere(self, number: int, holder: int, piece: Piece) -> Iterator[Finding]:
        who = self.copies[holder].name
        for place, (path, start, end) in enumerate(self._places(number, piece.start, piece.end)):
            if place == 0:
                yield Finding(
                    "replica_holds", path, start, end, phy_offset=piece.start, topic=piece.topic, queue_id=piece.queue_id,
                    queue_offset=piece.queue_offset, expected=f"{count_text(piece.messages, 'message')}, as in {who}",
                    actual=STATE_NAMES[piece.states[number]], count=piece.messages,
                    message=f"{who} holds {count_text(piece.messages, 'valid message')} from physical offset {piece.start:,} to"
                    f" {piece.end:,}; this copy has none there",
                )  # fmt: skip

    def _disputed(self, number: int, piece: Piece) -> Iterator[Finding]:
        """A message in two forms: the damaged one is that of which something else is wrong, too; else what fewer copies have."""
        against = [other for other, state in enumerate(piece.states) if state == DISPUTED]
        theirs = {other: self._piece_at(other, piece.start) for other in against}
        others_doubtful = [self._doubtful(other, piece.start, found) for other, found in theirs.items()]
        mine = piece.states.count(EQUAL)
        most = max((found.states.count(EQUAL) for found in theirs.values() if found is not None), default=0)
        doubtful = self._doubtful(number, piece.start, piece)
        why = ""
        if doubtful and not all(others_doubtful):
            why = doubtful
        elif all(others_doubtful) and not doubtful or mine > most and not doubtful:
            return  # the others are the damaged ones, and are told so
        elif most > mine:
            why = "most copies have it"
        difference = piece.differences.get(against[0])
        names = ", ".join(self.copies[other].name for other in against)
        start, end = (difference.start, difference.end) if difference else (piece.start, piece.end)
        if piece.messages > 1:
            start, end = piece.start, piece.end
        path, low, high = next(self._places(number, start, end))
        text = f"{names} holds this message with another {difference.field if difference else 'content'}"
        yield Finding(
            "replica_disputes", path, low, high, severity=LOSS if why else "", phy_offset=piece.start, topic=piece.topic,
            queue_id=piece.queue_id, queue_offset=piece.queue_offset, count=piece.messages,
            message=f"{text}, {why}" if why else f"{text}: which copy is right is not known",
            next="Take this message from the other copy; replicas.json names it." if why else "",
        )  # fmt: skip

    def _doubtful(self, number: int, start: int, piece: Piece | None) -> str:
        """What else is wrong with a message that a copy holds: words, or nothing."""
        if piece is not None and piece.malformed:
            return "and the properties here do not have the form that a broker writes"
        if start in self._contradicted[number]:
            return "and its queue or index entries here contradict it"
        return ""

    def _piece_at(self, number: int, start: int) -> Piece | None:
        pieces = self._pieces[number]
        place = bisect_right(pieces, start, key=lambda piece: piece.start) - 1
        return pieces[place] if place >= 0 and start < pieces[place].end else None

    def _diverged(self, number: int, piece: Piece) -> Iterator[Finding]:
        names = ", ".join(self.copies[other].name for other, state in enumerate(piece.states) if state == OTHER)
        path, low, high = next(self._places(number, piece.start, piece.end))
        yield Finding(
            "replica_diverged", path, low, high, phy_offset=piece.start, topic=piece.topic, queue_id=piece.queue_id,
            queue_offset=piece.queue_offset, count=piece.messages,
            message=f"{count_text(piece.messages, 'message')} that {names} does not hold; it holds other valid messages there",
        )  # fmt: skip

    # ---- the result ------------------------------------------------------------------------------------------------------

    def _row(self) -> Row:
        numbers = range(len(self.copies))
        copies = [self._copy_row(number) for number in numbers]
        best, why = self._best(copies)
        return {
            "group": self.name,
            "best": best,
            "why": why,
            "copies": copies,
            "pairs": [self._pair(left, right) for left in numbers for right in numbers if left < right],
            "lacks": [row for number in numbers for row in self._lack_rows(number)],
            "problems": self.problems,
        }

    def _copy_row(self, number: int) -> Row:
        copy = self.copies[number]
        lacks = self.lacks(number)
        return {
            "store": copy.name,
            "complete": not copy.audit.incomplete,
            "starts": copy.starts_as_it_is,
            "start": copy.log.start if copy.segments else None,
            "end": copy.log.data_end if copy.segments else None,
            "messages": sum(e.message_count for s in copy.segments for e in s.extents),
            "lacks": lacks,
            "cut": copy.cut if copy.starts_as_it_is else None,
            "loses": lacks + copy.cut if copy.starts_as_it_is else None,
            "before_its_start": self._count(number, (EXPIRED,)),
            "disputed": self._count(number, (DISPUTED,)),
            "not_compared": self._count(number, (UNKNOWN,)),
        }

    def _best(self, copies: Sequence[Row]) -> tuple[str | None, str]:
        """The copy whose start loses least, and why, in a sentence."""
        able = [row for row in copies if row["loses"] is not None]
        if not able:
            return None, "No copy is known to start: repair one first."
        damage = {c.name: sum(f.severity == LOSS for f in c.audit.findings) for c in self.copies}
        ranked = sorted(able, key=lambda row: (row["loses"], damage[row["store"]], -row["end"] if row["end"] else 0))
        best = ranked[0]
        told = [f"{row['store']} would lose {count_text(row['loses'], 'message')}" for row in ranked]
        told += [f"{row['store']} is not known to start" for row in copies if row["loses"] is None]
        if len(ranked) > 1 and ranked[1]["loses"] == best["loses"]:
            told.append("among equal copies the one with less damage comes first, then the one with the longer log")
        return best["store"], "; ".join(told) + "."

    def _pair(self, left: int, right: int) -> Row:
        one, other = self.copies[left], self.copies[right]
        low, high = max(one.log.start, other.log.start), min(one.log.data_end, other.log.data_end)
        seen: set[int] = set()
        first: tuple[int, int, Piece] | None = None  # physical offset, holder, its piece
        for holder, away in ((left, right), (right, left)):
            for states, _, _ in self._totals(holder):
                seen.add(states[away])
            for piece in self._pieces[holder]:
                if piece.states[away] in (EQUAL, EXPIRED, BEYOND, UNKNOWN):
                    continue
                difference = piece.differences.get(away)
                at = difference.start if difference is not None else piece.start
                if first is None or at < first[0]:
                    first = at, holder, piece
        empty = not one.segments or not other.segments
        if UNKNOWN in seen or one.unreadable or other.unreadable or empty and (one.audit.incomplete or other.audit.incomplete):
            relation = NOT_KNOWN
        elif empty:
            relation = APART if one.segments or other.segments else SAME
        elif OTHER in seen:
            relation = PARTED
        elif DISPUTED in seen:
            relation = IN_DISPUTE
        elif seen & set(GAPS):
            relation = HOLED
        elif high <= low and one.log.data_end != other.log.data_end:
            relation = APART
        else:
            relation = BEHIND if BEYOND in seen else SAME
        return {
            "left": one.name,
            "right": other.name,
            "relation": relation,
            "common_start": low if low < high else None,
            "common_end": high if low < high else None,
            "same_until": None if relation == NOT_KNOWN or low >= high else first[0] if first else high,
            "first_difference": self._first_row(left, right, first) if first is not None else None,
        }

    def _first_row(self, left: int, right: int, first: tuple[int, int, Piece]) -> Row:
        at, holder, piece = first
        away = right if holder == left else left
        difference = piece.differences.get(away)
        return {
            "phy_offset": at,
            "message": piece.start,
            "size": piece.size,
            "field": difference.field if difference is not None else None,
            "topic": piece.topic,
            "queue_id": piece.queue_id,
            "queue_offset": piece.queue_offset,
            "holder": self.copies[holder].name,
            "other": self.copies[away].name,
            "other_has": STATE_NAMES[piece.states[away]],
        }

    def _lack_rows(self, number: int) -> Iterator[Row]:
        """What each other copy has and this one lacks, or has otherwise, by queue and as ranges."""
        for holder in range(len(self.copies)):
            if holder == number:
                continue
            queues: dict[QueueKey, QueueTotal] = {}
            for states, key, total in self._totals(holder):
                if states[number] in LACKING:
                    queues.setdefault(key, QueueTotal()).add(total)
            told = [p for p in self._pieces[holder] if p.states[number] in (*LACKING, DISPUTED)]
            if not queues and not told:
                continue
            whole = QueueTotal()
            for total in queues.values():
                whole.add(total)
            dropped = sum(part.pieces_dropped for part in self.parts if part.copy == holder)
            yield {
                "store": self.copies[number].name,
                "holder": self.copies[holder].name,
                "messages": whole.messages,
                "bytes": whole.bytes,
                "by_queue": [_queue_row(key, total) for key, total in sorted(queues.items())],
                "ranges": [
                    {
                        "start": p.start,
                        "end": p.end,
                        "other_has": STATE_NAMES[p.states[number]],
                        "messages": p.messages,
                        "bytes": p.bytes,
                        "first_store_time": p.first_store_time,
                        "last_store_time": p.last_store_time,
                    }
                    for p in told[:MOST_RANGES]
                ],
                "ranges_dropped": max(0, len(told) - MOST_RANGES) + dropped,
            }


def _queue_row(key: QueueKey, total: QueueTotal) -> Row:
    return {
        "topic": key[0],
        "queue_id": key[1],
        "messages": total.messages,
        "bytes": total.bytes,
        "first_queue_offset": total.first_offset,
        "last_queue_offset": total.last_offset,
        "first_store_time": total.first_store_time,
        "last_store_time": total.last_store_time,
    }


def _copy_of(audit: StoreAudit) -> _Copy:
    readable: list[SegmentSummary] = []
    unreadable = []
    for segment in sorted(audit.segments, key=lambda s: (s.base_offset, s.path)):
        if segment.problem:
            unreadable.append((segment.base_offset, segment.base_offset + segment.size))
        elif segment.size and (not readable or readable[-1].base_offset + readable[-1].size <= segment.base_offset):
            readable.append(segment)
    return _Copy(audit, readable, tuple(unreadable), log_map.log_map(readable, audit.rules.segment_bytes))


def _whole_part(copy: int, segment: SegmentSummary, states: tuple[int, ...]) -> ReplicaPart:
    """A part whose messages all have the same states: from the segment's runs, without reading it again."""
    part = ReplicaPart(copy, segment.base_offset)
    messages = [e for e in segment.extents if e.kind == EXTENT_MESSAGE]
    runs = segment.runs[(segment.runs["walk"] & WALK_AUDIT != 0) & (segment.runs["kind"] != RUN_LMQ)]
    if not any(states) or not messages or not len(runs):
        return part
    for run in runs:
        first = int(run["queue_offset"])
        times = int(run["first_store_time"]), int(run["last_store_time"])
        total = QueueTotal(
            int(run["records"]), int(run["bytes"]), first, first + int(run["messages"]) - 1, min(times), max(times)
        )
        part.totals.setdefault((states, segment.queues[run["queue"]]), QueueTotal()).add(total)
    head = runs[np.argmin(runs["first_position"])]
    topic, queue_id = segment.queues[head["queue"]]
    part.pieces.append(
        Piece(
            segment.base_offset + messages[0].start,
            segment.base_offset + messages[-1].end,
            int(runs["records"].sum()),
            int(runs["bytes"].sum()),
            segment.first_store_time,
            segment.last_store_time,
            states,
            False,
            topic,
            queue_id,
            int(head["queue_offset"]),
            int(head["first_size"]),
        )
    )
    return part
