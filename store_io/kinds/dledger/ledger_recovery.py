"""Follows DLedger's own recovery: where it reads, stops and cuts, and what counts as committed (dledger.md 3).

It is the same in all releases, clean or not. Bodies are not read. The list of index files is kept as recovery cuts it and writes
units anew.
Source: DLedgerMmapFileStore.recover, reviseLedgerBeginIndex, updateCommittedIndex, getEntryPosAndSize;
MmapFileList.truncateOffset, rebuildWithPos, resetOffset, preAppend; read at 0.2.2, 0.3.1.2, 0.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.advice import Refusal, RefusalKind
from schemas.layouts.dledger_layout import INDEX_FILE_BYTES as SIZE
from schemas.layouts.dledger_layout import UNIT_BYTES
from schemas.rows import MappedFile
from schemas.start_effect import LedgerState, WrittenFile
from store_io.broker.prediction import LogFile, Refused, cut_files
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.ledger_files import LedgerFiles
from store_io.kinds.dledger.ledger_walks import CHAIN, FILE_END, FILLER, DataWalk, LedgerTexts, Stretch


@dataclass
class UnitFile:
    """A file of index units.

    path: None if recovery made the file.
    wrote: bytes that count as written.
    begin: bytes that count as gone.
    """

    path: str | None
    start: int
    wrote: int
    begin: int = 0

    @property
    def name(self) -> str:
        return f"{self.start:020d}"


class UnitList:
    """The index files in memory. deleted: paths of those that were removed."""

    def __init__(self, files: Iterable[MappedFile]):
        self.files = [UnitFile(f.path, f.start, f.size) for f in files]
        self.deleted: list[str] = []

    @property
    def end(self) -> int:
        """Return the position after the last byte that counts as written; 0 without a file."""
        return self.files[-1].start + self.files[-1].wrote if self.files else 0

    def holds(self, position: int) -> bool:
        """Say whether some file holds that byte."""
        return any(f.start <= position < f.start + SIZE for f in self.files)

    def on_disk(self, position: int) -> bool:
        """Say whether a file that the copy has holds that byte."""
        return any(f.path is not None and f.start <= position < f.start + SIZE for f in self.files)

    def _keep(self, kept: list[UnitFile]) -> None:
        self.deleted += [f.path for f in self.files if f not in kept and f.path is not None]
        self.files = kept

    def truncate(self, position: int) -> None:
        """Drop later files, and end the one that holds the position there."""
        kept = []
        for file in self.files:
            if file.start + SIZE > position:
                if position < file.start:
                    continue
                file.wrote = position % SIZE
            kept.append(file)
        self._keep(kept)

    def cut_for_writing(self, position: int) -> None:
        """Truncate the list; if it then does not end at the position, one new file takes the place of all."""
        self.truncate(position)
        if self.end != position:
            self._keep([])
            self.files = [UnitFile(None, position - position % SIZE, position % SIZE, position % SIZE)]

    def write_up_to(self, position: int) -> None:
        """Append units, in new files if the last one is full."""
        while self.end < position:
            last = self.files[-1] if self.files else None
            if last is None or last.wrote == SIZE:
                last = UnitFile(None, self.end, 0)
                self.files.append(last)
            last.wrote = min(SIZE, position - last.start)

    def forget_before(self, position: int) -> None:
        """Drop files that end at or before the position."""
        kept = []
        for file in self.files:
            if file.start <= position:
                if position >= file.start + SIZE:
                    continue
                file.begin = position % SIZE
            kept.append(file)
        self._keep(kept)


class LedgerEnd(NamedTuple):
    """The end of the entries, as a physical offset, with its reason.

    first_file: the data file in which the reading begins.
    """

    first_file: str
    phy_offset: int
    reason: str


@dataclass
class LedgerMemory:
    """A group's log in the broker's memory. Indexes and committed_pos are -1 without one, divided without a log.

    start_file, stop_file: places in the list of data files, of those that recovery reads.
    """

    data: list[LogFile]
    index: UnitList
    begin: int = -1
    end: int = -1
    end_term: int = 0
    committed: int = -1
    committed_pos: int = -1
    divided: int = -1
    start_file: int | None = None
    stop_file: int = 0
    stop_position: int = 0
    stop_reason: str = ""
    deleted: list[str] = field(default_factory=list)

    @property
    def log_end(self) -> int:
        """Return the end of the data; 0 without a data file."""
        return self.data[-1].file.start + self.data[-1].wrote if self.data else 0

    def state(self) -> LedgerState:
        """Return the ledger as the effect of a start has it."""
        numbers = self.begin, self.end, self.end_term, self.committed, self.committed_pos, self.divided
        data, index = (tuple(WrittenFile(f.name, f.wrote) for f in files) for files in (self.data, self.index.files))
        return LedgerState(*numbers, data, index)


def recover_ledger(files: LedgerFiles, walks: Mapping[str, DataWalk], texts: LedgerTexts, rules: BrokerRules) -> LedgerMemory:
    """Return the ledger after recovery of a log that has data files. Raises Refused if the process ends or load() throws."""
    if files.misfit:
        raise Refused(files.misfit)
    recovery = _Recovery(files.data, [walks[f.path] for f in files.data], UnitList(files.index), rules)
    return recovery.run(texts)


def recovered_end(files: LedgerFiles, walk_of: Callable[[MappedFile], DataWalk], rules: BrokerRules) -> LedgerEnd | None:
    """Return the end of the log after recovery, by its last data files; None if recovery begins before these.

    Raises as `recover_ledger`.
    """
    if files.misfit:
        raise Refused(files.misfit)
    data = files.data[rules.first_recovered(len(files.data)) :]
    recovery = _Recovery(data, [walk_of(f) for f in data], UnitList(files.index), rules)
    if len(files.data) > len(data) and not recovery.walks[0].sound_start:
        return None
    end, ledger = recovery.read(), recovery.ledger
    assert ledger.start_file is not None
    return LedgerEnd(data[ledger.start_file].path, end, ledger.stop_reason)


class _Recovery:
    def __init__(self, files: list[MappedFile], walks: list[DataWalk], units: UnitList, rules: BrokerRules):
        self.files, self.walks, self.units, self.rules = files, walks, units, rules
        self.ledger = LedgerMemory([LogFile(f, f.size) for f in files], units)
        self.first: int | None = None  # index of the first entry that is read
        self.last: Stretch | None = None
        self.last_file = 0
        self.rewriting = False  # units, from the first entry on whose unit differs

    def run(self, texts: LedgerTexts) -> LedgerMemory:
        ledger = self.ledger
        ledger.divided = self.files[0].start
        end = self.read()
        ledger.end_term = -1  # of data files without an entry
        if self.last is not None:
            ledger.end, ledger.end_term = self.last.last_index, self.last.last_term
            ledger.begin = self.walks[0].first_index
            self.units.forget_before(ledger.begin * UNIT_BYTES)
        ledger.data = cut_files(ledger.data, end, ledger.deleted)
        self.units.truncate((ledger.end + 1) * UNIT_BYTES)
        ledger.deleted += self.units.deleted
        if texts.refusal:
            raise Refused(texts.refusal)
        self._commit(texts)
        return ledger

    def read(self) -> int:
        """Return the end of the entries, as a physical offset. Raises Refused if it is too far from the log's end."""
        end, last = self._read(self._start()), self.files[-1]
        if last.start - end > last.size:
            path = self.files[self.ledger.stop_file].path
            raise Refused(Refusal(RefusalKind.LEDGER_ENDS_EARLY, path, phy_offset=end))
        return end

    def _start(self) -> int:
        """Return the newest file whose first entry is sound, from the first that recovery reads on backwards.

        It is sound by its own header and its unit.
        """
        for i in reversed(range(self.rules.first_recovered(len(self.files)) + 1)):
            if self.walks[i].sound_start:
                return i
        return 0

    def _read(self, start: int) -> int:
        """Follow the entries from that file on; the physical offset at which they end."""
        ledger = self.ledger
        ledger.start_file = start
        for i in range(start, len(self.files)):
            walk, base = self.walks[i], self.files[i].start
            ledger.stop_file = i
            stretch = walk.leading
            if stretch is None:
                ended_by, end = walk.ended_by, 0
            elif not self._continues(stretch):
                ended_by, end = CHAIN, 0
            else:
                self._take(i, stretch)
                ended_by, end = stretch.ended_by, stretch.end
            ledger.stop_position, ledger.stop_reason = end, ended_by
            if ended_by != FILLER:
                return base + end
        ledger.stop_reason = FILE_END
        return self.files[-1].start + self.files[-1].size

    def _continues(self, stretch: Stretch) -> bool:
        """Say whether an entry can follow the last one that was read."""
        if stretch.first_index < 0:  # no unit can be written for it
            return False
        last = self.last
        return last is None or stretch.first_index == last.last_index + 1 and stretch.first_term >= last.last_term

    def _take(self, number: int, stretch: Stretch) -> None:
        if self.first is None:
            self.first = stretch.first_index
        self.last, self.last_file = stretch, number
        if not self.rewriting and stretch.unequal is not None:
            self.units.cut_for_writing(stretch.unequal * UNIT_BYTES)
            self.rewriting = True
        if self.rewriting:
            self.units.write_up_to((stretch.last_index + 1) * UNIT_BYTES)

    def _commit(self, texts: LedgerTexts) -> None:
        """Do updateCommittedIndex with what the checkpoint says."""
        ledger, wanted = self.ledger, texts.committed
        if wanted is None or wanted == -1 or ledger.end == -1 or wanted < ledger.committed or wanted < ledger.begin:
            return
        wanted = min(wanted, ledger.end)
        ledger.committed_pos = self._end_of(wanted, texts)
        ledger.committed = wanted

    def _end_of(self, index: int, texts: LedgerTexts) -> int:
        """Return the end of the entry, as its index unit says.

        Units that were read agree with the data, the others are unchecked.
        """
        assert self.last is not None and self.first is not None
        if index == self.last.last_index:
            return self.files[self.last_file].start + self.last.end
        if index >= self.first:
            found = (walk.wanted for walk in self.walks if walk.wanted is not None)
            return next(place.end for place in found)
        position = index * UNIT_BYTES
        if not self.units.holds(position):
            raise Refused(Refusal(RefusalKind.LEDGER_COMMITTED_UNIT, expected=index))
        if not self.units.on_disk(position) or texts.committed_unit is None:
            return 0  # a new file's zeros
        return sum(texts.committed_unit)
