"""A second framing, made up: eight bytes before each record. The whole scan walks it, by either decoder."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pytest

from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, SegmentSummary
from store_io.formats.commitlog import framing
from store_io.formats.commitlog.framing import PLAIN, filler_size, framing_of
from store_io.formats.commitlog.message_columns import RecordCheck
from store_io.rules.message_verdict import BAD, END, VALID, BufferFrames
from store_io.rules.releases import BrokerRules, Setting, broker_rules
from store_io.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import StoreLocation
from tests.store_io.scan.test_segment_scan import MemorySource
from tests.support.builders import Message, StoreBuilder, encode

BASE, SIZE, PATH = 8192, 4096, "commitlog/00000000000000008192"
MARK, FILLER = b"FRAM", b"LAST"
RELEASE = "5.3.3"


@dataclass(frozen=True)
class Marked:
    """MARK and the record's size before each record; a filler's magic comes before its size."""

    header_bytes: int = 8
    filler_magic: bytes = FILLER
    filler_magic_position: int = 0

    def accepts(self, headers: np.ndarray, sizes: np.ndarray, phy_offsets: np.ndarray) -> np.ndarray:
        marked: np.ndarray = (headers[:, :4] == np.frombuffer(MARK, np.uint8)).all(1)
        return marked & (headers[:, 4:].copy().view(">i4")[:, 0] == sizes)


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(framing.FRAMINGS, "enableDLegerCommitLog", Marked())


@pytest.fixture
def rules() -> BrokerRules:
    return broker_rules(RELEASE, {"enableDLegerCommitLog": Setting(True, "broker.conf")})


def frames() -> list[tuple[int, bytes]]:
    """(position, frame) of six messages that follow one another."""
    builder, at, found = StoreBuilder(RELEASE, first_offset=BASE), 0, []
    for number in range(6):
        body = b"x" * 40 + bytes([number])
        data = encode(builder.put(Message(body=body, keys=f"k{number}", tags="t", phy_offset=BASE + at + 8)))
        found.append((at, MARK + struct.pack(">i", len(data)) + data))
        at += 8 + len(data)
    return found


def segment() -> bytearray:
    """The six frames and a filler."""
    data = b"".join(frame for _, frame in frames())
    return bytearray((data + FILLER + struct.pack(">i", SIZE - len(data))).ljust(SIZE, b"\0"))


def scan(data: bytes, rules: BrokerRules, decoder: str) -> SegmentSummary:
    task = SegmentTask(0, PATH, BASE, SIZE, StoreLocation("memory"), rules, log_end=BASE + SIZE, decoder=decoder)
    return scan_segment(task, MemorySource({PATH: bytes(data)}))  # type: ignore[arg-type]


def tiles(summary: SegmentSummary) -> list[tuple[str, int, int, int]]:
    return [(e.kind, e.start, e.end, e.message_count) for e in summary.extents]


BOTH = pytest.mark.parametrize("decoder", ["fast", "reference"])


@BOTH
def test_all_frames_are_walked_and_runs_name_the_records(rules: BrokerRules, decoder: str) -> None:
    summary = scan(segment(), rules, decoder)
    end = sum(len(frame) for _, frame in frames())
    assert tiles(summary) == [(EXTENT_MESSAGE, 0, end, 6), (EXTENT_FILLER, end, SIZE, 0)] and not summary.findings
    assert (summary.broker.kind, summary.broker.position) == ("end", end)
    assert summary.first.phy_offset == BASE + 8 and summary.first.check_ok
    (run,) = summary.runs
    last = frames()[-1][0]
    assert (run["records"], run["first_phy_offset"], run["last_phy_offset"]) == (6, BASE + 8, BASE + last + 8)


@BOTH
@pytest.mark.parametrize("byte", [1, 5, 12, 120], ids=["mark", "size in the header", "magic", "body"])
def test_damage_ends_with_its_frame_and_the_next_is_found(rules: BrokerRules, decoder: str, byte: int) -> None:
    data = segment()
    start, frame = frames()[2]
    data[start + byte] ^= 0x55
    after = start + len(frame)
    summary = scan(data, rules, decoder)
    kinds = [(kind, low, high) for kind, low, high, _ in tiles(summary)]
    assert kinds[:3] == [(EXTENT_MESSAGE, 0, start), (EXTENT_DAMAGED, start, after), (EXTENT_MESSAGE, after, kinds[2][2])]
    assert kinds[-1][0] == EXTENT_FILLER and sum(messages for *_, messages in tiles(summary)) == 5
    assert (summary.broker.kind, summary.broker.position) == ("bad", start)


def test_a_verdict_counts_the_header(rules: BrokerRules) -> None:
    data = segment()
    check, (start, frame) = RecordCheck.audit_of(BASE, rules), frames()[1]
    given = BufferFrames(data)
    assert (check.verdict(given, start, SIZE).kind, check.verdict(given, start, SIZE).size) == (VALID, len(frame))
    end = sum(len(frame) for _, frame in frames())
    assert check.verdict(given, end, SIZE).kind == END
    data[start] ^= 1
    assert check.verdict(given, start, SIZE).kind == BAD


def test_plain_is_what_all_other_stores_have() -> None:
    assert framing_of(broker_rules()) is PLAIN and PLAIN.header_bytes == 0
    assert filler_size(PLAIN, bytes.fromhex("00001000cbd43194")) == 4096 and filler_size(PLAIN, bytes(8)) is None
    assert filler_size(Marked(), FILLER + b"\0\0\0\x09") == 9
