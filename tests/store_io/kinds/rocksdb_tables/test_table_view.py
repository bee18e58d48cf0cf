"""Which stretches of the log differ in the index, and how the hours are parted."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from schemas.rows import EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, SegmentSummary
from store_io.base.fingerprints import Prints, Stretches
from store_io.kinds.rocksdb_tables import table_view
from store_io.kinds.rocksdb_tables.hour_spans import AbsentHours, HourSpans
from store_io.kinds.rocksdb_tables.index_table import IndexTable
from store_io.kinds.rocksdb_tables.table_tasks import LogTable
from store_io.kinds.rocksdb_tables.table_view import LOOKED_AT, hour_keys, index_difference, stretches_of
from store_io.model import log_map as lm
from store_io.model.log_map import LogMap
from tests.support.answers import product
from tests.support.damage import invert_byte
from tests.support.stores.rocksdb_tables import TableStore, table_store

HOUR = 3_600_000


def prints(**counts: int) -> Prints:
    """Of stretches s1, s2 ...: so many entries."""
    numbers = np.array([int(name[1:]) for name in counts], np.int64)
    return Prints(numbers, np.array([*counts.values()], np.int64), np.array([*counts.values()], np.uint64))


WHOLE = LogMap(np.array([0, 1 << 40]), np.array([lm.MESSAGE, lm.BEYOND]), 0, 1 << 40, 1 << 40, 1 << 40)


def logged(of: Prints) -> LogTable:
    """All in one hour."""
    return LogTable(of, spans=HourSpans(of.stretch, np.full((len(of.stretch), 2), HOUR)))


@pytest.mark.parametrize("begin", [0, 1000])
def test_what_lies_before_the_first_entry_and_behind_the_mark_is_no_difference(begin: int) -> None:
    log, index = prints(s0=3, s1=5, s2=7, s4=9, s5=2), prints(s1=4, s2=7)
    hours = np.array([HOUR])
    stretches = Stretches(begin, begin + 600, 100)
    found = index_difference(logged(log), IndexTable(index, first=begin + 150, mark=begin + 460, hours=hours), stretches, WHOLE)
    assert (found.wanted, found.before_same_hour, found.after_mark, found.missing, found.strange) == ([1, 4], 3, 2, 0, 0)
    nothing = index_difference(logged(log), IndexTable(), stretches, WHOLE)
    assert (nothing.wanted, nothing.before, nothing.after_mark, nothing.hours.count) == ([], 0, 26, 0)
    marked = index_difference(logged(log), IndexTable(mark=begin + 460), stretches, WHOLE)
    assert (marked.wanted, marked.after_mark, marked.hours) == ([], 2, AbsentHours(24, HOUR, HOUR))


def test_stretches_without_messages_hold_no_wrong_entries() -> None:
    starts, kinds = np.array([0, 100, 300, 350, 600]), np.array([lm.MESSAGE, lm.MISSING, lm.UNWRITTEN, lm.MESSAGE, lm.BEYOND])
    places = LogMap(starts, kinds, 0, 600, 600, 100)
    log, index = prints(s0=3, s3=3, s4=1), prints(s0=3, s1=5, s2=7, s3=4, s4=2)
    table = IndexTable(index, first=0, mark=599, hours=np.array([HOUR]))
    found = index_difference(logged(log), table, Stretches(0, 600, 100), places)
    assert (found.unheld, found.wanted) == (12, [3, 4])


def test_of_many_stretches_the_first_are_looked_at_and_the_others_counted() -> None:
    many = 3 * LOOKED_AT
    numbers = np.arange(many)
    log = Prints(numbers, np.full(many, 3), np.zeros(many, np.uint64))
    index = Prints(numbers, np.arange(many) % 3 + 2, np.ones(many, np.uint64))
    table = IndexTable(index, first=0, mark=many * 10, hours=np.array([HOUR]))
    found = index_difference(logged(log), table, Stretches(0, many * 10, 10), WHOLE)
    assert len(found.wanted) == LOOKED_AT
    rest = index.count[LOOKED_AT:].tolist()
    assert (found.missing, found.strange) == (rest.count(2), rest.count(4) + rest.count(3))


def test_stretches_and_ranges_of_hours() -> None:
    one = SegmentSummary("a", 1 << 40, 1 << 30)
    one.first_store_time, one.last_store_time = 100 * HOUR + 5, 110 * HOUR
    other = SegmentSummary("b", (1 << 40) + (1 << 38), 1 << 30)
    assert stretches_of([one]) == Stretches(1 << 40, 1 << 40, 1 << 16)
    one.extents = [Extent(EXTENT_MESSAGE, 0, 5000, 7), Extent(EXTENT_UNWRITTEN, 5000, 1 << 30)]
    other.extents = [Extent(EXTENT_MESSAGE, 0, 1 << 30, 7)]
    assert stretches_of([one]) == Stretches(1 << 40, (1 << 40) + 5000, 1 << 16)
    wide = stretches_of([one, other])
    assert wide.count <= table_view.MOST_STRETCHES and wide.size == 1 << 19
    assert hour_keys([one], 1) == [] and hour_keys([one], 2) == [struct.pack(">q", 105 * HOUR)]
    assert len(hour_keys([one], 64)) == 10 and hour_keys([], 3) == []


def damaged(tmp_path: Path) -> TableStore:
    made = table_store(tmp_path / "store")
    for number, key in enumerate(sorted(made.index)):
        if number % 3 == 0:
            del made.index[key]
        elif number % 3 == 1:
            made.index[key[:-10] + b"?" + key[-9:]] = made.index.pop(key)
    return made.write()


@pytest.mark.parametrize("looked_at", [1, 2])
def test_counts_are_whole_where_not_all_is_looked_at(looked_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = damaged(tmp_path)
    monkeypatch.setattr(table_view, "LOOKED_AT", looked_at)
    monkeypatch.setattr(table_view, "LEAST_STRETCH_BYTES", 1 << 12)
    monkeypatch.setattr(table_view, "RANGE_BYTES", 1 << 10)
    audit = product.audit(made.root, "5.4.0", made.conf)
    counts = {f.code: 0 for f in audit.above_note}
    for finding in audit.above_note:
        counts[finding.code] += finding.count
    assert counts["index_entry_missing"] > 30 and counts["index_entry_wrong"] > 10


def test_bad_bytes_and_too_many_are_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table_store(tmp_path / "store").write()
    for table in (made.root / "rocksdbstore").glob("*.sst"):
        invert_byte(table, 30, 1)
    audit = product.audit(made.root, "5.5.0", made.conf)
    assert "rocksdbstore" in audit.outcome.covered.not_judged and "rocksdbstore_damaged" in {f.code for f in audit.above_note}
    whole = table_store(tmp_path / "whole").write()
    monkeypatch.setattr("store_io.kinds.rocksdb_tables.table_kind.MOST_HALVES", 2)
    audit = product.audit(whole.root, "5.5.0", whole.conf)
    assert "rocksdbstore" in audit.outcome.covered.not_judged and audit.above_note == []
