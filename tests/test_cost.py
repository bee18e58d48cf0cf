"""What a small store that is made to cost much may cost: work that grows with its bytes, not with their square.

Work is counted, never timed: bytes that checksums are taken of, bytes offered to the decoder, properties parsed, entries read,
messages hashed.
"""

from __future__ import annotations

import cProfile
import gc
import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.cli.stores import StoreArgument
from schemas.layouts import commitlog_layout as layout
from schemas.rows import EXTENT_MESSAGE, Extent, SegmentSummary
from store_io.base.crc import checksum
from store_io.base.crc.range_crc import PAGE_BYTES, RangeCrc
from store_io.broker import message_verdict
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.config_rules import CONFIG_FILES, ConfigRules
from store_io.broker.texts import fastjson
from store_io.broker.texts.fastjson import parse_tolerant, parse_written
from store_io.kinds.config import config_reader
from store_io.kinds.config.config_reader import load, read_config
from store_io.kinds.config.start_files import JUDGED
from store_io.kinds.index import odd_entries
from store_io.log.records import commitlog_columns
from store_io.model import queue_leftovers
from store_io.repair.log import donor
from store_io.repair.log.donor import Donor
from store_io.repair.log.two_logs import TwoLogs
from store_io.source import segment_window
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests import ROOT
from tests.support.answers import product
from tests.support.answers.fleets import HereRunner, audited_fleet
from tests.support.answers.product import Audited
from tests.support.stores import attacks
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

