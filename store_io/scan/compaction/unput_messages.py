"""Messages of the CommitLog that a compacted topic's log should hold and does not.

Only the newest file of a queue is sure to hold every message with a key between its first and its last one: the broker never
compacts that file. What follows its last one was not put yet, or never will be.
Source: CompactionLog.asyncPutMessage and getCompactionFile (compaction.md 4).
"""

from __future__ import annotations

import numpy as np

from schemas import finding_codes as codes
from schemas.consumequeue_layout import BATCH_ENTRY_BYTES
from schemas.rows import NOTE, REBUILDABLE, Finding, QueueKey
from store_io.base.java_compat import is_blank
from store_io.base.wording import count_text
from store_io.formats.commitlog.message_decode import decode_message
from store_io.rules.message_verdict import AUDIT_RULES, Message
from store_io.scan.compaction.log_messages import WINDOW_ENTRIES, LogMessages

MAX_LOOKED_AT = 100_000  # messages of one queue
KEYS = "KEYS"


def unput_messages(key: QueueKey, path: str, bases: np.ndarray, messages: LogMessages, unclean: bool) -> list[Finding]:
    """At most one finding for those between the file's messages, and one for those after its last. bases: its queue offsets."""
    if not len(bases):
        return []
    bases = np.sort(bases)
    first, last = int(bases[0]), int(bases[-1])
    between: list[int] = []
    after: list[int] = []
    looked_at = 0
    for start in range(first, messages.end, WINDOW_ENTRIES):
        numbers = np.arange(start, min(start + WINDOW_ENTRIES, messages.end))
        rows = messages.entries(int(numbers[0]), int(numbers[-1]) + 1)
        for number in numbers[(rows["size"] > 0) & (rows["phy_offset"] >= 0) & ~np.isin(numbers, bases)]:
            looked_at += 1
            if looked_at > MAX_LOOKED_AT:
                break
            row = rows[int(number) - start]
            if _has_key(messages.at(int(row["phy_offset"]), int(row["size"])), key, int(number)):
                (after if number > last else between).append(int(number))
        if looked_at > MAX_LOOKED_AT or not rows["size"].any():
            break
    more = f"; only {MAX_LOOKED_AT:,} messages were looked at" if looked_at > MAX_LOOKED_AT else ""
    found = []
    for numbers_, severity, where in (
        (between, REBUILDABLE, "between messages that it holds"),
        (after, NOTE if unclean else REBUILDABLE, "after its last one"),
    ):
        if numbers_:
            what = f"{count_text(len(numbers_), 'message')} of the CommitLog with a key, {where}{more}"
            found.append(_finding(key, path, bases, numbers_, severity, what))
    return found


def _has_key(data: bytes, key: QueueKey, number: int) -> bool:
    message: Message | None = decode_message(data, AUDIT_RULES) if data else None
    if message is None or (message.topic, message.queue_id) != key or message.queue_offset != number:
        return False
    return not is_blank(message.properties.get(KEYS, ""))


def _finding(key: QueueKey, path: str, bases: np.ndarray, numbers: list[int], severity: str, what: str) -> Finding:
    entry = int(np.searchsorted(bases, numbers[0])) * BATCH_ENTRY_BYTES  # where the first one's would be
    return Finding(
        codes.COMPACTED_MISSING, path, entry, entry + BATCH_ENTRY_BYTES, severity, topic=key[0], queue_id=key[1],
        queue_offset=numbers[0], expected="an entry", actual="none", message=what, count=len(numbers),
    )  # fmt: skip
