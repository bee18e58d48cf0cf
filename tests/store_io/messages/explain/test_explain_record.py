"""A record's bytes as fields: every one in its place, the wrong one named, and an end where the segment ends."""

from __future__ import annotations

from store_io.broker.message_verdict import BufferFrames
from store_io.log.records.message_columns import RecordCheck
from store_io.messages.explain.explain_record import annotate, sys_flag_text, unpack_prefix
from store_io.messages.redaction import Redaction
from tests.support.stores.builders import COMPRESSED, Store, compress

OPEN = Redaction("none", b"")


def test_fields_follow_each_other_and_fill_the_record(small: Store) -> None:
    record = small.records[0]
    data = small.segment_of(record).read_bytes()
    frames = BufferFrames(data)
    verdict = RecordCheck.audit(0).verdict(frames, 0, len(data))
    fields = annotate(frames, 0, len(data), 0, verdict, OPEN)
    assert [f.at for f in fields] == [0, *(f.at + f.size for f in fields[:-1])]
    assert fields[-1].at + fields[-1].size == record.size and not any(f.wrong for f in fields)
    values = {f.name: f.value for f in fields}
    assert values["TOPIC"] == "TopicA" and values["BODY"].startswith('"body 0"') and "fits BODYCRC" in values["BODY"]
    assert values["PHYSICALOFFSET"] == "0, its own position"


def test_a_damaged_body_is_blamed_and_a_cut_record_ends_at_the_cut(small: Store) -> None:
    data = bytearray(small.segment_of(small.records[0]).read_bytes())
    data[90] ^= 1
    frames = BufferFrames(bytes(data))
    verdict = RecordCheck.audit(0).verdict(frames, 0, len(data))
    blamed = [f.name for f in annotate(frames, 0, len(data), 0, verdict, OPEN) if f.wrong]
    assert blamed == ["BODYCRC"]
    cut = annotate(frames, 0, 60, 0, verdict, OPEN)[-1]
    assert (cut.name, cut.at, cut.size) == ("STORETIMESTAMP", 56, 0) and "4 are left" in cut.wrong


def test_flags_in_words_and_the_beginning_of_a_compressed_body() -> None:
    assert sys_flag_text(0) == "0x0: transaction none, born host IPv4, store host IPv4"
    assert sys_flag_text(0x2000 | 0x10) == "0x2010: transaction none, born host IPv6, store host IPv4, unknown bits 0x2000"
    for kind in ("zlib", "lz4", "zstd"):
        number = (COMPRESSED[kind] & 0x700) >> 8
        assert unpack_prefix(compress(b"a text " * 900, kind)[:200], number, 7) == b"a text "
    assert unpack_prefix(b"no such thing", 1) is None and unpack_prefix(b"x", 7) is None
