"""The sections of a store's page about queues, timers and controller mode."""

from __future__ import annotations

import re
from dataclasses import replace

from jobs.report.pages.index_html import index_html
from jobs.report.pages.page import MAX_ROWS
from jobs.report.pages.report_html import report_html
from jobs.report.pages.sections_on_kinds import timers_view
from jobs.report.texts.safety_text import timer_words
from schemas.finding_codes import Code
from schemas.losses import TimerCount, TimerFates, TimersOfCopy
from schemas.outcome import Outcome
from schemas.rows import LOSS, Finding
from schemas.start_effect import (
    BrokerIdentity,
    BrokerState,
    ControlledStart,
    Election,
    Epoch,
    IndexEnds,
    LostByStart,
    QueueEnds,
    TimersAfter,
)
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.texts.pages import page_of

MINUTE = 1_700_000_000_000, 1_700_000_060_000
FATES = TimerFates(waiting=TimerCount(5, *MINUTE), again=TimerCount(3, 0, 1000), cut=TimerCount(4, *MINUTE))
TIMERS = TimersOfCopy(9, 2, FATES)


def section(outcome: Outcome) -> str:
    return page_of(outcome).text.partition("A repair rebuilds those that differ from it.")[2]


def test_what_agrees_is_counted_and_columns_without_a_number_are_left_out() -> None:
    outcome = samples.clean()
    sound = {"topic": "t", "queue_id": 0, "log_messages": 9}
    alter(outcome, queues=[sound, {**sound, "queue_id": 1}])
    alter(outcome, index_files=[{"file": "index/1", "entries": 9, "kept": True}])
    assert "All 2 agree with the CommitLog and lose no message." in section(outcome)
    assert "All 1 agree with the CommitLog." in section(outcome)
    alter(
        outcome,
        queues=[
            *outcome.rows.queues,
            *[{**sound, "queue_id": 2, "wrong": 1234, "dispatch_min_offset": 0, "dispatch_max_offset": 9}],
        ],
    )
    alter(outcome, queues=[*outcome.rows.queues, *[{**sound, "queue_id": 3, "batch": True, "wrong": 2}]])
    alter(outcome, index_files=[*outcome.rows.index_files, *[{"file": "index/2", "kept": False}]])
    told = section(outcome)
    assert "2 of 4 differ or lose messages; 2 agree." in told and "1 of 2 has findings or is deleted by a start." in told
    assert "t / 291,23400 to 9 t / 3 (batch)920none" in told  # the queue that differs most comes first
    assert "entry wrong" in told and "entry missing" not in told and "not read" not in told
    outcome.rows.queues[2]["problem"] = "cannot be read"
    assert "not read" in section(outcome) and "cannot be read" in section(outcome)
    assert "no, deleted" in told


def test_of_very_many_queues_the_worst_are_shown_and_all_are_counted() -> None:
    outcome = samples.clean()
    alter(outcome, queues=[{"topic": f"t{i:03}", "queue_id": 0, "log_messages": 9, "wrong": 1 + i} for i in range(MAX_ROWS + 7)])
    text = section(outcome)
    assert "307 of 307 differ or lose messages; 0 agree." in text
    assert "t007 / 0" in text and "t006 / 0" not in text
    assert "7 more rows are not shown here: the table queues has all." in text


def test_what_waits_what_comes_again_and_what_is_never_delivered() -> None:
    outcome = samples.clean()
    assert not list(timer_words(outcome))
    alter(outcome, timers=TIMERS)
    assert outcome.effect is not None
    alter(outcome, effect=replace(outcome.effect, timers=TimersAfter(520, 7)))
    view = timers_view(outcome, TIMERS)
    words = view["words"]
    assert isinstance(words, list) and len(words) == 2
    assert words[0].startswith("4 timer messages, due 2023-11-14 22:13:20") and "never delivered" in words[0]
    assert words[1] == "3 timer messages that were delivered come again"
    page = "".join(report_html(outcome))
    assert "5 timer messages wait for delivery" in page and "never delivered again" in page and "2 of them lead to" in page
    alter(outcome, timers=TimersOfCopy(9, 0))
    assert "was not judged" in "".join(report_html(outcome))


def test_messages_that_are_never_delivered_are_no_green_number() -> None:
    outcome = samples.clean()
    alter(outcome, timers=replace(TIMERS, fates=replace(FATES, waiting=TimerCount(1, *MINUTE))))
    alter(outcome, findings=[Finding(Code.TIMER_MESSAGE_LOST, "config/timercheck", severity=LOSS, count=4)])
    page = "".join(report_html(outcome))
    assert "1 timer message waits for delivery" in page and re.search(
        r"would be lost, and\s+4 timer messages never delivered", page
    )
    assert re.search(r"UTC\.\s+The timer log has", page)


def test_lost_timers_of_a_fleet_count_beside_lost_messages() -> None:
    outcome = samples.clean()
    assert "never delivered" not in "".join(index_html(samples.RUN, [outcome]))
    alter(outcome, findings=[*outcome.found.findings, Finding(Code.TIMER_MESSAGE_LOST, "timerlog/0", severity=LOSS, count=94)])
    page = "".join(index_html(samples.RUN, [outcome]))
    lost = page[page.index("would be lost") :][:200]
    assert "94 timer messages never delivered" in lost and "c-stop" in lost


def state(end: int, count: int) -> BrokerState:
    return BrokerState((), [QueueEnds(samples.HOSTILE, 0, 0, end, 5)], (IndexEnds(0, 5, count),))


def test_the_fenced_broker_and_its_election_are_compared() -> None:
    outcome = samples.clean()
    election = Election(2, 850, False, (4,), 850)
    controller = ControlledStart(700, (Epoch(1, 0),), election, BrokerIdentity(samples.HOSTILE, samples.HOSTILE, 2, True))
    samples.start_changed(outcome, after_dispatch=state(7, 3), after_election=state(19, 6), controller=controller)
    page = page_of(outcome)
    for said in (
        "Controller mode",
        "asked for and not confirmed yet",
        "cuts the CommitLog at 850",
        "cannot record it",
        "removes 1 epoch",
    ):
        assert said in page.text
    samples.start_changed(outcome, controller=ControlledStart(-1, (), election))
    text = page_of(outcome).text
    assert "The fenced start leaves" not in text
    uncut = ControlledStart(-1, (), replace(election, cut_at=None))
    samples.start_changed(outcome, controller=uncut, lost=LostByStart(1, 0, []))
    assert "The fenced start leaves 1 message without a queue entry" in page_of(outcome).text
    assert "new replica" in text and "no epochs" in text and "confirmOffset after load" not in text


def test_where_a_start_never_ends_there_is_no_election_to_show() -> None:
    outcome = samples.clean()
    samples.start_changed(outcome, after_dispatch=state(7, 3), controller=ControlledStart(700, ()))
    text = page_of(outcome).text
    assert "There is no election" in text and "fenced, before the controller has answered" in text
    assert "elected as master" not in text and "counted as after its election" not in text


def test_other_stores_have_no_such_section() -> None:
    assert "Before and after an election" not in page_of(samples.clean()).text
