"""Which segments hold no message of some store times, as an earlier audit saw them.

An audit that read all of a segment knows the earliest and the latest store time of the messages that it accepts there, also
after damage. So nothing is assumed of the broker's clock. What an audit said counts while the segment's length,
modification time and both edges are as it saw them, as for `--since-run`: a byte between the edges that changed and left the
time as it was is not noticed. Any other segment is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.base.failed_reads import can_do_without
from store_io.messages.message_filter import ALL, Range
from store_io.messages.open_store import OpenStore


@dataclass(frozen=True)
class KnownSegment:
    """The facts that an earlier audit kept about a segment.

    first, last: the earliest and the latest store time of its messages, ms.
    """

    size: int
    modified_ns: int
    edge_digest: str
    first: int
    last: int

    def may_hold(self, store_times: Range) -> bool:
        """Say whether it holds a message of these times, or one before and one after them."""
        low, high = store_times
        return (high is None or self.first < high) and (low is None or self.last >= low)


@dataclass(frozen=True)
class EarlierTimes:
    """The facts that an earlier audit kept about the segments of a copy, by path.

    run_id: "" if no run counts, and `refused` says why.
    """

    run_id: str = ""
    segments: Mapping[str, KnownSegment] = field(default_factory=dict)
    refused: str = ""


def unchanged(store: OpenStore, earlier: EarlierTimes) -> EarlierTimes:
    """Return the part for those segments alone that are as that audit saw them. Reads the edges of each."""
    from store_io.log.scan.segment_edges import edge_digest  # planners start faster without it

    source, kept = store.source(), {}
    for path, known in earlier.segments.items():
        entry = store.listing.get(path)
        if entry is None or entry.mtime_ns <= 0 or (entry.size, entry.mtime_ns) != (known.size, known.modified_ns):
            continue
        try:
            with can_do_without("the segment is read then"), source.open(path) as file:
                same = file.size == known.size and edge_digest(file) == known.edge_digest
        except StoreError:  # whoever reads it says what is wrong with it
            continue
        if same:
            kept[path] = known
    return EarlierTimes(earlier.run_id, kept, earlier.refused)


def needed(files: Iterable[MappedFile], times: EarlierTimes, store_times: Range) -> list[MappedFile]:
    """Return the files that may hold a message of these store times."""
    if store_times == ALL:
        return list(files)
    return [file for file in files if file.path not in times.segments or times.segments[file.path].may_hold(store_times)]
