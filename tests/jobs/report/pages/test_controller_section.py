"""What a page says of a replica in controller mode."""

from __future__ import annotations

from typing import Any

from tests.support.handmade import samples
from tests.support.texts.pages import page_of


def state(end: int, count: int) -> dict[str, Any]:
    queue = {"topic": samples.HOSTILE, "queue_id": 0, "min_offset": 0, "max_offset": end, "max_phy_offset": 5}
    return {"commitlog": [], "queues": [queue], "index": [{"begin_phy_offset": 0, "end_phy_offset": 5, "index_count": count}]}


def test_the_fenced_broker_and_its_election_are_compared() -> None:
    outcome = samples.clean()
    outcome.plan["broker"] |= {
        "after_dispatch": state(7, 3),
        "after_election": state(19, 6),
        "controller": {
            "identity": {"cluster": samples.HOSTILE, "broker": samples.HOSTILE, "id": 2, "temporary": True},
            "confirm_offset": 700,
            "epochs": [{"epoch": 1, "start": 0}],
            "election": {"epoch": 2, "start": 850, "recorded": False, "removed": [4], "cut_at": 850},
        },
    }
    page = page_of(outcome)
    for said in (
        "Controller mode",
        "asked for and not confirmed yet",
        "cuts the CommitLog at 850",
        "cannot record it",
        "removes 1 epoch",
    ):
        assert said in page.text
    outcome.plan["broker"]["controller"] |= {"identity": None, "epochs": [], "confirm_offset": -1}
    text = page_of(outcome).text
    assert "The fenced start leaves" not in text
    outcome.plan["broker"]["controller"]["election"]["cut_at"] = None
    outcome.plan["broker"]["lost"] = {"messages": 1}
    assert "The fenced start leaves 1 message without a queue entry" in page_of(outcome).text
    assert "new replica" in text and "no epochs" in text and "confirmOffset after load" not in text


def test_where_a_start_never_ends_there_is_no_election_to_show() -> None:
    outcome = samples.clean()
    controller = {"identity": None, "confirm_offset": 700, "epochs": [], "election": None}
    outcome.plan["broker"] |= {"after_dispatch": state(7, 3), "after_election": None, "controller": controller}
    text = page_of(outcome).text
    assert "There is no election" in text and "fenced, before the controller has answered" in text
    assert "elected as master" not in text and "counted as after its election" not in text


def test_other_stores_have_no_such_section() -> None:
    assert "Before and after an election" not in page_of(samples.clean()).text
