"""What a repair gives up is counted once."""

from __future__ import annotations

from schemas.repair import DroppedMessage, GivenUp, QueueRange
from schemas.rows import NOTE, Finding
from store_io.model.queue_leftovers import LeftoverResult
from store_io.repair.unsaved import given_up


def test_a_message_is_counted_once() -> None:
    queue = LeftoverResult(("T", 0))
    queue.lost = [(5, 1000, 100, 1), (6, 1100, 100, 1)]
    queue.lost_count = {1: 3}  # of the third only the number is known
    other = LeftoverResult(("%LMQ%x", 0))
    other.lost, other.lost_count = [(0, 1000, 100, 1)], {1: 1}
    answered = [QueueRange("T", 0, 4, 8, 0), QueueRange("U", 1, 0, 1 << 40, 0)]
    dropped = [DroppedMessage("commitlog/0", 0, 9, name, 0, 7, False, 0, "why") for name in "TV"]
    told = given_up({queue.key: queue, other.key: other}, answered, dropped, 10, [])
    missing = 2 + 2 + (1 << 40) + 1  # two places; 4 and 7, one of which is the third; those of U; the one of V
    assert told == GivenUp(missing + 10, missing, 10)
    signs = [
        Finding("index_entry_beyond_end", "index/x", severity="rebuildable"),
        Finding("checkpoint_ahead", "c", severity=NOTE),
    ]
    assert given_up({}, [], [], 0, signs).signs == ("index_entry_beyond_end",)
    assert given_up({}, answered, [], 0, signs).signs == ()


def test_ranges_of_a_queue_are_counted_once_where_they_overlap() -> None:
    def missing(topic: str, *ranges: tuple[int, int]) -> int:
        return given_up({}, [QueueRange(topic, 0, a, b, 0) for a, b in ranges], [], 0, []).missing

    assert missing("T", (0, 10), (5, 15)) == 15
    assert missing("%LMQ%x", (0, 10)) == 0
