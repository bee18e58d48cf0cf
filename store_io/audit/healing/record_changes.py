"""Finds the single change that makes a damaged record whole. It changes a field that the rest contradicts, or a byte to which
a checksum leads.

Nothing is tried blindly. A field has one value, or a few, that fit the rest of the record; a wrong byte under a checksum is
computed (`base.crc.crc_errors`). Each change is then put in, and the audit's own check has to accept the record.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from schemas.layouts import commitlog_layout as layout
from store_io.audit.healing.changes import Candidate, Change, Place
from store_io.base.compiled.native import kept
from store_io.base.crc import checksum
from store_io.base.crc.crc_errors import CRC_BITS, ByteError, byte_errors
from store_io.broker.header_faults import HEAD_BYTES, header_faults
from store_io.broker.message_verdict import VALID, BufferFrames, Message, appended_crc, properties_fault, property_crc_value
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.message_decode import fixed_fields
from store_io.source.segment_window import SegmentWindow

MOST_RECORD_BYTES = 16 << 20  # of a record that is searched; brokers write 4 MiB at most, by default
SPARE_BYTES = 2  # a properties length of 0 at the log's end looks unwritten
MOST_APART_MS = 400 * 86_400_000  # born time and store time
_INFLATED = 1 << 20
MOST_INFLATED = 64 << 20  # of one body, to see whether it unpacks
_PROPERTY_NAMES = frozenset(
    "KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID"
    " TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY MAX_RECONSUME_TIMES CONSUME_START_TIME"
    " TRANSACTION_PREPARED_QUEUE_OFFSET TRANSACTION_CHECK_TIMES CHECK_IMMUNITY_TIME_IN_SECONDS INSTANCE_ID CORRELATION_ID"
    " REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE POP_CK FIRST_POP_TIME BORN_HOST BORN_TIMESTAMP"
    " __SHARDINGKEY __CRC32# INNER_NUM INNER_BASE INNER_MULTI_DISPATCH INNER_MULTI_QUEUE_OFFSET DUP_INFO"
    " TIMER_DELIVER_MS TIMER_DELAY_SEC TIMER_DELAY_MS TIMER_OUT_MS __transactionId__ LMQ_OFFSET EXTEND_UNIQ_INFO".split()
)
ENTRY_BITS, ORDER_BITS = 32, 16  # that an entry or neighbours add where they speak of the field that changes
UNPACKED_BITS = 16  # that a compressed body adds which unpacks
NAME_BITS = 16  # that properties add which begin with a name that clients write, and end as properties do
LENGTH_BITS = 16  # that the sum of a record's lengths adds where it ends the record, and did not before
_BY_ENTRY = frozenset(("TOTALSIZE", "MAGICCODE", "PHYSICALOFFSET", "QUEUEOFFSET", "TOPICLENGTH"))
_BY_ORDER = frozenset(("MAGICCODE", "PHYSICALOFFSET", "TOPICLENGTH"))  # a queue offset is given by the neighbours
_LENGTHS = ("TOTALSIZE", "BODYLENGTH", "TOPICLENGTH", "PROPERTIESLENGTH", "SYSFLAG", "MAGICCODE")
MOST_LENGTHS = 64  # of a body, that lead to the record's end


@kept()
def _body_lengths(data, wide, found):  # type: ignore[no-untyped-def]
    """Fill `found` with the body lengths after which the topic's length and that of the properties end the data exactly.

    data: from the body on.
    wide: bytes of the topic's length.

    Returns how many there are.
    """
    count, size = 0, len(data)
    for length in range(size - wide - 1):
        topic = np.int64(data[length])
        if wide == 2:
            topic = topic << 8 | data[length + 1]
        behind = length + wide + topic
        if (wide == 2 or topic < 128) and behind + 2 <= size:
            if behind + 2 + (np.int64(data[behind]) << 8 | data[behind + 1]) == size:
                if count < len(found):
                    found[count] = length
                count += 1
    return count


def unlikely(message: Message) -> bool:
    """Say whether a field that no checksum covers has a value that brokers hardly write."""
    m = message
    return (
        bool(m.born_time)
        and abs(m.store_time - m.born_time) > MOST_APART_MS
        or not 0 <= m.reconsume_times < 1 << 16
        or not 0 <= m.prepared_offset <= m.phy_offset
        or bool(m.prepared_offset)
        and m.in_queue
        and not m.sys_flag & layout.SYS_TRANSACTION_MASK
        or not 0 <= m.queue_id < 1 << 16
    )


def _unpacked(candidate: Candidate) -> Candidate:
    """Return the candidate whose body unpacks, by which the body is right."""
    agrees = "the compressed body unpacks, and its own checksum fits"
    return replace(candidate, bits=candidate.bits + UNPACKED_BITS, agrees=(agrees,))


class RecordChanges:
    """The changes for one record.

    check: the audit's.
    window: of its segment.
    """

    def __init__(self, check: RecordCheck, window: SegmentWindow, place: Place):
        self.check, self.place = check, place
        self.header = check.framing.header_bytes
        self.record = place.start + self.header
        self.limit = window.size
        end = min(place.end + (SPARE_BYTES if place.zeros_follow else 0), place.start + MOST_RECORD_BYTES, self.limit)
        self.data = bytearray(window.read(place.start, end))
        self.frames = BufferFrames(self.data, place.start)
        self.before = check.verdict(self.frames, place.start, self.limit)

    def run(self) -> list[Candidate]:
        """Return every single change after which the record is whole; the same change by two ways is one."""
        if len(self.data) < self.header + layout.MIN_SIZE_V1_BYTES:
            return []
        found: dict[tuple[int, bytes], Candidate] = {}
        for candidate in self._all():
            change = candidate.change
            key = (change.position, change.new)
            if key not in found or candidate.risk < found[key].risk:
                found[key] = candidate
        return list(found.values())

    def _all(self) -> Iterator[Candidate]:
        yield from self._headers()
        yield from self._fixed()
        yield from self._body_length()
        yield from self._tail_lengths()
        yield from self._body_crc()
        yield from self._record_crc()

    # ---- the bytes ---------------------------------------------------------------------------------------------------

    def _number(self, at: int, size: int, signed: bool = True) -> int:
        """Return a number that lies in the record.

        at: bytes from the record's first.
        """
        return int.from_bytes(self.data[self.header + at : self.header + at + size], "big", signed=signed)

    @property
    def _totals(self) -> tuple[int, ...]:
        """Return sizes that the record can have, without its header: as stored, and as the place is long."""
        sizes = (self._number(0, 4), self.place.end - self.record)
        return tuple(s for s in dict.fromkeys(sizes) if layout.MIN_SIZE_V1_BYTES <= s <= len(self.data) - self.header)

    @property
    def _topic_length_bytes(self) -> int:
        return 1 if self._number(layout.MAGIC_POSITION, 4) == layout.MAGIC_V1 else 2

    @property
    def _body_at(self) -> int:
        """Return bytes from the record's first to its body, by its flags."""
        flag = self._number(layout.SYS_FLAG_POSITION, 4)
        hosts = bool(flag & layout.SYS_BORN_HOST_V6) + bool(flag & layout.SYS_STORE_HOST_V6)
        return layout.BODY_POSITION + hosts * layout.IPV6_EXTRA_BYTES

    def _patched(
        self, change: Change, patterns: int, bits: int, proven: bool = False, solved: bool = False
    ) -> Iterator[Candidate]:
        """Yield the candidate, if the audit accepts the record with the change and something valid begins at its end.

        solved: the change was computed from the record's own checksum, which adds nothing then.
        """
        if change.new == change.old:
            return
        at = change.position - self.place.start
        self.data[at : at + len(change.old)] = change.new
        try:
            verdict = self.check.verdict(self.frames, self.place.start, self.limit)
            if verdict.kind != VALID or verdict.message is None or not self._ends_well(change, self.place.start + verdict.size):
                return
            text = verdict.message.properties.get(layout.PROPERTY_CRC_NAME)
            whole = text is not None and appended_crc(self.frames, verdict.message, text)  # by the record's own checksum
            if whole and not solved and change.position >= self.record:  # it does not cover a header before the record
                proven, bits = True, bits + CRC_BITS
            if not whole and (solved or self._doubtful(change, verdict.message)):
                return
            yield Candidate(
                change.narrowed,
                self.place.start,
                verdict.size,
                patterns,
                bits,
                proven,
                whole,
                ENTRY_BITS if change.field in _BY_ENTRY and not proven else 0,
                ORDER_BITS if change.field in _BY_ORDER and not proven else 0,
                message=verdict.message,
            )
        finally:
            self.data[at : at + len(change.old)] = change.old

    def _ends_well(self, change: Change, end: int) -> bool:
        """Say whether the record may end there. A length that was changed proves nothing by itself."""
        place = self.place
        if end == place.end or place.zeros_follow and place.end <= end <= place.end + SPARE_BYTES:
            return True
        return change.field not in _LENGTHS and end < place.end

    def _doubtful(self, change: Change, message: Message) -> bool:
        """Say whether what no checksum covers shows that more than this field is damaged."""
        m, low = message, change.narrowed.position
        start, head = m.properties_position, self.frames.read(m.body_position, m.body_position + HEAD_BYTES)
        properties = self.frames.read(start, start + max(0, m.properties_length))
        inner = "INNER_NUM" in m.properties
        lengths, head = (m.body_length, m.properties_length), head[: max(0, m.body_length)]
        odd = header_faults(m.sys_flag, *lengths, m.body_crc, head, inner, m.ports)
        if odd or properties_fault(properties) or unlikely(m):
            return True
        if change.field == "SYSFLAG":
            return True  # nothing proves its other flags
        if change.field == "QUEUEOFFSET" and low == m.position + layout.QUEUE_OFFSET_POSITION and m.flag:
            return True  # nothing says what the producer's flag before it was
        first = properties.partition(layout.PROPERTY_NAME_END)[0].decode("utf-8", "replace")
        return change.field == "PROPERTIESLENGTH" and bool(properties) and first not in _PROPERTY_NAMES

    def _change(self, field: str, at: int, size: int, value: int) -> Change:
        """Return the change that puts this value into a field of the record."""
        low = self.header + at
        new = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")
        return Change(field, self.record + at, bytes(self.data[low : low + size]), new)

    # ---- fields that the rest contradicts ------------------------------------------------------------------------------

    # Each has the bits of the checks that its value makes true and that did not give the value (heal.md 3).

    def _headers(self) -> Iterator[Candidate]:
        """Yield the change of a field of the header before the record, if that field alone is wrong."""
        if not self.header or self.before.reason != "frame_header":
            return
        size, phy = self._number(0, 4), self._number(layout.PHY_OFFSET_POSITION, 8)
        wrong = [p for p in self.check.framing.parts(bytes(self.data[: self.header]), size, phy) if not p.right]
        wanted = wrong[0].wanted if len(wrong) == 1 else None
        if wanted is not None and wanted.lstrip("-").isdigit():
            part = wrong[0]
            value = int(wanted) & ((1 << 8 * len(part.data)) - 1)
            change = Change(f"header {part.name}", self.place.start + part.at, part.data, value.to_bytes(len(part.data), "big"))
            yield from self._patched(change, 1, LENGTH_BITS)

    def _fixed(self) -> Iterator[Candidate]:
        lengths = dict.fromkeys((self.place.end - self.record, self.before.computed_size))
        sizes = [length for length in lengths if length >= layout.MIN_SIZE_V1_BYTES]
        for size in sizes:
            yield from self._patched(self._change("TOTALSIZE", 0, 4, size), len(sizes), LENGTH_BITS)
        for magic in (layout.MAGIC_V1, layout.MAGIC_V2):
            yield from self._patched(self._change("MAGICCODE", layout.MAGIC_POSITION, 4, magic), 2, LENGTH_BITS)
        own = self._change("PHYSICALOFFSET", layout.PHY_OFFSET_POSITION, 8, self.check.base_offset + self.record)
        yield from self._patched(own, 1, 0)  # whole as it is, it may be an old record in the wrong place
        flag = self._number(layout.SYS_FLAG_POSITION, 4)
        for bit in (layout.SYS_BORN_HOST_V6, layout.SYS_STORE_HOST_V6):
            yield from self._patched(self._change("SYSFLAG", layout.SYS_FLAG_POSITION, 4, flag ^ bit), 2, LENGTH_BITS)

    def queue_offset(self, wanted: int) -> list[Candidate]:
        """Return the change of a valid message's queue offset to the one that its queue leaves for it."""
        return list(self._patched(self._change("QUEUEOFFSET", layout.QUEUE_OFFSET_POSITION, 8, wanted), 1, ORDER_BITS))

    def _body_length(self) -> Iterator[Candidate]:
        """Yield lengths of the body after which a topic's and the properties' lengths lead exactly to the record's end."""
        body, at = self._body_at, self._body_at - 4
        wide = self._topic_length_bytes
        for total in self._totals:
            found = np.zeros(MOST_LENGTHS, np.int64)
            data = np.frombuffer(bytes(self.data[self.header + body : self.header + total]), np.uint8)
            count = int(_body_lengths(data, wide, found))
            for length in found[: min(count, MOST_LENGTHS)].tolist():
                summed = CRC_BITS if length or not self._number(layout.BODY_CRC_POSITION, 4) else 0  # 0 is that of an empty body
                change = self._change("BODYLENGTH", at, 4, length)
                yield from self._patched(change, max(1, len(data)), LENGTH_BITS + summed)

    def _tail_lengths(self) -> Iterator[Candidate]:
        """Yield changes of the topic's length and the properties' length, if the body's length is right."""
        body_length = max(0, self._number(self._body_at - 4, 4))
        wide = self._topic_length_bytes
        at = self._body_at + body_length
        for total in self._totals:
            if at + wide + 2 > total:
                continue
            tried = range(1, min(128 if wide == 1 else 1 << 15, total - at - wide - 1))
            for topic in tried:
                place = at + wide + topic
                if place + 2 + self._number(place, 2) == total:
                    yield from self._patched(self._change("TOPICLENGTH", at, wide, topic), max(127, len(tried)), LENGTH_BITS)
            place = at + wide + self._number(at, wide, signed=False)
            if place + 2 <= total <= place + 2 + 0x7FFF:
                length = total - place - 2  # the sum gives it; properties that then are whole, from the first name on, show it
                yield from self._patched(self._change("PROPERTIESLENGTH", place, 2, length), 1, NAME_BITS if length else 0)

    # ---- bytes that a checksum leads to --------------------------------------------------------------------------------

    def _body_crc(self) -> Iterator[Candidate]:
        """Yield one wrong byte of the body, or of the field, for a body whose checksum differs."""
        at, length = self._body_at, self._number(self._body_at - 4, 4)
        stored = self._number(layout.BODY_CRC_POSITION, 4, signed=False)
        low = self.header + at
        if not 0 < length <= len(self.data) - low:
            return
        actual = checksum.crc32(memoryview(self.data)[low : low + length]) & 0x7FFFFFFF
        difference = stored ^ actual
        if not difference:
            return
        if stored < 1 << 31:
            for error in byte_errors(stored, actual, length):
                yield from self._byte("BODY", at, error, length, body=True)
        if sum(bool(difference >> shift & 0xFF) for shift in (0, 8, 16, 24)) == 1:
            one_bit = difference & (difference - 1) == 0
            change = self._change("BODYCRC", layout.BODY_CRC_POSITION, 4, actual)
            # Of so many damages each place is as likely as another: a damaged body is length / 4 times as likely as the field.
            packed = self._unpacks(self.record + at, length)
            if packed is False:
                return
            for candidate in self._patched(change, (8 if one_bit else 255) * max(4, length), CRC_BITS):
                yield candidate if packed is None else _unpacked(candidate)

    def _byte(self, field: str, start: int, error: ByteError, length: int, body: bool) -> Iterator[Candidate]:
        """Yield the change of one wrong byte of a text in the record.

        start: the begin of the text.
        length: the number of bytes in which the wrong one could have been.
        """
        at = start + error.at
        change = self._change(field, at, 1, self.data[self.header + at] ^ error.mask)
        patterns = (8 if error.one_bit else 255) * length
        unpacked_before = body and self._unpacks(self.record + start, length)
        for candidate in self._patched(change, patterns, CRC_BITS, proven=True, solved=not body):
            unpacks = self._unpacks(self.record + start, length) if body else None  # as it is now, with the change
            if unpacks is None or unpacks and unpacked_before:
                yield candidate
            elif unpacks:
                yield _unpacked(candidate)

    def _unpacks(self, position: int, length: int) -> bool | None:
        """Say whether a body compressed by zlib unpacks to its own checksum. None for another body, and for one that becomes too
        large.

        position: the body's, in the segment.
        """
        flag = self._number(layout.SYS_FLAG_POSITION, 4)
        kind = (flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT
        if not flag & layout.SYS_COMPRESSED or kind not in (0, 3):
            return None
        unpacker, size = zlib.decompressobj(), 0
        try:
            rest = bytes(self.frames.read(position, position + length))
            while rest and not unpacker.eof:
                size += len(unpacker.decompress(rest, _INFLATED))
                rest = unpacker.unconsumed_tail
                if size > MOST_INFLATED:
                    return None
        except zlib.error:
            return False
        return unpacker.eof

    def _tail_of(self, total: int) -> tuple[int, int] | None:
        """Return (place of its value, the stored number) of a property CRC at a record's end, or None.

        total: the size of the record.
        """
        end = self.header + total
        tail = bytes(self.data[end - layout.PROPERTY_CRC_BYTES : end]) if end <= len(self.data) else b""
        name = layout.PROPERTY_CRC_NAME.encode() + layout.PROPERTY_NAME_END
        if not tail.startswith(name) or not tail.endswith(layout.PROPERTY_END):
            return None
        text = tail[len(name) : -1]
        if not all(48 <= byte < 58 for byte in text):
            return None
        return total - len(text) - 1, property_crc_value(text.decode("ascii"))

    def _record_crc(self) -> Iterator[Candidate]:
        """Yield one wrong byte of the record, or one digit of the property, if the record's own checksum differs."""
        for total in self._totals:
            tail = self._tail_of(total)
            if tail is None or tail[1] < 0:
                continue
            at, stored = tail
            covered = total - layout.PROPERTY_CRC_BYTES
            actual = checksum.crc32(memoryview(self.data)[self.header : self.header + covered]) & 0x7FFFFFFF
            if stored == actual:
                continue
            body = max(0, self._number(self._body_at - 4, 4))
            body_fits = self.before.reason == "property_crc"  # by its own checksum: then the error is not in it
            outside = covered - body if body_fits and body < covered else covered
            for error in byte_errors(stored, actual, covered):
                if not (body_fits and self._body_at <= error.at < self._body_at + body):
                    yield from self._byte(self._field_at(error.at), 0, error, outside, body=False)
            yield from self._digit(at, actual, outside)

    def _digit(self, at: int, actual: int, covered: int) -> Iterator[Candidate]:
        """Yield one digit of the checksum. covered: bytes that may be damaged instead, each as likely as a digit."""
        digits = str(actual)[::-1].ljust(10, "0").encode()
        low = self.header + at
        old = bytes(self.data[low : low + len(digits)])
        if sum(a != b for a, b in zip(old, digits, strict=True)) == 1:
            change = Change("property " + layout.PROPERTY_CRC_NAME, self.record + at, old, digits)
            yield from self._patched(change, 9 * max(len(digits), covered), CRC_BITS, proven=True, solved=True)

    def _field_at(self, at: int) -> str:
        """Return the name of the field that holds this byte of the record, or a wider name."""
        for name, start, size in fixed_fields(self._number(layout.SYS_FLAG_POSITION, 4)):
            if start <= at < start + size:
                return name
        message = self.before.message
        if message is None:
            return "record"
        place = at + self.record
        if message.body_position <= place < message.body_position + max(0, message.body_length):
            return "BODY"
        if message.topic_position <= place < message.topic_position + message.topic_length:
            return "TOPIC"
        return "PROPERTIES" if place >= message.properties_position else "TOPICLENGTH or PROPERTIESLENGTH"
