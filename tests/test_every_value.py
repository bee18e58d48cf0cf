"""Every value of every byte of one record's header: whatever stands there, the audit ends, and tiles the segment with extents.

    ./spark-submit.sh test -m soak tests/test_every_value.py

By default a few values of each byte, and of the bytes that decide where the next record is looked for.

What would not end raises a fault instead (`RunBuilder.add`, `_Scan._audit_walk`), so a loop is seen as one and no test hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from schemas.rows import SegmentSummary
from store_io.log.scan import segment_scan
from store_io.log.scan.resync import Resync, ResyncResult
from store_io.log.scan.segment_runs import LOAD, NO_RUN, RESOLVE, _asked
from tests.support.answers import product, segment_tasks
from tests.support.damage import write_at
from tests.support.stores import builders
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

LENGTHS = ("size", "bodyLength", "topicLength", "propsLength", "sysFlag")
SOME = 5  # of the header's bytes one in so many is tried by default
FEW = (0x00, 0x01, 0x7F, 0x80, 0x81, 0xC4, 0xFE, 0xFF)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three messages of one queue with all their entries; the one in the middle is to be damaged."""
    builder = StoreBuilder("5.3.3", Sizes(segment=512, queue_file=60, slots=3, index_max=12))
    for number in range(3):
        builder.put(Message("T", body=b"body %d" % number, tags="a", keys="k"))
    return builder.write(tmp_path / "store")


def header_bytes(store: Store, names: tuple[str, ...] = ()) -> list[int]:
    """Positions in the segment of the header's bytes and of the lengths behind body and topic, or of some fields' bytes."""
    record = store.records[1]
    fields = names or (*builders.FIELDS, "topicLength", "propsLength")
    places = [builders.field_position(record, name) for name in fields]
    return [store.position_of(record) + at + k for at, size in places for k in range(size)]


def each_value(store: Store, positions: list[int], values: Sequence[int], check: Callable[[], None]) -> None:
    path = store.segment_of(store.records[1])
    data = path.read_bytes()
    for position in positions:
        for value in values:
            write_at(path, position, bytes([value]))
            try:
                check()
            except BaseException as fault:
                fault.add_note(f"byte {position} of the segment: {value:#04x} in the place of {data[position]:#04x}")
                raise
        write_at(path, position, data[position : position + 1])


def scanned(store: Store) -> None:
    for summary in segment_tasks.scan_store(store.root, store.broker_conf, store.release):
        tiled(summary)


def tiled(summary: SegmentSummary) -> None:
    assert not summary.problem
    ends = [extent.end for extent in summary.extents]
    assert [extent.start for extent in summary.extents] == [0, *ends[:-1]] and ends[-1] == summary.size


def audited(store: Store) -> None:
    outcome = product.audit(store.root, store.release, store.broker_conf).outcome
    assert outcome.complete, outcome.incomplete


ALL = pytest.param(range(256), marks=pytest.mark.soak)


@pytest.mark.parametrize("values", [FEW, ALL])
@pytest.mark.parametrize("names", [("queueOffset",), LENGTHS])
def test_values_of_lengths_and_of_the_queue_offset(store: Store, names: tuple[str, ...], values: Sequence[int]) -> None:
    each_value(store, header_bytes(store, names), values, lambda: scanned(store))


@pytest.mark.parametrize("values", [FEW, ALL])
def test_values_of_every_byte_of_the_header(store: Store, values: Sequence[int]) -> None:
    positions = header_bytes(store)
    each_value(store, positions if len(values) == 256 else positions[::SOME], values, lambda: audited(store))


def test_an_item_that_needs_the_same_twice_is_a_fault() -> None:
    answered = _asked((0, 0), 7, LOAD)
    answered = _asked(_asked(answered, 7, RESOLVE), 7, NO_RUN)
    with pytest.raises(RuntimeError, match="item 7"):
        _asked(answered, 7, LOAD)
    assert _asked(answered, 8, LOAD) == (8, 1 << LOAD)


def test_damage_that_ends_where_it_begins_is_a_fault(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Resync, "judge", lambda self, start, *_: ResyncResult(resume=start))
    task = segment_tasks.tasks(store.root, store.broker_conf, store.release)[0]
    with pytest.raises(RuntimeError, match="nothing was judged"):
        segment_scan.scan_segment(task)
