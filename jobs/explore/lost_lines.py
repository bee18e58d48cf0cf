"""Messages as lines that a producer can send again (`store_io.explore.lost.sendable`), for query, export and others.

`lost_lines` gives those of a whole store that a start would lose, in the order of the log; only one window of a segment, and the
bodies of one batch, are held at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from store_io.audit.audit_store import StoreAudit
from store_io.explore.lost.lost_places import LostPlaces, lost_places
from store_io.explore.lost.segment_loss import NONE_SPARED, Spared
from store_io.explore.lost.sendable import COLUMNS, sendable
from store_io.explore.lost.spared import with_spared
from store_io.explore.message_rows import scan_messages
from store_io.explore.redaction import Redaction, read_redaction
from store_io.explore.scans import MessageScan

BATCH_ROWS = 256  # made lines together: as text a body takes several times its size


def batch_lines(batch: pa.RecordBatch, redaction: Redaction, spared: Spared = NONE_SPARED) -> Iterator[str]:
    """A line for each row of a batch that has the columns of `sendable`. spared: messages that are not to be sent."""
    for low in range(0, batch.num_rows, BATCH_ROWS):
        for row in batch.slice(low, BATCH_ROWS).to_pylist():
            yield json.dumps(sendable(row, redaction, spared), ensure_ascii=True, allow_nan=False) + "\n"


def lost_lines(audit: StoreAudit, redaction: Redaction | None = None) -> Iterator[str]:
    """The lines of all messages that a start would lose by this audit, which is at its end.

    Raises StoreError before the first line where the loss is not known.
    """
    return _lines(audit, with_spared(audit, lost_places(audit)), redaction or read_redaction(None))


def _lines(audit: StoreAudit, places: LostPlaces, redaction: Redaction) -> Iterator[str]:
    scan = resend_scan(MessageScan(audit.request.location, "", 0, 0, rules=audit.rules, only_lost=True))
    for file in sorted(audit.segment_files, key=lambda f: (f.start, f.path)):
        own = replace(scan, path=file.path, base_offset=file.start, size=file.size, loss=places.of(file.path))
        for batch in scan_messages(own, audit.source):
            yield from batch_lines(batch, redaction, places.spared)


def resend_scan(scan: MessageScan) -> MessageScan:
    """The same messages, in the columns of `sendable`: bodies as producers sent them, batches taken apart."""
    return replace(scan, columns=COLUMNS, decompress=True, unpack=True)
