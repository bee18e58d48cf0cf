"""The types that a fold over one store takes and gives: what was scanned, what is asked for, what the broker does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.advice import Refusal
from schemas.layouts.dledger_layout import FOLDER_PREFIX
from schemas.rows import Cuts, MappedFile, QueueKey
from schemas.start_effect import (
    BrokerState,
    ControlledStart,
    Election,
    IndexEnds,
    LedgerState,
    OtherEnds,
    QueueEnds,
    Started,
    StartEffect,
    WrittenFile,
)
from store_io.base.packed import items_of, packed
from store_io.broker.epochs import Elected, Epoch
from store_io.broker.index_state import IndexFileState
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.source.byte_source import name_of

BrokerQueue = QueueState | RocksQueue


@dataclass(frozen=True)
class ScanId:
    """The scan of which a fold speaks. It is a segment (by its place in the list) read whole, or a walk in it.

    kind: "segment"; "from": the broker's walk begins at `start` (accelerated recovery); "reput": start()'s walk from `start` on,
    in a log that ends at `limit`, beyond the segment perhaps; "elect": the election's check, from `start` to the first record
    that it refuses; "ha": load()'s reading of messages after confirmOffset.
    """

    kind: str
    segment: int
    start: int = 0
    limit: int = 0


@dataclass
class Needs:
    """Finer scans that a fold asks for."""

    scans: set[ScanId] = field(default_factory=set)
    phy_cuts: dict[ScanId, set[int]] = field(default_factory=lambda: defaultdict(set))
    queue_cuts: dict[ScanId, dict[QueueKey, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    number_cuts: dict[ScanId, dict[QueueKey, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    marks: dict[ScanId, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))

    def __bool__(self) -> bool:
        return bool(self.scans or self.phy_cuts or self.queue_cuts or self.number_cuts or self.marks)

    def cuts(self, scan: ScanId) -> Cuts:
        """Return all cuts asked for of one scan."""
        return Cuts(
            tuple(sorted(self.phy_cuts.get(scan, ()))),
            {key: tuple(sorted(values)) for key, values in self.queue_cuts.get(scan, {}).items()},
            {key: tuple(sorted(values)) for key, values in self.number_cuts.get(scan, {}).items()},
        )


@dataclass
class LogFile:
    """One CommitLog file in the broker's memory."""

    file: MappedFile
    wrote: int

    @property
    def name(self) -> str:
        return name_of(self.file.path)

    @property
    def of_ledger(self) -> bool:
        """Say whether it is a data file of a DLedger log."""
        return self.file.path.startswith(FOLDER_PREFIX)


def cut_files(files: Iterable[LogFile], end: int, deleted: list[str]) -> list[LogFile]:
    """Return the files that a cut at this physical offset leaves, the last of them up to there.

    deleted: gets the paths of the others.
    """
    kept = []
    for file in files:
        if file.file.start + file.file.size > end:
            if end < file.file.start:
                deleted.append(file.file.path)
                continue
            file.wrote = end % file.file.size
        kept.append(file)
    return kept


@dataclass
class Memory:
    """The broker's memory at one moment. twins: of a combined store the queues that
    consumers are not served from; None of any other store."""

    log: list[LogFile]
    queues: Mapping[QueueKey, BrokerQueue]
    index: list[IndexFileState]
    twins: Mapping[QueueKey, BrokerQueue] | None = None

    def state(self) -> BrokerState:
        """Return the moment as the effect of a start has it."""
        return BrokerState(
            tuple(WrittenFile(f.name, f.wrote) for f in self.log if not f.of_ledger),
            _queue_ends(self.queues),
            tuple(IndexEnds(f.begin_phy, f.end_phy, f.stored_count) for f in self.index),
            None if self.twins is None else _queue_ends(self.twins),
        )


def _queue_ends(queues: Mapping[QueueKey, BrokerQueue]) -> Sequence[QueueEnds]:
    return packed(
        QueueEnds(*key, queue.min_offset, queue.max_offset, queue.max_phy, _or_else(queue)) for key, queue in items_of(queues)
    )


