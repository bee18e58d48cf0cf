"""Messages of the CommitLog that a compacted topic's log should hold and does not.

Only the newest file of a queue is sure to hold every message with a key between its first and its last one: the broker never
compacts that file. What follows its last one was not put yet, or never will be.
Source: CompactionLog.asyncPutMessage and getCompactionFile (compaction.md 4).
"""

from __future__ import annotations

import numpy as np

from schemas.consumequeue_layout import BATCH_ENTRY_BYTES
from schemas.finding_codes import Code
from schemas.rows import NOTE, REBUILDABLE, Finding, QueueKey
from schemas.store_names import COMPACTED_QUEUE
from store_io.base.java_compat import is_blank
from store_io.base.wording import count_text
from store_io.broker.message_verdict import AUDIT_RULES, Message
from store_io.kinds.compaction.log_messages import WINDOW_ENTRIES, LogMessages
from store_io.log.records.message_decode import decode_message

MAX_LOOKED_AT = 100_000  # messages of one queue
KEYS = "KEYS"


def unput_messages(key: QueueKey, path: str, bases: np.ndarray, messages: LogMessages, unclean: bool) -> list[Finding]:
    """At most one finding for those between the file's messages, and one for those after its last. bases: its queue offsets."""
    bases = np.sort(bases)
    seen = _Unput(key, messages, int(bases[0]), bases)
    found = []
    for numbers, severity, where in (
        ([n for n in seen.numbers if n < bases[-1]], REBUILDABLE, "between messages that its log holds"),
        ([n for n in seen.numbers if n > bases[-1]], NOTE if unclean else REBUILDABLE, "after the last one of its log"),
    ):
        if numbers:
            entry = int(np.searchsorted(bases, numbers[0])) * BATCH_ENTRY_BYTES  # where the first one's would be
            found.append(seen.finding(path, numbers, severity, where, entry))
    return found


def without_log(key: QueueKey, messages: LogMessages) -> list[Finding]:
    """Return a note on the messages of a queue that has no log at all. Its topic may have become a compacted one after them."""
    seen = _Unput(key, messages, messages.first, np.zeros(0, np.int64))
    if not seen.numbers:
        return []
    where = "whose queue has no such log: it is gone, or the topic was made a compacted one after them"
    return [seen.finding(f"{COMPACTED_QUEUE}/{key[0]}/{key[1]}", seen.numbers, NOTE, where)]


class _Unput:
    """The queue offsets, from `first` on and without `held`, of messages of the CommitLog that have a key."""

    def __init__(self, key: QueueKey, messages: LogMessages, first: int, held: np.ndarray):
        self.key, self.numbers = key, list[int]()
        self._looked_at = 0
        for start in range(first, messages.end, WINDOW_ENTRIES):
            rows = messages.entries(start, min(start + WINDOW_ENTRIES, messages.end))
            if not rows["size"].any() or not self._take(messages, start, rows, held):
                break

    def _take(self, messages: LogMessages, start: int, rows: np.ndarray, held: np.ndarray) -> bool:
        """Collect the messages of one window that were never put; return False once enough messages were looked at."""
        numbers = start + np.flatnonzero((rows["size"] > 0) & (rows["phy_offset"] >= 0))
        for number in map(int, numbers[~np.isin(numbers, held)]):
            self._looked_at += 1
            if self._looked_at > MAX_LOOKED_AT:
                return False
            row = rows[number - start]
            if _has_key(messages.at(int(row["phy_offset"]), int(row["size"])), self.key, number):
                self.numbers.append(number)
        return True

    def finding(self, path: str, numbers: list[int], severity: str, where: str, entry: int | None = None) -> Finding:
        more = f"; only {MAX_LOOKED_AT:,} messages were looked at" if self._looked_at > MAX_LOOKED_AT else ""
        message = f"{count_text(len(numbers), 'message')} of the CommitLog with a key, {where}{more}"
        return Finding(
            Code.COMPACTED_MESSAGE_MISSING, path, entry, None if entry is None else entry + BATCH_ENTRY_BYTES, severity,
            topic=self.key[0], queue_id=self.key[1], queue_offset=numbers[0], expected="an entry", actual="none",
            message=message, count=len(numbers),
        )  # fmt: skip


def _has_key(data: bytes, key: QueueKey, number: int) -> bool:
    message: Message | None = decode_message(data, AUDIT_RULES) if data else None
    if message is None or (message.topic, message.queue_id) != key or message.queue_offset != number:
        return False
    return not is_blank(message.properties.get(KEYS, ""))
