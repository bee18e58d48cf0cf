"""Messages that only an entry knows: one finding each, or one for many side by side."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, Finding, SegmentSummary
from store_io.broker.releases import Setting, broker_rules
from store_io.checks.lost_messages import lost_findings
from store_io.model import log_map as lm
from store_io.model.facts.live_copy import LiveCopy
from store_io.model.lost_entries import LostStretch
from store_io.model.queue_leftovers import LeftoverResult

SEGMENT = 100_000
EXTENTS = [
    Extent(EXTENT_MESSAGE, 0, 1000, 10),
    Extent(EXTENT_DAMAGED, 1000, 50_000, reason="zeros"),
    Extent(EXTENT_MESSAGE, 50_000, 60_000, 10),
    Extent(EXTENT_UNWRITTEN, 60_000, SEGMENT),
]


def found(
    *queues: tuple[str, list[tuple[int, int, int, int]]], more: Mapping[str, list[LostStretch]] | None = None
) -> list[Finding]:
    rules = broker_rules("5.3.3", {"mappedFileSizeCommitLog": Setting(SEGMENT, "inferred")})
    segment = SegmentSummary("commitlog/00000000000000000000", 0, SEGMENT, extents=EXTENTS)
    results = [LeftoverResult((topic, 0), lost=lost, lost_more=(more or {}).get(topic, [])) for topic, lost in queues]
    return lost_findings(results, [segment], lm.log_map([segment], SEGMENT), LiveCopy(), rules)


def test_few_are_told_one_by_one() -> None:
    lost = [(n, 2000 + 100 * n, 100, lm.DAMAGED) for n in range(3)]
    told = [(f.code, f.start, f.end, f.queue_offset, f.topic, f.count) for f in found(("A", lost))]
    assert told == [("message_lost", 2000 + 100 * n, 2100 + 100 * n, n, "A", 1) for n in range(3)]


def test_many_side_by_side_are_one_range_with_their_number() -> None:
    lost = [(n, 2000 + 100 * n, 100, lm.DAMAGED) for n in range(200)]
    apart = (500, 40_000, 70, lm.DAMAGED)
    mixed = found(("A", [*lost[::2], apart]), ("B", lost[1::2]))
    assert [(f.start, f.end, f.phy_offset, f.topic, f.queue_offset, f.count) for f in mixed] == [
        (2000, 22_000, 2000, None, None, 200),
        (40_000, 40_070, 40_000, "A", 500, 1),
    ]
    assert mixed[0].expected == "200 messages (20,000 bytes) that 2 ConsumeQueues have"


def test_beyond_the_bound_a_place_has_its_whole_number_and_range() -> None:
    listed = [(n, 60_000 + 100 * n, 100, lm.UNWRITTEN) for n in range(30)]
    more = LostStretch(lm.UNWRITTEN, 60_000, 30, 63_000, 90_000, 270, 27_000, 270)
    (told,) = found(("A", listed), more={"A": [more]})
    assert (told.start, told.end, told.count, told.topic) == (60_000, 90_000, 300, "A")
    assert told.expected == "300 messages (30,000 bytes) that a ConsumeQueue has"


def test_each_segment_after_the_last_one_is_named_with_its_number() -> None:
    listed = [(n, SEGMENT + 100 * n, 100, lm.BEYOND) for n in range(30)]
    more = [LostStretch(lm.BEYOND, n * SEGMENT, 30, n * SEGMENT, n * SEGMENT + 500, n, 100 * n, n + 1) for n in (1, 2, 3)]
    told = [(f.code, f.file, f.count, f.message) for f in found(("A", listed), more={"A": more})]
    assert told == [
        ("segment_missing", f"commitlog/{SEGMENT * n:020d}", count, f"queue entries lead to at least {text} of this segment")
        for n, count, text in ((1, 31, "31 messages"), (2, 2, "2 messages"), (3, 3, "3 messages"))
    ]
