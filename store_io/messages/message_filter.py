"""The conditions on wanted messages: the same few wherever messages are read. All that are given must hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

Range = tuple[int | None, int | None]  # half-open; None: no bound on that side
ALL: Range = (None, None)
MOST_NEEDLES = 8  # texts that are looked for at once: each takes as long as the first
TIMES: Mapping[str, str] = {"store_times": "store_time"}
"""The ranges of a filter that are of times, ms: range -> the time, as decoded rows and messages call it."""
_RANGES = ("queue_offsets", "phy_offsets", *TIMES)
_OFFSET_ID = re.compile(r"(?:[0-9A-F]{16}|[0-9A-F]{40})[0-7][0-9A-F]{15}")


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
        """Say whether a segment can hold such a message, by its name and size."""
        low, high = self.phy_offsets
        return (low is None or low < base_offset + size) and (high is None or high > base_offset)

    @property
    def of_queues_alone(self) -> bool:
        """Say whether it is about nothing but queues and places in them."""
        return replace(self, topics=None, queue_ids=None, queue_offsets=ALL) == EVERY_MESSAGE

    def holds_queue(self, topic: str, queue_id: int) -> bool:
        """Say whether messages of this queue are wanted."""
        return (self.topics is None or topic in self.topics) and (self.queue_ids is None or queue_id in self.queue_ids)

    def narrowed(self, other: MessageFilter) -> MessageFilter:
        """Return the filter of the messages that both want."""
        return MessageFilter(
            topics=_both(self.topics, other.topics),
            queue_ids=_both(self.queue_ids, other.queue_ids),
            tags=_both(self.tags, other.tags),
            of_transactions=self.of_transactions or other.of_transactions,
            **{name: _overlap(getattr(self, name), getattr(other, name)) for name in _RANGES},
        )


@dataclass(frozen=True)
class Contents:
    """Conditions on what a message says. Picklable. None: any.

    key: one of its KEYS, or its unique key, as an index has them.  unique_keys: its unique key is one of these.
    msg_ids: its `msg_id` is one of these.  in_keys: its KEYS contain each of these texts, also within a key.
    body: bytes that it contains, as the producer sent it or as it is stored.
    """

    key: str | None = None
    unique_keys: frozenset[str] | None = None
    body: bytes | None = None
    msg_ids: frozenset[str] | None = None
    in_keys: tuple[str, ...] = ()

    def narrowed(self, other: Contents) -> Contents:
        """Return a filter for messages that both filters accept. At most one of the two has a `key`, and one a `body`."""
        return Contents(
            other.key if self.key is None else self.key,
            _both(self.unique_keys, other.unique_keys),
            other.body if self.body is None else self.body,
            _both(self.msg_ids, other.msg_ids),
            (*self.in_keys, *other.in_keys),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that must be read to know."""
        asked = (
            ("keys", self.key is not None or self.in_keys),
            ("unique_key", self.key is not None or self.unique_keys is not None),
            ("msg_id", self.msg_ids is not None),
            ("sys_flag", self.body is not None),
            ("body", self.body is not None),
        )
        return tuple(name for name, wanted in asked if wanted)

    @property
    def sought(self) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
        """Return (names of the decoder's properties, texts): one of the texts lies in one of the properties of each such message.

        A message may also be one that `named` names. Both are empty if nothing is known.
        """
        asked: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
            (("uniq",), tuple(sorted(self.unique_keys or ()))),
            (("uniq",), tuple(sorted(self.msg_ids or ()))),
            (("uniq", "keys"), () if self.key is None else (self.key,)),
            (("keys",), () if not self.in_keys else (max(self.in_keys, key=len),)),
        )
        for properties, texts in asked:
            needles = tuple(map(_needle, texts))
            if 0 < len(needles) <= MOST_NEEDLES and all(needles):
                return properties, needles
        return (), ()

    @property
    def named(self) -> tuple[int, ...]:
        """Return the physical offsets of messages that have one of these `msg_id`s because they have no unique key."""
        return tuple(int(text[-16:], 16) for text in self.msg_ids or () if _OFFSET_ID.fullmatch(text))


EVERY_MESSAGE, ANY_CONTENTS = MessageFilter(), Contents()
_T = TypeVar("_T")


def within(number: int, bounds: Range) -> bool:
    """Say whether a number lies in a range."""
    low, high = bounds
    return (low is None or number >= low) and (high is None or number < high)


def _both(one: frozenset[_T] | None, other: frozenset[_T] | None) -> frozenset[_T] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _overlap(one: Range, other: Range) -> Range:
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return max(lows, default=None), min(highs, default=None)


def _needle(text: str) -> bytes:
    """Return the bytes that a record with this text holds; b"" if it may hold others."""
    if "\N{REPLACEMENT CHARACTER}" in text:  # what bytes that are no UTF-8 are read as
        return b""
    return text.encode("utf-8", "surrogatepass").strip(b"\0")
