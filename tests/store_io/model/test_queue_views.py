"""Each queue from both sides: entries that messages should have, entries that stand on disk."""

from __future__ import annotations

from schemas.rows import MATCH_DIFFERS, MATCH_MISSING, MATCH_SHIFTED, MappedFile, QueueKey, QueueSummary
from store_io.model.queue_views import KnownQueues, QueueView, narrow_to_read, queue_views
from tests.support.handmade.evidence import QUEUE_FILE, queue_path, segment

KEY: QueueKey = ("T", 0)
FILES = (MappedFile(queue_path(0), 0, QUEUE_FILE),)


def known(used: list[tuple[int, int]], **more: object) -> KnownQueues:
    summary = QueueSummary(KEY, used=used, used_end=used[-1][1], **more)  # type: ignore[arg-type]
    return KnownQueues({KEY: summary}, {KEY: FILES}, {KEY: "consumequeue/T/0"})


def test_entries_are_covered_missing_or_left_over() -> None:
    runs = (
        {"queue_offset": 0, "records": 3},
        {"queue_offset": 3, "records": 2, "match": MATCH_MISSING},
        {"queue_offset": 5, "match": MATCH_DIFFERS},
        {"queue_offset": 6, "match": MATCH_SHIFTED, "delta": 1},
    )
    view = queue_views([segment(0, *runs)], known([(0, 9)]))[KEY]
    assert (view.covered, view.missing) == ([(0, 3), (5, 6), (7, 8)], [(3, 5)])
    assert view.leftover == [(3, 5), (6, 7), (8, 9)]  # those in the place of missing ones are looked at as well


def test_expired_entries_and_entries_outside_of_files_are_not_left_over() -> None:
    view = queue_views([segment(0, {"queue_offset": 4})], known([(0, 30)], expired_end=4))[KEY]
    assert view.leftover == [(5, 10)]


def test_a_topic_that_nothing_knows_is_a_deleted_one() -> None:
    (view,) = queue_views([segment(0, {})], KnownQueues(topics=frozenset({"other"}))).values()
    assert view.deleted_topic and view.folder == "consumequeue/T/0"
    (view,) = queue_views([segment(0, {})], KnownQueues(topics=frozenset({"T"}))).values()
    assert not view.deleted_topic


def test_a_queue_of_the_other_kind_is_not_compared() -> None:
    wanted = KnownQueues(folders={KEY: "consumequeue/T/0"}, batch_topics=frozenset({"T"}))
    view = queue_views([segment(0, {"match": MATCH_MISSING})], wanted)[KEY]
    assert view.of_other_kind and not view.batch and not len(view.runs) and view.missing == []


def test_where_segments_were_not_read_entries_before_the_first_known_one_may_lead_there() -> None:
    views = [
        QueueView(KEY, False, "", covered=[(5, 7)], leftover=[(0, 5), (8, 9)]),
        QueueView(KEY, False, "", leftover=[(0, 5)]),
        QueueView(KEY, True, "", summaries={KEY: QueueSummary(KEY, used_end=12)}, missing=[(0, 3)], leftover=[(4, 6)]),
    ]
    for view in views:
        narrow_to_read(view)
    assert [view.leftover for view in views] == [[(8, 9)], [], []]
    assert views[2].missing == [(12, 15)]  # behind what is there: nothing says where else
