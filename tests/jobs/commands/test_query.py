"""query: what a brute search finds is found, by every condition; the two views; what is printed."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from jobs import entry
from jobs.cli import options
from jobs.cli.stores import StoreArgument
from jobs.commands.query import answered
from jobs.messages.message_arguments import unknown_topics
from jobs.messages.message_query import TABLE_COLUMNS, Query, read_query
from jobs.report.texts.query_text import Csv
from jobs.tasks.threads_or_spark import SparkWorkers
from schemas.advice import Cause, Gap
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.base.tasks import HERE, PartlyRead, Task, Workers, run_task
from store_io.messages import message_answer
from store_io.messages.choice import by_queues
from store_io.messages.choice.by_pieces import ScanPart
from store_io.messages.message_answer import LastPlaces, last_parts
from store_io.messages.message_rows import scan_messages
from store_io.messages.open_store import open_store
from store_io.messages.scans import MessageScan
from store_io.source import remote_file
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text
from tests.support.answers.lost_messages import damaged_store
from tests.support.damage import invert_byte, overwrite
from tests.support.processes.s3_server import S3Server
from tests.support.stores import builders, corpus_tools
from tests.support.stores.builders import COMPRESSED, Message, Record, Sizes, Store, StoreBuilder, compress
from tests.support.stores.corpus_tools import Case
from tests.support.stores.rocksdb_stores import keyed_store

SIZES = Sizes(segment=4096, queue_file=400)
LONG = "<script>" + "x" * 247
HOSTILE = ["<script>alert(1)</script>", "a'b\"c", "..", "../../x", "%RETRY%g", "_underscore", "\u202etxet", "\x1b[31mred", LONG]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Sixty messages of two topics and two queues in several segments; one unique key twice, some bodies compressed."""
    builder = StoreBuilder("5.3.3", SIZES)
    for n in range(60):
        body = f"body number {n:03d} ".encode() * 8
        kind = ("", "lz4", "zstd", "zlib")[n % 4]
        builder.put(
            Message(
                topic=f"Topic{n % 2}",
                queue_id=n // 2 % 2,
                body=compress(body, kind) if kind else body,
                sys_flag=COMPRESSED[kind] if kind else 0,
                tags=f"t{n % 3}",
                keys=f"k{n} shared" if n % 5 == 0 else f"k{n}",
                uniq=f"U{n if n != 33 else 3:04d}",
            )
        )
    return builder.write(tmp_path_factory.mktemp("query") / "store")


def words_of(store: Store | Path) -> list[str]:
    if isinstance(store, Path):
        return ["query", str(store)]
    conf = store.root.parent / f"{store.root.name}.conf"
    conf.write_text(store.broker_conf, encoding="utf-8")
    return ["query", str(store.root), "--release", store.release, "--broker-conf", str(conf)]


def argument(store: Store) -> StoreArgument:
    return StoreArgument("s", str(store.root), store.release, store.broker_conf)


def rows_of(store: StoreArgument, query: Query, workers: Workers = HERE) -> Iterator[dict[str, Any]]:
    """The rows, before they are shown."""
    for row in answered(store, query, workers):
        assert isinstance(row, dict)
        yield row


