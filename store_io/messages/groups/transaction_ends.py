"""The end of each half message of a stretch of the log, by the first message after it that says so.

A half message waits in a topic of the broker's own. A committed message names its physical offset. An operation message names its
queue offset; of transactions in RocksDB its physical offset. A newer half message with the same unique key that counts how often
the producer was asked takes its place, and a message in GIVEN_UP_TOPIC with that key says that the broker asks no more.
Source: TransactionalMessageServiceImpl.check, putBackHalfMsgQueue, deletePrepareMessage; TransactionalMessageBridge.writeOp;
EndTransactionProcessor; TransMessageRocksDBStore; 4.8.0 to 5.5.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.layouts import commitlog_layout as layout
from schemas.layouts import rocksdb_layout
from store_io.messages.message_rows import HALF_TOPICS

OPEN, COMMITTED, ROLLED_BACK, PUT_BACK, GIVEN_UP = range(5)
STATES = ("open", "committed", "rolled_back", "put_back", "given_up")
COLUMNS = (
    "phy_offset", "topic", "queue_id", "queue_offset", "store_time_ms", "transaction", "prepared_offset", "unique_key", "tags",
    "properties", "body",
)  # fmt: skip
CHECK_TIMES, FIRST_PLACE, HALF_PLACE = "TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET", "TRANS_OFFSET"
REMOVE_TAG = "d"
MOST_PENDING = 1 << 19  # ends of one kind that are held before they are matched
PIECE_BYTES = 1 << 16  # of an operation message's body, whose numbers are taken together
_MIX = 0x9E37_79B9_7F4A_7C15
_SPREAD = 0x5851_F42D_4C95_7F2D

_END = np.dtype([("key", "u8"), ("phy_offset", "i8"), ("time", "i8"), ("state", "i1")])


def place_key(queue_id: int, queue_offset: int) -> int:
    """Return the key by which an operation message finds a half message."""
    return (queue_id * _MIX ^ queue_offset * _SPREAD) & 0xFFFF_FFFF_FFFF_FFFF


def phy_key(phy_offset: int) -> int:
    """Return the key by which a committed message finds its half message."""
    return phy_offset & 0xFFFF_FFFF_FFFF_FFFF


def text_key(text: str) -> int:
    """Return the key of a unique key. It differs from process to process, so that nobody can choose texts that meet."""
    return hash(text) & 0xFFFF_FFFF_FFFF_FFFF


@dataclass
class HalfStates:
    """The states of half messages that come in the order of the log: 41 bytes each.

    phy_offset: that of each.
    state: numbers of STATES.
    end_phy_offset, end_time_ms: those of the message that ended it; -1 and 0 for an open one.
    `settle` must have been called last.
    """

    phy_offset: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    state: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))
    end_phy_offset: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    end_time_ms: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    _keys: tuple[np.ndarray, ...] = field(default_factory=lambda: (np.zeros(0, np.uint64),) * 3)
    _new: list[tuple[int, int, int, int]] = field(default_factory=list)
    _ends: tuple[list[tuple[int, int, int, int]], ...] = field(default_factory=lambda: ([], [], []))

    @property
    def count(self) -> int:
        """Return the number of all half messages that were added."""
        return len(self.phy_offset) + len(self._new)

    @property
    def all_ended(self) -> bool:
        """Say whether nothing further on can change the answer."""
        return not self._new and not (self.state == OPEN).any()

    def add(self, batch: pa.RecordBatch, stretch: tuple[int, int], most: int) -> int | None:
        """Take the next messages of the log: a batch of COLUMNS.

        stretch: physical offsets in which half messages are counted.

        Gives the physical offset of the first half message without room, None if all were taken.
        """
        full = None
        for one in _parts(batch):
            if one.half and stretch[0] <= one.phy_offset < stretch[1] and full is None:
                if self.count == most:
                    full = one.phy_offset
                else:
                    unique = 0 if one.unique is None else text_key(one.unique)
                    self._new.append((one.phy_offset, one.place, phy_key(one.phy_offset), unique))
            for kind, key, state in one.ends:
                held = self._ends[kind]
                held.append((key, one.phy_offset, one.time, state))
                if len(held) == MOST_PENDING:  # one message may hold millions
                    self.settle()
        if sum(map(len, self._ends)) + len(self._new) > MOST_PENDING:
            self.settle()
        return full

    def settle(self) -> None:
        """Match what was taken."""
        self._take_new()
        found = [self._matches(kind, np.array(held, _END)) for kind, held in enumerate(self._ends) if held]
        for held in self._ends:
            held.clear()
        if not found:
            return
        index, ends = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(ends["phy_offset"], kind="stable")[::-1]  # the first one is written last
        index, ends = index[order], ends[order]
        still = self.state[index] == OPEN
        index, ends = index[still], ends[still]
        self.state[index], self.end_phy_offset[index], self.end_time_ms[index] = ends["state"], ends["phy_offset"], ends["time"]

    def _take_new(self) -> None:
        if not self._new:
            return
        phy, *keys = (list(part) for part in zip(*self._new, strict=True))
        more = len(self._new)
        self._new.clear()
        self.phy_offset = np.append(self.phy_offset, np.array(phy, np.int64))
        self._keys = tuple(np.append(old, np.array(new, np.uint64)) for old, new in zip(self._keys, keys, strict=True))
        self.state = np.append(self.state, np.zeros(more, np.int8))
        self.end_phy_offset = np.append(self.end_phy_offset, np.full(more, -1, np.int64))
        self.end_time_ms = np.append(self.end_time_ms, np.zeros(more, np.int64))

    def _matches(self, kind: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (numbers of half messages, the ends that are theirs): of each end the last one before it with its key."""
        count = len(self.phy_offset)
        known, rank = np.unique(self._keys[kind], return_inverse=True)
        sorted_places = np.sort(rank.astype(np.int64) * (count + 1) + np.arange(count))
        at = np.searchsorted(known, ends["key"])
        there = at < len(known)
        there[there] = known[at[there]] == ends["key"][there]
        at, ends = at[there].astype(np.int64), ends[there]
        before = np.searchsorted(self.phy_offset, ends["phy_offset"])  # half messages that come before the end
        number = np.searchsorted(sorted_places, at * (count + 1) + before) - 1
        place = sorted_places[np.maximum(number, 0)] if count else np.zeros(len(number), np.int64)
        own = (number >= 0) & (place // (count + 1) == at)
        return (place % (count + 1))[own], ends[own]


PLACE, PHY, UNIQUE = range(3)  # what an end names a half message by


@dataclass(frozen=True)
class _Part:
    """The facts that one message says.

    ends: (the half message's name, the key, its state); to be read once.
    """

    phy_offset: int
    time: int
    half: bool = False
    place: int = 0
    unique: str | None = None
    ends: Iterable[tuple[int, int, int]] = ()


def _parts(batch: pa.RecordBatch) -> Iterator[_Part]:
    columns = {name: batch.column(name).to_pylist() for name in COLUMNS if name not in ("properties", "body")}
    checked, moved, place = (_property(batch, name) for name in (CHECK_TIMES, FIRST_PLACE, HALF_PLACE))
    bodies = batch.column("body")
    for i in range(batch.num_rows):
        topic, phy, time, unique = (columns[name][i] for name in ("topic", "phy_offset", "store_time_ms", "unique_key"))
        again = unique is not None and (checked[i] is not None or moved[i] is not None)
        named = ((UNIQUE, text_key(unique)),) if unique is not None else ()
        if topic in HALF_TOPICS:
            ends = tuple((kind, key, PUT_BACK) for kind, key in named if again and topic == layout.HALF_TOPIC)
            yield _Part(phy, time, True, place_key(columns["queue_id"][i], columns["queue_offset"][i]), unique, ends)
        elif topic == layout.OPERATION_TOPIC:
            if columns["tags"][i] == REMOVE_TAG:
                queue_id, numbers = columns["queue_id"][i], _numbers(bodies[i].as_py() or b"")
                yield _Part(phy, time, ends=_rolled_back(queue_id, numbers))
        elif topic == rocksdb_layout.DONE_TOPIC:
            yield _Part(phy, time, ends=tuple((PHY, phy_key(n), ROLLED_BACK) for n in _numbers((place[i] or "").encode())))
        elif topic == layout.GIVEN_UP_TOPIC:
            yield _Part(phy, time, ends=tuple((kind, key, GIVEN_UP) for kind, key in named))
        elif columns["transaction"][i] == "commit":
            prepared = columns["prepared_offset"][i]
            by_place = ((PHY, phy_key(prepared)),) if prepared or unique is None else ()  # 0 in a delayed one's delivered copy
            yield _Part(phy, time, ends=tuple((kind, key, COMMITTED) for kind, key in (*by_place, *named)))


def _rolled_back(queue_id: int, numbers: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    return ((PLACE, place_key(queue_id, number), ROLLED_BACK) for number in numbers)


def _numbers(text: bytes) -> Iterator[int]:
    """Yield the queue offsets that an operation message holds: "12,13,17," since 5.0.0, one number before.

    A number that comes again nearby is given once: a body may be millions of times the same.
    """
    at = 0
    while at < len(text):
        comma = text.find(b",", at + PIECE_BYTES)
        end = comma if comma >= 0 else len(text)
        for piece in set(text[at:end].split(b",")):
            if piece.isdigit() and len(piece) < 19:
                yield int(piece)
        at = end + 1


def _property(batch: pa.RecordBatch, name: str) -> list[str | None]:
    found: list[str | None] = pc.map_lookup(batch.column("properties"), name, "last").to_pylist()
    return found
