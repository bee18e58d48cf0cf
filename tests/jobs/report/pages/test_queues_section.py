"""ConsumeQueues and index files that differ from the CommitLog."""

from __future__ import annotations

from jobs.report.pages.page import MAX_ROWS
from schemas.rows import AuditOutcome
from tests.support.handmade import samples
from tests.support.texts.pages import page_of


def section(outcome: AuditOutcome) -> str:
    return page_of(outcome).text.partition("A repair rebuilds those that differ from it.")[2]


def test_what_agrees_is_counted_and_columns_without_a_number_are_left_out() -> None:
    outcome = samples.clean()
    sound = {"topic": "t", "queue_id": 0, "log_messages": 9}
    outcome.queues = [sound, {**sound, "queue_id": 1}]
    outcome.index_files = [{"file": "index/1", "entries": 9, "kept": True}]
    assert "All 2 agree with the CommitLog and lose no message." in section(outcome)
    assert "All 1 agree with the CommitLog." in section(outcome)
    outcome.queues += [{**sound, "queue_id": 2, "wrong": 1234, "dispatch_min_offset": 0, "dispatch_max_offset": 9}]
    outcome.queues += [{**sound, "queue_id": 3, "batch": True, "wrong": 2}]
    outcome.index_files += [{"file": "index/2", "kept": False}]
    told = section(outcome)
    assert "2 of 4 differ or lose messages; 2 agree." in told and "1 of 2 has findings or is deleted by a start." in told
    assert "t / 291,23400 to 9 t / 3 (batch)920none" in told  # the queue that differs most comes first
    assert "entry wrong" in told and "entry missing" not in told and "not read" not in told
    outcome.queues[2]["problem"] = "cannot be read"
    assert "not read" in section(outcome) and "cannot be read" in section(outcome)
    assert "no, deleted" in told


def test_of_very_many_queues_the_worst_are_shown_and_all_are_counted() -> None:
    outcome = samples.clean()
    outcome.queues = [{"topic": f"t{i:03}", "queue_id": 0, "log_messages": 9, "wrong": 1 + i} for i in range(MAX_ROWS + 7)]
    text = section(outcome)
    assert "307 of 307 differ or lose messages; 0 agree." in text
    assert "t007 / 0" in text and "t006 / 0" not in text
    assert "7 more rows are not shown here: the table queues has all." in text
