"""A record's bytes, field by field: name, place, and the value in people's terms, up to the end of the bytes.

Source: MessageExtEncoder, MessageDecoder.decode, MessageSysFlag (formats.md 2). Unlike a check this also reads what
follows a wrong field.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import lz4.frame
import zstandard

from schemas.layouts import commitlog_layout as layout
from store_io.base.java.java_compat import decode_utf8, string_hash
from store_io.base.times import iso_time
from store_io.broker.header_faults import KNOWN_FLAGS
from store_io.broker.message_verdict import VALID, Frames, Message, Verdict, property_crc_value, tags_code_of
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_decode import fixed_fields, host_text
from store_io.messages.redaction import HASH, HIDDEN, NONE, OPEN_PROPERTIES, Redaction

SHOWN_BYTES = 256  # of a body's or a property's bytes
TEXT_CHARACTERS = 400
UNPACKED_BYTES = 64 << 10  # of a compressed body
MAX_PROPERTIES = 500


def concealed(redaction: Redaction, name: str, data: bytes) -> str | None:
    """Return the text to show in a value's place; None: the value may be shown.

    name: "BODY", "BORNHOST", or a property's.
    """
    if redaction.mode == NONE or name in OPEN_PROPERTIES:
        return None
    if name == "BODY":
        return (redaction.data(data) or HIDDEN.encode()).decode()
    return redaction.text(host_text(data) if name == "BORNHOST" else decode_utf8(data))


@dataclass(frozen=True)
class Field:
    """One field of a record.

    at: bytes from the record's first.
    size: as the record says; data: at most SHOWN_BYTES of them, empty if concealed.
    wrong: why a check blames this field, or "".
    """

    name: str
    at: int
    size: int
    data: bytes
    value: str
    wrong: str = ""


@dataclass(frozen=True)
class DerivedValue:
    """A value that a broker derives from the record."""

    name: str
    value: str


_BLAME = {
    "size_beyond_file": "TOTALSIZE",
    "negative_size": "TOTALSIZE",
    "size_mismatch": "TOTALSIZE",
    "no_room": "TOTALSIZE",
    "magic": "MAGICCODE",
    "unwritten": "MAGICCODE",
    "body_crc": "BODYCRC",
    "topic_length": "TOPICLENGTH",
    "phy_offset": "PHYSICALOFFSET",
    "delay": "property DELAY",
    "dup_info": "property DUP_INFO",
    "property_crc": "property " + layout.PROPERTY_CRC_NAME,
    "property_crc_missing": "PROPERTIESLENGTH",
    "inner_batch": "property INNER_NUM",
}

_COMPRESSIONS = {0: "zlib", 1: "LZ4", 2: "ZSTD", 3: "zlib"}
_TRANSACTIONS = {0: "none", layout.SYS_PREPARED: "prepared", layout.SYS_COMMIT: "commit", layout.SYS_ROLLBACK: "rollback"}


def annotate(frames: Frames, position: int, limit: int, phy_offset: int, verdict: Verdict, redaction: Redaction) -> list[Field]:
    """Return the fields of a frame, in order: those that lie in the segment.

    position: the frame's, in a segment of `limit` bytes.
    verdict: its complaint is shown at the field to blame.
    redaction: decides which values may be shown.
    """
    fields: list[Field] = []
    open_texts = redaction.mode == NONE or boundaries_hold(verdict)
    try:
        for found in _Frame(frames, position, limit, redaction).fields(phy_offset):
            if open_texts or found.name != "TOPIC" and not found.name.startswith("property"):
                fields.append(found)
            else:
                name = found.name.partition(" ")[0]
                fields.append(Field(name, found.at, found.size, b"", HIDDEN, found.wrong and "damaged"))
    except _End as end:
        fields.append(
            Field(end.name, end.at, 0, b"", "", f"needs {end.size} bytes, {max(0, limit - position - end.at)} are left")
        )
    return _blamed(fields, verdict)


def boundaries_hold(verdict: Verdict) -> bool:
    """Say whether the fields of a refused record lie at their stated places. Else a topic may hold a piece of a body."""
    return verdict.kind == VALID or verdict.computed_size > 0 and verdict.reason != "size_mismatch"


class _End(Exception):
    """A field leads out of the segment, or its length makes no sense."""

    def __init__(self, name: str, at: int, size: int):
        super().__init__(name)
        self.name, self.at, self.size = name, at, size


def _blamed(fields: list[Field], verdict: Verdict) -> list[Field]:
    if not verdict.reason or verdict.reason == "filler":
        return fields
    name = _BLAME.get(verdict.reason)
    text = f"expected {verdict.expected}, found {verdict.actual}" if verdict.expected else "a check fails here"
    return [replace(f, wrong=text) if f.name == name and not f.wrong else f for f in fields]


_MAGICS = {
    layout.MAGIC_V1: "a message, V1",
    layout.MAGIC_V2: "a message, V2 (since 5.1.0)",
    layout.MAGIC_BLANK: "the end-of-segment filler",
}
_NUMBERS: Mapping[str, Callable[[int], str]] = {
    "TOTALSIZE": lambda value: f"{value} bytes",
    "MAGICCODE": lambda value: f"0x{value & 0xFFFFFFFF:08x}, {_MAGICS.get(value, 'none that is known')}",
    "BODYCRC": lambda value: f"0x{value & 0xFFFFFFFF:08x}",
    "FLAG": lambda value: f"{value}, the producer's own",
    "SYSFLAG": lambda value: sys_flag_text(value),
    "BORNTIMESTAMP": lambda value: _time(value),
    "STORETIMESTAMP": lambda value: _time(value),
    "BODYLENGTH": lambda value: f"{value} bytes",
    "TOPICLENGTH": lambda value: f"{value} bytes",
    "PROPERTIESLENGTH": lambda value: f"{value} bytes",
}


class _Frame:
    """The frame at `position` of a segment of `limit` bytes, read field by field.

    Raises _End if a field leads out of the segment.
    """

    def __init__(self, frames: Frames, position: int, limit: int, redaction: Redaction):
        self.frames, self.position, self.limit, self.redaction = frames, position, limit, redaction

    def read(self, at: int, size: int) -> bytes:
        return self.frames.read(self.position + at, self.position + at + size)

    def take(self, name: str, at: int, size: int) -> bytes:
        """Return the field's first bytes."""
        if size < 0 or self.position + at + size > self.limit:
            raise _End(name, at, size)
        return self.read(at, min(size, SHOWN_BYTES))

    def number(self, name: str, at: int, size: int) -> tuple[Field, int]:
        data = self.take(name, at, size)
        value = int.from_bytes(data, "big", signed=True)
        return Field(name, at, size, data, _NUMBERS.get(name, str)(value)), value

    def fields(self, phy_offset: int) -> Iterator[Field]:
        values: dict[str, int] = {}
        flag = int.from_bytes(self.read(layout.SYS_FLAG_POSITION, 4), "big", signed=True)
        at = 0
        for name, at, size in fixed_fields(flag):
            found, values[name] = self.number(name, at, size)
            if name == "PHYSICALOFFSET":
                same = "its own position" if values[name] == phy_offset else f"its position is {phy_offset}"
                found = replace(found, value=f"{found.value}, {same}")
            elif name in ("BORNHOST", "STOREHOST"):
                hidden = concealed(self.redaction, name, found.data) if name == "BORNHOST" else None
                found = replace(found, data=b"" if hidden else found.data, value=hidden or host_text(found.data))
            yield found
            if values.get("MAGICCODE") == layout.MAGIC_BLANK:
                return
        at += size
        length = values["BODYLENGTH"]
        if length > 0:
            self.take("BODY", at, length)
            yield self._body(at, length, flag, values["BODYCRC"])
            at += length
        width = 1 if values["MAGICCODE"] == layout.MAGIC_V1 else 2
        found, length = self.number("TOPICLENGTH", at, width)
        yield found
        at += width
        data = self.take("TOPIC", at, length)
        yield Field("TOPIC", at, length, data, decode_utf8(self.read(at, length)))
        at += length
        found, length = self.number("PROPERTIESLENGTH", at, 2)
        yield found
        if length > 0:
            self.take("PROPERTIES", at + 2, length)
            yield from _properties(self.read(at + 2, length), at + 2, self.redaction)

    def _body(self, at: int, length: int, flag: int, stored: int) -> Field:
        start = self.position + at
        crc = self.frames.crc32(start, start + length) & 0x7FFFFFFF
        about = f"its checksum, 0x{crc:08x}, {'fits' if crc == stored else 'differs from'} BODYCRC"
        if self.redaction.mode != NONE:
            whole = self.read(at, length) if self.redaction.mode == HASH else b""
            return Field("BODY", at, length, b"", f"{concealed(self.redaction, 'BODY', whole)}; {about}")
        shown = data = self.read(at, min(length, UNPACKED_BYTES))
        what = ""
        if flag & layout.SYS_COMPRESSED:
            kind = (flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT
            unpacked = unpack_prefix(data, kind)
            if unpacked is None:
                what = f"; compressed with {_COMPRESSIONS.get(kind, f'type {kind}')}, which does not unpack"
            else:
                shown, what = unpacked, f"; unpacked with {_COMPRESSIONS[kind]}"
        text = _text(shown)
        value = f"{text}{what}; {about}" if text else f"{about.removeprefix('its ')}{what}"
        return Field("BODY", at, length, data[:SHOWN_BYTES], value)


def unpack_prefix(data: bytes, kind: int, most: int = 4 * TEXT_CHARACTERS) -> bytes | None:
    """Unpack the first bytes of a compressed body to at most `most` bytes; None if they do not unpack.

    kind: the compression type of SYSFLAG. Source: CompressionType, ZlibCompressor, Lz4Compressor, ZstdCompressor.
    """
    try:
        if kind in (0, 3):
            return zlib.decompressobj().decompress(data, most)
        if kind == 1:
            return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, most))
        if kind == 2:
            with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
                return bytes(reader.read(most))
    except Exception:  # three libraries, each with errors of its own, all of which mean the same here
        return None
    return None


