"""Chains of an index file: slots, and the links of entries to the entry before them in the same slot.

Source: IndexFile.putKey, read at 4.7.0, 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0 (formats.md 6).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from schemas import index_layout as layout
from store_io.base.compiled import native
from store_io.base.compiled.native import Address, compiled_helper, kept, load_i32, peek_i32, poke_i32

HASH, LINK, SLOT = 1, 2, 3  # what of a chain is wrong

_LINK_POSITION = layout.ENTRY_BYTES - 4


class ChainsOnTheWay:
    """Entries put one after the other, as a broker does, while a file is read from first byte to last.

    In a sound file each entry has the link that putKey gives it, and in the end the slots are those of the file: nothing has to
    be read again. In any other file `follow_back` finds the fault; it reads the entries from the last to the first.

    slots: the number of slots of the file.
    count: the number of entries that it should hold.
    """

    def __init__(self, slots: int, count: int):
        self._table, self._count = layout.HEADER_BYTES + layout.SLOT_BYTES * slots, count
        self._stored = np.zeros(slots * layout.SLOT_BYTES, np.uint8)
        self._heads = np.zeros(slots, np.int32)
        self._next = 1  # the next entry; all before it fit

    def feed(self, position: int, data: np.ndarray) -> None:
        """Take bytes of the file, in order.

        They end in no entry, unless the file ends there; those that are never fed are zeros.
        """
        end = position + len(data)
        low, high = max(position, layout.HEADER_BYTES), min(end, self._table)
        if low < high:
            self._stored[low - layout.HEADER_BYTES : high - layout.HEADER_BYTES] = data[low - position : high - position]
        first = max(1, -(-(position - self._table) // layout.ENTRY_BYTES))
        last = min(self._count, (end - self._table) // layout.ENTRY_BYTES - 1)
        if first == self._next <= last:
            at = self._table + layout.ENTRY_BYTES * first - position
            self._next = _follow_on(data[at:], first, last, self._heads, len(self._heads))

    @cached_property
    def slots(self) -> np.ndarray:
        """Return the slots as the file has them, once all of it was fed."""
        return self._stored.view(">i4").astype(np.int32)

    def used(self, count: int) -> int | None:
        """Return the number of slots in use. None unless the file has `count` entries and all links and slots are right."""
        if self._next <= self._count or self._count != count or not np.array_equal(self._heads, self.slots):
            return None
        return int(np.count_nonzero(self._heads))


@kept(native, layout)
def _follow_on(at: Address, first: int, last: int, heads: Address, slots: int) -> int:
    """Put entries first to last into `heads`. Return the first whose link is not putKey's; `last` + 1 if all are right.

    at: the begin of the first entry.
    heads: the newest entry per slot.
    """
    for number in range(first, last + 1):
        key_hash = load_i32(at)
        if key_hash < 0:
            return number
        head = heads + 4 * (key_hash % slots)
        if load_i32(at + _LINK_POSITION) != peek_i32(head):
            return number
        poke_i32(head, number)
        at += layout.ENTRY_BYTES
    return last + 1


@compiled_helper(inline=False)
def _slot_of(heads: np.ndarray, number: int) -> int:
    """Return the first slot whose chain should give this entry next; -1: none."""
    for slot in range(len(heads)):
        if heads[slot] == number:
            return slot
    return -1


@kept()
def follow_back(
    entries: np.ndarray, first: int, heads: np.ndarray, sources: np.ndarray, faults: np.ndarray, found: int
) -> tuple[int, int]:
    """Walk entries first.. from the last to the first. (faults so far, entry at which there were too many; 0: none).

    heads: per slot the entry that its chain should give next; at the start what the slot holds.
    sources: per slot the entry whose link that is; 0: the slot itself.

    An entry that its hash's slot does not lead to is led to by another slot (then its hash is wrong), or by none (then the link
    that should is wrong, and the chain continues after it).
    """
    slots = len(heads)
    number = first + len(entries)
    while number > first:
        number -= 1
        key_hash, link = entries[number - first].key_hash, entries[number - first].previous
        slot = int(key_hash) % slots if key_hash >= 0 else -1
        if slot < 0 or heads[slot] != number:
            other = _slot_of(heads, number)
            if other < 0 and slot < 0:
                slot = other = 0  # a hash that no broker writes, and nothing leads to it: reported as such
            if found >= len(faults):
                return found, number
            faults[found, 0] = HASH if other >= 0 else LINK if sources[slot] else SLOT
            faults[found, 1] = number if other >= 0 else sources[slot]
            faults[found, 2] = slot
            faults[found, 3] = other if other >= 0 else number
            faults[found, 4] = key_hash if other >= 0 else heads[slot]
            found += 1
            if other >= 0:
                if heads[other] != number:
                    continue
                slot = other
        heads[slot] = link
        sources[slot] = number
    return found, 0


@kept()
def open_ends(heads: np.ndarray, sources: np.ndarray, faults: np.ndarray, found: int) -> int:
    """Return chains that do not end with 0: their last link, or a slot without any entry.

    All are counted, as many as fit are kept.
    """
    for slot in range(len(heads)):
        if heads[slot] != 0:
            if found < len(faults):
                faults[found, 0] = LINK if sources[slot] else SLOT
                faults[found, 1] = sources[slot]
                faults[found, 2] = slot
                faults[found, 3] = 0
                faults[found, 4] = heads[slot]
            found += 1
    return found
