"""Which tasks follow one another, and what is asked of a queue's files only once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.advice import Cause, Gap
from store_io.audit.open_copy import open_copy
from store_io.audit.rounds.store_rounds import StoreRounds
from store_io.base.tasks import NotRead, Task, run_task
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, Sizes, StoreBuilder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five segments, whose start loses nothing."""
    builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=400))
    for number in range(60):
        builder.put(Message("T", number % 2, bytes(200), keys=f"k{number}"))
    root = tmp_path_factory.mktemp("rounds") / "store"
    made = builder.write(root)
    (root.parent / "conf").write_text(made.broker_conf)
    return root


LOST = Gap(Cause.TASK_WITHOUT_RESULT)


def begun(root: Path, **asked: Any) -> tuple[StoreRounds, Gaps]:
    conf = (root.parent / "conf").read_text()
    request = AuditRequest("s", StoreLocation(str(root)), "5.3.3", conf, **asked)
    gaps = Gaps()
    return StoreRounds(request, open_copy(request, gaps), gaps), gaps


def kinds(tasks: list[Task]) -> list[str]:
    return sorted({type(task).__name__ for task in tasks})


def ended(rounds: StoreRounds) -> list[list[str]]:
    """The kinds of tasks of each round."""
    told, tasks = [], rounds.following(None)
    while tasks:
        told.append(kinds(tasks))
        tasks = rounds.following([run_task(task) for task in tasks])
    return told


def test_a_whole_audit_reads_all_at_once(store: Path) -> None:
    rounds, gaps = begun(store)
    assert ended(rounds)[0] == ["IndexTask", "QueueGroup", "SegmentTask"]
    evidence = rounds.evidence()
    assert evidence.prediction is not None and evidence.prediction.starts and evidence.loss is not None
    assert evidence.loss.messages == 0 and evidence.unread == () and not gaps.found


def test_a_quick_one_looks_at_edges_first_and_then_at_what_recovery_reads(store: Path) -> None:
    rounds, _ = begun(store, level="quick")
    told = ended(rounds)
    assert told[:2] == [["EdgeTask", "QueueGroup"], ["SegmentTask"]]
    assert 0 < len(rounds.collected.by_path) < len(rounds.unread) + len(rounds.collected.by_path)


def test_where_there_is_no_time_nothing_is_predicted(store: Path) -> None:
    rounds, gaps = begun(store, not_after=1.0)
    tasks = rounds.following(None)
    while tasks:
        tasks = rounds.following([NotRead() if task.not_after else run_task(task) for task in tasks])
    assert rounds.prediction is None and rounds.loss is None and not gaps.broken and rounds.collected.late


def test_a_lost_task_ends_the_prediction_and_no_round_follows(store: Path) -> None:
    rounds, gaps = begun(store)
    tasks = rounds.following(None)
    assert rounds.following([LOST, *(run_task(task) for task in tasks[1:])]) == []
    assert gaps.broken and gaps.found == [LOST] and rounds.prediction is None


def test_views_are_made_again_only_after_a_segment_was_read(store: Path) -> None:
    rounds, _ = begun(store)
    ended(rounds)
    views = rounds.views
    rounds.view_queues()
    assert rounds.views is views and set(views) == {("T", 0), ("T", 1)}