def _text(data: bytes) -> str:
    """Return the bytes as a quoted text if they are one, else ""."""
    try:
        text = data[: 4 * TEXT_CHARACTERS].decode("utf-8")
    except UnicodeDecodeError as why:
        if why.start < len(data[: 4 * TEXT_CHARACTERS]) - 3:  # not just a character that the bound cut
            return ""
        text = data[: why.start].decode("utf-8")
    if not text or sum(not c.isprintable() and c not in "\r\n\t" for c in text) * 10 > len(text):
        return ""
    cut = len(text) > TEXT_CHARACTERS or len(data) > 4 * TEXT_CHARACTERS
    return '"' + text[:TEXT_CHARACTERS] + ("…" if cut else "") + '"'


def _properties(data: bytes, at: int, redaction: Redaction) -> Iterator[Field]:
    """Yield one field for each name 0x01 value 0x02, separators included."""
    start, count = 0, 0
    while start < len(data):
        end = data.find(layout.PROPERTY_END, start)
        end = len(data) if end < 0 else end + 1
        if count == MAX_PROPERTIES:
            end = len(data)
        item = data[start:end]
        count += 1
        name, split, value = item.partition(layout.PROPERTY_NAME_END)
        label = decode_utf8(name) if split else ""
        body = value.removesuffix(layout.PROPERTY_END)
        # The last of too many is the rest of the properties, whose names were not looked at.
        hidden = concealed(redaction, label if count <= MAX_PROPERTIES else "", body)
        if hidden is not None:
            closing = "\x02" if value.endswith(layout.PROPERTY_END) else ""
            yield Field(f"property {label}", at + start, len(item), b"", f"{label}\x01{hidden}{closing}")
        else:
            text = decode_utf8(item[: 4 * TEXT_CHARACTERS])
            wrong = "" if split and name else "no name and separator"
            more = "…" if len(item) > 4 * TEXT_CHARACTERS else ""
            if label == layout.PROPERTY_CRC_NAME and len(body) == 10:
                more += f"  0x{property_crc_value(decode_utf8(body)) & 0xFFFFFFFF:08x}"
            yield Field(f"property {label}".strip(), at + start, len(item), item[:SHOWN_BYTES], text + more, wrong)
        start = end


