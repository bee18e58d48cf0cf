"""Keys of messages against index entries: equal, wrong, absent, surplus, beyond the end; and which entries are a segment's."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import NOTE, REBUILDABLE, Finding, SegmentSummary
from store_io.kinds.index import index_merge
from store_io.kinds.index.index_merge import IndexMerge, first_entry_from
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.answers.segment_tasks import index_refs, rules_of, scan_store
from tests.support.stores import strategies
from tests.support.stores.builders import ROLLBACK, Message, Sizes, Store, StoreBuilder

SLOTS = 20
ONE_FILE = Sizes(segment=1 << 16, slots=SLOTS, index_max=1000)


def store(root: Path, messages: list[Message], sizes: Sizes = ONE_FILE, release: str = "5.3.3", **more: Any) -> Store:
    builder = StoreBuilder(release, sizes, start_time=1_700_000_000_123, **more)
    for number, message in enumerate(messages):
        builder.clock += 400 * (number % 3)
        builder.put(message)
    return builder.write(root)


def scan(made: Store, release: str = "", **more: Any) -> list[SegmentSummary]:
    return scan_store(made.root, made.broker_conf, release or made.release, probe=False, **more)


def said(summaries: list[SegmentSummary]) -> list[Finding]:
    return [f for s in summaries for f in s.findings if f.code.startswith("index_")]


def ranges(summaries: list[SegmentSummary]) -> list[tuple[str, int | None, int | None, int]]:
    return [(f.code, f.start, f.end, f.count) for f in said(summaries)]


def index_file(made: Store, number: int = 0) -> Path:
    return sorted((made.root / "index").iterdir())[number]


def edit(path: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def place(number: int, field: int = 0) -> int:
    """Where entry `number` stands in its file."""
    return 40 + 4 * SLOTS + 20 * number + field


# Message i puts entries 2 * i + 1 (its UNIQ_KEY) and 2 * i + 2 (one key, of which there are only three).
THIRTY = [Message(body=b"b" * 9, uniq=f"U{i}", keys=f"k{i % 3}", tags="t") for i in range(30)]


@given(strategies.store_builders(), st.integers(0, 5), st.integers(100, 3000))
@settings(max_examples=40, deadline=None)
def test_any_healthy_index_has_no_finding(
    tmp_path_factory: pytest.TempPathFactory, builder: StoreBuilder, undispatched: int, window: int
) -> None:
    builder.records = [replace(r, topic=r.topic[:200]) if len(r.topic) > 255 else r for r in builder.records]
    if any(len(r.topic) == 200 for r in builder.records):
        return
    made = builder.write(tmp_path_factory.mktemp("store"), undispatched=undispatched)
    summaries = scan(made, window_bytes=window)
    assert said(summaries) == []
    pages = made.expected.pages
    dispatched = builder.records[: max(0, len(builder.records) - undispatched)]
    keyed = [r for r in dispatched if made.expected.index_keys(r)]
    assert sum(s.index_entries_seen for s in summaries) == sum(len(made.expected.index_keys(r)) for r in dispatched)
    if keyed and len(keyed) < len([r for r in builder.records if made.expected.index_keys(r)]) and pages:
        plain = [k for r in builder.records[len(dispatched) :] for k in made.expected.index_keys(r) if "#T#" not in k]
        assert sum(s.index_unindexed[3] for s in summaries) == len(plain)


@pytest.mark.parametrize(("at", "low", "high"), [(0, 0, 4), (3, 0, 4), (4, 4, 12), (11, 4, 12), (12, 12, 16), (15, 12, 16)])
@pytest.mark.parametrize("number", [1, 31, 60])
def test_one_flipped_bit_is_one_wrong_field(tmp_path: Path, at: int, low: int, high: int, number: int) -> None:
    made = store(tmp_path, THIRTY)
    edit(index_file(made), lambda d: d.__setitem__(place(number, at), d[place(number, at)] ^ 0x40))
    if number == 1 and at >= 12:
        return  # the first entry of a first file counts from a time that nothing tells
    assert ranges(scan(made)) == [("index_entry_wrong", place(number, low), place(number, high), 1)]
    for window in (100, 1000):
        assert ranges(scan(made, window_bytes=window)) == [("index_entry_wrong", place(number, low), place(number, high), 1)]


def test_a_zero_page_is_as_many_wrong_entries(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY)
    edit(index_file(made), lambda d: d.__setitem__(slice(place(11), place(16)), bytes(100)))
    found = ranges(scan(made))
    assert {f[0] for f in found} == {"index_entry_wrong"}
    assert [f[1] // 20 * 20 for f in found if f[1]] == [place(n) // 20 * 20 for n in range(11, 16)]


def test_entries_left_out(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY)
    path = index_file(made)
    for first, end in ((21, 23), (30, 31)):
        edit(path, lambda d, f=first, e=end: d.__setitem__(slice(None), d[: place(f)] + d[place(e) :] + bytes(20 * (e - f))))
        edit(
            path,
            lambda d, f=first, e=end: d.__setitem__(slice(36, 40), struct.pack(">i", struct.unpack(">i", d[36:40])[0] - e + f)),
        )
    tenth, sixteenth = made.records[10], made.records[15]  # entry 30 is then 32: the second key of the 16th message
    summaries = scan(made)
    assert ranges(summaries) == [
        ("index_entry_missing", tenth.at, tenth.at + tenth.size, 2),
        ("index_entry_missing", sixteenth.at, sixteenth.at + sixteenth.size, 1),
    ]
    assert {f.file for f in said(summaries)} == {f"commitlog/{0:020d}"}


def test_a_long_stretch_left_out_is_one_finding(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY * 8)
    path = index_file(made)
    edit(path, lambda d: d.__setitem__(slice(None), d[: place(41)] + d[place(441) :] + bytes(20 * 400)))
    edit(path, lambda d: d.__setitem__(slice(36, 40), struct.pack(">i", 81)))
    for window in (200, 3000, 1 << 20):
        first, last = made.records[20], made.records[219]
        assert ranges(scan(made, window_bytes=window)) == [("index_entry_missing", first.at, last.at + last.size, 400)]


def test_entries_that_lead_nowhere(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY)
    end = made.records[-1].at + made.records[-1].size
    extra = [(5, made.records[3].at + 1), (6, made.records[3].at + 1), (7, end + 8), (8, 1 << 40)]
    data = b"".join(struct.pack(">iqii", h, p, 0, 0) for h, p in extra)
    edit(index_file(made), lambda d: d.__setitem__(slice(place(61), place(65)), data))
    edit(index_file(made), lambda d: d.__setitem__(slice(36, 40), struct.pack(">i", 65)))
    assert ranges(scan(made)) == [
        ("index_entry_dangling", place(61), place(63), 2),
        ("index_entry_beyond_end", place(63), place(65), 2),
    ]


@pytest.mark.parametrize(("first", "end", "severity"), [(19, 21, ""), (59, 61, ""), (19, 25, REBUILDABLE)])
def test_entries_put_twice(tmp_path: Path, first: int, end: int, severity: str) -> None:
    """A restart puts one message's keys again; those of several messages are no restart's."""
    made = store(tmp_path, THIRTY)
    path = index_file(made)
    edit(path, lambda d: d.__setitem__(slice(None), (d[: place(end)] + d[place(first) :])[: len(d)]))
    edit(path, lambda d: d.__setitem__(slice(36, 40), struct.pack(">i", 61 + end - first)))
    (finding,) = said(scan(made))
    assert (finding.code, finding.start, finding.end, finding.count) == (
        "index_entry_duplicate",
        place(end),
        place(2 * end - first),
        end - first,
    )
    assert finding.severity == severity


def test_a_wrong_begin_time_is_one_finding(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY)
    edit(index_file(made), lambda d: d.__setitem__(slice(0, 8), struct.pack(">q", 1_600_000_000_000)))
    for window in (200, 1 << 20):
        assert ranges(scan(made, window_bytes=window)) == [("index_header_wrong", 0, 8, 1)]


@pytest.mark.parametrize("late", [-5000, 700, 3000])
def test_whose_fault_a_begin_time_is_does_not_depend_on_what_is_decoded_together(tmp_path: Path, late: int) -> None:
    """The message of a file's begin time may be the last one of those that are decoded together."""
    messages = [Message(body=bytes(30), uniq=f"U{i}") for i in range(60)]
    made = store(tmp_path, messages, Sizes(segment=1 << 16, slots=SLOTS, index_max=8))
    for number in range(8):
        edit(index_file(made, number), lambda d: struct.pack_into(">q", d, 0, struct.unpack_from(">q", d)[0] + late))
    for window in (100, 300, 1000, 1 << 20):
        assert ranges(scan(made, window_bytes=window)) == [("index_header_wrong", 0, 8, 1)] * 8


