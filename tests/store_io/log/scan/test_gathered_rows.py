"""Which walks handle messages of several windows together: only those that read no more of a message than its row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from store_io.broker.releases import Setting, broker_rules
from store_io.kinds.timers.timer_records import TimerCollector
from store_io.log.records.segment_walk import walk_batches
from store_io.log.scan import segment_scan
from store_io.log.scan.segment_scan import GATHERED_ROWS, SegmentTask, scan_segment
from store_io.source.byte_source import StoreLocation
from tests.store_io.log.scan.test_segment_scan import BASE, SEGMENT, MemorySource, filled

DATA, _ = filled()
TASK = SegmentTask(0, SEGMENT, BASE, len(DATA), StoreLocation("memory"), broker_rules(), log_end=BASE + len(DATA))


class Sink:
    """Takes messages with their bytes, and forgets them."""

    want_keys = False

    def add(self, rows: Any) -> None: ...


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each walk asked to have together."""
    found: list[int] = []

    def watched(decoding: Any, check: Any, start: int, limit: int, gathered: int = 0) -> Any:
        found.append(gathered)
        return walk_batches(decoding, check, start, limit, gathered)

    monkeypatch.setattr(segment_scan, "walk_batches", watched)
    return found


def scan(task: SegmentTask, sink: Sink | None = None, local: bool = True) -> None:
    source = MemorySource({SEGMENT: DATA})
    source.local = local
    assert not scan_segment(task, source, sink).problem  # type: ignore[arg-type]


def test_the_audits_walk_of_a_file_on_this_machine(asked: list[int]) -> None:
    scan(TASK)
    assert asked == [GATHERED_ROWS]


def test_no_walk_of_a_file_elsewhere_where_each_further_read_is_a_request(asked: list[int]) -> None:
    scan(TASK, local=False)
    assert asked == [0]


def test_no_walk_that_reads_all_messages(asked: list[int]) -> None:
    scan(TASK, Sink())
    scan(replace(TASK, timers=TimerCollector(10)))
    asks = broker_rules(settings={"duplicationEnable": Setting(True, "broker.conf")})
    scan(replace(TASK, others=(asks,)))
    assert asked == [0, 0, 0]


def test_no_walk_that_may_stop_anywhere(asked: list[int]) -> None:
    scan(replace(TASK, walk_audit=False))
    assert asked == [0]
