"""Holds the columns that a decoder fills, and works out the index entries of their messages (recovery.md 8.2).

There is one row per message, the (topic, queue id) pairs met, and the place at which the decoder stopped. Two decoders share the
columns: `commitlog_columns` (compiled, fast) and `commitlog_reader` (the readable reference). What the fast one does not accept
is judged by `RecordCheck.verdict` and, if valid, appended with `append_message`. Index entries are made for all rows at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.rows import QueueKey
from store_io.base.java.java_compat import int64, is_blank, split_dropping_tail, string_hash
from store_io.broker.header_faults import HEAD_BYTES, header_faults
from store_io.broker.index_keys import index_keys, key_hash, key_text, tag_key
from store_io.broker.message_verdict import (
    AUDIT,
    AUDIT_RULES,
    BAD,
    BROKER,
    END,
    HALF,
    REPUT,
    VALID,
    Frames,
    Message,
    Verdict,
    appended_crc,
    audit_frame,
    check_frame,
    properties_fault,
)
from store_io.broker.releases import BrokerRules
from store_io.log.records.framing import PLAIN, Framing, filler_size, framing_of

# ---- rows ----------------------------------------------------------------------------------------------------------

# Bits of the column `flags`. "Present" means: after the parser's rules, so with a value that is not empty.
HAS_TAGS = 0x1  # TAGS present
HAS_UNIQ = 0x2  # UNIQ_KEY present
HAS_KEYS = 0x4  # KEYS present (it may consist of spaces, then it yields no key)
HAS_MULTI_DISPATCH = 0x8  # INNER_MULTI_DISPATCH and INNER_MULTI_QUEUE_OFFSET present and not blank
HAS_INNER = 0x10  # INNER_NUM and INNER_BASE present, and the rules know them: batch_base and batch_count are theirs
MALFORMED_PROPERTIES = 0x20  # `message_verdict.properties_fault` has something to say
HAS_PROPERTY_CRC = 0x40  # the record ends in a property CRC as a broker appends it
SCHEDULE = 0x80  # topic SCHEDULE_TOPIC_XXXX with DELAY present
ODD_HEADER = 0x100  # `header_faults` has something to say
OLD_PARSER_DIFFERS = 0x400  # with `watches_old_parser`: the parser of 4.9.0 and before reads a property of interest otherwise
INNER_ALONE = 0x200  # INNER_NUM present without INNER_BASE: an inner batch as queues in RocksDB number it

ROW_DTYPE = np.dtype(
    [
        ("position", "i8"),  # byte in the segment
        ("phy_offset", "i8"),  # as stored
        ("queue_offset", "i8"),
        ("store_time", "i8"),  # ms
        ("tags_code", "i8"),  # with the check's delay table, see `message_verdict.tags_code_of`
        ("total_size", "i4"),
        ("topic_ref", "i4"),  # number of the (topic, queue id) pair in the TopicTable
        ("sys_flag", "i4"),
        ("flags", "u4"),  # the bits above
        ("store_host", "i8"),  # `host_number` of it
        ("batch_base", "i8"),  # queue_offset where there is no HAS_INNER
        ("batch_count", "i4"),  # 1 where there is neither HAS_INNER nor INNER_ALONE
        ("key_count", "i4"),  # index keys: UNIQ_KEY, then the parts of KEYS; without the tag key; 0 for rollback
        ("key_start", "i4"),  # of its hashes in `Columns.key_hash`; only written with want_keys
        ("flag", "i4"),  # the producer's
        ("born_time", "i8"),  # ms
        ("prepared_offset", "i8"),
        ("body_crc", "i4"),  # as stored
        ("reconsume_times", "i4"),
        # Parts of the record, in bytes from its first one; a length of 0: none.
        ("body_at", "i4"),
        ("body_len", "i4"),
        ("topic_at", "i4"),
        ("topic_len", "i4"),
        ("props_at", "i4"),
        ("props_len", "i4"),
        ("uniq_at", "i4"),  # the values of UNIQ_KEY, KEYS and TAGS
        ("uniq_len", "i4"),
        ("keys_at", "i4"),
        ("keys_len", "i4"),
        ("tags_at", "i4"),
        ("tags_len", "i4"),
    ],
    align=True,
)


"""One message. Rows, not columns, lie together in memory: a decoder writes a whole row at once, and thirty separate streams
cost it more than half of its speed."""


MAX_RECORD_KEYS = 16_386  # KEYS of 32,767 bytes at most, every second one a space; UNIQ_KEY; the tag key
DEFAULT_CAPACITY = 32_768


class Columns:
    """Room for `capacity` messages, `rows` (ROW_DTYPE), of which the first `count` are valid. Decoding appends.

    key_hash: with want_keys, hashes as an index entry has them, from `key_start` of a row on: its `key_count` keys in order,
    then, for a message with tags that is no rollback, that of its tag key topic#T#TAGS, whatever the release.
    layouts: for each `RecordCheck.settings`, what compiled code remembers of properties (LAYOUT_WORDS int64).
    flags: all flags of the rows.
    row_bytes: the rows as plain bytes, for compiled code.
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY, want_keys: bool = False):
        self.capacity = capacity
        self.want_keys = want_keys
        self.rows = np.zeros(capacity, ROW_DTYPE)
        self.key_hash = np.zeros(4 * capacity + MAX_RECORD_KEYS if want_keys else 0, np.int32)
        self.row_bytes = self.rows.view(np.uint8)
        self.layouts: dict[int, np.ndarray] = {}
        self.count = 0
        self.key_hash_count = 0
        self.flags = 0

    def clear(self) -> None:
        """Forget all rows; the next decode fills from the start."""
        self.count = 0
        self.key_hash_count = 0
        self.flags = 0

    @property
    def full(self) -> bool:
        """Say whether one more message, with as many keys as a message can have, might not fit."""
        return self.count >= self.capacity or self.want_keys and self.key_hash_count + MAX_RECORD_KEYS > len(self.key_hash)


