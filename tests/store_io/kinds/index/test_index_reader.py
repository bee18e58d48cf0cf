"""Index files: a sound one gives nothing, and damage is placed on the field that is wrong."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import NOTE, Finding, IndexFileSummary
from store_io.kinds.index import index_reader
from store_io.kinds.index.index_chains import ChainsOnTheWay
from store_io.kinds.index.index_reader import IndexTask, scan_index_file, without_header_echoes
from store_io.log.entries.index_entries import entry_position, read_header
from store_io.source.byte_source import StoreLocation, open_source
from store_io.wording.gaps import gap_text

NAME = "index/20260101000000000"
SLOTS, MOST = 10, 40


@dataclass
class Writer:
    """IndexFile.putKey over bytes in memory (formats.md 6)."""

    slots: int = SLOTS
    most: int = MOST
    old: bool = False  # 4.7.0 and before count every entry as a slot

    def __post_init__(self) -> None:
        self.data = bytearray(40 + 4 * self.slots + 20 * self.most)
        self.header = [0, 0, 0, 0, 0, 1]

    def put(self, key_hash: int, phy: int, time: int) -> None:
        begin_time, count = self.header[0], self.header[5]
        at = 40 + 4 * (key_hash % self.slots)
        (previous,) = struct.unpack_from(">i", self.data, at)
        seconds = 0 if begin_time <= 0 else max(0, (time - begin_time) // 1000)
        struct.pack_into(">iqii", self.data, entry_position(self.slots, count), key_hash, phy, seconds, previous)
        struct.pack_into(">i", self.data, at, count)
        if count <= 1:
            self.header[0], self.header[2] = time, phy
        self.header[4] += 1 if self.old or previous == 0 else 0
        self.header[5] += 1
        self.header[1], self.header[3] = time, phy
        struct.pack_into(">qqqqii", self.data, 0, *self.header)

    def fill(self, keys: int, seed: int = 1) -> Writer:
        """Messages of one to three keys, half a second apart."""
        rng = random.Random(seed)
        phy, time = 395, 1_795_209_662_000
        left = keys
        while left:
            n = min(left, rng.randint(1, 3))
            for _ in range(n):
                self.put(rng.randrange(1 << 31), phy, time)
            left -= n
            phy, time = phy + rng.randint(200, 400), time + rng.randint(0, 1000)
        return self


Scan = Callable[..., IndexFileSummary]


def index_task(root: Path, slots: int = SLOTS, most: int = MOST, **more: Any) -> IndexTask:
    """The task of the file below `root`."""
    return IndexTask(0, StoreLocation(str(root)), slots, most, NAME, (root / NAME).stat().st_size, **more)


def damaged_file(root: Path, keys: int, damages: list[tuple[int, bytes]]) -> Path:
    """Write a file with so many keys and these changes below `root`; gives `root`."""
    data = bytearray(Writer().fill(keys).data)
    for at, junk in damages:
        data[at : at + len(junk)] = junk
    (root / "index").mkdir()
    (root / NAME).write_bytes(data[:880])
    return root


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    (tmp_path / "index").mkdir()

    def run(data: bytes, slots: int = SLOTS, most: int = MOST, **more: Any) -> IndexFileSummary:
        (tmp_path / NAME).write_bytes(data)
        return scan_index_file(index_task(tmp_path, slots, most, **more))

    return run


def places(found: IndexFileSummary) -> list[tuple[str, int | None, int | None, int]]:
    return [(f.code, f.start, f.end, f.count) for f in found.findings]


@pytest.mark.parametrize("keys", [0, 1, 2, 17, MOST - 1])
def test_a_sound_file_gives_nothing(scan: Scan, keys: int) -> None:
    writer = Writer().fill(keys)
    found = scan(bytes(writer.data), newest=not keys)
    assert not found.findings and not found.problem and found.entries == keys
    assert found.index_count == (keys + 1 if keys else 0)
    assert found.bytes_read >= len(writer.data) and found.digest


def test_a_new_file_behind_a_full_one_holds_its_times_and_no_entry(scan: Scan) -> None:
    data = bytearray(Writer().data)
    struct.pack_into(">qqqqii", data, 0, 5, 5, 900, 900, 0, 0)
    found = scan(bytes(data), newest=True, unclean=True)
    assert not found.findings and (found.entries, found.end_phy_offset) == (0, 900)


END_BEFORE = (1_795_209_662_000, 900)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize(
    ("times_and_offsets", "more", "told"),
    [
        ((0, 0, 0, 0), {"newest": True}, ""),  # the first file of a store, before the first key
        ((0, 0, 0, 0), {}, "index_header_wrong"),
        ((0, 0, 0, 0), {"newest": True, "previous_end": END_BEFORE}, "index_header_wrong"),
        ((0, 0, 0, 0), {"newest": True, "unclean": True, "previous_end": END_BEFORE}, "index_part_flushed"),
        ((END_BEFORE[0], END_BEFORE[0], 900, 900), {"newest": True, "previous_end": END_BEFORE}, ""),
        ((END_BEFORE[0], END_BEFORE[0], 900, 900), {}, ""),  # named by a clock that was set back
        ((5, 5, 7, 7), {"newest": True, "previous_end": END_BEFORE}, "index_header_wrong"),
        ((5, 9, 7, 8), {"newest": True}, "index_header_wrong"),
        ((5, 9, 7, 8), {}, "index_header_wrong"),
    ],
)
def test_a_file_without_entries_is_a_new_one_or_has_lost_them(
    scan: Scan, times_and_offsets: tuple[int, ...], more: dict[str, Any], told: str, count: int
) -> None:
    data = bytearray(Writer().data)
    struct.pack_into(">qqqqii", data, 0, *times_and_offsets, 0, count)
    assert places(scan(bytes(data), **more)) == ([(told, 0, 40, 1)] if told else [])


def test_reads_a_header(scan: Scan, tmp_path: Path) -> None:
    writer = Writer().fill(9)
    scan(bytes(writer.data))
    source = open_source(StoreLocation(str(tmp_path)))
    header = read_header(source, NAME)
    assert [header.begin_timestamp, header.end_timestamp, header.begin_phy_offset, header.end_phy_offset] == writer.header[:4]
    assert [header.hash_slot_count, header.index_count] == writer.header[4:]


def test_every_flipped_byte_is_placed_where_it_is(scan: Scan) -> None:
    sound = bytes(Writer().fill(25, seed=3).data)
    silent = set()
    # Header against first or last entry: the header is blamed unless the entry beside contradicts it.
    ends = [range(start + 4, start + 16) for start in (entry_position(SLOTS, 1), entry_position(SLOTS, 25))]
    for at in range(len(sound)):
        mask = 1 << at * 5 % 8
        data = bytearray(sound)
        data[at] ^= mask
        found = scan(bytes(data))
        if not found.findings:
            silent.add(at)
            continue
        assert len(found.findings) == 1, (at, mask, found.findings)
        (finding,) = found.findings
        assert finding.start is not None and finding.end is not None and finding.expected != finding.actual
        if any(at in end for end in ends):
            assert finding.end <= 40
            continue
        assert finding.start <= at < finding.end and finding.end - finding.start <= 20, (at, mask, finding)
    # What only the messages can tell: an entry's offset and time, and less than a second of the header's times. A flip of a
    # hash's last bits may stay in the same slot.
    table = entry_position(SLOTS, 0)
    for at in silent:
        inside = at >= table + 20 and (at - table) % 20 < 16
        assert inside or at < 16, at


def test_a_header_is_cleared_where_the_messages_show_that_the_entry_is_wrong(scan: Scan) -> None:
    data = bytearray(Writer().fill(25, seed=3).data)
    data[entry_position(SLOTS, 1) + 10] ^= 1
    found = scan(bytes(data))
    assert places(found) == [("index_header_wrong", 16, 24, 1)]
    at = entry_position(SLOTS, 1)
    witness = Finding("index_entry_dangling", NAME, at + 4, at + 12)
    assert without_header_echoes([*found.findings, witness], found, SLOTS) == [witness]
    elsewhere = Finding("index_entry_dangling", NAME, at + 24, at + 32)
    assert without_header_echoes([*found.findings, elsewhere], found, SLOTS) == [*found.findings, elsewhere]


def test_a_wrong_begin_time_is_told_once_whatever_each_segment_says_of_it(scan: Scan) -> None:
    data = bytearray(Writer().fill(25, seed=3).data)
    data[2] ^= 1
    found = scan(bytes(data))
    assert places(found) == [("index_header_wrong", 0, 16, 1)]
    told, guessed = (Finding("index_header_wrong", NAME, 0, 8, phy_offset=phy) for phy in (395, None))
    at = entry_position(SLOTS, 25)
    late = Finding("index_entry_wrong", NAME, at + 12, at + 16, only_time=True)
    assert without_header_echoes([*found.findings, guessed, late, told], found, SLOTS) == [told]
    assert without_header_echoes([*found.findings, late, guessed], found, SLOTS) == [guessed]
    assert without_header_echoes([late], found, SLOTS) == [late]


def test_zeros_over_entries_fold_into_ranges(scan: Scan) -> None:
    data = bytearray(Writer().fill(30).data)
    start, end = entry_position(SLOTS, 10), entry_position(SLOTS, 16)
    data[start:end] = bytes(end - start)
    found = scan(bytes(data))
    assert {f.code for f in found.findings} == {"index_entry_wrong", "index_chain_broken"}
    assert all(f.start is not None and f.end is not None and start <= f.start < f.end <= end for f in found.findings)
    assert any(f.count > 1 for f in found.findings)


def test_a_torn_header_and_entries_beyond_the_count_are_told(scan: Scan) -> None:
    writer = Writer().fill(20)
    data = bytearray(writer.data)
    struct.pack_into(">i", data, 36, 12)
    assert places(scan(bytes(data))) == [("index_header_wrong", 36, 40, 1)]
    data = bytearray(writer.data)
    struct.pack_into(">i", data, entry_position(SLOTS, 23), 77)
    struct.pack_into(">i", data, entry_position(SLOTS, 25), 77)
    assert places(scan(bytes(data))) == [("index_entries_beyond_count", entry_position(SLOTS, 23), entry_position(SLOTS, 26), 3)]


def test_old_brokers_count_every_entry_as_a_slot(scan: Scan) -> None:
    found = scan(bytes(Writer(old=True).fill(30).data))
    assert [(f.code, f.weight, f.start) for f in found.findings] == [("index_slot_overcount", NOTE, 32)]


def test_pages_of_an_earlier_moment_are_one_note_in_the_newest_file_after_a_crash(scan: Scan) -> None:
    older, newer = Writer().fill(12, seed=5), Writer().fill(25, seed=5)
    torn = bytearray(newer.data)
    torn[:60] = older.data[:60]  # header and some slots
    torn[entry_position(SLOTS, 22) :] = older.data[entry_position(SLOTS, 22) :]
    found = scan(bytes(torn), newest=True, unclean=True)
    assert [(f.code, f.weight) for f in found.findings] == [("index_part_flushed", NOTE)]
    for more in ({"newest": True}, {"unclean": True}, {}):
        assert NOTE not in {f.weight for f in scan(bytes(torn), **more).findings}
    damaged = bytearray(newer.data)
    damaged[40] ^= 0x40  # no earlier moment has such a number in a slot
    assert places(scan(bytes(damaged), newest=True, unclean=True)) == [("index_slot_wrong", 40, 44, 1)]


def test_another_number_of_slots_is_said_once(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_reader, "MAX_FINDINGS", 20)
    data = bytes(Writer(100, 200).fill(150).data)
    assert len(data) == 40 + 4 * 95 + 20 * 201
    found = scan(data, 95, 201)
    assert "setting_mismatch" in {f.code for f in found.findings} and len(found.findings) < 5


def test_a_bounded_number_of_findings_is_kept(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_reader, "MAX_FINDINGS", 5)
    data = bytearray(Writer().fill(39).data)
    rng = random.Random(4)
    for number in range(1, 40):
        struct.pack_into(">i", data, entry_position(SLOTS, number), rng.randrange(1 << 31))
    found = scan(bytes(data))
    kept = Counter(f.code for f in found.findings)
    assert max(kept.values()) == 5 and sum(f.more for f in found.findings)


@pytest.mark.parametrize("zeros", [0, 9, 10, 11, 100])
@pytest.mark.parametrize("links", [1, 9, 10, 11, 100])
def test_no_number_of_unflushed_slots_hides_a_broken_link(
    scan: Scan, zeros: int, links: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reader, "MAX_FINDINGS", 10)
    monkeypatch.setattr(index_reader, "FAULTS_TOGETHER", 16)
    monkeypatch.setattr(index_reader, "REPLAY_BYTES", 90)
    writer = Writer(500, 3000).fill(1500)
    data = bytearray(writer.data)
    used = [slot for slot in range(500) if data[40 + 4 * slot : 44 + 4 * slot] != bytes(4)]
    for slot in used[:zeros]:
        data[40 + 4 * slot : 44 + 4 * slot] = bytes(4)
    linked = [n for n in range(1, 1501) if any(data[entry_position(500, n) + 16 : entry_position(500, n) + 20])]
    for number in linked[: 2 * links : 2]:
        data[entry_position(500, number) + 16] = 0x7F
    found = scan(bytes(data), 500, 3000, newest=True, unclean=True).findings
    told = {code: sum(f.count + f.more for f in found if f.code == code) for code in {f.code for f in found}}
    assert told == {"index_chain_broken": links} | ({"index_part_flushed": zeros} if zeros else {})
    assert sum(f.code == "index_chain_broken" for f in found) == min(links, 10)


def test_a_file_of_another_length_is_not_looked_into(scan: Scan, tmp_path: Path) -> None:
    found = scan(bytes(Writer().fill(9).data)[:-100])
    assert not found.findings and found.index_count == 10 and found.entries == 9 and found.digest
    assert scan(b"\0" * 10).index_count == 0
    task = IndexTask(0, StoreLocation(str(tmp_path)), SLOTS, MOST, NAME, 11)
    assert "listed" in gap_text(scan_index_file(task).problem)
    assert scan_index_file(replace(task, path="index/none")).problem


def test_a_huge_hole_is_not_read(scan: Scan, tmp_path: Path) -> None:
    scan(bytes(Writer().fill(9).data))
    size = 4 << 40
    with open(tmp_path / NAME, "r+b") as file:
        file.truncate(size)
    found = scan_index_file(IndexTask(0, StoreLocation(str(tmp_path)), SLOTS, MOST, NAME, size))
    assert found.digest and found.bytes_read < 1 << 24


def test_more_slots_than_memory_is_a_problem_of_the_file(scan: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan(bytes(Writer().fill(9).data))

    def none(slots: int, count: int) -> None:
        raise MemoryError

    monkeypatch.setattr(index_reader, "ChainsOnTheWay", none)
    found = scan_index_file(index_task(tmp_path))
    assert f"not enough memory for its {SLOTS:,} slots (maxHashSlotNum)" in gap_text(found.problem)


def test_zeros_count_as_a_hole_does(scan: Scan, tmp_path: Path) -> None:
    """S3 has no holes: what is found must not depend on where the copy lies."""
    data = bytearray(Writer(1000, 200_000).fill(50).data)
    struct.pack_into(">i", data, 36, 60)
    dense = scan(bytes(data), 1000, 200_000, newest=True)
    with open(tmp_path / NAME, "r+b") as file:
        file.truncate(8192)
        file.truncate(len(data))
    sparse = scan_index_file(index_task(tmp_path, 1000, 200_000, newest=True))
    assert places(dense) == places(sparse) == [("index_header_wrong", 36, 40, 1)]
    assert dense.findings[0].expected == "index count 51"


def test_chains_are_followed_across_windows(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_reader, "WINDOW_BYTES", 90)
    monkeypatch.setattr(index_reader, "REPLAY_BYTES", 90)
    data = bytearray(Writer().fill(37).data)
    assert not scan(bytes(data)).findings
    at = entry_position(SLOTS, 30) + 19
    data[at] ^= 1
    assert places(scan(bytes(data))) == [("index_chain_broken", at - 3, at + 1, 1)]


def test_a_sound_file_is_read_once(scan: Scan) -> None:
    writer = Writer().fill(37)
    assert scan(bytes(writer.data)).bytes_read == len(writer.data)


@settings(deadline=None, max_examples=120)
@given(
    st.integers(0, 39),
    st.lists(st.tuples(st.integers(0, 879), st.binary(min_size=1, max_size=4)), max_size=3),
    st.integers(20, 300),
)
def test_following_chains_forwards_accepts_what_following_them_back_does(
    tmp_path_factory: pytest.TempPathFactory, keys: int, damages: list[tuple[int, bytes]], window: int
) -> None:
    task = index_task(damaged_file(tmp_path_factory.mktemp("store"), keys, damages), newest=True)
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(index_reader, "WINDOW_BYTES", window)
        changes.setattr(index_reader, "REPLAY_BYTES", window)
        forwards = scan_index_file(task)
        changes.setattr(ChainsOnTheWay, "used", lambda self, count: None)
        back = scan_index_file(task)
    assert forwards.bytes_read <= back.bytes_read
    assert replace(forwards, bytes_read=0) == replace(back, bytes_read=0)


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 39), st.lists(st.tuples(st.integers(0, 879), st.binary(min_size=1, max_size=30)), max_size=5), st.booleans()
)
def test_no_bytes_raise(
    tmp_path_factory: pytest.TempPathFactory, keys: int, damages: list[tuple[int, bytes]], unclean: bool
) -> None:
    root = damaged_file(tmp_path_factory.mktemp("store"), keys, damages)
    found = scan_index_file(index_task(root, newest=True, unclean=unclean))
    assert not found.problem
    assert all(f.start is not None and f.end is not None and 0 <= f.start < f.end <= 880 for f in found.findings)
