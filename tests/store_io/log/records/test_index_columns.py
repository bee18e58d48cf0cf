"""The index entries of many rows at once, against the rule for one message."""

from __future__ import annotations

import numpy as np

from schemas import commitlog_layout as layout
from store_io.log.records.message_columns import (
    HAS_KEYS,
    HAS_TAGS,
    HAS_UNIQ,
    ROW_DTYPE,
    entries_in_order,
    entry_counts,
    puts_tag_key,
)


def rows(*messages: tuple[int, int, int]) -> np.ndarray:
    """(flags, sys_flag, number of keys); hashes of a message stand together, with one of its tags where it has any."""
    found, start = np.zeros(len(messages), ROW_DTYPE), 0
    for row, (flags, sys_flag, keys) in zip(found, messages, strict=True):
        row["flags"], row["sys_flag"], row["key_count"], row["key_start"] = flags, sys_flag, keys, start
        start += keys + bool(flags & HAS_TAGS)
    return found


def test_tags_are_a_key_where_the_release_says_so_and_nothing_was_rolled_back() -> None:
    some = rows((HAS_TAGS, 0, 0), (HAS_UNIQ, 0, 1), (HAS_TAGS, layout.SYS_ROLLBACK, 0), (HAS_TAGS | HAS_KEYS, 0, 3))
    assert puts_tag_key(some, True).tolist() == [True, False, False, True]
    assert not puts_tag_key(some, False).any()
    assert entry_counts(some, True).tolist() == [1, 1, 0, 4]
    assert entry_counts(some, False).tolist() == [0, 1, 0, 3]
    assert int(entry_counts(some[3], True)) == 4  # of one row, too


def test_entries_stand_in_the_order_of_messages_and_their_keys() -> None:
    some = rows((HAS_UNIQ | HAS_TAGS, 0, 1), (0, 0, 0), (HAS_KEYS | HAS_TAGS, 0, 2))
    of, places = entries_in_order(some, True)
    assert (of.tolist(), places.tolist()) == ([0, 0, 2, 2, 2], [0, 1, 2, 3, 4])
    of, places = entries_in_order(some, False)
    assert (of.tolist(), places.tolist()) == ([0, 2, 2], [0, 2, 3])
    assert [part.tolist() for part in entries_in_order(some[:0], True)] == [[], []]