# ---- topics --------------------------------------------------------------------------------------------------------

_WORD = (1 << 64) - 1
HASH_SEED = secrets.randbits(64)  # of this process: nobody can choose topics that all lead to one slot
HASH_FACTOR = 0xD6E8FEB86659FD93

TOPIC_DTYPE = np.dtype(
    [
        ("hash", "u8"),
        ("text_at", "i8"),  # in `TopicTable.text`
        ("text_len", "i4"),
        ("queue_id", "i4"),
        ("prefix_hash", "u4"),  # String.hashCode of topic + "#": where the hash of an index key begins
    ],
    align=True,
)


class TopicTable:
    """The (topic, queue id) pairs of one segment, numbered from 0 in the order in which they are met.

    Open addressing over flat arrays, because the compiled decoder looks up and adds pairs by itself. Topics are kept as valid
    UTF-8, so a pair is one `QueueKey` and the other way round. seed: the value with which the table's hashes begin, as an int64.
    """

    def __init__(self) -> None:
        self.seed = int64(HASH_SEED)
        self.count = 0
        self.text_used = 0
        self.entries = np.zeros(64, TOPIC_DTYPE)
        self.text = np.zeros(4096, np.uint8)
        self.slots = np.zeros(256, np.int32)  # number of the pair + 1; 0: free. Four for each entry, so never full.
        self._keys: list[QueueKey] = []
        self._numbers: dict[QueueKey, int] = {}

    def __len__(self) -> int:
        return self.count

    @property
    def keys(self) -> list[QueueKey]:
        """Return all pairs, by number. The list is the table's own and grows with it."""
        for number in range(len(self._keys), self.count):
            entry = self.entries[number]
            start = int(entry["text_at"])
            topic = self.text[start : start + int(entry["text_len"])].tobytes().decode("utf-8")
            self._keys.append((topic, int(entry["queue_id"])))
            self._numbers[self._keys[-1]] = number
        return self._keys

    def number_of(self, topic: str, queue_id: int) -> int:
        """Return the pair's number; add the pair if it is new."""
        key = (topic, queue_id)
        known = len(self.keys)
        number = self._numbers.get(key)
        if number is not None:
            return number
        text = topic.encode("utf-8")
        self.reserve(len(text))
        entry = self.entries[known]
        entry["hash"] = pair_hash(text, queue_id)
        entry["text_at"] = self.text_used
        entry["text_len"] = len(text)
        entry["queue_id"] = queue_id
        entry["prefix_hash"] = string_hash(topic + "#") & 0xFFFFFFFF
        self.text[self.text_used : self.text_used + len(text)] = np.frombuffer(text, np.uint8)
        self.text_used += len(text)
        self.count += 1
        self._place(known)
        return known

    def reserve(self, text_bytes: int) -> None:
        """Make room for one more pair with a topic of that many bytes."""
        if self.text_used + text_bytes > len(self.text):
            self.text = np.concatenate([self.text, np.zeros(max(len(self.text), text_bytes), np.uint8)])
        if self.count == len(self.entries):
            self.entries = np.concatenate([self.entries, np.zeros(len(self.entries), TOPIC_DTYPE)])
            self.slots = np.zeros(2 * len(self.slots), np.int32)
            for number in range(self.count):
                self._place(number)

    def _place(self, number: int) -> None:
        mask = len(self.slots) - 1
        slot = int(self.entries[number]["hash"]) & mask
        while self.slots[slot]:
            slot = (slot + 1) & mask
        self.slots[slot] = number + 1


