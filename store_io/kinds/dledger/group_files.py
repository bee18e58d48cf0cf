"""Makes the files anew that DLedger derives from its data: index units, checkpoint, and a currterm older than the entries.

A node that is alone in its group commits all of its log, so both indexes of the checkpoint are that of the last entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.layouts import dledger_layout as layout
from schemas.repair import RepairStep
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree, is_folder, numbered_files
from store_io.kinds.dledger.entry_walk import headers_of
from store_io.kinds.dledger.ledger_kind import LEDGER
from store_io.repair.kind_repair import KindRepair
from store_io.repair.log.edits import Edit
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_INDEX, WRITE_CHECKPOINT
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 1 << 20


class LedgerRepair(KindRepair):
    """The files of a DLedger group. `ledger_plan` plans its log, and the files that are made of it."""

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        ledger = audit.copy.loaded.ledger
        if ledger is None or not refusal.path.startswith(f"{ledger.folder}/"):
            return False
        tree = Tree(work.source.list_tree(ledger.folder))
        work.remove(refusal.path, reason, tree)
        if refusal.kind in (RefusalKind.LEDGER_FILE_IS_FOLDER, RefusalKind.LEDGER_FILE_LENGTH):
            for entry in tree.children(refusal.path.rpartition("/")[0]):
                kind = RefusalKind.LEDGER_FILE_IS_FOLDER if is_folder(entry) else RefusalKind.LEDGER_FILE_LENGTH
                wrong = is_folder(entry) or entry.size != refusal.expected
                if wrong and entry.path != refusal.path and entry.path not in audit.holding:
                    work.unblock(entry.path, Refusal(kind, entry.path, refusal.expected, entry.size), tree)
        return True


class Ends(NamedTuple):
    """Indexes of the first and the last entry, and the last one's term."""

    first: int
    last: int
    term: int


@dataclass(frozen=True)
class UnitBuild:
    """The units of one data file's entries. Picklable. folder: of the group's index files."""

    location: StoreLocation
    file: MappedFile
    writer: StoreWriter
    folder: str
    store: int = 0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.file.size

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.file.path,)

    def run(self) -> int:
        """Write them; how many they are. Raises StoreError."""
        count = 0
        with open_source(self.location).open(self.file.path) as opened:
            window = SegmentWindow(opened, self.file.size, WINDOW_BYTES)
            for rows in headers_of(window, self.file.start, self.file.size):
                units = np.zeros(len(rows), layout.UNIT_DTYPE)
                units["magic"], units["pos"], units["size"] = layout.MAGIC, rows[:, 0] + self.file.start, rows[:, 1]
                units["index"], units["term"] = rows[:, 2], rows[:, 3]
                self._put(int(rows[0, 2]), units)
                count += len(rows)
        return count

    def _put(self, first: int, units: np.ndarray) -> None:
        done = 0
        while done < len(units):
            base, at = _place(first + done)
            part = units[done : done + (layout.INDEX_FILE_BYTES - at) // layout.UNIT_BYTES]
            with self.writer.open(f"{self.folder}/{base:020d}") as file:
                file.write(at, part.view(np.uint8))
            done += len(part)


def _place(index: int) -> tuple[int, int]:
    """Return (the first byte of the index file, the position in it) of an entry's unit."""
    at = index * layout.UNIT_BYTES
    return at - at % layout.INDEX_FILE_BYTES, at % layout.INDEX_FILE_BYTES


def group_edits(work: Work, audit: Audited, ends: Ends) -> list[Edit]:
    """Return the edits that come after those of the data."""
    ledger = audit.evidence.copy.loaded.ledger
    assert ledger is not None
    folder = ledger.folder
    return [_index(work, folder, ends), _checkpoint(folder, ends), *_term(audit, folder, ends)]


def _index(work: Work, folder: str, ends: Ends) -> Edit:
    index, data = f"{folder}/{layout.INDEX}", f"{folder}/{layout.DATA}"
    count = ends.last - ends.first + 1

    def write(writer: StoreWriter) -> None:
        writer.remove(index)
        for base in range(_place(ends.first)[0], _place(ends.last)[0] + 1, layout.INDEX_FILE_BYTES):
            writer.create(f"{index}/{base:020d}", layout.INDEX_FILE_BYTES)
        files = numbered_files(work.tree, data)
        made = work.run([UnitBuild(work.location, file, writer, index) for file in files], "units")
        if sum(made) != count:
            raise StoreError(f"{data}: {sum(made)} entries follow one another, not {count}: a fault of this program")

    return Edit(RepairStep(REBUILD_INDEX, index, reason="the units of all entries", kept={"entries": count}), write)


def _checkpoint(folder: str, ends: Ends) -> Edit:
    path = f"{folder}/{layout.CHECKPOINT}"
    text = f"{layout.COMMITTED_INDEX}={ends.last}\n{layout.END_INDEX}={ends.last}\n".encode()
    step = RepairStep(WRITE_CHECKPOINT, path, 0, len(text), "a node that is alone commits all of its log")
    return Edit(step, lambda writer: writer.put(path, text))


def _term(audit: Audited, folder: str, ends: Ends) -> list[Edit]:
    """Return the edit of an older term than the entries'.

    New entries would get that term, and a later start would end the log before them.
    """
    stored = audit.evidence.copy[LEDGER].texts.term
    if stored is not None and stored >= ends.term or stored is None and ends.term == 0:
        return []
    path = f"{folder}/{layout.TERM}"
    text = f"{layout.CURRENT_TERM}={ends.term}\n{layout.VOTE_LEADER}=\n".encode()
    step = RepairStep(WRITE_CHECKPOINT, path, 0, len(text), "the entries are of this term")
    return [Edit(step, lambda writer: writer.put(path, text))]
