"""A second framing, made up: eight bytes before each record. The whole scan walks it, by either decoder."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, MappedFile, SegmentSummary
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.log.records import framing
from store_io.log.records.framing import HeaderPart
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.messages.explain.explain_place import INSIDE, RECORD, explain
from store_io.messages.message_filter import Contents
from store_io.messages.message_search import message_at, search
from store_io.messages.open_store import first_store_time, open_store
from store_io.messages.scans import MessageScan
from store_io.model.audit_request import AuditRequest
from store_io.model.log_map import DAMAGED, MESSAGE
from store_io.replicas.replica_compare import OtherCopy, ReplicaTask, compare_segment
from store_io.source.byte_source import StoreLocation
from tests.store_io.log.scan.test_segment_scan import MemorySource
from tests.support.stores.builders import Message, StoreBuilder, encode

BASE, SIZE, PATH = 8192, 4096, "commitlog/00000000000000008192"
MARK, FILLER = b"FRAM", b"LAST"
RELEASE = "5.3.3"


@dataclass(frozen=True)
class Marked:
    """MARK and the record's size before each record; a filler's magic comes before its size."""

    header_bytes: int = 8
    filler_magic: bytes = FILLER
    filler_magic_position: int = 0
    broker_reads_header: bool = True

    def frames(self, path: str) -> bool:
        return path.startswith("commitlog") or not path

    def accepts(self, headers: np.ndarray, sizes: np.ndarray, phy_offsets: np.ndarray) -> np.ndarray:
        marked: np.ndarray = (headers[:, :4] == np.frombuffer(MARK, np.uint8)).all(1)
        return marked & (headers[:, 4:].copy().view(">i4")[:, 0] == sizes)

    def fault(self, header: bytes, size: int, phy_offset: int) -> tuple[str, str]:
        return f"{MARK!r}, {size}", repr(header)

    def parts(self, header: bytes, size: int, phy_offset: int) -> list[HeaderPart]:
        return []


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


CONF = f"mappedFileSizeCommitLog={SIZE}\nenableDLegerCommitLog=true\n"


def store(root: Path, data: bytes) -> StoreLocation:
    (root / "commitlog").mkdir(parents=True)
    (root / PATH).write_bytes(data)
    return StoreLocation(str(root))


def test_messages_are_read_and_looked_up_by_their_own_offsets(rules: BrokerRules, tmp_path: Path) -> None:
    location = store(tmp_path, segment())
    opened = open_store(location, RELEASE, CONF)
    (file,) = opened.segments()
    scan = MessageScan(location, file.path, file.start, file.size, ("phy_offset", "keys"), rules=opened.rules)
    found = [row for batch in search(scan, Contents()) for row in batch.to_pylist()]
    assert found == [{"phy_offset": BASE + at + 8, "keys": f"k{number}"} for number, (at, _) in enumerate(frames())]
    third = BASE + frames()[2][0] + 8
    assert (message := message_at(opened.source(), rules, file, third)) is not None and message.properties["KEYS"] == "k2"
    assert message_at(opened.source(), rules, file, third - 8) is None and message_at(opened.source(), rules, file, BASE) is None
    assert first_store_time(opened.source(), rules, file) == 1_700_000_000_000


def test_a_message_is_explained_at_its_own_offset_and_in_its_header(tmp_path: Path) -> None:
    request = AuditRequest("store", store(tmp_path, segment()), RELEASE, CONF)
    at = BASE + frames()[2][0] + 8
    own, inside = explain(request, at), explain(request, at - 4)
    assert (own.kind, own.record_start, own.record_size) == (RECORD, at, len(frames()[2][1]) - 8)
    assert all(check.passes for check in own.checks)
    assert own.before is not None and own.before.phy_offset == BASE + frames()[1][0] + 8
    assert (inside.kind, inside.record_start) == (INSIDE, at) and "header before" in inside.sentence


def test_copies_are_compared_with_their_headers(rules: BrokerRules, tmp_path: Path) -> None:
    data = segment()
    start, frame = frames()[2]
    mine = store(tmp_path / "a", bytes(data))
    data[start + 1] ^= 0x55
    theirs = store(tmp_path / "b", bytes(data))
    end = sum(len(frame) for _, frame in frames())
    kinds = np.array([MESSAGE, DAMAGED, MESSAGE], np.int64)
    starts = np.array([BASE, BASE + start, BASE + start + len(frame)], np.int64)
    other = OtherCopy(1, theirs, False, (MappedFile(PATH, BASE, SIZE),), starts, kinds, BASE, BASE + end)
    part = compare_segment(ReplicaTask(0, 0, PATH, BASE, SIZE, mine, ((0, end),), rules, (other,)))
    (piece,) = part.pieces
    assert (piece.start, piece.end, piece.messages) == (BASE + start, BASE + start + len(frame), 1)
    assert piece.differences[1].field == "FRAMEHEADER"