def pair_hash(topic: bytes, queue_id: int) -> int:
    """Return the table's hash of a pair, 64 bits: over 8-byte little-endian words, the last of which overlaps the one before."""
    words = []
    for start in range(0, len(topic), 8):
        start = max(0, min(start, len(topic) - 8))
        words.append(int.from_bytes(topic[start : start + 8], "little"))
    value = HASH_SEED
    for word in (*words, queue_id & 0xFFFFFFFF | len(topic) << 32):
        value = (value ^ word) * HASH_FACTOR & _WORD
        value ^= value >> 32
    return value


# ---- checks and stops ----------------------------------------------------------------------------------------------

NEED_MORE, FULL, STOPPED = "need_more", "full", "stopped"

# Bits of `RecordCheck.settings`: what compiled code asks of a check.
KNOWS_V2 = 0x1
CHECK_PHY_OFFSET = 0x2  # against the position
CHECK_BODY_CRC = 0x4
CHECK_PROPERTY_CRC = 0x8  # where the record ends in one
NEED_PROPERTY_CRC = 0x10  # it has to
ZERO_CRC_OK = 0x20
NEED_DUP_INFO = 0x40
INNER_BATCH = 0x80
OLD_PARSER = 0x100
WATCH_OLD_PARSER = 0x200

_OF_INTEREST = (  # properties that decide anything here
    b"TAGS", b"KEYS", b"UNIQ_KEY", b"DELAY", b"DUP_INFO", layout.PROPERTY_CRC_NAME.encode(), b"INNER_NUM", b"INNER_BASE",
    b"INNER_MULTI_DISPATCH", b"INNER_MULTI_QUEUE_OFFSET",
)  # fmt: skip