PER_BYTE = 100  # bytes summed up or offered to the decoder, for each byte of the CommitLog that is written


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is done from here on: bytes summed up, offered to the decoder, parsed as properties; entries read; calls."""
    done: Counter[str] = Counter()

    def counted(owner: Any, name: str, count: Callable[..., dict[str, int]]) -> None:
        real = getattr(owner, name)

        def wrapper(*arguments: Any, **words: Any) -> Any:
            done.update(count(*arguments, **words))
            return real(*arguments, **words)

        monkeypatch.setattr(owner, name, wrapper)

    counted(checksum, "crc32", lambda data, *_: {"summed": len(data)})
    counted(commitlog_columns, "decode", lambda stretch, *_: {"offered": stretch.end - stretch.start})
    counted(message_verdict, "parse_properties", lambda text, *_: {"parsed": len(text)})
    counted(queue_leftovers, "read_entries", lambda _, __, low, high, *___: {"entries": high - low, "reads": 1})
    counted(odd_entries, "_hashes_of", lambda _: {"hashed": 1})
    counted(donor, "_gaps", lambda *_: {"segments": 1})
    return done


def calls_of(make: str, counts: Sequence[int], folder: Path) -> list[int]:
    """How often audits of stores with so many queues call a function, by the function of this module that makes the stores.

    In a process of their own: what other tests have loaded, patched or left behind changes the number.
    """
    words = [
        sys.executable,
        "-c",
        f"from tests import test_cost; test_cost.print_calls({make!r}, {list(counts)}, {str(folder)!r})",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    calls: list[int] = json.loads(done.stdout)
    return calls


def print_calls(make: str, counts: Sequence[int], folder: str) -> None:
    calls = []
    for count in counts:
        store = globals()[make](Path(folder) / f"calls-{count}", count)
        profile = cProfile.Profile()
        gc.disable()  # collections of garbage call functions too
        profile.runcall(audited, store)
        gc.enable()
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    print(json.dumps(calls))


def audited(store: Store) -> Audited:
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.outcome.complete, audit.incomplete
    return audit


def written(store: Store) -> int:
    return sum(len(path.read_bytes().rstrip(b"\0")) for path in (store.root / "commitlog").iterdir())


@pytest.mark.parametrize("size", [200_000, 400_000])
def test_frames_whose_bodies_reach_to_one_end(size: int, tmp_path: Path, work: Counter[str]) -> None:
    store = attacks.nested_frames(tmp_path / "store", size)
    audit = audited(store)
    assert work["summed"] < PER_BYTE * written(store) and work["offered"] < PER_BYTE * written(store)
    damaged = [f for f in audit.findings if f.code == "commitlog_damaged"]
    assert sum((f.end or 0) - (f.start or 0) for f in damaged) == size


@pytest.mark.parametrize(
    ("last", "topic"),
    [
        (b"__CRC32#\x019999999999\x02", attacks.TOPIC),
        (b"DELAY\x01none\x02", layout.SCHEDULE_TOPIC),
        (b"INNER_BASE\x010\x02INNER_NUM\x01none\x02", attacks.TOPIC),
    ],
    ids=["crc", "delay", "batch"],
)
@pytest.mark.parametrize("size", [50_000, 150_000])
def test_frames_whose_properties_reach_to_one_end(size: int, last: bytes, topic: str, tmp_path: Path, work: Counter[str]) -> None:
    store = attacks.nested_properties(tmp_path / "store", size, last, topic)
    audit = audited(store)
    assert 0 < work["parsed"] < written(store), "bytes of properties read in Python"
    damaged = [f for f in audit.findings if f.code == "commitlog_damaged"]
    assert sum((f.end or 0) - (f.start or 0) for f in damaged) == size


@pytest.mark.parametrize("size", [50_000, 150_000])
def test_frames_that_claim_all_that_follows(size: int, tmp_path: Path, work: Counter[str]) -> None:
    store = attacks.claiming_frames(tmp_path / "store", size)
    audit = audited(store)
    assert work["summed"] < PER_BYTE * written(store) and work["offered"] < PER_BYTE * written(store)
    assert audit.outcome.holds.messages == len(store.records) - 1, "all but the last, whose end nothing confirms"


@pytest.mark.parametrize("what", ["body", "address"])
@pytest.mark.parametrize("size", [50_000, 150_000])
def test_damage_in_every_second_message(size: int, what: str, tmp_path: Path, work: Counter[str]) -> None:
    store = attacks.damage_every_second(tmp_path / "store", size, what)
    audit = audited(store)
    assert work["summed"] < PER_BYTE * written(store) and work["offered"] < PER_BYTE * written(store)
    assert audit.outcome.holds.messages == (len(store.records) + 1) // 2
    assert work["entries"] <= 3 * len(store.records) and work["reads"] <= 10
    assert work["reads"] > 0


@pytest.mark.parametrize(("spread", "code", "count"), [(0, "index_entry_wrong", 2000), (16, "index_entry_dangling", 1999)])
def test_many_index_entries_that_lead_to_one_message(
    spread: int, code: str, count: int, tmp_path: Path, work: Counter[str]
) -> None:
    """Or, spread, into the middle of it, but for the first."""
    store = attacks.entries_of_one_message(tmp_path / "store", 2000, 100, spread=spread)
    audit = audited(store)
    assert work["hashed"] <= 1, "the message's keys, once, with those of its neighbours or alone"
    assert work["offered"] < PER_BYTE * written(store)
    assert sum(f.count for f in audit.findings if f.code == code) == count


def test_a_donor_does_not_step_through_a_gap(tmp_path: Path, work: Counter[str]) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096))
    builder.put(Message("T", body=b"one"))
    store = builder.write(tmp_path / "donor")
    rules = broker_rules("5.3.3", {"mappedFileSizeCommitLog": Setting(4096, "broker.conf")})
    other = StoreLocation(str(store.root))
    far = [number << 32 for number in range(4)]
    segments = [SegmentSummary(f"commitlog/{at:020d}", at, 4096, extents=[Extent(EXTENT_MESSAGE, 0, 4096, 1)]) for at in far]
    healed = Donor(TwoLogs(open_source(other), segments, other, rules), None, None).heal()  # type: ignore[arg-type]
    assert not healed.taken
    assert work["segments"] <= 2 * len(far), "each segment, and each gap as one"


def lost_queues(folder: Path, count: int) -> Store:
    return attacks.many_queues(folder, count)


def sound_queues(folder: Path, count: int) -> Store:
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 20, queue_file=60, slots=10, index_max=2000))
    for number in range(count):
        builder.put(Message(f"T{number}", body=b"one"))
    return builder.write(folder)


def test_each_queue_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    memory = []
    for count in (20, 60, 160):  # the first audit of a process compiles, imports and fills caches
        store = lost_queues(tmp_path / str(count), count)
        tracemalloc.start()
        audit = audited(store)
        memory.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len([f for f in audit.findings if f.code == "queue_entry_missing"]) == count
    assert memory[2] - memory[1] < 100 * 10_000, "bytes for each queue"
    calls = calls_of("lost_queues", (20, 60, 160), tmp_path)
    assert calls[2] - calls[1] < 100 * 900, "calls of functions for each queue"


def test_each_sound_queue_costs_the_same_however_many_files_there_are(tmp_path: Path) -> None:
    audit = audited(sound_queues(tmp_path / "store", 100))
    assert len(audit.outcome.rows.queues) == 100 and not audit.findings
    calls = calls_of("sound_queues", (20, 100, 300), tmp_path)
    assert calls[2] - calls[1] < 200 * 2000, "calls of functions for each queue"


def print_driver_calls(counts: Sequence[int], folder: str) -> None:
    """How often the driver of a run of so many small stores calls a function, without what its tasks do."""
    calls = []
    for count in counts:
        stores = []
        for number in range(count):
            builder = StoreBuilder("5.3.3", Sizes(segment=1 << 14, slots=10, index_max=40))
            for each in range(20):
                builder.put(Message(f"T{each % 4}", body=f"{number}-{each}".encode()))
            store = builder.write(Path(folder) / f"{count}-{number}")
            stores.append(StoreArgument(f"s{number}", str(store.root), store.release, store.broker_conf))
        profile = cProfile.Profile()

        def apart(run: Callable[[], bytes], profile: cProfile.Profile = profile) -> bytes:
            profile.disable()
            answer = run()
            profile.enable()
            return answer

        gc.disable()
        fleet = profile.runcall(audited_fleet, stores, Path(folder) / f"out-{count}", HereRunner(apart))
        gc.enable()
        assert not any(outcome.exit_code for outcome in fleet.outcomes)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    print(json.dumps(calls))


def test_each_small_store_costs_the_driver_little(tmp_path: Path) -> None:
    code = f"from tests import test_cost; test_cost.print_driver_calls([10, 20, 60], {str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    calls = json.loads(done.stdout)
    assert calls[2] - calls[1] < 40 * 2000, "calls of functions for each store; by rounds of tasks they are tens of thousands"


# ---- config/ -----------------------------------------------------------------------------------------------------------


def test_memory_for_offsets_and_topics(tmp_path: Path) -> None:
    attacks.large_config(tmp_path, 2000)
    (tmp_path / "commitlog").mkdir()
    size = sum(path.stat().st_size for path in (tmp_path / "config").iterdir())
    location = StoreLocation(str(tmp_path))
    source, listing = open_source(location), list_store(location)
    tracemalloc.start()
    try:
        config = read_config(source, listing, broker_rules("5.3.3"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(config.offsets) == 8000 and len(config.topics or {}) == 2000
    assert peak < 5 * size


def test_a_text_of_many_quotes_and_keys_is_read_once() -> None:
    keys = b",".join(b'%d:"{1:2"' % number for number in range(1000))
    assert parse_written(b"{" + keys + b"}") == {str(number): "{1:2" for number in range(1000)}


@pytest.mark.parametrize("filler", ['"' + r"\n" * 200_000 + '"', "/**/" * 100_000 + "1", "/*" + "*a" * 200_000 + "*/1"])
def test_memory_for_a_text_that_no_broker_writes(filler: str) -> None:
    text = ('{"a":' + filler + "}").encode()
    tracemalloc.start()
    try:
        read = parse_tolerant(text, ConfigRules())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(read) == {"a"} and peak < 8 * len(text)


def test_memory_for_a_file_of_which_nothing_is_kept(tmp_path: Path) -> None:
    data = {"consumerGroup": "g", "topic": "t", "bornTime": 17, "clientVersion": 18, "dead": False}
    groups = {"groupFilterData": {f"group{each}": data for each in range(20)}, "topic": "t"}
    filters = {f"topic{number}": groups for number in range(300)}
    path = tmp_path / "config" / "consumerFilter.json"
    path.parent.mkdir()
    (tmp_path / "commitlog").mkdir()
    path.write_text(json.dumps({"filterDataByTopic": filters}), encoding="utf-8")
    location = StoreLocation(str(tmp_path))
    source, listing = open_source(location), list_store(location)
    tracemalloc.start()
    try:
        loaded = load(source, listing, "config/consumerFilter.json", ConfigRules())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loaded.name and peak < 5 * path.stat().st_size


@pytest.mark.parametrize("suffix", ["", ".bak"])
@pytest.mark.parametrize("path", sorted({*(file.path for file in CONFIG_FILES if file.stops), *JUDGED}))
def test_more_values_than_are_read_make_the_audit_incomplete(
    path: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {"config/topics.json": '{"topicConfigTable":{"T":{}}}', "config/delayOffset.json": '{"offsetTable":{1:0,2:0}}'}
    content = contents.get(path, '{"offsetTable":{"T@g":{0:1}}}')
    builder = StoreBuilder("5.3.3")
    builder.put(Message("T", body=b"one"))
    store = builder.write(tmp_path / "store", config={path.removeprefix("config/") + suffix: content})
    audited(store)
    parsed: list[str] = []

    def loads(text: str, **more: Any) -> Any:
        parsed.append(text)
        return json.loads(text, **more)

    monkeypatch.setattr(fastjson, "json", SimpleNamespace(loads=loads, JSONDecodeError=json.JSONDecodeError))
    monkeypatch.setattr(config_reader, "MAX_VALUES", 3)
    monkeypatch.setattr(config_reader, "MAX_TOPIC_VALUES", 3)
    conf = "" if path == "config/consumerOffset.json" else "enableLmq=true\n"
    outcome = product.audit(store.root, store.release, store.broker_conf + conf).outcome
    assert not outcome.complete and outcome.exit_code == 3
    assert [text for text in outcome.incomplete if text.startswith(f"{path}{suffix}: ") and "more than the 3" in text]
    assert len(outcome.incomplete) == len(set(outcome.incomplete)) and not parsed


# ---- sums of ranges ----------------------------------------------------------------------------------------------------


def test_the_sum_of_any_range_is_its_crc() -> None:
    data = bytes(i * i * 7 + (i >> 5) & 0xFF for i in range(5 * PAGE_BYTES + 77))
    ranges = RangeCrc(lambda start, end: data[start:end])
    places = sorted({0, 1, 5, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 3 * PAGE_BYTES, len(data) - 1, len(data)})
    pairs = [(start, end) for start in reversed(places) for end in places if start <= end]
    for start, end in pairs + pairs[::-1]:
        assert ranges.crc32(start, end) == checksum.crc32(data[start:end]), (start, end)
    assert ranges.summed <= 4 * len(data) + len(pairs) * 4 * PAGE_BYTES


def test_sums_of_ranges_are_kept_only_for_much_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[RangeCrc] = []

    class Counted(RangeCrc):
        def __init__(self, read: Callable[[int, int], bytes]):
            super().__init__(read)
            made.append(self)

    monkeypatch.setattr(segment_window, "RangeCrc", Counted)
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 17))
    for _ in range(10):
        builder.put(Message("T", body=bytes(range(1, 251)) * 40))
    audited(builder.write(tmp_path / "healthy"))
    assert not made
    audited(attacks.nested_frames(tmp_path / "damaged", 200_000))
    assert made
