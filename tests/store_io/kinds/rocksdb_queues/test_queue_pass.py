"""One pass over the entries of queues: numbers, odd keys, ends, bad bytes."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.rows import QueueKey
from store_io.broker.queues.rocksdb_queue_state import QueueEnd
from store_io.kinds.rocksdb_queues.queue_pass import KeyRangeResult, KeyRangeTask, pass_over
from store_io.log.entries.queue_keys import queue_prefix
from store_io.log.entries.stored_entries import EntryReader
from store_io.rocksdb import database
from store_io.rocksdb.database import find_database
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.rocksdb_stores import entry_key, entry_value, write_database

Entries = dict[tuple[str, int, int], tuple[int, int, int, int]]
MANY: Entries = {("T", 0, n): (100 * n, 90, n, 7) for n in range(5000)}


def task(root: Path, maxima: dict[QueueKey, QueueEnd], log_min: int = 0) -> KeyRangeTask:
    location = StoreLocation(str(root))
    files = open_source(location).list_tree("consumequeue")
    return KeyRangeTask(0, location, find_database(files, "consumequeue"), b"", None, maxima, log_min)


def write(root: Path, entries: Entries, *odd: tuple[bytes, bytes]) -> None:
    write_database(root / "consumequeue", {"default": [*((entry_key(*k), entry_value(*v)) for k, v in entries.items()), *odd]})


def passed(asked: KeyRangeTask) -> KeyRangeResult:
    result = pass_over(asked)
    assert result.problem is None, f"the process that reads the database failed: {result.problem}"
    return result


def used(result: KeyRangeResult) -> dict[QueueKey, list[tuple[int, int]]]:
    return {queue.key: queue.used for queue in result.queues}


def test_numbers_by_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BATCH_ROWS", 7)
    entries: Entries = {("T", 0, n): (10 * n, 5, 0, 1) for n in (0, 1, 2, 5, 6, 9)}
    entries |= {("T", 1, n): (10 * n, 5, 0, 1) for n in range(20)} | {("Longer", 0, 3): (30, 5, 0, 1)}
    write(tmp_path, entries)
    maxima = {("T", 0): QueueEnd(60, 6), ("T", 1): QueueEnd(190, 19), ("Longer", 0): QueueEnd(30, 3), ("None", 0): QueueEnd(0, 4)}
    result = passed(task(tmp_path, maxima, log_min=40))
    assert used(result) == {("T", 0): [(5, 7)], ("T", 1): [(4, 20)], ("Longer", 0): [], ("None", 0): []}
    assert not result.findings and not any(queue.findings for queue in result.queues)


def test_ranges_of_keys_together_give_all(tmp_path: Path) -> None:
    write(tmp_path, {("T", q, n): (10 * n, 5, 0, 1) for q in range(4) for n in range(9)})
    maxima = {("T", q): QueueEnd(80, 8) for q in range(4)}
    whole = task(tmp_path, maxima)
    edge = queue_prefix(("T", 2))
    parts = [
        passed(replace(whole, end=edge, maxima={k: v for k, v in maxima.items() if k[1] < 2})),
        passed(replace(whole, first=edge, maxima={k: v for k, v in maxima.items() if k[1] >= 2})),
    ]
    assert used(parts[0]) | used(parts[1]) == used(passed(whole)) == {key: [(0, 9)] for key in maxima}


def test_what_no_broker_writes(tmp_path: Path) -> None:
    odd = [(b"short", b""), (b"\0\0\0\x09" + bytes(30), entry_value(1, 2, 3, 4)), (entry_key("T", 0, 1), b"cut")]
    write(tmp_path, {("T", 0, 0): (0, 5, 0, 1)}, *odd)
    result = passed(task(tmp_path, {("T", 0): QueueEnd(0, 0)}))
    assert used(result) == {("T", 0): [(0, 1)]}
    assert sorted((f.code, f.count) for f in result.findings) == [("queue_entry_invalid", 1), ("queue_entry_invalid", 2)]


@pytest.mark.parametrize(
    ("end", "actual"), [(QueueEnd(20, 2), ""), (QueueEnd(25, 2), "leads to 20"), (QueueEnd(30, 3), "no entry")]
)
def test_an_end_against_its_entry(end: QueueEnd, actual: str, tmp_path: Path) -> None:
    write(tmp_path, {("T", 0, n): (10 * n, 5, 0, 1) for n in range(3)})
    (queue,) = passed(task(tmp_path, {("T", 0): end})).queues
    assert [f.code for f in queue.findings] == (["queue_end_wrong"] if actual else [])
    assert not actual or actual in (queue.findings[0].actual or "")


def test_after_bad_bytes_the_rest_is_found(tmp_path: Path) -> None:
    chance = random.Random(4)
    entries: Entries = {
        ("T", q, n): (chance.randrange(1 << 40), 90, chance.randrange(1 << 60), 7) for q in (0, 1) for n in range(5000)
    }
    write(tmp_path, entries)
    table = max((tmp_path / "consumequeue").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 4] ^= 1
    table.write_bytes(data)
    asked = task(tmp_path, {("T", q): QueueEnd(0, 4999) for q in (0, 1)})
    result = passed(asked)
    (finding,) = result.findings
    assert finding.code == "queue_database_damaged" and finding.file == f"consumequeue/{table.name}"
    ranges = used(result)
    assert ranges["T", 1] == [(0, 5000)] and len(ranges["T", 0]) == 2 and ranges["T", 0][1][1] == 5000
    reader = EntryReader(open_source(asked.location), asked.database)
    numbers = [n for part, _ in reader.windows(("T", 0), 0, 5000) for n in part.tolist()]
    reader.close()
    (first, second) = ranges["T", 0]
    assert numbers[: first[1]] == list(range(first[1])) and numbers[-1] == 4999 and len(numbers) >= 5000 - 400
    assert set(range(*second)) <= set(numbers)


def test_any_values(tmp_path: Path) -> None:
    chance = random.Random(7)
    odd = [(chance.randbytes(chance.randrange(1, 60)), chance.randbytes(chance.choice([0, 8, 28, 28, 40]))) for _ in range(300)]
    odd += [
        (
            entry_key("T", 0, chance.randrange(1 << 63)),
            struct.pack(">7i", *(chance.randrange(-(1 << 31), 1 << 31) for _ in range(7))),
        )
    ]
    write(tmp_path, {}, *odd)
    result = passed(task(tmp_path, {("T", 0): QueueEnd(5, (1 << 63) - 1)}))
    assert result.findings
