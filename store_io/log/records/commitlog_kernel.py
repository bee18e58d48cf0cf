"""The compiled pass of `commitlog_columns`. Needs numba; nothing here is called from elsewhere.

One pass over each message: frame, body CRC, properties, tags hash, topic, index keys, row. It accepts nothing that the
reference refuses; what is rare (odd numbers, malformed UTF-8 in a key) it leaves to the reference by stopping.

No byte is trusted, and compiled code has no bounds checks. Why it stays inside the window all the same: a frame is only
looked into once its total size is known to lie within the window; its parts are then known to add up to that size; every
loop below is bounded by the length of its part. Reads of more than that are of two kinds. Blocks of 64 bytes (as in `_block`
and `_count_keys`) move back where they would pass the window's end, and a record is longer than a block; layouts are
only compared and kept where the window reaches far enough. Text is hashed in steps
of 16 bytes that end where the text does, so what is read too much lies before it: in the record's 88 bytes of header, at the
furthest. Lengths are int64 throughout, so no sum of them wraps.

Only addresses and numbers travel here. Compiled code that holds an array counts references to it at every turn, which cost
more than all the work on a message.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.layouts import commitlog_layout as layout
from store_io.base.compiled import native
from store_io.base.compiled.native import (
    Address,
    block_masks,
    compiled_helper,
    count_bits,
    equal_mask,
    hash_of_last,
    kept,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_word,
    lowest_bit,
    masked_crc32,
    odd_mask,
    peek_i32,
    peek_i64,
    peek_word,
    poke_i32,
    poke_i64,
    poke_u8,
    prefetch,
    unequal_mask,
)
from store_io.broker import header_faults
from store_io.log.records import message_columns as shape
from store_io.log.records import segment_items as item

# What one call of the kernel ends with.
ENDED_NEED_MORE, ENDED_FULL, ENDED_STOPPED, ENDED_NO_TOPIC_ROOM = 0, 1, 2, 3


def _offsets(dtype: np.dtype[Any], names: str) -> list[int]:
    fields: Any = dtype.fields
    return [fields[name][1] for name in names.split()]


# ---- properties ------------------------------------------------------------------------------------------------------

# A property of interest: its number here, and the bit (1 << number) of those that are present.
_TAGS, _KEYS, _UNIQ, _DELAY, _DUP_INFO, _CRC, _NUM, _BASE, _DISPATCH, _DISPATCH_AT = range(10)
PROPERTY_SLOTS = 10

_ASKS_OLD_PARSER = shape.OLD_PARSER | shape.WATCH_OLD_PARSER

_ONE, _ZERO, _ALL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
_HIGH_BITS = np.uint64(0x8080808080808080)


def _text(name: str, size: int) -> int:
    """Return the first bytes of a name as a signed big-endian number, to compare it with a load."""
    return int.from_bytes(name.encode()[:size], "big", signed=True)


_NAME_TAGS, _NAME_KEYS, _NAME_DELA = _text("TAGS", 4), _text("KEYS", 4), _text("DELA", 4)
_NAME_UNIQ, _NAME_DUP, _NAME_CRC = _text("UNIQ_KEY", 8), _text("DUP_INFO", 8), _text(layout.PROPERTY_CRC_NAME, 8)
_NAME_INNER_NU, _NAME_INNER_BA, _NAME_SE = _text("INNER_NU", 8), _text("INNER_BA", 8), _text("SE", 2)
_NAME_INNER_MU, _NAME_LTI_DISP, _NAME_ATCH = _text("INNER_MU", 8), _text("LTI_DISP", 8), _text("ATCH", 4)
_NAME_LTI_QUEU, _NAME_E_OFFSET = _text("LTI_QUEU", 8), _text("E_OFFSET", 8)


@compiled_helper()
def _slot_of(name: int, length: int) -> int:
    """Return the number of a property of interest; -1 for any other name."""
    if length == 4:
        word = load_i32(name)
        if word == _NAME_TAGS:
            return _TAGS
        if word == _NAME_KEYS:
            return _KEYS
    elif length == 8:
        word = load_i64(name)
        if word == _NAME_UNIQ:
            return _UNIQ
        if word == _NAME_DUP:
            return _DUP_INFO
        if word == _NAME_CRC:
            return _CRC
    elif length == 5:
        if load_i32(name) == _NAME_DELA and load_u8(name + 4) == 89:  # "Y"
            return _DELAY
    elif length == 9:
        if load_i64(name) == _NAME_INNER_NU and load_u8(name + 8) == 77:  # "M"
            return _NUM
    elif length == 10:
        if load_i64(name) == _NAME_INNER_BA and load_i16(name + 8) == _NAME_SE:
            return _BASE
    elif length == 20:
        if load_i64(name) == _NAME_INNER_MU and load_i64(name + 8) == _NAME_LTI_DISP and load_i32(name + 16) == _NAME_ATCH:
            return _DISPATCH
    elif length == 24:
        if load_i64(name) == _NAME_INNER_MU and load_i64(name + 8) == _NAME_LTI_QUEU and load_i64(name + 16) == _NAME_E_OFFSET:
            return _DISPATCH_AT
    return -1


@compiled_helper()
def _block(at: int, count: int, window_end: int) -> tuple[Any, Any, Any, Any]:
    """`block_masks` of the first `count` (1 to 64) bytes at `at`, with no bit for others. The window, which ends at
    `window_end`, holds these bytes and at least 64 in all, so a block that would pass its end is read from further back."""
    beyond = at + 64 - window_end
    if beyond <= 0:
        one, two, zero, high = block_masks(at)
    else:
        shift = np.uint64(beyond)
        one, two, zero, high = block_masks(at - beyond)
        one, two, zero, high = one >> shift, two >> shift, zero >> shift, high >> shift
    keep = _ALL >> np.uint64(64 - count)
    return one & keep, two & keep, zero & keep, high & keep


@compiled_helper()
def _scan_properties(at: int, length: int, window_end: int, found: int) -> tuple[int, bool, bool]:
    """Find the properties of interest in `length` bytes at `at`: string2messageProperties of 4.9.1 and later.

    found[slot]: the begin of the value, relative to `at`, and its length in the low 16 bits.  Returns the bits of those
    present, whether a part is not of the form name 0x01 value or a NUL is met, and whether a byte is not ASCII.
    """
    present: Any = np.int64(0)  # typed: a plain 0 has the helpers compiled a second time, for that constant
    fault: Any = np.int64(0)
    zeros = _ZERO
    highs = _ZERO
    part: Any = np.int64(0)  # where the current part begins
    split: Any = np.int64(-1)  # its first 0x01, once met
    base = 0
    while base < length:
        one, two, zero, high = _block(at + base, min(64, length - base), window_end)
        zeros |= zero
        highs |= high
        while True:
            # Bits of `one` before the current part's begin are cleared, so the lowest is this part's, if it comes before its end.
            first, bit = lowest_bit(one), lowest_bit(two)
            if split < 0 and first < bit:
                split = base + first
            if bit == 64:
                break
            end = base + bit
            present, fault = _take_part(at, part, split, end, found, present, fault)
            part = end + 1
            split = -1
            two &= two - _ONE
            one &= _ALL << np.uint64(bit)
        base += 64
    if part < length:  # the last 0x02 may be absent
        present, fault = _take_part(at, part, split, length, found, present, fault)
    return present, fault != 0 or zeros != _ZERO, highs != _ZERO


# A layout: what the last properties of one length had where. Most messages of a topic have the same names and values of the same
# lengths, and then all that `_scan_properties` would find is known. Addresses in it of: the length (0: none), how often it may
# still be missed before another takes its place, the properties present, per half of 64 bytes the places of names and
# separators and the places of values, `found`, and the bytes themselves.
_LAYOUT_ROOM = 128  # longer properties have none
_MISSES, _PRESENT, _FIXED, _VALUES, _FOUND, _TEXT = 8, 16, 24, 40, 56, 56 + 8 * PROPERTY_SLOTS
_LAYOUT_BYTES = -(-(_TEXT + _LAYOUT_ROOM) // 64) * 64
_LAYOUTS = 16  # by the length's low bits
LAYOUT_WORDS = _LAYOUTS * _LAYOUT_BYTES // 8 + PROPERTY_SLOTS  # and the `found` of those that have none
_MAX_MISSES = 3


@compiled_helper()
def _is_layout(at: int, length: int, known: int) -> Any:
    """Say whether properties have the layout at `known`: the same names and separators, and plain text between them.

    The 128 bytes at `at` are read.
    """
    if peek_i64(known) != length:
        return False
    unlike = unequal_mask(at, known + _TEXT) & peek_word(known + _FIXED) | odd_mask(at) & peek_word(known + _VALUES)
    if length > 64:
        unlike |= unequal_mask(at + 64, known + _TEXT + 64) & peek_word(known + _FIXED + 8)
        unlike |= odd_mask(at + 64) & peek_word(known + _VALUES + 8)
    return unlike == _ZERO


@compiled_helper(inline=False)
def _remember_layout(at: int, length: int, present: int, known: int) -> None:
    """Write the layout of these whole ASCII properties to `known`. There `found` is already written, and the length is 0.

    No layout is kept if a value holds a separator: properties that have another byte there may not be whole.
    """
    naming = True
    for half in range(2):
        base = 64 * half
        one, two, _, _ = block_masks(at + base)
        keep = _ALL >> np.uint64(64 - min(64, length - base)) if length > base else _ZERO
        fixed = _ZERO
        place = 0
        while place < 64:
            bit = lowest_bit((one if naming else two) & keep & _ALL << np.uint64(place))
            if naming:
                fixed |= _ALL << np.uint64(place)
                if bit < 63:
                    fixed &= (_ONE << np.uint64(bit + 1)) - _ONE
            elif bit < 64:
                fixed |= _ONE << np.uint64(bit)
            if bit < 64:
                naming = not naming
            place = bit + 1
        if odd_mask(at + base) & ~fixed & keep != _ZERO:
            return
        poke_i64(known + _FIXED + 8 * half, np.int64(fixed & keep))
        poke_i64(known + _VALUES + 8 * half, np.int64(~fixed & keep))
        for i in range(base, base + 64, 8):
            poke_i64(known + _TEXT + i, np.int64(peek_word(at + i)))
    poke_i64(known + _MISSES, _MAX_MISSES)
    poke_i64(known + _PRESENT, present)
    poke_i64(known, length)


@compiled_helper()
def _value(slot: int) -> tuple[int, int]:
    """Return the begin of a property's value, relative to the properties, and its length.

    slot: the address of the value's place in `found`.
    """
    place = peek_i64(slot)
    return place >> 16, place & 0xFFFF


@compiled_helper()
def _take_part(at: int, part: int, split: int, end: int, found: int, present: int, fault: int) -> tuple[int, int]:
    if part < split < end - 1:
        slot = _slot_of(at + part, split - part)
        if slot >= 0:
            poke_i64(found + 8 * slot, (split + 1) << 16 | (end - split - 1))
            present |= 1 << slot
    elif split <= part:  # no separator after a name, unless a second one follows an empty name
        second = part + 1
        while second < end and load_u8(at + second) != 1:
            second += 1
        if second >= end:
            fault = 1
    return present, fault


@compiled_helper(inline=False)
def _differs_for_old_parser(at: int, found: int, present: int, window_end: int) -> bool:
    """Say whether the parser of 4.9.0 and before might read one of these values differently, because it holds another 0x01."""
    for slot in range(PROPERTY_SLOTS):
        if present & 1 << slot:
            start, length = _value(found + 8 * slot)
            base = 0
            while base < length:
                place = at + start + base
                beyond = max(0, place + 64 - window_end)
                ones = equal_mask(place - beyond, 1) >> np.uint64(beyond)
                if ones & (_ALL >> np.uint64(64 - min(64, length - base))) != _ZERO:
                    return True
                base += 64
    return False


@compiled_helper(inline=False)
def _number(at: int, length: int) -> tuple[bool, int]:
    """Return parse_number of at most 18 ASCII digits, so that nothing wraps: (whether it is one, its value)."""
    start = 0
    if length > 0 and (load_u8(at) == 43 or load_u8(at) == 45):
        start = 1
    if length == start or length - start > 18:
        return False, 0
    value = 0
    for i in range(start, length):
        digit = load_u8(at + i) - 48
        if digit < 0 or digit > 9:
            return False, 0
        value = value * 10 + digit
    return True, -value if load_u8(at) == 45 else value


@compiled_helper(inline=False)
def _blankness(at: int, length: int) -> int:
    """Return 0: something other than white space is there; 1: only ASCII white space; 2: only the reference can say."""
    unclear = False
    for i in range(length):
        byte = load_u8(at + i)
        if byte >= 128:
            unclear = True
        elif not (byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31):
            return 0
    return 2 if unclear else 1


@compiled_helper(inline=False)
def _two_parts(at: int, length: int) -> bool:
    """Say whether split("_") surely gives two parts: one separator, and something after it."""
    separators = 0
    for i in range(length):
        if load_u8(at + i) == 95:
            separators += 1
    return separators == 1 and load_u8(at + length - 1) != 95


@compiled_helper()
def _count_keys(at: int, length: int, window_end: int) -> int:
    """Return parts of KEYS between single spaces that are not empty."""
    count = 0
    inside = _ZERO  # 1: the byte before is part of a key
    base = 0
    while base < length:
        beyond = max(0, at + base + 64 - window_end)
        spaces = equal_mask(at + base - beyond, 32) >> np.uint64(beyond)
        keys = ~spaces & (_ALL >> np.uint64(64 - min(64, length - base)))
        count += count_bits(keys & ~(keys << _ONE | inside))
        inside = keys >> np.uint64(63)
        base += 64
    return count


@compiled_helper(inline=False)
def _appended_crc(record: int, total: int, value: int, value_length: int) -> int:
    """Return the appended CRC of a record in its ten digits. -1: there is none; -2: only the reference can say.

    value: the address at which the value of the property __CRC32# begins.
    """
    tail = record + total - layout.PROPERTY_CRC_BYTES
    if load_i64(tail) != _NAME_CRC or load_u8(tail + 19) != 2:
        return -1
    if value_length != 10:
        return -2
    crc = 0
    for i in range(9, -1, -1):
        digit = load_u8(value + i) - 48
        if digit < 0 or digit > 9:
            return -2
        crc = crc * 10 + digit
    return crc if crc <= 0x7FFFFFFF else -2


# ---- text ------------------------------------------------------------------------------------------------------------


@compiled_helper(inline=False)
def _is_utf8(at: int, length: int) -> bool:
    """Say whether these bytes are well-formed UTF-8 (no surrogates, no over-long forms)."""
    i = 0
    while i < length:
        if i + 8 <= length and load_word(at + i) & _HIGH_BITS == _ZERO:
            i += 8
            continue
        byte = load_u8(at + i)
        if byte < 0x80:
            i += 1
            continue
        if byte < 0xC2 or byte > 0xF4:
            return False
        more = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        if i + more >= length:
            return False
        low, high = 0x80, 0xBF
        if byte == 0xE0:
            low = 0xA0
        elif byte == 0xED:
            high = 0x9F
        elif byte == 0xF0:
            low = 0x90
        elif byte == 0xF4:
            high = 0x8F
        second = load_u8(at + i + 1)
        if second < low or second > high:
            return False
        for k in range(2, more + 1):
            if load_u8(at + i + k) & 0xC0 != 0x80:
                return False
        i += more + 1
    return True


_POWERS = tuple(pow(31, i, 1 << 32) for i in range(17))


@compiled_helper()
def _hash_ascii(at: int, length: int, value: int) -> Any:
    """String.hashCode continued from `value`; only the low 32 bits of the result count. The 16 bytes before `at` are read."""
    end = at + length
    while end - at >= 16:
        at += 16
        value = value * _POWERS[16] + hash_of_last(at, 16)
    return value * _POWERS[end - at] + hash_of_last(end, end - at)


@compiled_helper(inline=False)
def _hash_utf8(at: int, length: int, value: int) -> int:
    """Continue the hash `value` over the UTF-16 units of bytes that `_is_utf8` accepted; see `_hash_ascii`."""
    i = 0
    while i < length:
        byte = load_u8(at + i)
        if byte < 0x80:
            value = value * 31 + byte
            i += 1
        elif byte < 0xE0:
            value = value * 31 + ((byte & 0x1F) << 6 | load_u8(at + i + 1) & 0x3F)
            i += 2
        elif byte < 0xF0:
            unit = (byte & 0x0F) << 12 | (load_u8(at + i + 1) & 0x3F) << 6 | load_u8(at + i + 2) & 0x3F
            value = value * 31 + unit
            i += 3
        else:
            point = (byte & 0x07) << 18 | (load_u8(at + i + 1) & 0x3F) << 12
            point |= (load_u8(at + i + 2) & 0x3F) << 6 | load_u8(at + i + 3) & 0x3F
            point -= 0x10000
            value = (value * 31 + (0xD800 | point >> 10)) * 31 + (0xDC00 | point & 0x3FF)
            i += 4
    return value


@compiled_helper()
def _is_ascii(at: int, length: int) -> Any:
    """Say whether these bytes are all ASCII; of less than 8 the bytes before them, too. The 8 bytes before `at` are read."""
    word = load_word(at + length - 8)
    i = 0
    while i + 8 < length:
        word |= load_word(at + i)
        i += 8
    return word & _HIGH_BITS == _ZERO


@compiled_helper()
def _hash_text(at: int, length: int, value: int, ascii_only: bool) -> Any:
    """String.hashCode continued from `value`, of a text that `_is_utf8` accepted or that is known to be ASCII."""
    if ascii_only or _is_ascii(at, length):
        return _hash_ascii(at, length, value)
    return _hash_utf8(at, length, value)


@compiled_helper()
def _signed32(value: int) -> int:
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@compiled_helper()
def _index_hash(value: int) -> int:
    """IndexFile.indexKeyHashMethod of a running hash: its absolute value, 0 for the smallest int."""
    value = abs(_signed32(value))
    return 0 if value == 0x80000000 else value


@compiled_helper(inline=False)
def _hash_keys(at: int, length: int, prefix: int, ascii_only: bool, window_end: int, key_hash: int, key_count: int) -> int:
    """Write the hash of each part of KEYS that is not empty; returns the new count of hashes."""
    start: Any = np.int64(0)  # of the current part
    base = 0
    while base < length:
        beyond = max(0, at + base + 64 - window_end)
        spaces = equal_mask(at + base - beyond, 32) >> np.uint64(beyond)
        if length - base < 64:
            spaces |= _ALL << np.uint64(length - base)  # what is after the text ends a part, too
        while spaces != _ZERO:
            end = base + lowest_bit(spaces)
            if end > length:
                break
            if end > start:
                poke_i32(key_hash + 4 * key_count, _index_hash(_hash_text(at + start, end - start, prefix, ascii_only)))
                key_count += 1
            start = end + 1
            spaces &= spaces - _ONE
        base += 64
    if start < length:  # the last part ends with a block
        poke_i32(key_hash + 4 * key_count, _index_hash(_hash_text(at + start, length - start, prefix, ascii_only)))
        key_count += 1
    return key_count


# ---- topics ----------------------------------------------------------------------------------------------------------

_TOPIC_BYTES = shape.TOPIC_DTYPE.itemsize
_TOPIC_HASH, _TOPIC_TEXT_AT, _TOPIC_TEXT_LEN, _TOPIC_QUEUE_ID, _TOPIC_PREFIX_HASH = _offsets(
    shape.TOPIC_DTYPE, "hash text_at text_len queue_id prefix_hash"
)
_FACTOR = np.uint64(shape.HASH_FACTOR)


@compiled_helper()
def _mix(value: Any, word: Any) -> Any:
    value = (value ^ word) * _FACTOR
    return value ^ (value >> np.uint64(32))


@compiled_helper()
def _pair_hash(at: int, length: int, queue_id: int, seed: int) -> Any:
    """Return `message_columns.pair_hash`, as an int64."""
    value = np.uint64(seed)
    if length >= 8:
        i = 0
        while i + 8 <= length:
            value = _mix(value, load_word(at + i))
            i += 8
        if i < length:
            value = _mix(value, load_word(at + length - 8))
    elif length > 0:
        word = _ZERO
        for i in range(length):
            word |= np.uint64(load_u8(at + i)) << np.uint64(8 * i)
        value = _mix(value, word)
    return np.int64(_mix(value, np.uint64(queue_id & 0xFFFFFFFF) | np.uint64(length) << np.uint64(32)))


@compiled_helper()
def _same(left: int, right: int, length: int) -> Any:
    if length >= 8:
        i = 0
        while i + 8 <= length:
            if load_word(left + i) != load_word(right + i):
                return False
            i += 8
        return load_word(left + length - 8) == load_word(right + length - 8)
    for i in range(length):
        if load_u8(left + i) != load_u8(right + i):
            return False
    return True


@compiled_helper()
def _find_topic(at: int, length: int, queue_id: int, value: int, entries: int, text: int, slots: int, slot_count: int) -> Any:
    """Return the number of the pair, or -1 - slot for a new pair that goes into that slot."""
    mask = slot_count - 1
    slot = value & mask
    while True:
        number = peek_i32(slots + 4 * slot) - 1
        if number < 0:
            return -1 - slot
        entry = entries + _TOPIC_BYTES * number
        if (
            peek_i64(entry + _TOPIC_HASH) == value
            and peek_i32(entry + _TOPIC_QUEUE_ID) == queue_id
            and peek_i32(entry + _TOPIC_TEXT_LEN) == length
            and _same(at, text + peek_i64(entry + _TOPIC_TEXT_AT), length)
        ):
            return number
        slot = (slot + 1) & mask


@compiled_helper(inline=False)
def _add_topic(number: int, at: int, length: int, queue_id: int, value: int, entries: int, text: int, text_used: int) -> None:
    entry = entries + _TOPIC_BYTES * number
    poke_i64(entry + _TOPIC_HASH, value)
    poke_i64(entry + _TOPIC_TEXT_AT, text_used)
    poke_i32(entry + _TOPIC_TEXT_LEN, length)
    poke_i32(entry + _TOPIC_QUEUE_ID, queue_id)
    poke_i32(entry + _TOPIC_PREFIX_HASH, _hash_utf8(at, length, np.int64(0)) * 31 + 35)  # "#"
    for i in range(length):
        poke_u8(text + text_used + i, load_u8(at + i))


# ---- the pass --------------------------------------------------------------------------------------------------------

_V1, _V2 = layout.MAGIC_V1, layout.MAGIC_V2
_SCHEDULE_TOPIC_BYTES = len(layout.SCHEDULE_TOPIC)
_SCHEDULE_1, _SCHEDULE_2, _SCHEDULE_3 = (_text(layout.SCHEDULE_TOPIC[i : i + 8], 8) for i in (0, 8, 11))
_BOTH_NUMBERS = 1 << _NUM | 1 << _BASE
_BOTH_DISPATCH = 1 << _DISPATCH | 1 << _DISPATCH_AT
_INDEXED = 1 << _UNIQ | 1 << _KEYS
_NO_PORT = ~header_faults.MAX_PORT
_RARE_FLAGS = ~header_faults.KNOWN_FLAGS | layout.SYS_COMPRESSED | layout.SYS_COMPRESSION_MASK | header_faults.BATCH_FLAGS
_LZ4_HEAD, _ZSTD_HEAD = (int.from_bytes(head, "big", signed=True) for head in (header_faults.LZ4_HEAD, header_faults.ZSTD_HEAD))


@compiled_helper(inline=False)
def _odd_flags(sys_flag: int, body: int, length: int, present: int) -> bool:
    """Say whether `header_faults` blames the flags.

    length: of the body at address `body`.
    present: the properties of interest.
    """
    if sys_flag & ~header_faults.KNOWN_FLAGS:
        return True
    batch = sys_flag & header_faults.BATCH_FLAGS
    if batch == layout.SYS_NEED_UNWRAP or batch != 0 and not present & 1 << _NUM:
        return True
    kind = (sys_flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT
    if not sys_flag & layout.SYS_COMPRESSED:
        return kind != 0
    if length < 2:
        return True
    if kind == 1 or kind == 2:
        return length < 4 or load_i32(body) != (_LZ4_HEAD if kind == 1 else _ZSTD_HEAD)
    zlib = load_u8(body) & 15 == 8 and (load_i16(body) & 0xFFFF) % 31 == 0
    return kind > header_faults.MAX_COMPRESSION or not zlib


@compiled_helper()
def _is_schedule(at: int, length: int) -> bool:
    return (
        length == _SCHEDULE_TOPIC_BYTES
        and load_i64(at) == _SCHEDULE_1
        and load_i64(at + 8) == _SCHEDULE_2
        and load_i64(at + 11) == _SCHEDULE_3
    )


@compiled_helper()
def _read_properties(
    at: int, length: int, window_end: int, settings: int, want_keys: bool, layouts: Address
) -> tuple[int, int, int, bool]:
    """Give (where the values that are asked for are kept, which there are, flags of the row, all is ASCII).

    The flags are -1 if the reference must read them.
    """
    flags, ascii_only = 0, True
    known = layouts + _LAYOUT_BYTES * (length & (_LAYOUTS - 1))
    found = known + _FOUND
    short = length <= _LAYOUT_ROOM and at + _LAYOUT_ROOM <= window_end
    fault = high = False
    if short and _is_layout(at, length, known):
        present = peek_i64(known + _PRESENT)
    else:
        fresh = False  # whether this one is to be remembered
        if short:
            misses = peek_i64(known + _MISSES)
            fresh = misses <= 0
            poke_i64(known + _MISSES, misses - 1)
        if fresh:
            poke_i64(known, 0)  # what it has as `found` is about to change
        else:
            found = layouts + _LAYOUT_BYTES * _LAYOUTS
        present, fault, high = _scan_properties(at, length, window_end, found)
        if settings & _ASKS_OLD_PARSER and _differs_for_old_parser(at, found, present, window_end):
            if settings & shape.OLD_PARSER:
                return found, present, -1, False  # a layout that is met holds no such value
            flags |= shape.OLD_PARSER_DIFFERS
            fresh = False
        if fresh and not fault and not high:
            _remember_layout(at, length, present, known)
    if high:
        ascii_only = False
        if not _is_utf8(at, length):
            fault = True
            if present & 1 << _TAGS or want_keys and present & _INDEXED:
                return found, present, -1, False
    if fault:
        flags |= shape.MALFORMED_PROPERTIES
    return found, present, flags, ascii_only


@compiled_helper()
def _inner_batch(
    properties: int, found: int, present: int, queue_offset: int, sys_flag: int, settings: int
) -> tuple[int, int, int]:
    """Give (first queue offset, messages, flags of the row) of a message that may hold several.

    The flags are -1 if the reference must read it.
    """
    batch_count = 1
    if settings & shape.INNER_BATCH and present & _BOTH_NUMBERS == _BOTH_NUMBERS:
        start, length = _value(found + 8 * _BASE)
        base_ok, batch_base = _number(properties + start, length)
        start, length = _value(found + 8 * _NUM)
        count_ok, batch_count = _number(properties + start, length)
        if not base_ok or not count_ok or batch_count < -32768 or batch_count > 32767:
            return queue_offset, batch_count, -1
        return batch_base, batch_count, shape.HAS_INNER
    if present & _BOTH_NUMBERS != 1 << _NUM:
        return queue_offset, batch_count, 0
    start, length = _value(found + 8 * _NUM)
    count_ok, number = _number(properties + start, length)
    if settings & shape.INNER_BATCH and sys_flag & layout.SYS_INNER_BATCH:
        if not count_ok:
            return queue_offset, batch_count, -1
        if 1 < number <= 32767:
            batch_count = number
    return queue_offset, batch_count, shape.INNER_ALONE


@compiled_helper()
def _check_appended_crc(record: int, total: int, properties: int, found: int, present: int, settings: int) -> int:
    """Give the flags of the row; -1 if the record's checksum of the whole is refused."""
    crc = -1
    if present & 1 << _CRC:
        start, length = _value(found + 8 * _CRC)
        crc = _appended_crc(record, total, properties + start, length)
    needed = settings & shape.NEED_PROPERTY_CRC
    if crc < 0:
        return -1 if crc == -2 or needed else 0
    if crc == 0 and needed and not settings & shape.ZERO_CRC_OK:
        return -1
    if settings & shape.CHECK_PROPERTY_CRC and masked_crc32(record, total - layout.PROPERTY_CRC_BYTES) != crc:
        return -1
    return shape.HAS_PROPERTY_CRC


