"""The record-level datasets equal a plain reference dispatch of all valid messages, entry for entry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.tables.datasets import DatasetPlan, scan_and_write
from jobs.tables.file_statistics import statistics_in
from jobs.tables.table_files import hadoop_path
from schemas.arrow import DATASET_SCHEMAS
from schemas.rows import EXTENT_MESSAGE
from schemas.tables import DATASETS
from store_io.audit.audit_store import StoreAudit
from store_io.base.times import LAST_TIME_MS
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.damage import invert_byte
from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, StoreBuilder
from tests.support.stores.corpus_tools import cases

Row = dict[str, Any]
ALL = tuple(DATASETS)


def written(root: Path, release: str, conf: str, out: Path, **options: Any) -> tuple[StoreAudit, dict[str, list[Row]]]:
    """The audit and the rows of all datasets, from the files that each segment's task wrote."""
    audit = StoreAudit(AuditRequest("s", StoreLocation(str(root)), release, conf, **options))
    rows: dict[str, list[Row]] = {name: [] for name in ALL}
    tasks = [task for task in audit.first_tasks() if isinstance(task, SegmentTask)]
    for task in sorted(tasks, key=lambda task: task.base_offset):
        output = scan_and_write(task, DatasetPlan(str(out), "run", ALL), "s")
        assert output.problem is None and output.summary.problem is None
        for name, file in output.files.items():
            table = pq.ParquetFile(hadoop_path(file.uri)).read()
            assert table.schema.equals(DATASET_SCHEMAS[name])
            assert (table.num_rows, os.path.getsize(hadoop_path(file.uri))) == (file.statistics.rows, file.size_bytes)
            assert file.statistics == statistics_in(hadoop_path(file.uri)) and file.statistics.bounds
            for row in table.to_pylist():
                for column in DATASETS[name]:
                    if column.ms:  # the same time once more
                        assert row.pop(column.name) == in_ms(row[column.ms])
                rows[name].append(row)
    return audit, rows


