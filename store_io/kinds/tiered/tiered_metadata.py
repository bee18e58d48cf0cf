"""config/tieredStoreMetadata.json: which messages the tiered store holds, as its metadata claims. Its bytes lie elsewhere.

Source: DefaultMetadataStore and its entities (5.3.0 on), TieredMetadataManager (5.1.0 to 5.2.0) (compaction.md 7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from schemas.rows import QueueKey
from schemas.store_names import TIERED_METADATA
from store_io.base.errors import NotAFile
from store_io.kinds.config.texts.fastjson import ConfigFault, parse_written
from store_io.source.byte_source import ByteSource

MAX_METADATA_BYTES = 64 << 20
_INT64 = 1 << 63


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
