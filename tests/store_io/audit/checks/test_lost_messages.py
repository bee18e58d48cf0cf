"""Messages that only an entry knows: one finding each, or one for many side by side."""

from __future__ import annotations

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, Finding, SegmentSummary
from store_io.audit.checks.lost_messages import lost_findings
from store_io.broker.releases import Setting, broker_rules
from store_io.model import log_map as lm
from store_io.model.facts.live_copy import LiveCopy
from store_io.model.queue_leftovers import LeftoverResult

SEGMENT = 100_000
EXTENTS = [
    Extent(EXTENT_MESSAGE, 0, 1000, 10),
    Extent(EXTENT_DAMAGED, 1000, 50_000, reason="zeros"),
    Extent(EXTENT_MESSAGE, 50_000, 60_000, 10),
    Extent(EXTENT_UNWRITTEN, 60_000, SEGMENT),
]


def found(*queues: tuple[str, list[tuple[int, int, int, int]]]) -> list[Finding]:
    rules = broker_rules("5.3.3", {"mappedFileSizeCommitLog": Setting(SEGMENT, "inferred")})
    segment = SegmentSummary("commitlog/00000000000000000000", 0, SEGMENT, extents=EXTENTS)
    results = [LeftoverResult((topic, 0), lost=lost) for topic, lost in queues]
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
