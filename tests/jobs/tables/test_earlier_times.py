"""Segments that earlier audits rule out hold none of the messages that are asked for; whatever changed since is read."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs import RULES_VERSION, entry
from jobs.sources.conditions import Condition
from jobs.sources.message_source import MessagesSource
from jobs.tables.earlier_times import earlier_times
from store_io.audit.audit_store import run_local
from store_io.base.errors import UsageError
from store_io.messages.choice.by_tables import EarlierTimes, needed
from store_io.messages.open_store import OpenStore, open_store
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, Sizes, StoreBuilder

RELEASE, HOUR, SEGMENT = "5.3.3", 3_600_000, 2048
NOON = 1_700_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Eight messages a segment; the clock goes back twice, and one stored time is 0."""
    builder, clock = StoreBuilder(RELEASE, Sizes(segment=SEGMENT)), random.Random(7)
    for number in range(64):
        hours = number - (40 if 24 <= number < 32 else 0) - (30 if number >= 50 else 0)
        time = 0 if number == 11 else NOON + hours * HOUR + clock.randrange(HOUR)
        builder.put(Message("TopicA", number % 2, b"b" * 100, store_time=time))
    return builder.write(tmp_path / "store").root


def opened(root: Path) -> OpenStore:
    return open_store(StoreLocation(str(root)), RELEASE)


def write_run(root: Path, tables: Path, run_id: str = "r1", day: int = 1, **other: Any) -> None:
    """The rows that matter, as an audit makes them. other: columns of `runs` with other values."""
    outcome = run_local(AuditRequest("it's", StoreLocation(str(root)), RELEASE))
    settings = [{"key": key, "value": str(s.value), "from": "default"} for key, s in opened(root).rules.settings.items()]
    run = {
        "run_id": run_id, "store": "it's", "location": str(root), "release": RELEASE, "rules_version": RULES_VERSION,
        "settings": settings, "started_at": datetime(2026, 11, day, tzinfo=UTC), **other,
    }  # fmt: skip
    write_deltalake(str(tables / "runs"), pa.table({name: [value] for name, value in run.items()}), mode="append")
    rows = [{**row, "run_id": run_id, "store": "it's", "problem": "", "verified_run": run_id} for row in outcome.rows.segments]
    names = ("run_id", "store", "file", "size_bytes", "modified_ns", "edge_digest", "verified_run", "problem")
    names += ("first_store_time_ms", "last_store_time_ms")
    columns = {name: [row.get(name) for row in rows] for name in names}
    write_deltalake(str(tables / "segments"), pa.table(columns), mode="append")


def lines(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[int], str]:
    """(physical offsets, what is said beside them)."""
    assert entry.main(["query", str(root), "--release", RELEASE, "--format", "jsonl", *words]) == 0
    said = capsys.readouterr()
    return [json.loads(line)["phy_offset"] for line in said.out.splitlines()], said.err


