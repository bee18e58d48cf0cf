"""Store times along a segment: which one is odd, and what is a clock that was set back."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.rows import NOTE
from store_io.base.findings import MAX_FINDINGS, Findings
from store_io.log.records.message_columns import ROW_DTYPE
from store_io.log.scan.segment_runs import TOLERANCE_MS
from store_io.log.scan.segment_times import CLOCK_STEP_MS, StoreTimes

T0 = 1_700_000_000_000
FAR = CLOCK_STEP_MS + 1


def judged(times: list[int], batches: int) -> list[tuple[str, int]]:
    """(code, number of the message) of what is found, the messages being fed in so many batches."""
    rows = np.zeros(len(times), ROW_DTYPE)
    rows["store_time"], rows["phy_offset"] = times, np.arange(len(times))
    found = Findings()
    judge = StoreTimes("f", 0, found)
    last = times[0]
    for part in np.array_split(np.arange(len(times)), batches):
        if len(part):
            fell = []
            for at, number in enumerate(part):
                if times[number] < last - TOLERANCE_MS:
                    fell.append(at)
                last = times[number]
            judge.feed(rows[part], np.array(fell, np.int64))
    judge.finish()
    return [(f.code.rpartition("_")[2], f.phy_offset or 0) for f in found.ordered()]


@pytest.mark.parametrize("batches", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0, 1, 2, 3], []),
        ([0, TOLERANCE_MS, 0, 5], []),
        ([0, 1, FAR, 2, 3], [("odd", 2)]),  # one message from the future
        ([FAR, FAR, 0, FAR, FAR], [("odd", 2)]),  # one from the past
        ([FAR, FAR, 0, 1, 2], [("back", 2)]),  # the clock was set back
        ([FAR, 0, 1], [("odd", 0)]),  # the first, with no message before it
        ([0, FAR, FAR, 0], [("odd", 3)]),  # the last, with none after it
    ],
)
def test_which_message_is_to_blame(steps: list[int], expected: list[tuple[str, int]], batches: int) -> None:
    assert judged([T0 + step for step in steps], batches) == expected


def test_after_however_many_steps_back_an_odd_time_is_found() -> None:
    steps = MAX_FINDINGS + 5
    times = [T0 - step * FAR for step in range(steps + 1)]
    found = judged([*times, times[-1] + FAR, times[-1] + 1, times[-1] + 2], 1)
    assert sum(code == "back" for code, _ in found) == MAX_FINDINGS and ("odd", steps + 1) in found


def test_a_first_message_without_a_time_is_odd() -> None:
    assert judged([0, T0, T0 + 1], 1) == [("odd", 0)]


def test_a_clock_that_was_set_back_is_a_note() -> None:
    rows = np.zeros(4, ROW_DTYPE)
    rows["store_time"] = [T0 + FAR, T0 + FAR, T0, T0 + 1]
    found = Findings()
    judge = StoreTimes("f", 0, found)
    judge.feed(rows, np.array([2]))
    judge.finish()
    assert [finding.weight for finding in found.ordered()] == [NOTE]