@pytest.mark.parametrize("lost", [False, True])
def test_a_wrong_begin_time_is_the_headers_fault_in_every_segment(tmp_path: Path, lost: bool) -> None:
    """Whether or not the message that it is the time of lies in the segment, or in the copy."""
    made = store(tmp_path, THIRTY, Sizes(segment=1024, slots=SLOTS, index_max=1000))
    edit(index_file(made), lambda d: d.__setitem__(2, d[2] ^ 1))
    if lost:
        edit(made.root / "commitlog" / f"{0:020d}", lambda d: d.__setitem__(4, d[4] ^ 1))
    summaries = scan(made)
    assert len(summaries) > 2
    found = [r for s in summaries for r in ranges([s]) if r[0] != "index_entry_dangling"]
    assert found == [("index_header_wrong", 0, 8, 1)] * len(summaries)


def test_a_few_wrong_time_differences_are_their_entries_fault(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY)
    for number in range(5, 10):
        edit(index_file(made), lambda d, n=number: d.__setitem__(place(n, 14), 9))
    assert ranges(scan(made)) == [("index_entry_wrong", place(5), place(10), 5)]


def test_what_no_file_covers_is_counted_only(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", ONE_FILE)
    for message in THIRTY:
        builder.put(message)
    made = builder.write(tmp_path, undispatched=7, clean=False)
    (summary, spare) = scan(made)
    assert said([summary, spare]) == []
    left = made.records[-7:]
    assert summary.index_unindexed == (left[0].at, left[-1].at, 7, 14)


def test_tag_keys_are_optional_whatever_the_release(tmp_path: Path) -> None:
    old = store(tmp_path / "old", THIRTY, release="5.3.3")
    new = store(tmp_path / "new", THIRTY, release="5.4.0")
    for made in (old, new):
        for release in ("5.3.3", "5.4.0"):
            assert said(scan(made, release)) == []
    # The upgrade came in the middle of the file, and a restart put the last message before it again, with its tag.
    half, whole = index_file(old).read_bytes(), index_file(new).read_bytes()
    mixed = half[: place(31)] + whole[place(43) : place(91)]
    edit(index_file(old), lambda d: d.__setitem__(slice(None), mixed.ljust(len(d), b"\0")))
    edit(index_file(old), lambda d: d.__setitem__(slice(36, 40), struct.pack(">i", 79)))
    # Its two keys were there, its tag is new.
    assert ranges(scan(old, "5.4.0")) == [("index_entry_duplicate", place(31), place(33), 2)]


def test_a_rollback_puts_nothing_and_a_message_of_many_keys_crosses_files(tmp_path: Path) -> None:
    messages = [Message(keys=" ".join(f"k{i}" for i in range(200)), uniq="u"), replace(THIRTY[0], sys_flag=ROLLBACK), *THIRTY]
    made = store(tmp_path, messages, replace(ONE_FILE, index_max=50))
    assert len(list((made.root / "index").iterdir())) == 6
    assert said(scan(made)) == []


def test_keys_of_damaged_messages_lead_nowhere(tmp_path: Path) -> None:
    made = store(tmp_path, THIRTY)
    path = made.segment_of(made.records[4])
    edit(path, lambda d: d.__setitem__(made.records[4].at + 88, 0))
    assert ranges(scan(made)) == [("index_entry_dangling", place(9), place(11), 2)]


def test_an_index_of_other_messages_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store_io.kinds.index.odd_entries.MAX_ODD", 50)
    made = store(tmp_path, THIRTY * 4)
    rubbish = np.random.default_rng(1).integers(0, 256, 20 * 240, np.uint8).tobytes()
    edit(index_file(made), lambda d: d.__setitem__(slice(place(1), place(241)), rubbish))
    (summary,) = scan(made)
    faults = sum(f.count for f in said([summary]) if f.severity != NOTE)
    assert 50 <= faults < 230, "what was not compared is no fault"
    assert ["were not compared" in f.message for f in said([summary]) if f.severity == NOTE] == [True]


damages = st.lists(
    st.tuples(
        st.sampled_from(["bit", "drop", "twice", "zero", "begin", "seconds"]),
        st.integers(1, 60),
        st.integers(0, 159),
        st.integers(1, 12),
    ),
    max_size=4,
)


@given(damages, st.sampled_from([100, 400, 3000]), st.sampled_from([7, 16, 32_768]), st.sampled_from([1000, 21]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_stepping_through_entries_as_they_stand_finds_what_the_alignment_finds(
    tmp_path_factory: pytest.TempPathFactory,
    damage: list[tuple[str, int, int, int]],
    window: int,
    chunk: int,
    index_max: int,
    tag_keys: bool,
) -> None:
    """Two ways through the same streams: that of equal entries, and the one that all entries took without it."""
    sizes = Sizes(segment=1 << 16, slots=SLOTS, index_max=index_max)
    made = store(tmp_path_factory.mktemp("store"), THIRTY, sizes, "5.4.0" if tag_keys else "5.3.3")

    def change(data: bytearray) -> None:
        for what, number, bit, count in damage:
            room = (len(data) - place(0)) // 20
            low, high = place(min(number, room - 1)), place(min(number + count, room))
            if what == "bit":
                data[low + bit // 8] ^= 1 << bit % 8
            elif what == "drop":
                data[low:] = data[high:] + bytes(high - low)
            elif what == "twice":
                data[low:] = (data[low:high] + data[low:])[: len(data) - low]
            elif what == "zero":
                data[low:high] = bytes(high - low)
            elif what == "begin":
                struct.pack_into(">q", data, 0, struct.unpack_from(">q", data)[0] - 5000 * count)
            else:
                data[low + 15] ^= count

    edit(index_file(made), change)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_merge, "CHUNK_ENTRIES", chunk)
        one = scan(made, window_bytes=window)
        patch.setattr(IndexMerge, "_step_through", lambda self, columns: (0, 0))
        other = scan(made, window_bytes=window)
    assert said(one) == said(other) == said(scan(made))
    for left, right in zip(one, other, strict=True):
        assert (left.index_entries_seen, left.index_unindexed) == (right.index_entries_seen, right.index_unindexed)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_neighbouring_segments_share_no_entry_and_leave_none(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """However damaged: borders rise with the address, and depend on nothing else."""
    root = tmp_path_factory.mktemp("store")
    phys = np.sort(np.array(data.draw(st.lists(st.integers(0, 5000), max_size=300)), np.int64))
    for at in data.draw(st.lists(st.integers(0, max(0, len(phys) - 1)), max_size=5)) if len(phys) else []:
        phys[at] = data.draw(st.integers(-(1 << 63), (1 << 63) - 1))
    entries = b"".join(struct.pack(">iqii", 0, int(p), 0, 0) for p in phys)
    size = 40 + 4 * SLOTS + 20 * 1000
    header = struct.pack(">qqqqii", 0, 0, 0, 0, 0, len(phys) + 1)
    (root / "index").mkdir()
    (root / "index" / "20230101000000000").write_bytes((header + bytes(4 * SLOTS + 20) + entries).ljust(size, b"\0"))
    (ref,) = index_refs(root, rules_of(f"maxHashSlotNum={SLOTS}\nmaxIndexNum=1000\n", "5.3.3"))
    with open_source(StoreLocation(str(root))).open(ref.path) as file:
        borders = [first_entry_from(file, ref, at) for at in range(0, 5100, 50)]
    assert all(1 <= b <= len(phys) + 1 for b in borders)
    assert borders == sorted(borders)
    if (phys[1:] >= phys[:-1]).all():
        assert borders == [1 + int(np.searchsorted(phys, at)) for at in range(0, 5100, 50)]


@pytest.mark.parametrize(
    ("found", "partners", "decided"),
    [
        ([(9, 9), (1, 1), (2, 2)], [1, 2], (2, 3)),
        ([(2, 2), (7, 7)], [-1, 0], (2, 1)),
        ([(9, 9), (8, 8), (1, 7)], [-1, -1], (0, 0)),  # one half of a pair weighs no more than what would be left out for it
    ],
)
def test_two_ends_of_streams_are_aligned_by_their_pairs(
    found: list[tuple[int, int]], partners: list[int], decided: tuple[int, int]
) -> None:
    """Each entry: physical offset and hash of a key. The two that are expected: (1, 1) and (2, 2)."""
    expected, there = np.zeros(2, index_merge.EXPECTED_DTYPE), np.zeros(len(found), index_merge.FOUND_DTYPE)
    expected["phy_offset"] = expected["key_hash"] = [1, 2]
    there["phy_offset"], there["key_hash"] = np.array(found).T
    paired, *ends = index_merge._align(expected, there, True)
    assert (paired.tolist(), tuple(ends)) == (partners, decided)