def in_ms(ms: int) -> datetime | None:
    """As a timestamp holds it."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms) if 0 <= ms <= LAST_TIME_MS else None


def expected(
    records: Sequence[Record], dispatcher: builders.Dispatcher, lmq: bool, plausible: Any = None
) -> dict[str, list[Row]]:
    """Plain dispatch, one record after the other."""
    rows: dict[str, list[Row]] = {name: [] for name in ALL}
    for r in records:
        found = r.properties
        behind = bool(plausible and plausible(r))
        code = builders.tags_code(r)
        base, count = r.queue_offset, 1
        if "INNER_BASE" in found and "INNER_NUM" in found and builders.version_of(dispatcher.release) >= (5, 0, 0):
            base, count = int(found["INNER_BASE"]), int(found["INNER_NUM"])
        rows["messages"].append(
            {
                "phy_offset": r.phy_offset, "total_size": r.size, "topic": r.topic, "queue_id": r.queue_id,
                "queue_offset": r.queue_offset, "store_time_ms": r.store_time, "born_time_ms": r.born_time,
                "tags": found.get("TAGS"), "keys": found.get("KEYS"), "unique_key": found.get("UNIQ_KEY"), "tags_code": code,
                "sys_flag": r.sys_flag, "flag": r.flag, "body_size": len(r.body), "body_crc": r.body_crc,
                "properties_size": len(r.raw_properties), "reconsume_times": r.reconsume_times,
                "prepared_offset": r.prepared_offset, "batch_base": base, "batch_count": count, "plausible": behind,
            }
        )  # fmt: skip
        common = {"phy_offset": r.phy_offset, "store_time_ms": r.store_time, "plausible": behind}
        if r.transaction in (0, builders.COMMIT):
            entry = {**common, "size": r.size, "tags_code": code, "message_count": 1, "kind": "queue"}
            if r.topic in dispatcher.batch_topics:
                own = {"queue_offset": base, "message_count": count, "kind": "batch"}
                rows["consumequeue"].append({**entry, "topic": r.topic, "queue_id": r.queue_id, **own})
            else:
                rows["consumequeue"].append({**entry, "topic": r.topic, "queue_id": r.queue_id, "queue_offset": r.queue_offset})
                for name, queue_id, offset in dispatcher.lmq_of(r) if lmq else ():
                    rows["consumequeue"].append(
                        {**entry, "topic": name, "queue_id": queue_id, "queue_offset": offset, "kind": "lmq"}
                    )
        kinds = ["unique"] if "UNIQ_KEY" in found else []
        for number, text in enumerate(dispatcher.index_keys(r)):
            key = text[len(r.topic) + 1 :]
            kind = (kinds + ["key"] * 10_000)[number]
            if key.startswith("T#") and number == len(dispatcher.index_keys(r)) - 1:
                key, kind = key[2:], "tag"
            row = {"number": number, "key_hash": builders.index_hash(text), "topic": r.topic, "key": key, "kind": kind}
            rows["index"].append({**common, **row})
    return rows


def same(rows: dict[str, list[Row]], wanted: dict[str, list[Row]]) -> None:
    for name in ALL:
        assert len(rows[name]) == len(wanted[name]), name
        for mine, reference in zip(rows[name], wanted[name], strict=True):
            assert {key: value for key, value in mine.items() if key != "segment"} == reference


def records_of(root: Path) -> Iterator[Record]:
    for path in sorted((root / "commitlog").iterdir()):
        yield from builders.walk(path.read_bytes(), int(path.name))


@pytest.mark.parametrize("name", ["g04-533-clean-all", "g29-498-cq-wrong", "g71-498-cq-last-file-zero", "g41-533-fresh"])
@pytest.mark.parametrize("release", ["", "5.4.0"])
def test_real_stores(tmp_path: Path, name: str, release: str) -> None:
    (case,) = cases(name)
    root = case.unpack(tmp_path)
    release = release or case.release
    audit, rows = written(root, release, case.broker_conf, tmp_path / "out", window_bytes=1 << 16)
    dispatcher = builders.Dispatcher(release, batch_topics=audit.batch_topics, lmq=True)
    same(rows, expected(list(records_of(root)), dispatcher, bool(audit.rules.multi_dispatch)))
    messages = len(rows["messages"]) + sum(row["message_count"] - 1 for row in rows["consumequeue"])
    assert messages == sum(e.message_count for e in _extents(audit, root)) > 100 or name == "g41-533-fresh"


def _extents(audit: StoreAudit, root: Path) -> list[Any]:
    from store_io.log.scan.segment_scan import scan_segment

    tasks = [task for task in audit.first_tasks() if isinstance(task, SegmentTask)]
    return [e for task in tasks for e in scan_segment(task).extents if e.kind == EXTENT_MESSAGE]


def odd_store(root: Path) -> builders.Store:
    """Texts of every kind, keys of every form, transactions, an inner batch, LMQ, a record larger than a small window."""
    b = StoreBuilder("5.4.0", builders.Sizes(segment=1 << 16), batch_topics=["batch"], lmq=True)
    big = b"x" * 20_000
    for i in range(30):
        b.put(Message("主题", i % 3, b"%d" % i, tags="标签🚀", keys=f"a  b {i} ü", uniq=f"U{i}"))
        b.put(Message("plain", 0, big if i == 7 else b"y", tags="t" if i % 2 else None, keys="k" if i % 3 else None))
        b.put(
            Message(
                "plain", 0, b"p", uniq=f"P{i}", tags="t", sys_flag=(builders.PREPARED, builders.COMMIT, builders.ROLLBACK)[i % 3]
            )
        )
        b.put(Message("batch", 1, b"inner", uniq=f"B{i}", inner_count=1 + i % 4))
        b.put(Message("lite", 2, b"l", lmq=("%LMQ%one", "%LMQ%two"), keys=" " * (i % 3)))
    return b.write(root)


@pytest.mark.parametrize("window", [4096, 1 << 22])
@pytest.mark.parametrize("release", ["5.3.3", "5.4.0"])
def test_odd_texts_and_windows(tmp_path: Path, window: int, release: str) -> None:
    store = odd_store(tmp_path / "store")
    audit, rows = written(store.root, release, store.broker_conf, tmp_path / "out", window_bytes=window)
    dispatcher = builders.Dispatcher(release, batch_topics=audit.batch_topics, lmq=True)
    same(rows, expected(store.records, dispatcher, True))
    assert {row["kind"] for row in rows["consumequeue"]} == {"queue", "batch", "lmq"}


def test_messages_behind_damage_are_marked_and_text_that_is_none_is_replaced(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    broken = store.records[20]
    path = store.segment_of(broken)
    invert_byte(path, store.position_of(broken) + 4, 0xFF)
    audit, rows = written(store.root, "5.4.0", store.broker_conf, tmp_path / "out")
    dispatcher = builders.Dispatcher("5.4.0", batch_topics=audit.batch_topics, lmq=True)
    rest = [r for r in store.records if r.at != broken.at]
    segment = broken.at - broken.at % store.sizes.segment
    same(
        rows,
        expected(rest, dispatcher, True, lambda r: segment <= r.at - r.at % store.sizes.segment <= segment and r.at > broken.at),
    )


def test_bytes_that_are_no_utf8_are_read_as_java_reads_them(tmp_path: Path) -> None:
    b = StoreBuilder("5.3.3", builders.Sizes(segment=1 << 14))
    b.put(Message(raw_properties=b"TAGS\x01\xff\xfe\x02KEYS\x01a\xc3 b\x02"))
    store = b.write(tmp_path / "store")
    _, rows = written(store.root, "5.3.3", store.broker_conf, tmp_path / "out")
    assert (rows["messages"][0]["tags"], rows["messages"][0]["keys"]) == ("\ufffd\ufffd", "a\ufffd b")
    assert [row["key"] for row in rows["index"]] == ["a\ufffd", "b"]


def test_what_cannot_be_written_does_not_harm_the_scan(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    (tmp_path / "out").write_text("a file where the tables should be")
    audit = StoreAudit(AuditRequest("s", StoreLocation(str(store.root)), "5.4.0", store.broker_conf))
    task = next(task for task in audit.first_tasks() if isinstance(task, SegmentTask))
    output = scan_and_write(task, DatasetPlan(str(tmp_path / "out"), "run", ALL), "s")
    assert output.problem is not None and "cannot write" in output.problem.sentence and output.files == {}
    assert output.summary.problem is None and output.summary.extents


def test_a_segment_that_cannot_be_read_leaves_no_file(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    audit = StoreAudit(AuditRequest("s", StoreLocation(str(store.root)), "5.4.0", store.broker_conf))
    task = next(task for task in audit.first_tasks() if isinstance(task, SegmentTask))
    os.truncate(store.root / task.path, task.size - 1)
    output = scan_and_write(task, DatasetPlan(str(tmp_path / "out"), "run", ALL), "s")
    assert output.summary.problem and output.files == {}
    assert list((tmp_path / "out").rglob("*.parquet")) == []