@kept(layout, shape, native, item, header_faults)
def decode_window(
    buffer: Address, at: int, end: int, final: bool, position: int, header: int, base_offset: int, settings: int,
    delays: Address, delay_count: int, rows: Address, capacity: int, count: int,
    key_hash: Address, key_capacity: int, key_count: int,
    entries: Address, entry_capacity: int, text: Address, text_capacity: int, slots: Address, slot_count: int,
    topic_count: int, text_used: int, seed: int, layouts: Address,
) -> tuple[int, int, int, int, int, int, int, int]:  # fmt: skip
    """Decode records from byte `at` of the buffer on; the window ends at its byte `end`.

    position: of `at` in the segment.
    header: bytes of the framing before each record, which are passed over.
    settings: `RecordCheck.settings`.
    seed: as in `TopicTable`.
    layouts: LAYOUT_WORDS int64, zeros at first, then as the last call left them.
    Returns (ENDED_*, position, bytes needed there, count, key_count, topic_count, text_used, all flags of
    the new rows).

    Each array from `rows` on is followed by how many elements it has room for, and how many are in use. A room for no key hashes
    means that none are wanted.

    One function but for what needs few of a record's values: all others are needed until its row is written.
    """
    at, end = buffer + at, buffer + end
    want_keys = key_capacity > 0
    ended, need = ENDED_STOPPED, 0
    all_flags = 0
    found = layouts
    while True:
        if count >= capacity or (want_keys and key_count + shape.MAX_RECORD_KEYS > key_capacity):
            ended = ENDED_FULL
            break
        left = end - at
        if left < layout.FRAME_BYTES:
            if not final:
                ended, need = ENDED_NEED_MORE, layout.FRAME_BYTES
            break

        # The frame, and whether its parts add up to its size.
        total = load_i32(at)
        magic = load_i32(at + layout.MAGIC_POSITION)
        if magic != _V1 and not (magic == _V2 and settings & shape.KNOWS_V2):
            break
        if total > left:
            if not final:
                ended, need = ENDED_NEED_MORE, total
            break
        for line in range(-128, 128, 64):  # the properties, and the next frame: the way there leads through this one
            prefetch(at + total + line)
        wide = 1 if magic == _V2 else 0  # bytes by which the topic length is longer
        if total < layout.MIN_SIZE_V1_BYTES + wide:
            break
        sys_flag = load_i32(at + layout.SYS_FLAG_POSITION)
        born_extra = layout.IPV6_EXTRA_BYTES if sys_flag & layout.SYS_BORN_HOST_V6 else 0
        extra = born_extra + (layout.IPV6_EXTRA_BYTES if sys_flag & layout.SYS_STORE_HOST_V6 else 0)
        room = total - (layout.MIN_SIZE_V1_BYTES + wide + extra)  # for body, topic and properties
        if room < 0:
            break
        body_at = layout.BODY_POSITION + extra
        stored_body_length = load_i32(at + layout.BODY_LENGTH_POSITION + extra)
        body_length = max(0, stored_body_length)
        if body_length > room:
            break
        topic_at = body_at + body_length + 1 + wide
        topic_length = load_i16(at + topic_at - 2) if wide else load_i8(at + topic_at - 1)
        if topic_length < 0 or topic_length > room - body_length:
            break
        properties_at = topic_at + topic_length + 2
        stored_properties_length = load_i16(at + properties_at - 2)
        properties_length = max(0, stored_properties_length)
        if body_length + topic_length + properties_length != room:
            break
        phy_offset = load_i64(at + layout.PHY_OFFSET_POSITION)
        if settings & shape.CHECK_PHY_OFFSET and phy_offset != base_offset + position:
            break
        body_crc = load_i32(at + layout.BODY_CRC_POSITION)
        if settings & shape.CHECK_BODY_CRC and body_length > 0:
            if masked_crc32(at + body_at, body_length) != body_crc:
                break

        # What the properties say.
        present, flags, ascii_only = 0, 0, True
        properties = at + properties_at
        if properties_length > 0:
            found, present, flags, ascii_only = _read_properties(properties, properties_length, end, settings, want_keys, layouts)
            if flags < 0:
                break
            if settings & shape.NEED_DUP_INFO:
                if not present & 1 << _DUP_INFO:
                    break
                start, length = _value(found + 8 * _DUP_INFO)
                if not _two_parts(properties + start, length):
                    break
        if present & 1 << _CRC or settings & shape.NEED_PROPERTY_CRC:
            appended = _check_appended_crc(at, total, properties, found, present, settings)
            if appended < 0:
                break
            flags |= appended
        store_time = load_i64(at + layout.STORE_TIMESTAMP_POSITION + born_extra)
        tags_code = 0
        tags_at = tags_length = uniq_at = uniq_length = keys_at = keys_length = 0
        if present & 1 << _TAGS:
            flags |= shape.HAS_TAGS
            tags_at, tags_length = _value(found + 8 * _TAGS)
            tags_at += properties_at
            tags_code = _signed32(_hash_text(at + tags_at, tags_length, np.int64(0), ascii_only))
        if present & 1 << _DELAY and _is_schedule(at + topic_at, topic_length):
            flags |= shape.SCHEDULE
            start, length = _value(found + 8 * _DELAY)
            ok, level = _number(properties + start, length)
            if not ok or level < -(1 << 31) or level >= 1 << 31:
                break
            level = min(level, delay_count - 1)
            if level > 0:
                tags_code = store_time + peek_i64(delays + 8 * level)
        queue_offset = load_i64(at + layout.QUEUE_OFFSET_POSITION)
        batch_base, batch_count, inner = _inner_batch(properties, found, present, queue_offset, sys_flag, settings)
        if inner < 0:
            break
        flags |= inner
        born_port = load_i32(at + layout.BORN_HOST_POSITION + born_extra + 4)
        store_port = load_i32(at + layout.STORE_HOST_POSITION + extra + 4)
        if (stored_body_length | stored_properties_length) < 0 or body_length == 0 and body_crc != 0:
            flags |= shape.ODD_HEADER
        elif (born_port | store_port) & _NO_PORT:
            flags |= shape.ODD_HEADER
        elif sys_flag & _RARE_FLAGS and _odd_flags(sys_flag, at + body_at, body_length, present):
            flags |= shape.ODD_HEADER
        if present & _BOTH_DISPATCH == _BOTH_DISPATCH:
            start, length = _value(found + 8 * _DISPATCH)
            names = _blankness(properties + start, length)
            start, length = _value(found + 8 * _DISPATCH_AT)
            places = _blankness(properties + start, length)
            if names == 2 or places == 2:
                break
            if names == 0 and places == 0:
                flags |= shape.HAS_MULTI_DISPATCH
        rollback = sys_flag & layout.SYS_TRANSACTION_MASK == layout.SYS_ROLLBACK
        keys = 0
        if present & 1 << _UNIQ:
            flags |= shape.HAS_UNIQ
            uniq_at, uniq_length = _value(found + 8 * _UNIQ)
            uniq_at += properties_at
            keys = 1
        if present & 1 << _KEYS:
            flags |= shape.HAS_KEYS
            keys_at, keys_length = _value(found + 8 * _KEYS)
            keys_at += properties_at
            keys += _count_keys(at + keys_at, keys_length, end)
        if rollback:
            keys = 0

        # The topic is added last: a frame that is not accepted adds nothing.
        queue_id = load_i32(at + layout.QUEUE_ID_POSITION)
        value = _pair_hash(at + topic_at, topic_length, queue_id, seed)
        topic = _find_topic(at + topic_at, topic_length, queue_id, value, entries, text, slots, slot_count)
        if topic < 0:
            if not _is_utf8(at + topic_at, topic_length):
                break
            if topic_count >= entry_capacity or text_used + topic_length > text_capacity:
                ended, need = ENDED_NO_TOPIC_ROOM, topic_length
                break
            poke_i32(slots + 4 * (-1 - topic), topic_count + 1)
            _add_topic(topic_count, at + topic_at, topic_length, queue_id, value, entries, text, text_used)
            topic = topic_count
            topic_count += 1
            text_used += topic_length

        row = rows + item.ROW * count
        if want_keys:
            poke_i32(row + item.KEY_START, key_count)
            if not rollback:
                prefix = peek_i32(entries + _TOPIC_BYTES * topic + _TOPIC_PREFIX_HASH)
                if uniq_length > 0:
                    hashed = _index_hash(_hash_text(at + uniq_at, uniq_length, prefix, ascii_only))
                    poke_i32(key_hash + 4 * key_count, hashed)
                    key_count += 1
                if keys_length > 0:
                    key_count = _hash_keys(at + keys_at, keys_length, prefix, ascii_only, end, key_hash, key_count)
                if tags_length > 0:
                    prefix = (prefix * 31 + 84) * 31 + 35  # "T#"
                    hashed = _index_hash(_hash_text(at + tags_at, tags_length, prefix, ascii_only))
                    poke_i32(key_hash + 4 * key_count, hashed)
                    key_count += 1
        poke_i64(row + item.POSITION, position)
        poke_i64(row + item.PHY_OFFSET, phy_offset)
        poke_i64(row + item.QUEUE_OFFSET, queue_offset)
        poke_i64(row + item.STORE_TIME, store_time)
        poke_i64(row + item.TAGS_CODE, tags_code)
        poke_i32(row + item.TOTAL_SIZE, total)
        poke_i32(row + item.TOPIC_REF, topic)
        poke_i32(row + item.SYS_FLAG, sys_flag)
        poke_i32(row + item.FLAGS, flags)
        all_flags |= flags
        host = at + layout.STORE_HOST_POSITION + born_extra
        host_number = load_i64(host)
        if sys_flag & layout.SYS_STORE_HOST_V6:
            host_number = (host_number * 31 + load_i64(host + 8)) * 31 + load_i32(host + 16)
        poke_i64(row + item.STORE_HOST, host_number)
        poke_i64(row + item.BATCH_BASE, batch_base)
        poke_i32(row + item.BATCH_COUNT, batch_count)
        poke_i32(row + item.KEY_COUNT, keys)
        poke_i32(row + item.FLAG, load_i32(at + layout.FLAG_POSITION))
        poke_i64(row + item.BORN_TIME, load_i64(at + layout.BORN_TIMESTAMP_POSITION))
        poke_i64(row + item.PREPARED_OFFSET, load_i64(at + layout.PREPARED_OFFSET_POSITION + extra))
        poke_i32(row + item.BODY_CRC, body_crc)
        poke_i32(row + item.RECONSUME_TIMES, load_i32(at + layout.RECONSUME_TIMES_POSITION + extra))
        poke_i32(row + item.BODY_AT, body_at)
        poke_i32(row + item.BODY_LEN, body_length)
        poke_i32(row + item.TOPIC_AT, topic_at)
        poke_i32(row + item.TOPIC_LEN, topic_length)
        poke_i32(row + item.PROPS_AT, properties_at)
        poke_i32(row + item.PROPS_LEN, properties_length)
        poke_i32(row + item.UNIQ_AT, uniq_at)
        poke_i32(row + item.UNIQ_LEN, uniq_length)
        poke_i32(row + item.KEYS_AT, keys_at)
        poke_i32(row + item.KEYS_LEN, keys_length)
        poke_i32(row + item.TAGS_AT, tags_at)
        poke_i32(row + item.TAGS_LEN, tags_length)
        count += 1
        at += total + header
        position += total + header
    return ended, position, need, count, key_count, topic_count, text_used, all_flags