def test_the_answer_is_that_of_the_whole_log(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(store, tmp_path / "tables")
    skipped = 0
    for low, high in ((0, 1), (10, 14), (-20, -8), (30, 33), (50, 60), (200, 201)):
        words = ("--since", str(NOON + low * HOUR), "--until", str(NOON + high * HOUR))
        whole, _ = lines(store, capsys, *words)
        found, said = lines(store, capsys, *words, "--tables", str(tmp_path / "tables"))
        assert found == whole and "segments not read: as run r1 saw them" in said
        skipped += int(said.split("query: ")[1].split(" of ")[0])
    assert 18 <= skipped < 42  # of 7 segments in 6 answers
    found, said = lines(store, capsys, "--until", "1970-01-02", "--tables", str(tmp_path / "tables"))
    assert len(found) == 1  # the message with the time 0: of its segment the table says nothing


def ruled_out(root: Path, tables: Path) -> list[int]:
    """Which segments, by number, hold nothing of a time at which no broker wrote anything."""
    source = opened(root)
    segments = sorted(source.segments(), key=lambda f: f.start)
    kept = needed(segments, earlier_times(str(tables), source, RELEASE), (NOON + 9999 * HOUR, None))
    return [number for number, file in enumerate(segments) if file not in kept]


def test_columns_of_other_types_say_nothing(store: Path, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    write_run(store, tables)
    whole = DeltaTable(str(tables / "segments")).to_pyarrow_table()
    for name, value in (("first_store_time_ms", "a"), ("last_store_time_ms", float("nan")), ("edge_digest", 7)):
        column = pa.array([value] * whole.num_rows)
        other = whole.set_column(whole.schema.get_field_index(name), name, column)
        write_deltalake(str(tables / "segments"), other, mode="overwrite", schema_mode="overwrite")
        assert ruled_out(store, tables) == []


@pytest.mark.parametrize("other", [{"settings": "a"}, {"settings": [1]}, {"run_id": 7}, {"settings": [{"key": 1}]}])
def test_runs_of_other_types_do_not_count(store: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    write_run(store, tmp_path / "tables", **other)
    assert "have no run of the store" in earlier_times(str(tmp_path / "tables"), opened(store), RELEASE).refused


def test_what_changed_since_is_read(store: Path, tmp_path: Path) -> None:
    tables, segments = tmp_path / "tables", sorted(opened(store).segments(), key=lambda f: f.start)
    write_run(store, tables)
    known = ruled_out(store, tables)
    assert known == [0, 2, 3, 4, 5, 6]
    touched, edged, cut = (store / segments[number].path for number in (2, 3, 4))
    os.utime(touched, ns=(1, 1))
    for path, damage in ((edged, b"x"), (cut, b"")):  # an edge, a length: with the time as it was
        before = path.stat()
        with path.open("r+b") as file:
            file.seek(100)
            file.write(damage)
            file.truncate(SEGMENT if damage else SEGMENT - 512)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    rest = earlier_times(str(tables), opened(store), RELEASE)
    assert sorted(rest.segments) == [segments[number].path for number in known if number not in (2, 3, 4)]


@pytest.mark.parametrize(
    "other", [{"release": "5.3.2"}, {"rules_version": "0"}, {"settings": [{"key": "a", "value": "b", "from": ""}]}]
)
def test_runs_that_judged_otherwise_do_not_count(store: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    tables = tmp_path / "tables"
    write_run(store, tables, **other)
    found = earlier_times(str(tables), opened(store), RELEASE)
    assert not found.segments and "have no run of the store" in found.refused and "with release" in found.refused
    assert ruled_out(store, tables) == []
    write_run(store, tables, "r2", day=2)
    write_run(store, tables, "r3", day=3, location="/elsewhere")
    assert earlier_times(str(tables), opened(store), RELEASE).run_id == "r2"


def test_without_tables(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="holds no tables of audits"):
        earlier_times(str(tmp_path / "none"), opened(store), RELEASE)
    write_run(store, tmp_path / "tables", location="/elsewhere")
    assert earlier_times(str(tmp_path / "tables"), opened(store), RELEASE) == EarlierTimes(
        refused=f"the tables {tmp_path / 'tables'} have no run of the store {store}"
    )
    for words, why in (
        (("--tables", str(tmp_path)), "say --since or --until"),
        (("--tables", str(tmp_path), "--since", "2026-11-22", "--scan"), "cannot be combined with --tables"),
        (("--tables", str(tmp_path), "--since", "2026-11-22", "--view", "broker"), "cannot be combined with --view broker"),
    ):
        assert entry.main(["query", str(store), *words]) == 2
        assert why in capsys.readouterr().err


def test_the_source_skips_the_same(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(store, tmp_path / "tables")

    def starts(**more: str) -> tuple[list[int], list[int]]:
        source = MessagesSource({"path": str(store), "release": RELEASE, **more})
        reader: Any = source.reader(source.schema())
        reader.take_over(Condition("GreaterThanOrEqual", "store_time_ms", (NOON + 45 * HOUR,)))
        parts = reader.partitions()
        rows = [row["phy_offset"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        return sorted({part.value.file.start for part in parts}), sorted(rows)

    (whole, rows), (kept, found) = starts(), starts(tables=str(tmp_path / "tables"))
    assert rows == found and len(rows) > 3 and set(kept) < set(whole)
    said = f"rocketmq.messages: {len(whole) - len(kept)} of {len(whole)} segments not read: as run r1 saw them"
    assert said in capsys.readouterr().err
    assert starts(tables=str(tmp_path / "tables"), trust_clock="false") == (kept, found)