def _or_else(queue: BrokerQueue) -> OtherEnds | None:
    """Return the other answer of a queue, if the release leaves two open. A race inside the broker decides which one it is."""
    other = queue.or_else if isinstance(queue, RocksQueue) else None
    return None if other is None else OtherEnds(other.min_offset, other.max_offset, other.max_phy)


@dataclass
class Fenced:
    """The additions of controller mode: the broker before the controller has answered, and after an election.

    confirm_offset: after load(); -1 in releases that do not keep it.
    epochs: as the broker holds them, before.
    elected, after_election: None if start() never ends, so that there is no election.
    cut_at: the physical offset at which the election cuts the log; None if it does not.
    """

    confirm_offset: int
    epochs: tuple[Epoch, ...]
    elected: Elected | None = None
    after_election: Memory | None = None
    cut_at: int | None = None

    def controlled(self) -> ControlledStart:
        """Return it as the effect of a start has it."""
        election, elected = None, self.elected
        if elected is not None:
            removed = tuple(epoch.epoch for epoch in elected.removed)
            election = Election(elected.epoch.epoch, elected.epoch.start, elected.recorded, removed, self.cut_at)
        return ControlledStart(self.confirm_offset, self.epochs, election)


@dataclass
class Prediction:
    """The broker's acts at a start. If `starts` is False only `refusal` counts.

    ledger: None if there is no DLedger log.
    ledger_end: the end of such a log's data; `truncate_at` is its committed position.
    """

    starts: bool
    unclean: bool
    refusal: Refusal | None = None
    start_segment: str | None = None
    stop_reason: str = ""
    stop_segment: str | None = None  # its path
    stop_position: int = 0
    min_phy_offset: int = -1
    truncate_at: int = 0
    deleted_files: list[str] = field(default_factory=list)
    after_load: Memory | None = None
    after_dispatch: Memory | None = None
    controller: Fenced | None = None  # in controller mode
    scanned: list[int] = field(default_factory=list)  # segments that recovery reads, by place in the list
    skips: list[str] = field(default_factory=list)  # which messages recovery leaves without an entry, and why
    dispatches_after: int = -1  # recovery dispatches what lies beyond this physical offset alone
    hangs_at: int = -1  # start(), or an election, waits without end at this physical offset
    hangs_why: Refusal | None = None  # what dispatch throws there again and again; None if it waits for bytes
    ledger: LedgerState | None = None
    ledger_end: int | None = None
    ledger_from: int = -1  # from where on recovery of a DLedger log, or start(), dispatches all; -1: no start() is foreseen
    ledger_cut: int = -1  # where recovery of a DLedger log cuts the queues after an unclean exit; -1: it does not

    def effect(self) -> StartEffect:
        """Return what a start does, without what kinds of files and the messages of the log add."""
        return StartEffect(self._started(), not self.unclean, self.refusal)

    def _started(self) -> Started | None:
        if not self.starts or self.after_load is None or self.after_dispatch is None:
            return None
        controller = self.controller
        elected = controller.after_election if controller is not None else None
        return Started(
            self.start_segment,
            self.stop_reason,
            self.min_phy_offset,
            self.truncate_at,
            self.deleted_files,
            self.after_load.state(),
            self.after_dispatch.state(),
            elected.state() if elected is not None else None,
            controller.controlled() if controller is not None else None,
            self.ledger,
        )

    @property
    def log_end(self) -> int:
        """Return physical offset at which the log ends after load()."""
        return self.truncate_at if self.ledger_end is None else self.ledger_end

    @property
    def settled(self) -> Memory | None:
        """Return the final state: after an election if there is one, else once start() has caught up."""
        elected = self.controller.after_election if self.controller is not None else None
        return elected or self.after_dispatch

    @property
    def election_hangs(self) -> bool:
        """Say whether it is the election that never ends; start() has returned by then, and the broker stays fenced."""
        return self.hangs_at >= 0 and self.controller is not None and self.controller.elected is not None

    @property
    def end(self) -> int:
        """Return physical offset at which the log ends then."""
        cut = self.controller.cut_at if self.controller is not None else None
        return self.log_end if cut is None else cut


class Refused(Exception):
    """load() returns false or throws; or dispatch throws, at the refusal's physical offset."""

    def __init__(self, refusal: Refusal):
        super().__init__(refusal.kind)
        self.refusal = refusal
