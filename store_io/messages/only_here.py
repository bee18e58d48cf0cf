"""The messages that one copy holds and another one does not: by place, as copies are compared, and then by what messages say.

A message that the other copy holds at another place is not listed, and no message is listed twice: the same are those of one
target topic, unique key, stored body and count of vain deliveries. A message that waits is listed unless the other copy holds it,
waiting or delivered. A message that was delivered is listed though it waits in the other copy, where the offset of its delay
level may have passed it. Messages without a unique key are known by their places alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.layouts.store_names import COMMITLOG
from store_io.audit.audit_store import run_audit
from store_io.base.errors import StoreError
from store_io.base.tasks import HERE, Workers
from store_io.messages.lost.segment_loss import WAITING_TOPICS
from store_io.messages.lost.sendable import target_of
from store_io.messages.message_answer import answer
from store_io.messages.message_filter import MessageFilter
from store_io.messages.question import MessageSearch, Question, Tell
from store_io.model.audit_request import AuditRequest
from store_io.replicas.replica_groups import ReplicaGroup
from store_io.replicas.replica_parts import LACKING, State
from store_io.replicas.same_logs import same_logs
from store_io.wording.gaps import gap_text

MOST_RANGES = 1 << 20  # of one segment

_PLACE = "phy_offset"


class _Known(NamedTuple):
    """What a message is known by. properties: pairs."""

    topic: str
    queue_id: int
    properties: Any
    tags_code: int
    transaction: str
    unique_key: str | None
    body_crc: int
    reconsume_times: int


_IDENTITY = _Known._fields


@dataclass(frozen=True)
class OnlyHere:
    """What one copy holds, in whose places another copy holds something else, or nothing.

    starts, ends: physical offsets of neighbouring messages, ascending.
    messages: how many there are.
    one_log: whether the copies share a message.
    before: messages of this copy from before the begin of the other log.
    other_forms: messages of this copy that the other one holds in another form.
    """

    starts: np.ndarray
    ends: np.ndarray
    messages: int
    one_log: bool
    before: int
    other_forms: int

    def has(self, places: np.ndarray) -> np.ndarray:
        """Say of each physical offset whether it lies in a range."""
        if not len(self.starts):
            return np.zeros(len(places), bool)
        number = np.searchsorted(self.starts, places, "right") - 1
        inside: np.ndarray = (number >= 0) & (places < self.ends[number])
        return inside


def held_alone(copy: AuditRequest, other: AuditRequest, workers: Workers = HERE) -> OnlyHere:
    """Audit and compare two copies. Raises StoreError unless every message of the first is held against the second."""
    audits = [run_audit(replace(request, store=number), workers) for number, request in enumerate((copy, other))]
    for audit in audits:
        gaps = [gap for gap in audit.gaps.faults if audit.failed or not audit.segments or gap.path.startswith(COMMITLOG)]
        if audit.failed or gaps or any(segment.problem for segment in audit.segments):
            raise StoreError(_unknown(audit.request, next(map(gap_text, gaps), "a segment could not be read")))
    group = ReplicaGroup("", audits)
    one_log = bool(same_logs(audits))
    tasks = [replace(task, most_pieces=MOST_RANGES) for task in group.tasks() if task.copy == 0]
    if not workers.at_once(sum(task.bytes_to_read for task in tasks)):
        workers = HERE
    compared = group.compared(workers.run(tasks, "comparing"))
    pieces = compared.pieces[0]
    problem = next(iter(group.problems), "")
    if not problem and any(piece.states[1] == State.UNKNOWN for piece in pieces):
        problem = "a segment could not be read"
    if not problem and any(part.pieces_dropped for part in compared.parts):
        problem = f"the copies differ in more than {MOST_RANGES:,} places of a segment"
    if problem:
        raise StoreError(_unknown(other, problem))

    def count(*states: State) -> int:
        return sum(piece.messages for piece in pieces if piece.states[1] in states)

    lacked = [piece for piece in pieces if piece.states[1] in LACKING]
    starts, ends = (np.array([getattr(piece, name) for piece in lacked], np.int64) for name in ("start", "end"))
    return OnlyHere(starts, ends, count(*LACKING), one_log, count(State.EXPIRED), count(State.DISPUTED))


def _unknown(request: AuditRequest, why: str) -> str:
    return f"what only one copy holds is not known: {request.location.root}: {why}"


class OnlyHereSearch:
    """Finds the messages of a question that only this copy holds.

    held: so many were left out, as the other copy holds them at another place, or as they are in the list.
    """

    def __init__(self, search: MessageSearch, other: MessageSearch, alone: OnlyHere):
        self._other, self._alone = other, alone
        asked = replace(search.question, limit=None)
        if len(alone.starts):
            asked = asked.narrowed(MessageFilter(phy_offsets=(int(alone.starts[0]), int(alone.ends[-1]))))
        self._search = replace(search, question=asked)
        self.held = 0

    def batches(self, tell: Tell, workers: Workers = HERE) -> Iterator[pa.RecordBatch]:
        """Yield the messages as `answer` does, with further columns."""
        if not len(self._alone.starts):
            return
        doubtful, held = self._held(workers)
        seen: set[bytes] = set()
        question = self._search.question
        asked = replace(question, columns=tuple(dict.fromkeys((*question.columns, _PLACE, *_IDENTITY))))
        for batch in self._alone_of(asked, tell, workers):
            kept = np.ones(batch.num_rows, bool)
            for row in np.flatnonzero(pc.is_in(batch.column("unique_key"), doubtful)).tolist():
                named = _named(next(_known(batch.slice(row, 1))))
                if named is None:
                    continue
                name, waits = named
                if name in seen or (name, False) in held or waits and (name, True) in held:
                    kept[row] = False
                seen.add(name)
            self.held += len(kept) - int(kept.sum())
            yield batch.filter(pa.array(kept))

    def _held(self, workers: Workers) -> tuple[pa.Array, set[tuple[bytes, bool]]]:
        """Return (the unique keys that the other copy has, or this copy twice; what is in the other copy, and whether it
        waits)."""
        question = self._search.question
        keys = [
            batch.column("unique_key").drop_null()
            for batch in self._alone_of(replace(question, columns=(_PLACE, "unique_key")), _silent, workers)
        ]
        counts = pc.value_counts(pa.chunked_array(keys, pa.string()))
        wanted = counts.field("values")
        twice = wanted.filter(pc.greater(counts.field("counts"), 1))
        found: list[pa.Array] = []
        held: set[tuple[bytes, bool]] = set()
        there = Question(columns=_IDENTITY, decompress=question.decompress, unpack=question.unpack, whole_log=True)
        for batch in answer(replace(self._other, question=there), _silent, workers) if len(wanted) else ():
            same = batch.filter(pc.is_in(batch.column("unique_key"), wanted))
            found.append(same.column("unique_key"))
            held.update(filter(None, map(_named, _known(same))))
        return pa.chunked_array([twice, *found], pa.string()).unique(), held

    def _alone_of(self, asked: Question, tell: Tell, workers: Workers) -> Iterator[pa.RecordBatch]:
        for batch in answer(replace(self._search, question=asked), tell, workers):
            places = batch.column(_PLACE).to_numpy(zero_copy_only=False)
            yield batch.filter(pa.array(self._alone.has(places)))


def _silent(narrowing: object) -> None:
    """Say nothing: the same is said of the answer itself."""


def _known(batch: pa.RecordBatch) -> Iterator[_Known]:
    return (_Known(**row) for row in batch.select(_IDENTITY).to_pylist())


def _named(message: _Known) -> tuple[bytes, bool] | None:
    """Return what a message is known by anywhere, and whether it waits to be delivered. None of one that is not sent again."""
    target = target_of(message, dict(message.properties or {}))
    if target.why_not is not None:
        return None
    told = (target.topic, message.unique_key, message.body_crc, message.reconsume_times)
    digest = blake2b(repr(told).encode("utf-8", "backslashreplace"), digest_size=16).digest()
    return digest, message.topic in WAITING_TOPICS