def found(capsys: pytest.CaptureFixture[str], store: Store | Path, *words: str) -> list[dict[str, Any]]:
    """The rows, as JSON lines."""
    assert entry.main([*words_of(store), "--format", "jsonl", *words]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def at(rows: list[dict[str, Any]]) -> list[int]:
    return [row["phy_offset"] for row in rows]


# ---- the copy --------------------------------------------------------------------------------------------------------


def test_every_field_of_every_message(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    rows = found(capsys, store, "--body", "text")
    assert at(rows) == [r.at for r in store.records]
    for number, (row, record) in enumerate(zip(rows, store.records, strict=True)):
        assert (row["topic"], row["queue_id"], row["queue_offset"]) == (record.topic, record.queue_id, record.queue_offset)
        assert (row["total_size"], row["body_crc"], row["status"]) == (record.size, record.body_crc, "valid")
        assert (row["keys"], row["tags"], row["unique_key"]) == tuple(record.properties[n] for n in ("KEYS", "TAGS", "UNIQ_KEY"))
        assert row["body"] == f"body number {number:03d} " * 8
        assert row["store_time"] == f"2023-11-14T22:13:20.{7 * number:03d}Z"
        host = record.store_host + struct.pack(">q", record.at)
        assert row["offset_msg_id"] == host.hex().upper()


CONDITIONS: list[tuple[tuple[str, ...], Any]] = [
    (("--topic", "Topic1"), lambda n, r: n % 2 == 1),
    (("--topic", "Topic0", "--queue", "1"), lambda n, r: n % 2 == 0 and r.queue_id == 1),
    (("--topic", "Topic0", "--from-queue-offset", "4"), lambda n, r: n % 2 == 0 and 4 <= r.queue_offset),
    (("--topic", "Topic1", "--to-queue-offset", "7"), lambda n, r: n % 2 == 1 and r.queue_offset < 7),
    (("--from-phy-offset", "4096", "--to-phy-offset", "8192"), lambda n, r: 4096 <= r.at < 8192),
    (("--since", "2023-11-14T22:13:20.100Z", "--until", "1700000000200"), lambda n, r: 100 <= 7 * n < 200),
    (("--since", "2023-11-14T22:13:20.100Z", "--trust-clock"), lambda n, r: 100 <= 7 * n),
    (("--key", "k7"), lambda n, r: n == 7),
    (("--key", "shared"), lambda n, r: n % 5 == 0),
    (("--key", "U0009"), lambda n, r: n == 9),
    (("--unique-key", "U0003"), lambda n, r: n in (3, 33)),
    (("--unique-key", "k7"), lambda n, r: False),
    (("--key", "k"), lambda n, r: False),
    (("--body-contains", "number 01"), lambda n, r: 10 <= n < 20),
    (("--body-contains", "hex:" + b"r 047".hex()), lambda n, r: n == 47),
    (("--body-contains", "number 01", "--topic", "Topic1", "--key", "k13"), lambda n, r: n == 13),
    (("--tag", "t1"), lambda n, r: n % 3 == 1),
    (("--tag", "t0,t2", "--topic", "Topic1"), lambda n, r: n % 3 != 1 and n % 2 == 1),
    (("--tag", "t", "--topic", "Topic1"), lambda n, r: False),
]  # fmt: skip


@pytest.mark.parametrize(("words", "holds"), CONDITIONS, ids=lambda p: " ".join(p) if isinstance(p, tuple) else "")
def test_conditions(store: Store, words: tuple[str, ...], holds: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [r.at for n, r in enumerate(store.records) if holds(n, r)]
    assert at(found(capsys, store, *words)) == wanted
    assert at(found(capsys, store, *words, "--columns", "phy_offset", "--body", "base64")) == wanted
    assert at(found(capsys, store, *words, "--limit", "2")) == wanted[:2]
    assert at(found(capsys, store, *words, "--last", "2", "--body", "text")) == wanted[-2:]


def test_the_last_are_read_from_the_logs_end(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    run = message_answer.LastTask.run

    def seen(task: message_answer.LastTask) -> message_answer.LastPlaces:
        read.append(task.scan.path)
        return run(task)

    monkeypatch.setattr(message_answer.LastTask, "run", seen)
    everything = [r.at for r in store.records]
    assert at(found(capsys, store, "--last", "3")) == everything[-3:]
    segments = sorted((p.relative_to(store.root).as_posix() for p in store.root.glob("commitlog/*")), reverse=True)
    assert read == segments[: len(read)] and len(read) < len(segments) / 2
    assert at(found(capsys, store, "--last", "1000")) == everything
    assert entry.main([*words_of(store), "--last", "150", "--columns", "phy_offset"]) == 0  # no limit of a table
    assert len(capsys.readouterr().out.splitlines()) == 61


def damaged_elsewhere(tmp_path: Path) -> Store:
    """Three segments of a mebibyte, with damage in the middle of each; each hundredth message has a key of its own."""
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 20))
    for n in range(1800):
        builder.put(Message(f"T{n % 100}", body=b"%08d" % n * 200, keys=f"k{n}"))
    made = builder.write(tmp_path / "store")
    for path in made.root.glob("commitlog/*"):
        overwrite(path, 500_000, bytes(100))
    return made


LOOKS = [
    ("--last", "20", "--body", "text"),
    ("--last", "3", "--topic", "T7", "--scan"),
    ("--last", "400"),
    ("--last", "2", "--key", "k1400"),
    ("--key", "k1000"),
    ("--key", "k1799", "--body", "text"),
]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_of_another_machine_the_log_is_fetched_once(
    tmp_path: Path, server: S3Server, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote_file, "KEPT_BYTES", 512 << 10)  # less than a segment: no byte is there for a second look
    monkeypatch.setattr(remote_file, "PASSING_BYTES", 512 << 10)
    store = damaged_elsewhere(tmp_path)
    uri = server.put_folder(store.root, "copy")
    assert entry.main(["query", uri, "--format", "jsonl", *words]) == 0
    there = capsys.readouterr().out
    ranges = [r.range.removeprefix("bytes=").split("-") for r in server.reads() if "/commitlog/" in r.key and r.range]
    fetched = sum(int(end) - int(start) + 1 for start, end in ranges)
    assert entry.main(["query", str(store.root), "--format", "jsonl", *words]) == 0
    here = capsys.readouterr().out
    assert here == there and here
    size = sum(path.stat().st_size for path in store.root.glob("commitlog/*"))
    assert 0 < fetched < 1.15 * size  # one small window for a second look


def test_what_is_found_from_a_place_in_a_segment_is_found_from_its_start(tmp_path: Path) -> None:
    store = damaged_elsewhere(tmp_path)
    found = list(scan_messages(scan := segment_scan(store)))
    rows = pa.Table.from_batches(found).to_pylist()
    assert {row["status"] for row in rows} == {"valid", "plausible"}
    for row in (rows[0], rows[1], rows[-1], *(r for r in rows if r["position"] > 490_000)):
        later = replace(scan, begin=row["position"], plausible=row["status"] == "plausible")
        assert pa.Table.from_batches(scan_messages(later)).to_pylist() == rows[rows.index(row) :]


def segment_scan(store: Store) -> MessageScan:
    opened = open_store(StoreLocation(str(store.root)))
    return MessageScan(opened.location, "", 0, 0, rules=opened.rules).of(opened.segments()[0])


def test_places_that_are_the_same_are_counted() -> None:
    """Three messages of one inner batch before the last one."""
    later, earlier = (ScanPart(MappedFile(f"commitlog/{start:020d}", start, 6)) for start in (6, 0))
    found = [(later, LastPlaces(np.array([7, 7, 7, 9]), 9)), (earlier, LastPlaces(np.array([5]), 5))]
    last = replace(later, phy_offsets=(7, 10), begin=1)
    assert last_parts(iter(found), 3) == ([last], 1)
    every = [replace(earlier, phy_offsets=(5, 6), begin=5, plausible=True), last]
    assert last_parts(iter(found), 5) == last_parts(iter(found), 9) == (every, 0)
    assert last_parts(iter([]), 9) == ([], 0)
    assert last_parts([(later, LastPlaces(np.zeros(0, np.int64))), found[1]], 1) == (every[:1], 0)
    batches = [pa.record_batch({"a": [1, 2, 3]}), pa.record_batch({"a": [4]})]
    assert [b.column("a").to_pylist() for b in message_answer.without_first(iter(batches), 2)] == [[3], [4]]
    assert [b.column("a").to_pylist() for b in message_answer.without_first(iter(batches), 3)] == [[4]]


def test_csv_is_that_of_rfc_4180_and_runs_no_formula(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    tags = ["=1+1", "+1", "-1", "@SUM(1)", "plain", 'a "b", c', "line\nbreak", "\t=1", " =1", "＝1", "\x1b[31m", None]
    tags += ["x;=cmd|'/C calc'!A0", "x,=1", 'x; "=1"', "a;b,c", "x;\t-1", "x\r\n@1", "a=b-c", "", "\u3164"]
    for tag in tags:
        builder.put(Message("T", tags=tag, body=b"=cmd()" if tag == "plain" else b"x"))
    made = builder.write(tmp_path / "store")
    names = "tags,queue_offset,store_time,inner_batch,body,body_status"
    assert entry.main([*words_of(made), "--format", "csv", "--columns", names, "--body", "text"]) == 0
    out = capsys.readouterr().out
    assert out.count("\r\n") == out.count("\n") == len(tags) + 1 and "\x1b" not in out
    head, *rows = csv.reader(io.StringIO(out, newline=""), strict=True)
    assert head == ["tags", "queue_offset", "store_time", "inner_batch", "body", "body_status"]
    assert [row[0] for row in rows] == [
        "'=1+1", "'+1", "'-1", "'@SUM(1)", "plain", 'a "b", c', "line\\x0abreak", "\\x09=1", "' =1", "'＝1", "\\x1b[31m", "",
        "x;'=cmd|'/C calc'!A0", "x,'=1", 'x;\' "=1"', "a;b,c", "x;\\x09-1", "x\\x0d\\x0a@1", "a=b-c", "", "\\u3164",
    ]  # fmt: skip
    assert rows[4][1:5] == ["4", rows[4][2], "false", "'=cmd()"] and rows[4][2].endswith("Z")
    assert out.splitlines()[12].startswith(",11,") and out.splitlines()[1].startswith('"\'=1+1",0,')
    assert Csv(["body"], "base64", str)._cell(b"\xf8\x00\x01") == '"+AAB"'  # to be decoded, and no formula
    assert entry.main([*words_of(made), "--format", "csv", "--topic", "none", "--columns", "tags"]) == 0
    assert capsys.readouterr().out == "tags\r\n"


def test_a_column_that_comes_with_bodies_may_be_named(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    rows = found(capsys, store, "--columns", "body_status,phy_offset", "--body", "text", "--limit", "1")
    assert [list(row) for row in rows] == [["body_status", "phy_offset", "body"]]


def test_a_place_and_an_id(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    record = store.records[41]
    name = (record.store_host + struct.pack(">q", record.at)).hex()
    for words in (("--phy-offset", str(record.at)), ("--phy-offset", f"{record.at:,}"), ("--offset-msg-id", name)):
        for view in ("copy", "broker"):
            assert at(found(capsys, store, *words, "--view", view)) == [record.at]
    assert found(capsys, store, "--phy-offset", str(record.at + 1)) == []
    other = "01" + name[2:]
    assert entry.main([*words_of(store), "--offset-msg-id", other]) == 0
    assert "another id" in capsys.readouterr().err
    assert entry.main([*words_of(store), "--phy-offset", str(record.at + 1)]) == 0
    answer = capsys.readouterr()
    assert not answer.out and "explain shows what is there" in answer.err


def test_a_topic_without_a_queue_is_named(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([*words_of(store), "--topic", "Nope"]) == 0  # as any search without an answer
    (said,) = capsys.readouterr().err.splitlines()
    assert said == "query: no message is found: this copy has no queue of the topic Nope"
    assert found(capsys, store, "--topic", "Topic0,Topik1", "--limit", "1") and at(found(capsys, store, "--topic", "Topic0"))
    opened = open_store(StoreLocation(str(store.root)), store.release, store.broker_conf)
    assert unknown_topics(opened, None) == unknown_topics(opened, ["Topic0", "Topic1"]) == ""
    hostile = "this copy has no queue of the topic Topic0\\x1b[m; it has Topic1, Topic0"
    assert unknown_topics(opened, ["Topic0\x1b[m", "Topic1"]) in (hostile, hostile.replace("Topic1, Topic0", "Topic0, Topic1"))
    many = unknown_topics(opened, [f"no-{n:03d}" + "y" * 300 for n in range(500)])
    assert many.startswith("this copy has no queue of these topics: no-000yyy") and " and 497 more" in many and len(many) < 1000


def test_a_queue_range_is_looked_up_and_a_damaged_entry_hides_nothing(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    records = [builder.put(Message(body=b"b" * 200)) for _ in range(60)]
    copy = builder.write(tmp_path / "store")
    words = ("--topic", "TopicA", "--queue", "0", "--from-queue-offset", "30", "--to-queue-offset", "33")
    wanted = [r.at for r in records[30:33]]
    read: list[str] = []
    real = message_answer.search
    monkeypatch.setattr(message_answer, "search", lambda scan, contents: (read.append(scan.path), real(scan, contents))[1])
    segments = len(list((copy.root / "commitlog").iterdir()))
    assert at(found(capsys, copy, *words)) == wanted and len(read) == segments  # a small log is read whole
    monkeypatch.setattr(by_queues, "SMALL_LOG_BYTES", 0)
    monkeypatch.setattr(by_queues, "ENTRY_BYTES", 1)
    for more, count in (((), 2), (("--limit", "2"), 1), (("--scan",), segments)):
        read.clear()
        assert entry.main([*words_of(copy), "--format", "jsonl", *words, *more]) == 0
        told = capsys.readouterr()
        assert at([json.loads(line) for line in told.out.splitlines()]) == wanted[: 2 if count == 1 else 3]
        assert len(read) <= count and ("answered from the ConsumeQueues" in told.err) == (more != ("--scan",))
    columns: list[tuple[str, ...]] = []
    monkeypatch.setattr(message_answer, "search", lambda scan, contents: (columns.append(scan.columns), real(scan, contents))[1])
    assert at(found(capsys, copy, *words, "--limit", "2", "--body", "text")) == wanted[:2]
    assert columns[0] == ("phy_offset",) and "body" in columns[1]  # what is looked at before the first line holds no bodies
    monkeypatch.setattr(message_answer, "search", lambda scan, contents: (read.append(scan.path), real(scan, contents))[1])
    queue = copy.root / "consumequeue" / "TopicA" / "0" / f"{400:020d}"
    overwrite(queue, 31 * 20 - 400, struct.pack(">q", records[5].at))
    read.clear()
    assert entry.main([*words_of(copy), "--format", "jsonl", *words]) == 0
    told = capsys.readouterr()
    assert at([json.loads(line) for line in told.out.splitlines()]) == wanted and len(read) == segments
    assert "the whole log is read: entry 31 of topic TopicA, queue 0 leads no further than entry 30" in told.err


def test_entries_that_lead_to_no_segment_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    records = [builder.put(Message(body=b"b" * 200)) for _ in range(60)]
    copy = builder.write(tmp_path / "store")
    (copy.root / "commitlog" / f"{4096:020d}").unlink()
    gone = [n for n, r in enumerate(records) if r.at // 4096 == 1]
    words = ["--topic", "TopicA", "--queue", "0", "--from-queue-offset"]
    lead = "that lead to physical offsets that no segment of this copy holds\n"
    for low, high, shown, sentence in (
        (gone[0], gone[0] + 3, 0, f"query: the ConsumeQueues have 3 entries there {lead}"),
        (gone[0] - 2, gone[0] + 1, 2, f"query: the ConsumeQueues have 1 entry there {lead.replace('lead', 'leads')}"),
        (0, 2, 2, ""),
    ):
        assert entry.main([*words_of(copy), "--format", "jsonl", *words, str(low), "--to-queue-offset", str(high)]) == 0
        answer = capsys.readouterr()
        assert len(answer.out.splitlines()) == shown
        assert answer.err == ("" if shown else "query: no message is found\n") + sentence


def test_a_message_that_is_missing_before_the_last_one_makes_the_first_few_unsure() -> None:
    def held(named: set[int], *batches: list[int]) -> int:
        choice = by_queues.QueueChoice({}, enough=2, named=frozenset(named))
        return len(message_answer._held(choice, iter([pa.record_batch({"phy_offset": batch}) for batch in batches])))

    assert held({10, 20, 40}, [10], [20, 30], [40]) == 2
    assert held({10, 15, 20}, [10], [20, 30]) == 0 and held({10, 20}, [10]) == 0


def witnessed(data: bytes, base: int) -> list[int]:
    """Physical offsets of all messages in a segment that an independent decoder finds, wherever they begin, and finds whole."""
    places = []
    for magic in (builders.V1, builders.V2):
        needle, place = struct.pack(">I", magic), 0
        while (place := data.find(needle, place)) >= 0:
            try:
                record = builders.decode(data, place - 4, base) if place >= 4 else None
            except (ValueError, struct.error):
                record = None
            if record is not None and intact(record):
                places.append(record.at)
            place += 1
    return sorted(places)


def intact(r: Record) -> bool:
    crc = r.raw_properties[-20:]
    if (
        crc.startswith(b"__CRC32#\x01")
        and crc[9:19] != builders.property_crc_text(zlib.crc32(builders.encode(r)[:-20]) & 0x7FFFFFFF).encode()
    ):
        return False
    return r.phy_offset == r.at and (not r.body or zlib.crc32(r.body) & 0x7FFFFFFF == r.body_crc)


@pytest.mark.parametrize("case", corpus_tools.cases(), ids=lambda case: case.name)
def test_every_whole_message_of_real_stores_is_found(case: Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    names = ["query", str(root), "--release", case.release, "--broker-conf", str(tmp_path / "broker.conf")]
    asked = read_query(options.parse([*names, "--format", "jsonl", "--columns", "phy_offset,status"]))
    store = StoreArgument("s", str(root), case.release, case.broker_conf)
    ours = {row["phy_offset"]: row["status"] for row in rows_of(store, asked)}
    named = [*(root / "commitlog").glob("*"), *root.glob("dledger-*/data/*")]
    files = [f for f in named if f.is_file() and f.name.isdigit() and f.stat().st_size]
    wanted = {place for f in files for place in witnessed(f.read_bytes(), int(f.name))}
    assert wanted == ours.keys()
    written = case.folder / "written.jsonl.gz"
    if written.exists():
        import gzip

        puts = [json.loads(line) for line in gzip.open(written)]
        kept = {put["offset"] for put in puts if put["status"] == "PUT_OK"} & wanted
        assert kept and kept <= ours.keys() or not wanted


# ---- the broker ------------------------------------------------------------------------------------------------------


def test_the_brokers_view_follows_entries_to_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=8192))
    records = [builder.put(Message(topic=f"T{n % 2}", body=b"b%d" % n, keys=f"k{n}")) for n in range(12)]
    copy = builder.write(tmp_path / "store")
    rows = found(capsys, copy, "--view", "broker")
    assert [(row["topic"], row["queue_offset"], row["phy_offset"], row["status"], row["note"]) for row in rows] == [
        (f"T{t}", n, records[2 * n + t].at, "served", None) for t in (0, 1) for n in range(6)
    ]
    queue = copy.root / "consumequeue" / "T0" / "0" / f"{0:020d}"
    data = bytearray(queue.read_bytes())
    struct.pack_into(">qi", data, 20, records[3].at, records[3].size)  # entry 1: another topic's message
    struct.pack_into(">qi", data, 40, records[4].at + 3, 60)  # entry 2: into the middle
    struct.pack_into(">qi", data, 60, records[6].at, 100_000)  # entry 3: more than was written
    queue.write_bytes(data)
    rows = found(capsys, copy, "--view", "broker", "--topic", "T0")
    assert [row["status"] for row in rows] == ["served", "served", "undecodable", "removed", "skipped", "skipped"]
    assert rows[1]["note"] == "the message says T1, queue 0, offset 1" and rows[1]["body_size"] == 2
    assert rows[2]["store_time"] is None and "no message" in rows[2]["note"]
    assert at(found(capsys, copy, "--view", "broker", "--topic", "T0", "--from-queue-offset", "1", "--limit", "1")) == [
        records[3].at
    ]
    assert at(found(capsys, copy, "--topic", "T0")) == [r.at for r in records[::2]]  # the copy has them all


def test_the_brokers_view_by_key_compares_hashes_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    one = builder.put(Message(topic="T", keys="Aa", body=b"1"))
    other = builder.put(Message(topic="T", keys="BB", body=b"2"))  # "Aa" and "BB" have one hash
    builder.put(Message(topic="T", keys="Cc"))
    copy = builder.write(tmp_path / "store")
    rows = found(capsys, copy, "--view", "broker", "--topic", "T", "--key", "Aa")
    assert [(row["phy_offset"], row["note"]) for row in rows] == [(one.at, None), (other.at, "another key with the same hash")]
    assert at(found(capsys, copy, "--key", "Aa")) == [one.at]
    late = str(one.store_time + 1)
    assert at(found(capsys, copy, "--view", "broker", "--topic", "T", "--key", "Aa", "--until", late)) == [one.at]


def test_the_brokers_view_ends_where_recovery_cuts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message(body=b"whatever")) for _ in range(6)]
    copy = builder.write(tmp_path / "store")
    path = copy.segment_of(records[3])
    invert_byte(path, records[3].at + 90, 1)
    assert at(found(capsys, copy, "--view", "broker")) == [r.at for r in records[:3]]
    assert at(found(capsys, copy)) == [r.at for n, r in enumerate(records) if n != 3]
    (copy.root / "commitlog" / "1").write_bytes(b"x")
    assert entry.main([*words_of(copy), "--view", "broker"]) == 3
    assert "would not start on this copy" in capsys.readouterr().err


# ---- what is printed -------------------------------------------------------------------------------------------------


def test_a_table_fits_and_says_that_there_is_more(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([*words_of(store), "--limit", "3", "--body", "text"]) == 0
    answer = capsys.readouterr()
    lines = answer.out.splitlines()
    assert lines[0].split() == [*TABLE_COLUMNS, "body"]
    assert [line.split()[0] for line in lines[1:]] == [str(r.at) for r in store.records[:3]]
    assert len({line.index("valid") for line in lines[1:]}) == 1
    assert answer.err == "query: 3 shown, and there are more: raise --limit, or narrow the search\n"
    assert entry.main([*words_of(store), "--limit", "60"]) == 0
    assert not capsys.readouterr().err


def test_wide_letters_and_long_texts_keep_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jobs.report.texts.query_text import Table

    lines: list[str] = []
    table = Table(["topic", "phy_offset", "keys"], "none", 40, False, lines.append)
    for row in (("订单", 5, "k" * 500), ("orders", 123456789012345, "短" * 40), ("o\u0301", 7, "")):
        table.add(dict(zip(["topic", "phy_offset", "keys"], row, strict=True)))
    table.finish()
    assert lines[1].startswith("订单    ") and lines[3].startswith("o\u0301       ")
    assert lines[2].split()[1] == "123456789012345"
    assert len(lines[1].rstrip("\n")) <= 38 and lines[1].endswith("…\n") and lines[2].endswith("…\n")


def test_hostile_names_and_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    for name in HOSTILE:
        builder.put(Message(topic=name, keys=name.replace(" ", ""), body=name.encode(), uniq=f"U{name}"))
    # Names that no folder can have are in the log alone, as damage leaves them.
    builder.records, kept = [r for r in builder.records if r.topic not in ("..", "../../x")], builder.records
    copy = builder.write(tmp_path / "store")
    for view in ("copy", "broker"):
        for form in ("table", "jsonl"):
            assert entry.main([*words_of(copy), "--format", form, "--body", "text", "--view", view]) == 0
            out = capsys.readouterr().out
            assert not set(out) & set("\x1b\u202e\x07") and "RETRY" in out, view
    assert [row["topic"] for row in found(capsys, copy)] == HOSTILE
    for name, record in zip(HOSTILE, kept, strict=True):
        for words in (("--topic", name), ("--key", f"U{name}"), ("--body-contains", name)):
            assert record.at in at(found(capsys, copy, *words)), (name, words)


def test_letters_that_a_terminal_does_not_have_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    builder.put(Message(topic="订单", keys="\u05d0"))
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, "gbk"))
    assert entry.main(words_of(builder.write(tmp_path / "store"))) == 0
    sys.stdout.flush()
    line = output.getvalue().decode("gbk").splitlines()[1]
    assert "订单" in line and "\\u05d0" in line


@pytest.mark.parametrize("mode", ["hide", "hash"])
def test_redaction(store: Store, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    for view in ("copy", "broker"):
        words = ("--body", "text", "--view", view, "--topic", "Topic0")
        assert "body number 002" in json.dumps(found(capsys, store, *words))
        rows = found(capsys, store, *words, "--redact", mode)
        text = json.dumps(rows)
        assert len(rows) == 30 and "Topic0" in text
        assert not any(word in text for word in ("body number", "U0002", "k2", "shared"))
        assert {(row["tags_code"], row["body_crc"]) for row in rows} == {(None, None)}  # words and short bodies can be tried
        assert mode == "hash" or {row["tags"] for row in rows} == {"(hidden)"}
    tokens = [row["unique_key"] for row in found(capsys, store, "--redact", mode)]
    assert (tokens[3] == tokens[33]) and (mode == "hide" or len(set(tokens)) == 59)


def test_arguments_that_make_no_sense(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for words, code, sentence in (
        (["--limit", "0"], 2, "--limit '0': must be a whole number from 1"),
        (["--columns", "phy_offset,colour"], 2, "'colour': no such column; there are file,"),
        (["--columns", "topic,topic"], 2, "twice"),
        (["--columns", "body"], 2, "--body text"),
        (["--queue", "x"], 2, "--queue 'x': not a number"),
        (["--since", "yesterday"], 2, "--since 'yesterday'"),
        (["--from-queue-offset", "3"], 2, "say --topic"),
        (["--phy-offset", "ten"], 2, "--phy-offset 'ten': not a number"),
        (["--offset-msg-id", "0A09"], 2, "not 32 or 56 hexadecimal digits"),
        (["--offset-msg-id", "0" * 32, "--phy-offset", "7"], 2, "names physical offset 0"),
        (["--body-contains", "hex:0G"], 2, "pairs of hexadecimal digits"),
        (["--key", "a", "--unique-key", "b"], 2, "either --key"),
        (["--view", "broker", "--key", "a"], 2, "say --topic"),
        (["--release", "2.0.0"], 2, "2.0.0"),
        (["--colums", "topic"], 2, "did you mean --columns?"),
        (["--deploy-mode", "cluster"], 2, "--deploy-mode client"),
        (["--conf", "spark.submit.deployMode=cluster"], 2, "--deploy-mode client"),
    ):
        assert entry.main(["query", str(store.root), *words]) == code, words
        answer = capsys.readouterr()
        assert sentence in answer.err and answer.err.count("\n") == 1 and not answer.out, (words, answer.err)
    for path, sentence in ((tmp_path / "none", "there is nothing of this name"), (tmp_path / "empty", "an empty directory")):
        for view in ("copy", "broker"):
            assert entry.main(["query", str(path), "--view", view]) == 3
            assert sentence in capsys.readouterr().err
    assert entry.main(["query"]) == 2


def test_a_store_without_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    for words in ([], ["--view", "broker"], ["--phy-offset", "7"], ["--key", "k"], ["--format", "jsonl"]):
        assert entry.main(["query", str(tmp_path / "store"), *words, "--release", "5.3.3"]) == 0
        answer = capsys.readouterr()
        assert not answer.out and answer.err.startswith("query: no message is found")
        assert answer.err.endswith(": this copy holds no CommitLog segment\n")


# ---- through Spark ---------------------------------------------------------------------------------------------------


class _Workers:
    """Workers that run what they are given at once: what a wave asks for and brings back is looked at here."""

    def __init__(self, count: int = 2) -> None:
        self.count, self.tasks, self.brought = count, list[Task](), list[int]()

    def at_once(self, size: int) -> int:
        return self.count

    def run(self, tasks: Sequence[Task], describe: str) -> list[Any]:
        self.tasks += tasks
        results = [run_task(task) for task in tasks]
        self.brought += [sum(batch.nbytes for batch in pyarrow.ipc.open_stream(result.stream)) for result in results]
        return results


@pytest.mark.parametrize("most_rows", [10_000, 3])
def test_waves_keep_the_order_and_end_early(store: Store, most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_answer, "TASK_ROWS", most_rows)
    for words, wanted in (
        (["--limit", "7"], [r.at for r in store.records[:8]]),
        (["--limit", "50", "--topic", "Topic1"], [r.at for r in store.records[1::2]]),
        (["--limit", "9", "--key", "k59"], [store.records[59].at]),
    ):
        asked = read_query(options.parse([*words_of(store), *words]))
        workers = _Workers()
        assert [row["phy_offset"] for row in rows_of(argument(store), asked, workers)][: len(wanted)] == wanted
        segments = len(list((store.root / "commitlog").iterdir()))
        assert (len(workers.tasks) < segments) == (words[1] == "7")


def test_a_wave_brings_back_no_more_than_the_driver_can_hold(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tasks run at once, and though a batch of bodies alone may be more than all of them may bring."""
    monkeypatch.setattr(message_answer, "WAVE_BYTES", 1600)
    workers = _Workers(4)
    asked = read_query(options.parse([*words_of(store), "--limit", "60", "--body", "text"]))
    assert [row["phy_offset"] for row in rows_of(argument(store), asked, workers)] == [r.at for r in store.records]
    assert 1 < len(workers.brought) <= 4 and 0 < sum(workers.brought) <= 1600


def test_a_task_that_fails_elsewhere_ends_the_search_in_a_sentence(store: Store) -> None:
    asked = read_query(options.parse([*words_of(store), "--limit", "60"]))
    gap = Gap(Cause.TASK_FAULT, values=("why",))
    for result, sentence in (
        (gap, f"a task failed: {gap_text(gap)}"),
        (PartlyRead(None, {"f": Gap(Cause.UNREADABLE, "f", ("f: cannot be read",))}), "f: cannot be read"),
    ):
        workers = SimpleNamespace(at_once=lambda size: 2, run=lambda tasks, describe, result=result: [result for _ in tasks])
        with pytest.raises(StoreError) as raised:
            list(rows_of(argument(store), asked, workers))  # type: ignore[arg-type]
        assert str(raised.value) == sentence


def test_a_search_through_spark(store: Store, spark: Any) -> None:
    """The same answer where Spark's own workers run the tasks."""
    asked = read_query(options.parse([*words_of(store), "--limit", "9", "--body-contains", "number 01", "--body", "text"]))
    lazy: Any = SimpleNamespace(wanted=lambda size: True, session=SimpleNamespace(context=spark.sparkContext))
    rows = rows_of(argument(store), asked, SparkWorkers(lazy))
    assert [row["body"] for row in rows][:9] == [(f"body number {n:03d} " * 8).encode() for n in range(10, 19)]


def test_a_lookup_in_the_brokers_view_keeps_to_the_queues_store(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    record = store.records[7]
    place = ["--view", "broker", "--phy-offset", str(record.at)]
    assert at(found(capsys, store, *place, "--topic", record.topic, "--queue", str(record.queue_id))) == [record.at]
    assert found(capsys, store, *place, "--topic", "Topic0") == []
    assert found(capsys, store, *place, "--topic", record.topic, "--queue", "9") == []
    key = ["--view", "broker", "--topic", record.topic, "--key", "k7"]
    assert at(found(capsys, store, *key)) == [record.at]
    assert found(capsys, store, *key, "--queue", "9") == []
    assert found(capsys, store, *key, "--from-queue-offset", str(record.queue_offset + 1)) == []


@pytest.mark.parametrize("option", ["--key", "--unique-key"])
def test_a_key_that_is_no_utf8_is_a_usage_error(option: str, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([*words_of(store), option, "\udcff"]) == 2
    assert "not UTF-8" in capsys.readouterr().err


# ---- what a start would lose -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[int]]:
    """(words that name a store, physical offsets of the messages that a start would cut)."""
    root, conf, at = damaged_store(tmp_path_factory.mktemp("cut") / "store")
    (root.parent / "broker.conf").write_text(conf, encoding="utf-8")
    return ["query", str(root), "--release", "5.3.3", "--broker-conf", str(root.parent / "broker.conf")], at[12:]


def test_lost_messages_are_those_of_the_plan(cut: tuple[list[str], list[int]], capsys: pytest.CaptureFixture[str]) -> None:
    words, lost = cut
    assert entry.main([*words, "--lost", "--format", "jsonl", "--body", "text"]) == 0
    said = capsys.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert at(rows) == lost and {row["lost"] for row in rows} == {"cut"} and rows[0]["body"] == "body 12" * 9
    assert "a start of RocketMQ 5.3.3 would lose 8 of the messages in this copy" in said.err
    assert entry.main([*words, "--lost", "--limit", "2"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split()[-1] == "lost" and len(said.out.splitlines()) == 3 and "there are more" in said.err
    assert entry.main([*words, "--lost", "--topic", "nothing"]) == 0
    assert "no lost message is found" in capsys.readouterr().err


def test_the_column_says_it_of_all_messages(cut: tuple[list[str], list[int]], capsys: pytest.CaptureFixture[str]) -> None:
    words, lost = cut
    assert entry.main([*words, "--format", "jsonl", "--columns", "phy_offset,lost"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["phy_offset"] for row in rows if row["lost"] == "cut"] == lost and len(rows) == 19


def test_lines_to_send_again_go_to_a_file_whole_or_not_at_all(
    cut: tuple[list[str], list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, lost = cut
    out = tmp_path / "lost.jsonl"
    assert entry.main([*words, "--lost", "--format", "resend", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="ascii").splitlines()]
    assert at(lines) == lost and all(line["why_not"] is None for line in lines) and capsys.readouterr().out == ""
    before = out.read_bytes()
    assert entry.main([*words, "--lost", "--format", "resend", "--out", str(out)]) == 2 and out.read_bytes() == before
    assert "is there already; name a new file" in capsys.readouterr().err
    hidden = tmp_path / "hidden.jsonl"
    assert entry.main([*words, "--lost", "--format", "resend", "--redact", "hide", "--out", str(hidden)]) == 0
    assert "body 12" not in hidden.read_text(encoding="ascii") and "would lose 8" in capsys.readouterr().err
    assert entry.main([*words, "--lost", "--out", str(tmp_path / "no" / "folder")]) == 2
    said = capsys.readouterr().err
    assert "there is no folder" in said and "would lose" not in said  # before the audit
    assert entry.main([*words, "--lost", "--out", str(tmp_path)]) == 2
    assert sorted(os.listdir(tmp_path)) == ["hidden.jsonl", "lost.jsonl"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--lost", "--view", "broker"], "--view broker"),
        (["--view", "broker", "--columns", "lost"], "--view broker"),
        (["--format", "resend", "--columns", "topic"], "--columns does not go with"),
        (["--format", "resend", "--body", "text"], "--body does not go with"),
        (["--out", "s3://bucket/x"], "not a URI"),
    ],
)
def test_words_that_do_not_go_together(
    cut: tuple[list[str], list[int]], more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main([*cut[0], *more]) == 2
    assert sentence in capsys.readouterr().err
    assert entry.main([*cut[0], "--out", cut[0][1] + "/x"]) == 2
    assert "a store is never written to" in capsys.readouterr().err


def test_where_a_start_would_refuse_nothing_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, conf, _ = damaged_store(tmp_path / "store")
    (tmp_path / "broker.conf").write_text(conf, encoding="utf-8")
    path = next((root / "commitlog").iterdir())
    path.write_bytes(path.read_bytes()[:-5])
    words = ["query", str(root), "--release", "5.3.3", "--broker-conf", str(tmp_path / "broker.conf")]
    assert entry.main([*words, "--lost"]) == 3
    said = capsys.readouterr()
    assert "would not start on this copy" in said.err and not said.out


def test_a_range_of_a_queue_in_rocksdb_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its entries are in no file: that is no fault of an answer that the CommitLog gives."""
    pytest.importorskip("rocksdict")
    made, conf = keyed_store(tmp_path / "s").write(), tmp_path / "broker.conf"
    conf.write_text(made.broker_conf, encoding="utf-8")
    words = ["query", str(made.root), "--release", "5.3.3", "--broker-conf", str(conf), "--topic", "Topic0", "--queue", "0"]
    assert entry.main([*words, "--from-queue-offset", "0"]) == 0
    assert "not given as rows" not in capsys.readouterr().err