def sys_flag_text(flag: int) -> str:
    """Return SYSFLAG in words."""
    kind = (flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT
    unknown = flag & ~KNOWN_FLAGS & 0xFFFFFFFF
    words = (
        (flag & layout.SYS_COMPRESSED, f"body compressed ({_COMPRESSIONS.get(kind, f'unknown type {kind}')})"),
        (flag & layout.SYS_MULTI_TAGS, "multi tags"),
        (True, f"transaction {_TRANSACTIONS[flag & layout.SYS_TRANSACTION_MASK]}"),
        (True, f"born host IPv{6 if flag & layout.SYS_BORN_HOST_V6 else 4}"),
        (True, f"store host IPv{6 if flag & layout.SYS_STORE_HOST_V6 else 4}"),
        (flag & layout.SYS_NEED_UNWRAP, "to be unwrapped"),
        (flag & layout.SYS_INNER_BATCH, "inner batch"),
        (unknown, f"unknown bits 0x{unknown:x}"),
    )
    return f"0x{flag & 0xFFFFFFFF:x}: {', '.join(text for there, text in words if there)}"


def _time(milliseconds: int) -> str:
    text = iso_time(milliseconds)
    return f"{milliseconds} ms" + (f", {text[:10]} {text[11:-1]} UTC" if text else ", no date")


def offset_msg_id(store_host: bytes, phy_offset: int) -> str:
    """Return MessageDecoder.createMessageId: the store host and the physical offset, in hexadecimal."""
    return (store_host + phy_offset.to_bytes(8, "big", signed=True)).hex().upper()


def derived(message: Message, phy_offset: int, rules: BrokerRules, redaction: Redaction) -> list[DerivedValue]:
    """Return the values that a broker derives from a message: ids, tags code, its kind.

    All fields of the message could be read.
    """
    properties = message.properties
    parts = [DerivedValue("offset message id", offset_msg_id(message.store_host, message.phy_offset))]
    code = tags_code_of(message.topic, properties, message.store_time, rules.delays)
    tags = properties.get("TAGS")
    if code is None:
        parts.append(DerivedValue("tags code", "none: DELAY is no number"))
    elif message.topic == layout.SCHEDULE_TOPIC and "DELAY" in properties and code != (string_hash(tags) if tags else 0):
        parts.append(DerivedValue("tags code", f"{code}: to be delivered at {_time(code)}"))
    else:
        shown = tags and (concealed(redaction, "TAGS", tags.encode("utf-8", "surrogatepass")) or f'"{tags}"')
        parts.append(DerivedValue("tags code", f"{code}" + (f": the hash of {shown}" if shown else ": no tags")))
    if "REAL_TOPIC" in properties:
        parts.append(DerivedValue("real queue", f"{properties['REAL_TOPIC']}, queue {properties.get('REAL_QID', '?')}"))
    if message.batch_count != 1 or "INNER_NUM" in properties:
        parts.append(DerivedValue("inner batch", f"{message.batch_count} messages, queue offsets from {message.batch_base} on"))
    if not message.in_queue:
        parts.append(DerivedValue("dispatch", "gets no ConsumeQueue entry: a prepared or rollback record"))
    return parts
