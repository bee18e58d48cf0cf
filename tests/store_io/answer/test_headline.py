"""The headline and its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from schemas.advice import Refusal, RefusalKind
from schemas.losses import LossOfStart
from schemas.outcome import Outcome
from schemas.rows import ASSUMED, DEFAULT, DOUBT, LOSS, NAMED, NOTED, REBUILDABLE, TAKEN, Finding, Premise
from schemas.start_effect import BrokerState, ControlledStart, Election, Setting, Started, StartEffect
from store_io.answer.headline import judge, verdict_text
from store_io.outcome.safety import Safety
from tests.support.handmade.outcome_fields import alter, handmade


def started(truncate_at: int = 0, **more: Any) -> StartEffect:
    state = BrokerState((), [], ())
    return StartEffect(Started(None, "", 0, truncate_at, [], state, state, **more))


def outcome(effect: StartEffect | None, lost: int = 0, cut: int = 0, more: Sequence[Finding] = (), **facts: Any) -> Outcome:
    """cut: those of the lost messages that recovery cuts."""
    known = {"release_from": NAMED, "incomplete": [], "exit_code": 0}
    findings = [*[Finding("broker_drops_messages", "commitlog/0", severity=LOSS, count=cut)] * bool(cut), *more]
    made = handmade("s", "/copies/s", "5.3.3", **{**known, "findings": findings, **facts})
    alter(made, effect=effect, loss=LossOfStart(lost))
    if made.started is not None:
        alter(made, messages=9)
    return made


def unelected(election: Election | None) -> StartEffect:
    return started(controller=ControlledStart(-1, (), election))


SOME = {"brokerRole": Setting("ASYNC_MASTER", "default")}
HANGING = Election(2, 0, True, (), None)
HANGS = Finding("broker_hangs", "commitlog", severity=LOSS)


@pytest.mark.parametrize(
    ("broker", "lost", "facts", "sentence"),
    [
        (None, None, {"incomplete": ["why"]}, "Could not be audited: why."),
        (
            None,
            None,
            {"settings": SOME},
            "this copy is safe to start: what this release would do here is not modelled.",
        ),
        (
            StartEffect(None, refusal=Refusal(RefusalKind.FILE_NAME, "x")),
            None,
            {},
            "RocketMQ 5.3.3 does not start on this copy: x: the name is not a number.",
        ),
        (started(), (2, 0), {}, "a start leaves 2 messages without a queue entry."),
        (started(truncate_at=1234), (3, 3), {}, "a start cuts 3 valid messages after physical offset 1,234."),
        (started(), (0, 0), {"counts": {LOSS: 1}}, "Messages are already damaged in this copy; a start makes nothing worse."),
        (started(), (0, 0), {"findings": [HANGS]}, "Do not start this copy yet: a start never ends."),
        (started(), (4, 0), {"findings": [HANGS]}, "Consumers lose 4 messages"),
        (unelected(None), (0, 0), {"findings": [HANGS]}, "Do not start this copy yet: a start never ends."),
        (unelected(HANGING), (0, 0), {"findings": [HANGS]}, "its election as master never ends."),
        (
            unelected(Election(2, 0, True, (), 77)),
            (3, 3),
            {},
            "election of it as master cuts 3 valid messages after physical offset 77.",
        ),
        (started(), (0, 0), {}, "Safe to start. Every byte was checked"),
        (started(), (0, 0), {"not_judged": ["timerlog"]}, "Not judged, although a start reads it: timerlog."),
        (started(), (0, 0), {"incomplete": ["x"]}, "Not known whether this copy is safe to start. X."),
        (started(), (0, 0), {"release_from": DEFAULT}, "Safe to start, if its release is 5.3.3"),
    ],
)
def test_the_headline_comes_first_and_its_reasons_follow(
    broker: StartEffect | None, lost: tuple[int, int] | None, facts: dict[str, Any], sentence: str
) -> None:
    messages, cut = lost or (0, 0)
    assert sentence in verdict_text(outcome(broker, messages, cut, **facts))


def test_the_cause_of_what_was_found_is_the_first_reason() -> None:
    live = Finding("live_copy", "commitlog", message="copied live")
    told = judge(outcome(started(), 3, 3, more=[live]))
    assert told.why[0] == "Copied live." and told.headline.startswith("Do not start this copy yet")


def test_what_was_named_comes_before_the_headline_and_what_was_assumed_after_its_reasons() -> None:
    premises = [
        Premise(DOUBT, "a doubt"),
        Premise(TAKEN, "odd"),
        Premise(ASSUMED, "taken for 5.3.3"),
        Premise(NOTED, "an upgrade"),
    ]
    told = verdict_text(outcome(started(), premises=premises))
    assert told.startswith("Safe to start, by what was named, which does not fit this copy. A doubt. Odd. Every byte")
    assert told.endswith(" Taken for 5.3.3.")


SHRUNK = Finding("commitlog_shrunk", "commitlog", severity=LOSS, message="an audit saw 9 messages")
TABLE_LOST = Finding(
    "config_table_lost", "config/topics.json", severity=LOSS, count=2, message="2 topics of config/topics.json are lost"
)
OLDER = Finding("config_older", "config/consumerOffset.json", severity=REBUILDABLE)


@pytest.mark.parametrize("messages", [0, 9])
def test_what_is_lost_of_config_is_said_once_of_a_copy_whose_messages_are_gone(messages: int) -> None:
    told = outcome(started(), more=[SHRUNK, TABLE_LOST, OLDER])
    alter(told, messages=messages, counts={LOSS: 2, REBUILDABLE: 1})
    why = judge(told).why
    assert judge(told).kind == Safety.GONE
    assert why.count("2 topics of config/topics.json are lost.") == 1
    assert why.count("config/consumerOffset.json is older than its own .bak.") == 1
