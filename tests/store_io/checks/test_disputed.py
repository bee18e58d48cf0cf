"""Where two files contradict each other."""

from __future__ import annotations

import pytest

from schemas.rows import Finding
from store_io.checks import disputed as checks
from store_io.checks.disputed import disputed
from tests.support.handmade.evidence import copy_of, evidence_of, log_path, queue_path, segment

DATA = b"".join((100).to_bytes(4, "big") + bytes(96) for _ in range(10))
EVIDENCE = evidence_of(copy_of(data={log_path(0): DATA}), segments=[segment(0, {"records": 10})])


def wrong(phy_offset: int, code: str = "queue_entry_wrong", count: int = 1) -> Finding:
    return Finding(code, queue_path(0), phy_offset=phy_offset, topic="T", queue_id=0, queue_offset=3, count=count)


def test_the_message_that_an_entry_contradicts_may_be_the_wrong_one() -> None:
    (finding,) = disputed(EVIDENCE, [wrong(300), wrong(300, "index_entry_wrong")])
    assert (finding.code, finding.file, finding.start, finding.end) == ("message_disputed", log_path(0), 300, 400)
    assert (finding.queue_offset, finding.actual) == (3, f"{queue_path(0)} says otherwise")


@pytest.mark.parametrize("finding", [wrong(300, count=2), wrong(5000), wrong(300, "queue_entry_missing"), wrong(302)])
def test_what_disputes_no_message(finding: Finding) -> None:
    assert disputed(EVIDENCE, [finding]) == []


def test_a_segment_that_can_no_longer_be_read_is_told_elsewhere() -> None:
    assert disputed(evidence_of(copy_of({log_path(0): 1000}), segments=[segment(0, {})]), [wrong(300)]) == []


def test_disputed_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_DISPUTED", 2)
    assert len(disputed(EVIDENCE, [wrong(100 * number) for number in range(5)])) == 2
