"""The verdict in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.advice import Refusal, RefusalKind
from schemas.losses import LossOfStart
from schemas.outcome import Outcome
from schemas.rows import DEFAULT, DOUBT, LOSS, NAMED, REBUILDABLE, TAKEN, Finding, Premise, Row
from schemas.start_effect import BrokerState, ControlledStart, Election, Started, StartEffect
from store_io.outcome.verdict import names_first_gap, verdict_parts
from tests.support.handmade.outcome_fields import alter, handmade


def started(truncate_at: int = 0, **more: Any) -> StartEffect:
    state = BrokerState((), [], ())
    return StartEffect(Started(None, "", 0, truncate_at, [], state, state, **more))


def outcome(effect: StartEffect | None, lost: int = 0, cut: int = 0, **facts: Any) -> Outcome:
    """cut: those of the lost messages that recovery cuts."""
    known = {"release_from": NAMED, "incomplete": [], "exit_code": 0}
    findings = [Finding("broker_drops_messages", "commitlog/0", severity=LOSS, count=cut)] * bool(cut)
    made = handmade("s", "/copies/s", "5.3.3", **{**known, "findings": findings, **facts})
    alter(made, effect=effect, loss=LossOfStart(lost))
    if made.started is not None:
        alter(made, messages=9)
    return made


def unelected(election: Election | None) -> StartEffect:
    return started(controller=ControlledStart(-1, (), election))


HANGS = Finding("broker_hangs", "commitlog", severity=LOSS)


@pytest.mark.parametrize(
    ("broker", "lost", "facts", "sentence"),
    [
        (None, None, {"incomplete": ["why"]}, "What RocketMQ 5.3.3 would do on this copy is not known: why"),
        (
            StartEffect(None, refusal=Refusal(RefusalKind.FILE_NAME, "x")),
            None,
            {},
            "RocketMQ 5.3.3 would not start on this copy: x: the name is not a number",
        ),
        (started(), (2, 0), {}, "would start and leave 2 valid messages without a queue entry"),
        (started(truncate_at=1234), (3, 3), {}, "cut the CommitLog at physical offset 1,234 and lose 3 valid messages"),
        (started(), (0, 0), {"counts": {LOSS: 1}}, "lose no valid message; bytes of the CommitLog are already damaged"),
        (started(), (0, 0), {"counts": {REBUILDABLE: 1}}, "lose nothing; derived data differ"),
        (started(), (0, 0), {"findings": [HANGS]}, "A start of RocketMQ 5.3.3 on this copy never ends"),
        (started(), (4, 0), {"findings": [HANGS]}, "never ends, and consumers do not get 4 valid messages"),
        (unelected(None), (0, 0), {"findings": [HANGS]}, "A start of RocketMQ 5.3.3 on this copy never ends"),
        (
            unelected(Election(2, 0, True, (), None)),
            (0, 0),
            {"findings": [HANGS]},
            "would start on this copy, but its election",
        ),
        (
            unelected(Election(2, 0, True, (), None)),
            (4, 0),
            {"findings": [HANGS]},
            "stays fenced; 4 valid messages would have no queue entry",
        ),
        (started(), (0, 0), {}, "lose nothing; everything is consistent"),
        (started(), (0, 0), {"not_judged": ["timerlog"]}, "all that was judged is consistent. Not judged: timerlog"),
        (
            started(),
            (0, 0),
            {"incomplete": ["x"]},
            "what was read of it is consistent; not all of",
        ),
        (started(), (0, 0), {"release_from": DEFAULT}, "(no release was named: this one is assumed)"),
    ],
)
def test_the_verdict_says_what_matters_most(
    broker: Row | None, lost: tuple[int, int] | None, facts: dict[str, Any], sentence: str
) -> None:
    messages, cut = lost or (0, 0)
    assert sentence in "".join(verdict_parts(outcome(broker, messages, cut, **facts)))


def test_a_doubt_and_the_copying_come_before_the_verdict() -> None:
    facts = {"premises": [Premise(DOUBT, "a doubt")], "findings": [Finding("live_copy", "commitlog", message="copied live")]}
    told = "".join(verdict_parts(outcome(started(), **facts)))
    assert told.startswith("a doubt. With what was named: Copied live. RocketMQ 5.3.3 would start")


@pytest.mark.parametrize(
    ("lines", "more"),
    [(1, "odd 0. Rock"), (3, "odd 0 (and 2 more lines of broker.conf). Rock"), (9, "(and at least 8 more lines of")],
)
def test_how_many_lines_are_taken_otherwise_than_they_read(lines: int, more: str) -> None:
    premises = [Premise(TAKEN, f"odd {n}") for n in range(lines)]
    head, verdict = verdict_parts(outcome(started(), premises=premises))
    assert more in head + verdict
    assert head == ("odd 0. " if lines == 1 else "")  # a page that shows the premises does not leave out the others' number


def test_the_premises_are_apart_from_the_verdict() -> None:
    premises = [Premise(DOUBT, "a doubt"), Premise(TAKEN, "odd")]
    head, verdict = verdict_parts(outcome(started(), premises=premises))
    assert head == "odd. a doubt. " and verdict.startswith("With what was named: RocketMQ")


def test_the_verdict_names_the_first_gap_where_nothing_is_predicted() -> None:
    assert names_first_gap(outcome(None, incomplete=["x", "y"]))
    assert not names_first_gap(outcome(started(), incomplete=["x"]))
    assert not names_first_gap(outcome(None))