@dataclass(frozen=True)
class RecordCheck:
    """The check that a decoder applies; make one with `audit`, `broker` or `reput`. Picklable.

    delays: the table by which tags codes of delayed messages are computed.
    base_offset: the segment's; AUDIT only.
    watches_old_parser: rows have OLD_PARSER_DIFFERS.
    sums: without it compiled code takes the checksums of bodies as right.
    """

    mode: str
    rules: BrokerRules
    delays: Mapping[int, int]
    base_offset: int = 0
    framing: Framing = PLAIN
    watches_old_parser: bool = False
    sums: bool = True

    @staticmethod
    def audit(base_offset: int, delays: Mapping[int, int] | None = None, rules: BrokerRules = AUDIT_RULES) -> RecordCheck:
        """Return exactly what `audit_frame` calls VALID. delays: default those of the rules during recovery, as there."""
        return RecordCheck(AUDIT, rules, rules.delays_in_recovery if delays is None else delays, base_offset, framing_of(rules))

    @staticmethod
    def audit_of(base_offset: int, rules: BrokerRules, path: str = "") -> RecordCheck:
        """Return the audit of a store under a release's rules: its delays, and the properties as its parser reads them.

        path: of the log's file, which may decide how its records are framed.
        """
        strictest = replace(AUDIT_RULES, old_property_parser=rules.old_property_parser)
        return RecordCheck(AUDIT, strictest, rules.delays, base_offset, framing_of(rules, path))

    @staticmethod
    def broker(rules: BrokerRules, path: str = "") -> RecordCheck:
        """Return exactly what `check_frame` calls VALID while that release recovers."""
        framing = framing_of(rules, path)
        if framing.header_bytes and rules.entries_need_dup_info:
            rules = replace(rules, dup_info=True)
        return RecordCheck(BROKER, rules, rules.delays_in_recovery, framing=framing)

    @staticmethod
    def reput(rules: BrokerRules, path: str = "") -> RecordCheck:
        """Return the check of doReputMessage: neither checksums nor DUP_INFO are looked at, and the body is not read."""
        lenient = replace(rules, dup_info=False)
        return RecordCheck(REPUT, lenient, rules.delays, framing=framing_of(rules, path))

    def without_place(self) -> RecordCheck:
        """Return the audit's check of messages that may store any physical offset."""
        return RecordCheck(BROKER, AUDIT_RULES, self.delays, framing=self.framing)

    def verdict(self, frames: Frames, position: int, limit: int) -> Verdict:
        """Return the reference's verdict of the one frame at `position`; its `size` is the frame's, with the framing's header.

        limit: the segment's end, or that of what was written.
        """
        header = self.framing.header_bytes
        if not header:
            return self._record_verdict(frames, position, limit)
        head = frames.read(position, min(limit, position + max(header, layout.FRAME_BYTES)))
        if filler_size(self.framing, head) is not None:
            return Verdict(END, 0, "filler", position + layout.FRAME_BYTES)
        verdict = self._record_verdict(frames, position + header, limit)
        if verdict.kind not in (VALID, HALF) or verdict.message is None:
            return verdict
        numbers = verdict.size, verdict.message.phy_offset
        if self.reads_header and not self._header_fits(head[:header], *numbers):
            fault = self.framing.fault(head[:header], *numbers)
            return Verdict(BAD, -1, "frame_header", verdict.parsed_to, verdict.computed_size, verdict.message, *fault)
        verdict.size += header
        return verdict

    @property
    def reads_header(self) -> bool:
        """Say whether this check looks at the header that a framing puts before each record."""
        return self.mode == AUDIT or self.framing.broker_reads_header

    def _header_fits(self, header: bytes, size: int, phy_offset: int) -> bool:
        rows = np.frombuffer(header, np.uint8)[None]
        return bool(self.framing.accepts(rows, np.array([size], np.int64), np.array([phy_offset], np.int64))[0])

    def _record_verdict(self, frames: Frames, position: int, limit: int) -> Verdict:
        if self.mode == AUDIT:
            return audit_frame(frames, position, limit, self.base_offset + position, self.delays, self.rules)
        if self.mode == BROKER:
            return check_frame(frames, position, limit, self.rules, delays=self.delays)
        return check_frame(frames, position, limit, self.rules, REPUT, self.delays)

    @cached_property
    def settings(self) -> int:
        """Return the check as bits, for compiled code."""
        rules = self.rules
        crc = self.mode == AUDIT or self.mode == BROKER and rules.check_crc
        need = crc and rules.verify_property_crc
        bits = 0
        for bit, holds in (
            (KNOWS_V2, rules.knows_v2),
            (CHECK_PHY_OFFSET, self.mode == AUDIT),
            (CHECK_BODY_CRC, crc and not need and self.sums),
            (CHECK_PROPERTY_CRC, need or self.mode == AUDIT),
            (NEED_PROPERTY_CRC, need),
            (ZERO_CRC_OK, rules.property_crc_zero_ok),
            (NEED_DUP_INFO, rules.dup_info),
            (INNER_BATCH, rules.inner_batch),
            (OLD_PARSER, rules.old_property_parser),
            (WATCH_OLD_PARSER, self.watches_old_parser and not rules.old_property_parser),
        ):
            if holds:
                bits |= bit
        return bits

    @cached_property
    def delay_table(self) -> np.ndarray:
        """Return ms by level, int64, [0] unused; the highest level caps all others."""
        levels = range(max(self.delays, default=0) + 1)
        return np.array([int64(self.delays.get(level, 1000)) for level in levels], np.int64)


