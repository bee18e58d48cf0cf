"""A store opened for reading: what it lists, and when its segments begin."""

from __future__ import annotations

from dataclasses import replace

from store_io.messages.open_store import CLOCK_MARGIN_MS, SegmentTimes, open_store, segment_times
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Store


def test_what_is_listed_is_what_was_written(small: Store) -> None:
    opened = open_store(StoreLocation(str(small.root)), small.release, small.broker_conf)
    segments = sorted({record.at - record.at % 1024 for record in small.records})
    assert [(f.start, f.size) for f in opened.segments()] == [(start, 1024) for start in segments] and len(segments) > 1
    assert [(queue.key, queue.batch) for queue in opened.queues()] == [(("TopicA", 1), False)]
    assert [file.path for file in opened.index_files()] == [f"index/{p.name}" for p in sorted((small.root / "index").iterdir())]
    firsts = [next(r.store_time for r in small.records if r.at == start) for start in segments]
    assert [times.first for times in segment_times(opened)] == firsts
    before = (None, firsts[0] - CLOCK_MARGIN_MS)
    assert not any(times.may_hold(before) for times in segment_times(opened))


def test_a_segment_may_hold_times_within_an_hour_of_its_bounds() -> None:
    times = SegmentTimes(None, 10 * CLOCK_MARGIN_MS, 20 * CLOCK_MARGIN_MS)  # type: ignore[arg-type]
    assert times.may_hold((21 * CLOCK_MARGIN_MS, None)) and not times.may_hold((21 * CLOCK_MARGIN_MS + 1, None))
    assert times.may_hold((None, 9 * CLOCK_MARGIN_MS + 1)) and not times.may_hold((None, 9 * CLOCK_MARGIN_MS))
    assert replace(times, first=None).may_hold((0, 1)) and replace(times, next_first=None).may_hold((1 << 60, None))
