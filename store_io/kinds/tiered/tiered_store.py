"""Reads config/tieredStoreMetadata.json and reports the messages that it claims a tiered store holds (compaction.md 7).

Their bytes lie elsewhere and were not read.
Source: DefaultMetadataStore and its entities (5.3.0 on), TieredMetadataManager (5.1.0 to 5.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from schemas.finding_codes import Code
from schemas.layouts.store_names import TIERED_METADATA
from schemas.rows import Finding, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import NotAFile, Unreadable
from store_io.base.wording import count_text
from store_io.broker.texts.fastjson import ConfigFault, parse_written
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind
from store_io.source.byte_source import ByteSource

MAX_METADATA_BYTES = 64 << 20
_INT64 = 1 << 63
MAX_QUEUES_TOLD = 100


class Tiered(Kind[None, None, None]):
    """The metadata of a tiered store. Its one small file is read by the check."""

    name = "tiered"


TIERED = Tiered()


@dataclass
class TieredMetadata:
    """The queues that a file of tiered storage claims.

    queues: queue -> (first queue offset, the one after the last), as claimed.
    fault: why the file says nothing, else empty.
    odd: rows that are not what a broker writes.
    """

    queues: dict[QueueKey, tuple[int, int]] = field(default_factory=dict)
    fault: str = ""
    odd: int = 0


def read_tiered(source: ByteSource) -> TieredMetadata:
    """Read the claims of the metadata file. A file that cannot be parsed, or is no file, has a `fault`. Raises Unreadable."""
    found = TieredMetadata()
    try:
        data = source.read_small(TIERED_METADATA, MAX_METADATA_BYTES)
        read = parse_written(data)
    except (NotAFile, ConfigFault) as why:
        found.fault = str(why)
        return found
    if not isinstance(read, dict):
        found.fault = "no JSON object"
        return found
    for topic, queues in _rows(read.get("queueMetadataTable"), found):
        for number, row in _rows(queues, found):
            least, end = _number(row, "minOffset"), _number(row, "maxOffset")
            if number.isascii() and number.isdigit() and len(number) < 10 and least is not None and end is not None:
                found.queues[topic, int(number)] = least, end
            else:
                found.odd += 1
    return found


def _rows(table: Any, found: TieredMetadata) -> list[tuple[str, Any]]:
    if isinstance(table, dict):
        return list(table.items())
    found.odd += table is not None
    return []


def _number(row: Any, name: str) -> int | None:
    value = row.get(name) if isinstance(row, dict) else None
    return value if type(value) is int and -_INT64 <= value < _INT64 else None


def tiered_store(evidence: Evidence) -> list[Finding]:
    """Return a note for each queue of which the tiered store holds messages; what is wrong with the metadata."""
    copy = evidence.copy
    entry = copy.listing.get(TIERED_METADATA)
    if entry is None or entry.kind != "file" or not entry.size:
        return []
    try:
        read = read_tiered(copy.source)
    except Unreadable:  # which is no fault of its bytes
        return []
    if read.fault or read.odd:
        reason = read.fault or f"{count_text(read.odd, 'row')} of another form"
        message = f"{TIERED_METADATA}: not the metadata that a broker writes ({reason})."
        severity = severity_in(
            Code.CONFIG_DAMAGED, Case.NOT_TAKEN, not copy.rules.tiered
        )  # a broker that does not open the store never reads it
        damaged = [Finding(Code.CONFIG_DAMAGED, TIERED_METADATA, 0, entry.size, severity, message=message)]
    else:
        damaged = []
    there = [(key, span) for key, span in sorted(read.queues.items()) if span[0] < span[1]]
    found = [
        Finding(
            Code.TIERED_MESSAGES,
            TIERED_METADATA,
            topic=topic,
            queue_id=queue_id,
            queue_offset=least,
            message=f"by the metadata the tiered store holds queue offsets {least} to {end - 1}; not read",
        )
        for (topic, queue_id), (least, end) in there[:MAX_QUEUES_TOLD]
    ]
    if len(there) > MAX_QUEUES_TOLD:
        more = len(there) - MAX_QUEUES_TOLD
        message = f"by the metadata the tiered store holds messages of {count_text(more, 'more queue')}; not read"
        found.append(Finding(Code.TIERED_MESSAGES, TIERED_METADATA, count=more, message=message))
    return damaged + found
