"""Chains of an index file: slots, and the links of entries to the entry before them in the same slot.

Source: IndexFile.putKey, read at 4.7.0, 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0 (formats.md 6).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from schemas.layouts import index_layout as layout
from store_io.base.compiled import native
from store_io.base.compiled.native import Address, compiled_helper, kept, load_i32, peek_i32, poke_i32

HASH, LINK = 1, 2  # what of an entry is wrong

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


# ---- a file with faults --------------------------------------------------------------------------------------------


class Chains(NamedTuple):
    """The chains of a file while they are followed back, from the newest entry to the first.

    slots: what the file's slots hold.
    of_slots: rows by slot: the entry that its chain should give next; the entry whose link that is (0: the slot itself); the
    next slot and the one before among those whose chains should give the same entry (-1: none); the entry that a wrong slot
    should hold (-1: it is right); whether a wrong slot holds an earlier entry of its own chain.
    leading: by entry of the part that is looked at: the first slot whose chain should give it; -1: none.
    """

    slots: np.ndarray
    of_slots: np.ndarray
    leading: np.ndarray

    @classmethod
    def of(cls, slots: np.ndarray, entries: int) -> Chains:
        """Return the chains before the first step. entries: of the largest part that is looked at."""
        of_slots = np.zeros((6, len(slots)), np.int32)
        of_slots[_HEAD], of_slots[_WANTED] = slots, -1
        return cls(slots, of_slots, np.zeros(entries, np.int32))

    @property
    def used(self) -> int:
        """Return the number of slots with an entry, of those that were looked at."""
        return int(np.count_nonzero(self.of_slots[_SOURCE]))

    @property
    def wrong_slots(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (wrong slots, what each should hold, whether it holds an earlier entry of its chain)."""
        wrong = np.flatnonzero(self.of_slots[_WANTED] >= 0)
        return wrong, self.of_slots[_WANTED][wrong], self.of_slots[_OLDER][wrong] != 0


_HEAD, _SOURCE, _NEXT, _BEFORE, _WANTED, _OLDER = range(6)


@compiled_helper(inline=False)
def _list(of_slots: np.ndarray, leading: np.ndarray, first: int) -> None:
    """List the slots whose chains should give an entry from `first` on next, by that entry."""
    leading[:] = -1
    for slot in range(of_slots.shape[1]):
        place = of_slots[_HEAD, slot] - first
        if 0 <= place < len(leading):
            other = leading[place]
            of_slots[_NEXT, slot], of_slots[_BEFORE, slot] = other, -1
            if other >= 0:
                of_slots[_BEFORE, other] = slot
            leading[place] = slot


@compiled_helper(inline=False)
def _lead(of_slots: np.ndarray, leading: np.ndarray, first: int, slot: int, entry: int) -> None:
    """Have a slot's chain give this entry next."""
    place = of_slots[_HEAD, slot] - first
    if 0 <= place < len(leading):
        after, before = of_slots[_NEXT, slot], of_slots[_BEFORE, slot]
        if before >= 0:
            of_slots[_NEXT, before] = after
        else:
            leading[place] = after
        if after >= 0:
            of_slots[_BEFORE, after] = before
    of_slots[_HEAD, slot] = entry
    place = entry - first
    if 0 <= place < len(leading):
        other = leading[place]
        of_slots[_NEXT, slot], of_slots[_BEFORE, slot] = other, -1
        if other >= 0:
            of_slots[_BEFORE, other] = slot
        leading[place] = slot


@kept()
def follow_back(
    entries: np.ndarray, first: int, slots: np.ndarray, of_slots: np.ndarray, leading: np.ndarray, faults: np.ndarray
) -> tuple[int, int]:
    """Walk entries first.. from the last to the first. Return (how many faults, the first entry that was looked at).

    slots, of_slots, leading: of `Chains`; `leading` has room for these entries alone.
    faults: room for as many as are found before it returns. Rows: HASH or LINK, the entry, what is expected, what is there.

    An entry that its hash's slot does not lead to is led to by another slot (then its hash is wrong), or by none (then the link
    that should is wrong, or the slot, and the chain continues after it).
    """
    _list(of_slots, leading, first)
    found, number = 0, first + len(entries)
    while number > first and found < len(faults):
        number -= 1
        key_hash, link = entries[number - first].key_hash, entries[number - first].previous
        slot = int(key_hash) % len(slots) if key_hash >= 0 else -1
        if slot >= 0 and of_slots[_WANTED, slot] > number and slots[slot] == number:
            of_slots[_OLDER, slot] = 1
        if slot < 0 or of_slots[_HEAD, slot] != number:
            other = least = leading[number - first]
            while other >= 0:
                least, other = min(least, other), of_slots[_NEXT, other]
            other = least
            if other < 0 and slot < 0:
                slot = other = 0  # a hash that no broker writes, and nothing leads to it: reported as such
            if other >= 0 or of_slots[_SOURCE, slot]:
                faults[found, 0] = HASH if other >= 0 else LINK
                faults[found, 1] = number if other >= 0 else of_slots[_SOURCE, slot]
                faults[found, 2] = other if other >= 0 else number
                faults[found, 3] = key_hash if other >= 0 else of_slots[_HEAD, slot]
                found += 1
            else:
                of_slots[_WANTED, slot] = number
            if other >= 0:
                if of_slots[_HEAD, other] != number:
                    continue
                slot = other
        _lead(of_slots, leading, first, slot, link)
        of_slots[_SOURCE, slot] = number
    return found, number


@kept()
def open_ends(of_slots: np.ndarray, first: int, faults: np.ndarray) -> tuple[int, int]:
    """Find chains that do not end with 0: their last link is wrong, or a slot without any entry.

    Return (how many wrong links, the slot to continue with). Rows of `faults` are those of `follow_back`.
    """
    found = 0
    for slot in range(first, of_slots.shape[1]):
        if of_slots[_HEAD, slot] != 0:
            if not of_slots[_SOURCE, slot]:
                of_slots[_WANTED, slot] = 0
                continue
            if found == len(faults):
                return found, slot
            faults[found, 0], faults[found, 1] = LINK, of_slots[_SOURCE, slot]
            faults[found, 2], faults[found, 3] = 0, of_slots[_HEAD, slot]
            found += 1
    return found, of_slots.shape[1]
