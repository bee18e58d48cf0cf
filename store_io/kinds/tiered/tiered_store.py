"""The claims of a tiered store's metadata: messages that lie elsewhere and were not read (compaction.md 7)."""

from __future__ import annotations

from schemas.finding_codes import Code
from schemas.rows import NOTE, Finding
from schemas.store_names import TIERED_METADATA
from store_io.base.errors import Unreadable
from store_io.base.wording import count_text
from store_io.kinds.tiered.tiered_metadata import read_tiered
from store_io.model.evidence import Evidence

MAX_QUEUES_TOLD = 100


def tiered_store(evidence: Evidence) -> list[Finding]:
    """A note for each queue of which the tiered store holds messages; what is wrong with the metadata."""
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
        severity = "" if copy.rules.tiered else NOTE  # a broker that does not open the store never reads it
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
