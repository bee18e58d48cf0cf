"""The results of reading a DLedger group: data files by their entry headers, index units, the two texts. Small, whatever they
hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.advice import Gap, Refusal
from schemas.rows import Finding

MAX_STRETCHES = 1000

# Why a stretch of entries ends.
FILLER, UNWRITTEN, HEADER, CHAIN, FILE_END = "filler", "unwritten", "frame_header", "entry_chain", "end_of_last_file"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries that follow one another by every field of their headers.

    start, end: positions in the file.
    last_start: of the last entry.
    unequal: the first entry whose index unit is absent or another one; None: all are right.
    ended_by: one of this module's words.
    last_term_start: position of the first entry of the last term.
    term_before: the term before that one, or the first.
    """

    start: int
    end: int
    last_start: int
    first_index: int
    last_index: int
    first_term: int
    last_term: int
    unequal: int | None
    ended_by: str
    last_term_start: int = 0
    term_before: int = 0

    @property
    def entries(self) -> int:
        return self.last_index - self.first_index + 1


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """The begin and the end of an entry, as physical offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class UnequalUnits:
    """Entries that follow one another and whose units are other ones, or absent. position: of the first, in the data file."""

    position: int
    first_index: int
    count: int


@dataclass
class DataWalk:
    """The walk over one data file.

    first: the raw index that its first eight header bytes claim (reviseLedgerBeginIndex reads it unchecked); None if the file is
    shorter.
    stretches: in order; the first one is the part that recovery reads if it begins at position 0.
    sound_start: the first header is plausible and its unit confirms it.
    wanted: the place of the entry that the checkpoint calls committed.
    unequal_units: entries whose units differ, in order.
    ..._dropped: how many more there are than MAX_STRETCHES.
    """

    path: str
    start: int
    size: int
    first_index: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    stretches_dropped: int = 0
    ended_by: str = UNWRITTEN  # where no stretch begins at position 0
    sound_start: bool = False
    wanted: EntryPlace | None = None
    unequal_units: list[UnequalUnits] = field(default_factory=list)
    unequal_dropped: int = 0
    findings: list[Finding] = field(default_factory=list)
    bytes_read: int = 0
    problem: Gap | None = None

    @property
    def leading(self) -> Stretch | None:
        """Return the entries from position 0 on."""
        return self.stretches[0] if self.stretches and self.stretches[0].start == 0 else None


@dataclass(frozen=True, slots=True)
class UnitRun:
    """Units of one index file that follow one another. start, end: positions in the log of the first entry, after the last."""

    first_index: int
    last_index: int
    start: int
    end: int
    first_term: int
    last_term: int


@dataclass
class UnitWalk:
    """One index file.

    runs: in order; what is no unit of its own place is left out.
    runs_dropped: as in `DataWalk`.
    """

    path: str
    start: int
    size: int
    runs: list[UnitRun] = field(default_factory=list)
    runs_dropped: int = 0
    digest: str = ""  # of the length and the units that are not zero
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True, slots=True)
class LedgerTexts:
    """The group's checkpoint and currterm.

    committed, end, term: as a broker parses them; None where it gets none.
    refusal: why recovery throws over the checkpoint, else empty.
    committed_unit: the (position, size) that the unit of the committed entry names on disk; zeros where no index file reaches it.
    """

    committed: int | None = None
    end: int | None = None
    term: int | None = None
    refusal: Refusal | None = None
    committed_unit: tuple[int, int] | None = None
