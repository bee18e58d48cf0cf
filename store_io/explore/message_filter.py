"""The conditions on wanted messages: the same few wherever messages are read. All that are given must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

Range = tuple[int | None, int | None]  # half-open; None: no bound on that side
ALL: Range = (None, None)


@dataclass(frozen=True)
class MessageFilter:
    """Conditions on messages. Picklable. None, or a range without bounds: any.

    queue_offsets counts as the column of that name does: an unpacked message of an inner batch has its own; so does tags.

    store_times: ms since 1970-01-01 UTC, as stored.
    of_transactions: half messages, what ends them, and committed ones alone.
    """

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    queue_offsets: Range = ALL
    phy_offsets: Range = ALL
    store_times: Range = ALL
    tags: frozenset[str] | None = None
    of_transactions: bool = False

    def may_be_in(self, base_offset: int, size: int) -> bool:
        """Whether a segment can hold such a message, by its name and size."""
        low, high = self.phy_offsets
        return (low is None or low < base_offset + size) and (high is None or high > base_offset)

    def narrowed(self, other: MessageFilter) -> MessageFilter:
        """Return the filter of the messages that both want."""
        return MessageFilter(
            _both(self.topics, other.topics),
            _both(self.queue_ids, other.queue_ids),
            _overlap(self.queue_offsets, other.queue_offsets),
            _overlap(self.phy_offsets, other.phy_offsets),
            _overlap(self.store_times, other.store_times),
            _both(self.tags, other.tags),
            self.of_transactions or other.of_transactions,
        )


EVERY_MESSAGE = MessageFilter()
_T = TypeVar("_T")


def _both(one: frozenset[_T] | None, other: frozenset[_T] | None) -> frozenset[_T] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _overlap(one: Range, other: Range) -> Range:
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return max(lows, default=None), min(highs, default=None)
