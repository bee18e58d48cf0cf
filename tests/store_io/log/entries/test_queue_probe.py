"""Messages against their ConsumeQueue entries: equal, shifted, wrong, missing; delay, ext, batch and LMQ queues."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas.finding_codes import CATALOGUE
from schemas.rows import (
    MATCH_DIFFERS,
    MATCH_EQUAL,
    MATCH_MISSING,
    MATCH_NONE,
    MATCH_SHIFTED,
    NOTE,
    RUN_LMQ,
    RUN_UNQUEUED,
    SegmentSummary,
)
from store_io.log.entries import queue_probe, queue_store
from store_io.source.arrow_folder import ArrowFolder
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from tests.support.answers.segment_tasks import scan_store
from tests.support.stores import strategies
from tests.support.stores.builders import SCHEDULE_TOPIC, Message, Sizes, Store, StoreBuilder


def store(root: Path, messages: list[Message], sizes: Sizes | None = None, release: str = "5.3.3", **more: Any) -> Store:
    builder = StoreBuilder(release, sizes, **more)
    for message in messages:
        builder.put(message)
    return builder.write(root)


def scan(made: Store, **more: Any) -> list[SegmentSummary]:
    return scan_store(made.root, made.broker_conf, made.release, index=None, **more)


def matched(summaries: list[SegmentSummary]) -> list[tuple[int, int, int, int]]:
    """(match, first queue offset, records, delta) of all runs in queues, in order."""
    rows = [r for s in summaries for r in s.runs if r["kind"] != RUN_UNQUEUED]
    return [(int(r["match"]), int(r["queue_offset"]), int(r["records"]), int(r["delta"])) for r in rows]


def counted(summaries: list[SegmentSummary]) -> Counter[int]:
    total: Counter[int] = Counter()
    for match, _, records, _ in matched(summaries):
        total[match] += records
    return total


def queue_file(made: Store, start: int = 0, topic: str = "TopicA") -> Path:
    return made.root / "consumequeue" / topic / "0" / f"{start:020d}"


def edit(path: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


FORTY = [Message(body=bytes([i]) * 20, tags="t") for i in range(40)]  # entries 0-19 in the first file, 20-39 in the second


@given(strategies.store_builders(), st.integers(0, 5), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_entry_of_any_healthy_store_is_found(
    tmp_path_factory: pytest.TempPathFactory, builder: StoreBuilder, undispatched: int, clean: bool
) -> None:
    assume(all(len(r.topic) < 256 for r in builder.records))  # a queue's folder has the topic's name
    made = builder.write(tmp_path_factory.mktemp("store"), undispatched=undispatched, clean=clean)
    summaries = scan(made, window_bytes=1000)
    queued = [r for r in builder.records if r.transaction in (0, 8)]
    left = [r for r in builder.records[max(0, len(builder.records) - undispatched) :] if r in queued] if undispatched else []
    # Without any queue folder there is nothing to compare with.
    missing = MATCH_MISSING if (made.root / "consumequeue").is_dir() else MATCH_NONE
    assert counted(summaries) == Counter({MATCH_EQUAL: len(queued) - len(left), missing: len(left)}) + Counter()
    found = [f for s in summaries for f in s.findings if f.code != "filler_not_zero"]
    assert all((f.severity or CATALOGUE[f.code].severity) == NOTE for f in found)


@pytest.mark.parametrize(
    ("at", "low", "high", "expected", "actual"),
    [(8, 8, 12, "112", "113"), (12, 12, 20, "116", "72057594037928052"), (19, 12, 20, "116", "117")],
)
def test_a_wrong_field_is_told_by_its_bytes(tmp_path: Path, at: int, low: int, high: int, expected: str, actual: str) -> None:
    made = store(tmp_path, FORTY)
    edit(queue_file(made), lambda d: d.__setitem__(5 * 20 + (11 if at == 8 else at), d[5 * 20 + (11 if at == 8 else at)] ^ 1))
    size = made.records[5].size
    summaries = scan(made)
    findings = [f for s in summaries for f in s.findings]
    assert [(f.code, f.file, f.start, f.end) for f in findings] == [
        ("queue_entry_wrong", f"consumequeue/TopicA/0/{0:020d}", 100 + low, 100 + high)
    ]
    assert (findings[0].expected, findings[0].actual) == ((str(size), str(size ^ 1)) if at == 8 else (expected, actual))
    assert (findings[0].phy_offset, findings[0].queue_offset) == (made.records[5].phy_offset, 5)
    assert counted(summaries) == Counter({MATCH_EQUAL: 39, MATCH_DIFFERS: 1})


def test_a_wrong_address_makes_the_entry_missing_and_hides_nothing_else(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY)
    for number in (3, 4, 30):
        edit(queue_file(made, 400 * (number // 20)), lambda d, n=number % 20: d.__setitem__(n * 20 + 2, 7))
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 37, MATCH_MISSING: 3})


def test_the_first_message_of_all_is_not_taken_for_an_unwritten_or_pre_blank_entry(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY)
    for blank in (bytes(20), struct.pack(">qiq", 0, 0x7FFFFFFF, 0)):
        edit(queue_file(made), lambda d, b=blank: d.__setitem__(slice(0, 20), b))
        summaries = scan(made)
        assert counted(summaries) == Counter({MATCH_EQUAL: 39, MATCH_MISSING: 1})
        assert not any(s.findings for s in summaries)


def test_missing_and_shifted_entries(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY)
    first, second = queue_file(made).read_bytes(), queue_file(made, 400).read_bytes()
    entries = first[: 10 * 20] + (first + second)[11 * 20 :] + bytes(20)  # entry 10 is left out: all later ones one too early
    queue_file(made).write_bytes(entries[:400])
    queue_file(made, 400).write_bytes(entries[400:])
    found = matched(scan(made))
    assert [f for f in found if f[0] == MATCH_MISSING] == [(MATCH_MISSING, 10, 1, 0)]
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 10, MATCH_MISSING: 1, MATCH_SHIFTED: 29})
    assert {f[3] for f in found if f[0] == MATCH_SHIFTED} == {-1}


def test_a_lost_file_and_a_lost_queue(tmp_path: Path) -> None:
    made = store(tmp_path, [m for pair in zip(FORTY, [Message("Other")] * 40, strict=True) for m in pair])
    queue_file(made).unlink()
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 60, MATCH_MISSING: 20})
    queue_file(made, 400).unlink()
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 40, MATCH_MISSING: 40})
    queue_file(made).parent.rmdir()
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 40, MATCH_MISSING: 40})


def test_a_queue_that_begins_late(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY, queue_starts={("TopicA", 0): 1007})
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 40})


def test_small_slots_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = store(tmp_path, [m for pair in zip(FORTY, [Message("Other")] * 40, strict=True) for m in pair])
    edit(queue_file(made, 400), lambda d: d.__setitem__(slice(0, 60), bytes(60)))
    whole = matched(scan(made))
    for most in (1, 2, 7):
        monkeypatch.setattr(queue_store, "CACHED_ENTRIES", most)
        monkeypatch.setattr(queue_probe, "MIN_ENTRIES", most)
        monkeypatch.setattr(queue_store, "OPEN_FILES", 1)
        assert matched(scan(made)) == whole


def scheduled(root: Path) -> tuple[Store, Path]:
    made = store(root, [Message(SCHEDULE_TOPIC, 2, tags="t", properties=(("DELAY", "3"),))] * 3)
    return made, made.root / "consumequeue" / SCHEDULE_TOPIC / "2" / f"{0:020d}"


@pytest.mark.parametrize(
    "code", ["hash", "another level", "unknown level", "no whole second", "too far", "as stored", "before it was stored", "none"]
)
def test_delayed_messages_carry_a_time_or_under_some_releases_their_tags(tmp_path: Path, code: str) -> None:
    made, path = scheduled(tmp_path)
    stored = made.records[1].store_time
    times = {"another level": 1_800_000, "unknown level": 1000, "no whole second": 777, "too far": 1 << 50, "as stored": 1}
    value = stored + times[code] if code in times else {"hash": 116, "before it was stored": stored - 1000, "none": 0}[code]
    edit(path, lambda d: d.__setitem__(slice(32, 40), struct.pack(">q", value)))
    allowed = code in ("hash", "another level", "unknown level")
    summaries = scan(made)
    assert counted(summaries) == Counter({MATCH_EQUAL: 3} if allowed else {MATCH_EQUAL: 2, MATCH_DIFFERS: 1})
    found = [(f.code, f.start, f.end) for s in summaries for f in s.findings]
    assert found == ([] if allowed else [("queue_entry_wrong", 32, 40)])


@pytest.mark.parametrize("bit", range(0, 64, 3))
def test_every_flipped_bit_of_a_deliver_time_is_told(tmp_path: Path, bit: int) -> None:
    made, path = scheduled(tmp_path)
    edit(path, lambda d: d.__setitem__(32 + bit // 8, d[32 + bit // 8] ^ 1 << bit % 8))
    assert [(f.code, f.severity, f.start, f.end) for s in scan(made) for f in s.findings] == [("queue_entry_wrong", "", 32, 40)]


def test_whole_seconds_that_no_level_has_are_one_note_per_queue(tmp_path: Path) -> None:
    made, path = scheduled(tmp_path)
    for number in (1, 2):  # messageDelayLevel had a third level of 7 s when these were written
        value = struct.pack(">q", made.records[number].store_time + 7000)
        edit(path, lambda d, n=number, v=value: d.__setitem__(slice(n * 20 + 12, n * 20 + 20), v))
    summaries = scan(made)
    assert counted(summaries) == Counter({MATCH_EQUAL: 3})
    assert [(f.code, f.severity, f.start, f.end) for s in summaries for f in s.findings] == [("queue_entry_wrong", NOTE, 32, 40)]


def test_ext_addresses_are_followed(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY, ext_bit_map=8)
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 40})
    ext = made.root / "consumequeue_ext" / "TopicA" / "0" / f"{0:020d}"
    edit(ext, lambda d: d.__setitem__(28 * 2 + 9, d[28 * 2 + 9] ^ 1))  # the tags code of the third unit
    summaries = scan(made)
    assert counted(summaries) == Counter({MATCH_EQUAL: 39, MATCH_DIFFERS: 1})
    assert [(f.code, f.start, f.end) for s in summaries for f in s.findings] == [
        ("queue_entry_wrong", 2 * 20 + 12, 3 * 20),
        ("queue_ext_damaged", 2 * 28, 2 * 28 + 20),
    ]
    ext.unlink()
    summaries = scan(made)
    assert counted(summaries)[MATCH_DIFFERS] > 1
    found = [f for s in summaries for f in s.findings]
    assert {f.code for f in found} == {"queue_ext_dangling"} and all(f.file.startswith("consumequeue/") for f in found)
    assert sum(f.count for f in found) == counted(summaries)[MATCH_DIFFERS] > 4 * len(found)


def test_a_wrong_tags_code_that_looks_like_an_address_is_the_entrys_fault(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY)
    edit(queue_file(made), lambda d: d.__setitem__(5 * 20 + 12, 0x80))
    assert [(f.code, f.start, f.end) for s in scan(made) for f in s.findings] == [("queue_entry_wrong", 112, 120)]


def test_batch_queues_are_found_by_address(tmp_path: Path) -> None:
    messages = [Message("Batch", body=b"b" * 30, inner_count=i % 3) for i in range(25)]
    made = store(tmp_path, messages, batch_topics=["Batch"])
    summaries = scan(made)
    assert counted(summaries) == Counter({MATCH_EQUAL: 25})
    rows = [r for s in summaries for r in s.runs]
    assert sum(int(r["messages"]) for r in rows) == sum(max(i % 3, 1) for i in range(25))
    assert [int(r["delta"]) for r in rows] == [sum(int(p["records"]) for p in rows[:i]) for i in range(len(rows))]
    path = made.root / "batchconsumequeue" / "Batch" / "0" / f"{0:020d}"
    edit(path, lambda d: d.__setitem__(46 * 3 + 37, d[46 * 3 + 37] ^ 1))
    summaries = scan(made)
    assert counted(summaries) == Counter({MATCH_EQUAL: 24, MATCH_DIFFERS: 1})
    assert [(f.code, f.start, f.end) for s in summaries for f in s.findings] == [("queue_entry_wrong", 46 * 3 + 36, 46 * 3 + 38)]
    edit(path, lambda d: d.__setitem__(46 * 3 + 37, d[46 * 3 + 37] ^ 1))
    for at, low, high in ((38, 38, 42), (41, 38, 42), (42, 42, 46), (45, 42, 46)):  # what every entry holds: -1 and 0
        edit(path, lambda d, k=46 * 3 + at: d.__setitem__(k, d[k] ^ 1))
        places = [(f.code, f.start, f.end) for s in scan(made) for f in s.findings]
        assert places == [("queue_entry_wrong", 46 * 3 + low, 46 * 3 + high)]
        edit(path, lambda d, k=46 * 3 + at: d.__setitem__(k, d[k] ^ 1))
    edit(path, lambda d: d.__setitem__(slice(46 * 3, 46 * 4), bytes(46)))
    assert counted(scan(made)) == Counter({MATCH_EQUAL: 24, MATCH_MISSING: 1})


def test_multi_dispatch_entries_are_found_and_absent_ones_asked_for_only_where_expected(tmp_path: Path) -> None:
    messages = [Message(body=b"b", lmq=("%LMQ%a", "plain") if i % 2 else ()) for i in range(10)]
    made = store(tmp_path, messages, lmq=True)
    rows = [(int(r["kind"]), int(r["match"])) for s in scan(made) for r in s.runs]
    assert rows == [(0, MATCH_EQUAL), (RUN_LMQ, MATCH_EQUAL), (RUN_LMQ, MATCH_EQUAL)]
    queue_file(made, topic="plain").unlink()
    assert [int(r["match"]) for s in scan(made) for r in s.runs] == [MATCH_EQUAL, MATCH_EQUAL, MATCH_MISSING]
    assert [int(r["match"]) for s in scan(made, lmq=False) for r in s.runs] == [MATCH_EQUAL, MATCH_EQUAL, MATCH_NONE]


def test_a_store_with_more_queues_than_it_counts_is_an_error_and_no_read_beyond_the_arena(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store(tmp_path, [Message(body=b"b", queue_id=i % 2) for i in range(10)])
    monkeypatch.setattr(queue_store.FileQueueStore, "queue_count", 1)
    with pytest.raises(IndexError, match=r"'TopicA', 1\) is one queue more than the 1 that its store counts"):
        scan(made)


def test_of_a_store_on_another_machine_more_entries_are_asked_for_at_once(tmp_path: Path) -> None:
    here = open_source(StoreLocation(str(tmp_path)))
    there = ByteSource(here.location, ArrowFolder(pafs.LocalFileSystem(), str(tmp_path)), {})
    none = queue_store.QueuePaths({}, {}, {})
    at_once = [queue_store.FileQueueStore(source, none).entries_at_once for source in (here, there)]
    assert at_once == [queue_store.CACHED_ENTRIES, queue_store.FETCHED_ENTRIES]


def test_without_a_probe_nothing_is_looked_for(tmp_path: Path) -> None:
    made = store(tmp_path, FORTY)
    assert counted(scan(made, probe=False)) == Counter({MATCH_NONE: 40})
    assert counted(scan(made, queue_files={})) == Counter({MATCH_NONE: 40})
