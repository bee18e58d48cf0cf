"""Where recovery begins in the timer log, and from where the timer topic is read on."""

from __future__ import annotations

import pytest

from schemas.rows import MappedFile
from store_io.broker.releases import broker_rules
from store_io.kinds.timers.timer_recovery import queue_offset_after, recovery_begin

FILES = [MappedFile("a", 0, 100), MappedFile("b", 100, 100)]


def test_recovery_begins_one_file_before_the_flushed_position() -> None:
    assert [recovery_begin(at, FILES) for at in (0, 50, 100, 150, 500)] == [0, 0, 0, 50, 400]
    assert recovery_begin(-7, FILES) == 0 and recovery_begin(70, []) == 70


@pytest.mark.parametrize(
    ("release", "stored", "master", "last", "bounds", "expected"),
    [
        ("5.3.3", 8, 8, 7, (0, 8), 8),
        ("5.3.3", 3, 9, 5, (0, 8), 6),  # the last unit's message counts more than the checkpoint
        ("5.3.3", 8, 8, None, (0, 5), 5),  # which is read where the message is gone; then the queue's end
        ("5.3.1", 8, 8, None, (0, 5), 8),  # nothing is taken up to entry 8
        ("5.1.4", 8, 8, None, (0, 5), 8),
        ("5.3.2", 8, 8, None, (0, 5), 5),
        ("5.5.0", 1, 1, None, (4, 9), 4),
        ("5.1.4", 1, 1, None, (4, 9), 1),
        ("5.3.3", 9, 4, 8, (0, 20), 4),  # never beyond the master
        ("5.3.3", 0, 0, 7, (0, 8), 0),  # without a checkpoint from the beginning
    ],
)
def test_the_queue_offset(
    release: str, stored: int, master: int, last: int | None, bounds: tuple[int, int], expected: int
) -> None:
    assert queue_offset_after(broker_rules(release), stored, master, last, bounds) == expected
