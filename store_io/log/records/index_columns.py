"""The index entries of the messages in `Columns`, for all rows at once (recovery.md 8.2)."""

from __future__ import annotations

import numpy as np

from schemas import commitlog_layout as layout
from store_io.log.records.message_columns import HAS_TAGS


def puts_tag_key(rows: np.ndarray, tag_index: bool) -> np.ndarray:
    """Per row, whether its tags are a key. tag_index: whether the release puts tags."""
    kinds = rows["sys_flag"] & layout.SYS_TRANSACTION_MASK
    found: np.ndarray = (rows["flags"] & HAS_TAGS != 0) & (kinds != layout.SYS_ROLLBACK) & tag_index
    return found


def entry_counts(rows: np.ndarray, tag_index: bool) -> np.ndarray:
    """Per row, how many entries it puts."""
    counts: np.ndarray = rows["key_count"] + puts_tag_key(rows, tag_index)
    return counts


def entries_in_order(rows: np.ndarray, tag_index: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (row number, index in `Columns.key_hash`) of each index entry, in the order of dispatch."""
    counts = entry_counts(rows, tag_index)
    of = np.repeat(np.arange(len(rows)), counts)
    within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return of, rows["key_start"][of] + within