class Stretch(NamedTuple):
    """Frames to decode: from segment position `start` on, in a buffer that holds the segment's bytes up to `end`.

    buffer: uint8, C-contiguous; its first byte is at segment position `buffer_position` <= start.
    final: nothing follows `end` in the segment.
    """

    buffer: np.ndarray
    buffer_position: int
    start: int
    end: int
    final: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a decoder returned. All messages before `position` are in the columns, in order.

    kind: NEED_MORE (the frame at `position` may be fine but reaches beyond `end`: give at least `need_bytes` from `position`
    on, or the rest of the segment with final=True); FULL (no room in the columns); STOPPED (the frame at `position` was not
    accepted: a filler, the segment's very end, something bad, or something rare that only the reference decides).
    """

    kind: str
    position: int
    need_bytes: int = 0


# ---- appending what the reference accepted ---------------------------------------------------------------------------


_OWN_FIELDS = (  # of a row that have a message's own values
    "position phy_offset queue_offset store_time total_size sys_flag batch_base batch_count flag born_time prepared_offset "
    "body_crc reconsume_times"
).split()


def append_message(columns: Columns, topics: TopicTable, message: Message, frames: Frames, check: RecordCheck) -> None:
    """Append one message that `check.verdict` called VALID, as both decoders would. Raises ValueError if `columns` is full."""
    if columns.full:
        raise ValueError(f"no room for another message: {columns.count} of {columns.capacity} rows in use")
    data = b""
    if message.properties_length > 0:
        data = frames.read(message.properties_position, message.properties_position + message.properties_length)
    row = columns.rows[columns.count]
    for field in _OWN_FIELDS:
        row[field] = getattr(message, field)
    row["tags_code"] = int64(message.tags_code)
    row["topic_ref"] = topics.number_of(message.topic, message.queue_id)
    row["body_at"] = message.body_position - message.position
    row["body_len"] = max(0, message.body_length)
    row["topic_at"] = message.topic_position - message.position
    row["topic_len"] = message.topic_length
    row["props_at"] = message.properties_position - message.position
    row["props_len"] = max(0, message.properties_length)
    values = locate_properties(data, check.rules.old_property_parser)
    for name, at, length in (
        (b"UNIQ_KEY", "uniq_at", "uniq_len"),
        (b"KEYS", "keys_at", "keys_len"),
        (b"TAGS", "tags_at", "tags_len"),
    ):
        start, size = values.get(name, (0, 0))
        row[at] = message.properties_position - message.position + start if size else 0
        row[length] = size
    row["flags"] = _flags(message, data, frames, check)
    if check.settings & WATCH_OLD_PARSER:
        places = (values[name] for name in _OF_INTEREST if name in values)
        if any(layout.PROPERTY_NAME_END in data[start : start + size] for start, size in places):
            row["flags"] |= OLD_PARSER_DIFFERS
    row["store_host"] = host_number(message.store_host)
    keys = index_keys(message)
    row["key_count"] = len(keys)
    if columns.want_keys:
        row["key_start"] = columns.key_hash_count
        tag = tag_key(message)
        for key in keys if tag is None else [*keys, tag]:
            columns.key_hash[columns.key_hash_count] = key_hash(key_text(message.topic, key))
            columns.key_hash_count += 1
    columns.flags |= int(row["flags"])
    columns.count += 1


def locate_properties(data: bytes, old_parser: bool = False) -> dict[bytes, tuple[int, int]]:
    """`message_verdict.parse_properties` over the undecoded bytes: name -> (where its value begins, its length).

    The separators are single bytes in UTF-8 whatever is around them, so both parsers find the same parts.
    """
    found: dict[bytes, tuple[int, int]] = {}
    at = 0
    while at < len(data):
        end = data.find(layout.PROPERTY_END, at)
        end = len(data) if end < 0 else end
        split = data.find(layout.PROPERTY_NAME_END, at, end)
        if old_parser:
            parts = split_dropping_tail(data[at:end].decode("latin-1"), "\x01")
            if len(parts) == 2:
                found[data[at:split]] = (split + 1, len(parts[1]))
        elif at < split < end - 1:
            found[data[at:split]] = (split + 1, end - split - 1)
        at = end + 1
    return found


def host_number(host: bytes) -> int:
    """Return one number for an address with its port: all of IPv4's bytes, of IPv6's a mixture."""
    words = [int.from_bytes(host[at : at + 8], "big", signed=True) for at in range(0, len(host) & ~7, 8)]
    value = words[0] if words else 0
    if len(host) == 20:
        value = int64(int64(value * 31 + words[1]) * 31 + int.from_bytes(host[16:], "big", signed=True))
    return value


def _flags(message: Message, data: bytes, frames: Frames, check: RecordCheck) -> int:
    properties = message.properties
    text = properties.get(layout.PROPERTY_CRC_NAME)
    flags = 0
    for flag, holds in (
        (HAS_TAGS, "TAGS" in properties),
        (HAS_UNIQ, "UNIQ_KEY" in properties),
        (HAS_KEYS, "KEYS" in properties),
        (
            HAS_MULTI_DISPATCH,
            not is_blank(properties.get("INNER_MULTI_DISPATCH", ""))
            and not is_blank(properties.get("INNER_MULTI_QUEUE_OFFSET", "")),
        ),
        (HAS_INNER, check.rules.inner_batch and "INNER_NUM" in properties and "INNER_BASE" in properties),
        (INNER_ALONE, "INNER_NUM" in properties and "INNER_BASE" not in properties),
        (MALFORMED_PROPERTIES, bool(data) and bool(properties_fault(data))),
        (HAS_PROPERTY_CRC, text is not None and appended_crc(frames, message, text)),
        (SCHEDULE, message.topic == layout.SCHEDULE_TOPIC and "DELAY" in properties),
    ):
        if holds:
            flags |= flag
    head = frames.read(message.body_position, message.body_position + min(max(message.body_length, 0), HEAD_BYTES))
    lengths = message.body_length, message.properties_length
    inner = "INNER_NUM" in properties
    if header_faults(message.sys_flag, *lengths, message.body_crc, head, inner, message.ports):
        flags |= ODD_HEADER
    return flags


def puts_tag_key(rows: np.ndarray, tag_index: bool) -> np.ndarray:
    """Say for each row whether its tags are a key. tag_index: whether the release puts tags."""
    kinds = rows["sys_flag"] & layout.SYS_TRANSACTION_MASK
    found: np.ndarray = (rows["flags"] & HAS_TAGS != 0) & (kinds != layout.SYS_ROLLBACK) & tag_index
    return found


def entry_counts(rows: np.ndarray, tag_index: bool) -> np.ndarray:
    """Return for each row how many entries it puts."""
    counts: np.ndarray = rows["key_count"] + puts_tag_key(rows, tag_index)
    return counts


def entries_in_order(rows: np.ndarray, tag_index: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (row number, index in `Columns.key_hash`) of each index entry, in the order of dispatch."""
    counts = entry_counts(rows, tag_index)
    of = np.repeat(np.arange(len(rows)), counts)
    within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return of, rows["key_start"][of] + within
