"""The list of index files while DLedger's recovery cuts it and writes units anew.

Source: MmapFileList.truncateOffset, rebuildWithPos, resetOffset, preAppend (dledger.md 3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.dledger_layout import INDEX_FILE_BYTES as SIZE
from schemas.rows import MappedFile


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
        """The position after the last byte that counts as written; 0 without a file."""
        return self.files[-1].start + self.files[-1].wrote if self.files else 0

    def holds(self, position: int) -> bool:
        """Whether some file holds that byte."""
        return any(f.start <= position < f.start + SIZE for f in self.files)

    def on_disk(self, position: int) -> bool:
        """Whether a file that the copy has holds that byte."""
        return any(f.path is not None and f.start <= position < f.start + SIZE for f in self.files)

    def _keep(self, kept: list[UnitFile]) -> None:
        self.deleted += [f.path for f in self.files if f not in kept and f.path is not None]
        self.files = kept

    def truncate(self, position: int) -> None:
        """Later files go, the one that holds the position ends there."""
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
        """Files that end at or before the position go."""
        kept = []
        for file in self.files:
            if file.start <= position:
                if position >= file.start + SIZE:
                    continue
                file.begin = position % SIZE
            kept.append(file)
        self._keep(kept)
