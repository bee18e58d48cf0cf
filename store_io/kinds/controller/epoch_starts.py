"""Looks up the begins of epochs in the log: an epoch begins between two records, at the log's end when it was elected.

Source: AutoSwitchHAService.changeToMaster, which takes getMaxPhyOffset (controller.md 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.gaps import Gap
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.broker.message_verdict import END, VALID
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_columns import RecordCheck
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

MOST_STARTS = 1000  # of the newest epochs
_WINDOW_BYTES = 1 << 20


@dataclass(frozen=True)
class EpochStartsTask:
    """The starts of epochs of one store, and the segments in which they lie. Picklable."""

    store: int
    location: StoreLocation
    rules: BrokerRules
    places: tuple[EpochPlace, ...]
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return len(self.places) * _WINDOW_BYTES

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.segment.path for place in self.places))

    def run(self) -> EpochStartsResult:
        return look_up(self)


@dataclass(frozen=True)
class EpochPlace:
    """One start, and its segment."""

    start: int
    segment: MappedFile


@dataclass
class EpochStartsResult:
    """The result of a look at the starts of epochs in the log.

    no_record: starts at which there is neither a message that names this physical offset, nor a filler.
    """

    no_record: list[int] = field(default_factory=list)
    bytes_read: int = 0
    problem: Gap | None = None


def look_up(task: EpochStartsTask) -> EpochStartsResult:
    """Read one record at each start. Never raises over bytes; `problem` if a file can no longer be read."""
    result = EpochStartsResult()
    try:
        source = open_source(task.location)
        for place in task.places:
            segment = place.segment
            with source.open(segment.path) as file:
                window = SegmentWindow(file, segment.size, _WINDOW_BYTES, False)
                check = RecordCheck.audit_of(segment.start, task.rules, segment.path)
                verdict = check.verdict(window, place.start - segment.start, segment.size)
                result.bytes_read += window.bytes_read
            if verdict.kind not in (VALID, END):
                result.no_record.append(place.start)
    except StoreError as why:
        return EpochStartsResult(problem=why.gap())
    return result
