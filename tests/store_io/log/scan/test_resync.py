"""What is where no valid message is, judged on small segments."""

from __future__ import annotations

import pytest

from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_UNWRITTEN
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.segment_walk import StrayChain
from store_io.log.scan.resync import Resync, ResyncResult
from store_io.source.segment_window import SegmentWindow
from tests.store_io.log.scan.test_segment_scan import BASE, FIVE, MemoryFile, position, segment

CHECK = RecordCheck.audit(BASE)


def judge(data: bytes, start: int, unclean: bool = False) -> ResyncResult:
    window = SegmentWindow(MemoryFile("segment", data), len(data), 1024)  # type: ignore[arg-type]
    resync = Resync(window, "segment", BASE, CHECK, unclean)
    verdict = CHECK.verdict(window, start, len(data))
    return resync.judge(start, verdict, lambda at: StrayChain(at + 1, 1, False))


def told(damage: ResyncResult) -> tuple[list[str], list[str], int | None]:
    return [extent.kind for extent in damage.extents], [finding.code for finding in damage.findings], damage.resume


def test_the_end_of_the_data_is_unwritten_and_the_segments_end_is_nothing() -> None:
    data, records = segment(FIVE)
    end = records[-1].at - BASE + records[-1].size
    assert told(judge(data, end)) == ([EXTENT_UNWRITTEN], [], None)
    assert told(judge(data, len(data))) == ([], [], None)


@pytest.mark.parametrize("zeros", [True, False], ids=["exact", "other size"])
def test_a_filler_ends_the_segment(zeros: bool) -> None:
    data, records = segment(FIVE)
    end = records[-1].at - BASE + records[-1].size
    size = len(data) - end if zeros else 17
    data[end : end + 8] = size.to_bytes(4, "big") + bytes.fromhex("cbd43194")
    assert told(judge(data, end)) == ([EXTENT_FILLER], [] if zeros else ["filler_wrong_size"], None)


def test_a_broken_body_is_a_hole_of_one_message() -> None:
    data, records = segment(FIVE)
    start, after = position(records[2]), position(records[3])
    data[position(records[2], "body")] ^= 1
    found = judge(data, start)
    assert told(found) == ([EXTENT_DAMAGED], ["commitlog_damaged"], after)
    body = position(records[2], "body")
    assert (found.findings[0].start, found.findings[0].end) == (start + 8, body + len(records[2].body))  # from the stored CRC on


def test_a_lost_size_is_passed_by_the_next_message_with_its_own_address() -> None:
    data, records = segment(FIVE)
    start, after = position(records[2]), position(records[3])
    data[start : start + 8] = b"\xff" * 8
    assert told(judge(data, start))[2] == after


@pytest.mark.parametrize("unclean", [True, False])
def test_a_cut_last_message_is_torn_and_a_loss_only_after_a_clean_exit(unclean: bool) -> None:
    data, records = segment(FIVE)
    start = position(records[4])
    data[start + 100 :] = bytes(len(data) - start - 100)
    found = judge(data, start, unclean)
    assert found.findings[0].severity == ("" if unclean else "loss")
    assert [extent.kind for extent in found.extents] == [EXTENT_DAMAGED]
