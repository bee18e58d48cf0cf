"""What a start of the release does with a copy: values, in no language.

plan.json's `broker` and `settings` are written from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.advice import Refusal
from schemas.losses import TimerCount
from schemas.pickled import quickly_pickled

EDGE_BYTES = 4096


@quickly_pickled
@dataclass(frozen=True, slots=True)
class Setting:
    """One value and its origin: "broker.conf", "default" or "inferred" (from the files' own sizes).

    text: as broker.conf has it, also if the release makes nothing of it; None if no broker.conf names it.
    """

    value: Any
    origin: str
    text: str | None = None


@quickly_pickled
@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a log, by its own name, and the position after its last byte that counts."""

    file: str
    wrote: int


class OtherEnds(NamedTuple):
    """The ends of a queue if a race inside the broker goes the other way."""

    min_offset: int
    max_offset: int
    max_phy_offset: int


class QueueEnds(NamedTuple):
    """The ends of one queue. other: None if the release leaves nothing open."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    max_phy_offset: int
    other: OtherEnds | None = None


@quickly_pickled
@dataclass(frozen=True, slots=True)
class IndexEnds:
    begin_phy_offset: int
    end_phy_offset: int
    index_count: int


@quickly_pickled
@dataclass(frozen=True, slots=True)
class BrokerState:
    """The broker's files at one moment.

    queues_files: of a combined store the queues that consumers are not served from; None of any other store.
    """

    commitlog: tuple[WrittenFile, ...]
    queues: Sequence[QueueEnds]  # there may be a million: `store_io.base.packed`
    index: tuple[IndexEnds, ...]
    queues_files: Sequence[QueueEnds] | None = None


@dataclass(frozen=True, slots=True)
class LedgerState:
    """A DLedger group's log after load(). Indexes and committed_pos are -1 without one, divided_offset without a log."""

    begin_index: int
    end_index: int
    end_term: int
    committed_index: int
    committed_pos: int
    divided_offset: int
    data: tuple[WrittenFile, ...]
    index: tuple[WrittenFile, ...]


@dataclass(frozen=True, order=True, slots=True)
class Epoch:
    """One master's time. start: physical offset of the log's end when it was elected; it lasts to the next one's start."""

    epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class Election:
    """The election as master, alone in its syncStateSet.

    recorded: the new epoch is written to the epoch file.
    removed: epochs that begin beyond it.
    cut_at: the physical offset at which it cuts the log; None if it does not.
    """

    epoch: int
    start: int
    recorded: bool
    removed: tuple[int, ...]
    cut_at: int | None


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """The identity in a broker's file. Names are as hostile as any in a store.

    temporary: the id was asked for and not yet confirmed.
    """

    cluster: str
    broker: str
    broker_id: int
    temporary: bool


@dataclass(frozen=True, slots=True)
class ControlledStart:
    """The additions of controller mode.

    confirm_offset: after load(); -1 in releases that do not keep it.
    epochs: before the election.
    election: None if start() never ends, so that there is none.
    identity: None if no file holds it.
    """

    confirm_offset: int
    epochs: tuple[Epoch, ...]
    election: Election | None = None
    identity: BrokerIdentity | None = None


class QueueLost(NamedTuple):
    """Messages of one queue that a start would lose. Times in ms."""

    topic: str
    queue_id: int
    messages: int
    first_store_time: int
    last_store_time: int


@dataclass(frozen=True, slots=True)
class LostByStart:
    """Messages that a start would lose, and their bytes."""

    messages: int
    bytes: int
    by_queue: Sequence[QueueLost]  # packed, of very many


@dataclass(frozen=True, slots=True)
class TimersAfter:
    """The timer store after a start.

    log_end: of the timer log.
    queue_offset: the entry of the timers' queue from which on messages are taken.
    lost: messages that are never delivered, None if that is not known.
    """

    log_end: int
    queue_offset: int
    lost: TimerCount | None = None


@dataclass(frozen=True, slots=True)
class ConfigLoad:
    """What loaders take of config/.

    refused_by: the file at which a start ends, by its own name; "" if it takes all.
    read: a file's own name -> the one that is taken in its place; None if none is.
    """

    refused_by: str
    refusal: Refusal | None
    read: Mapping[str, str | None]
    topics: int
    groups: int
    offsets: int


@dataclass(frozen=True, slots=True)
class Started:
    """The acts of a release that starts.

    start_segment: the name of the segment at which recovery begins; None without one.
    truncate_at: the broker's own end of the log; of a DLedger log that of what is committed.
    after_election: None if there is no election.
    lost: None if that is not known.
    """

    start_segment: str | None
    stop_reason: str
    min_phy_offset: int
    truncate_at: int
    deleted_files: Sequence[str]
    after_load: BrokerState
    after_dispatch: BrokerState
    after_election: BrokerState | None = None
    controller: ControlledStart | None = None
    ledger: LedgerState | None = None
    lost: LostByStart | None = None

    @property
    def log_end(self) -> int:
        """Return the physical offset at which the log ends once load() is done: of a DLedger log the end of its entries."""
        data = self.ledger.data if self.ledger is not None else ()
        return int(data[-1].file) + data[-1].wrote if data else self.truncate_at


@dataclass(frozen=True, slots=True)
class StartEffect:
    """What a start of the release does.

    started: None if it does not start, as `refusal` says.
    clean: the broker stopped cleanly before, as no abort marker is there.
    timers: None if there are none, or they were not judged.
    config: None if nothing is known of it.
    """

    started: Started | None
    clean: bool = True
    refusal: Refusal | None = None
    timers: TimersAfter | None = None
    config: ConfigLoad | None = None

    @property
    def starts(self) -> bool:
        return self.started is not None

    @property
    def exit(self) -> str:
        """Return how the broker stopped before, as documents have it."""
        return "clean" if self.clean else "unclean"


class Edge(NamedTuple):
    """Bytes [start, end) of a file of the log, which no broker changes again."""

    file: str
    start: int
    end: int
    digest: str

    @property
    def is_long(self) -> bool:
        """Say whether it is no edge, but all that was written to the file."""
        return self.end - self.start > EDGE_BYTES
