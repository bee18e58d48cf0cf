"""The verdict in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.rows import DEFAULT, DOUBT, LOSS, NAMED, REBUILDABLE, AuditOutcome, Finding, Premise
from store_io.audit.loss import Loss, QueueLoss
from store_io.audit.outcome.verdict import verdict_sentence
from store_io.rules.prediction import Memory, Prediction


def started(**more: Any) -> Prediction:
    return Prediction(True, False, stop_reason="size", after_load=Memory([], {}, []), **more)


def outcome(**facts: Any) -> AuditOutcome:
    known = {"release_from": NAMED, "incomplete": [], "exit_code": 0, "complete": True}
    return AuditOutcome("s", "/copies/s", "5.3.3", **{**known, **facts})


@pytest.mark.parametrize(
    ("prediction", "lost", "facts", "sentence"),
    [
        (None, None, {"incomplete": ["why"]}, "What RocketMQ 5.3.3 would do on this copy is not known: why"),
        (Prediction(False, False, "x: y"), None, {}, "RocketMQ 5.3.3 would not start on this copy: x: y"),
        (started(), (2, 0), {}, "would start and leave 2 valid messages without a queue entry"),
        (started(truncate_at=1234), (3, 3), {}, "cut the CommitLog at physical offset 1,234 and lose 3 valid messages"),
        (started(), (0, 0), {"counts": {LOSS: 1}}, "lose no valid message; bytes of the CommitLog are already damaged"),
        (started(), (0, 0), {"counts": {REBUILDABLE: 1}}, "lose nothing; derived data differ"),
        (started(), (0, 0), {}, "lose nothing; everything is consistent"),
        (started(), (0, 0), {"not_judged": ["timerlog"]}, "all that was judged is consistent. Not judged: timerlog"),
        (
            started(),
            (0, 0),
            {"complete": False, "incomplete": ["x"]},
            "what was read of it is consistent; not all of",
        ),
        (started(), (0, 0), {"release_from": DEFAULT}, "(no release was named: this one is assumed)"),
    ],
)
def test_the_verdict_says_what_matters_most(
    prediction: Prediction | None, lost: tuple[int, int] | None, facts: dict[str, Any], sentence: str
) -> None:
    loss = Loss({("T", 0): QueueLoss(messages=lost[0], cut=lost[1])}) if lost is not None else None
    assert sentence in verdict_sentence(outcome(**facts), prediction, loss)


def test_a_doubt_and_the_copying_come_before_the_verdict() -> None:
    facts = {"premises": [Premise(DOUBT, "a doubt")], "findings": [Finding("live_copy", "commitlog", message="copied live")]}
    told = verdict_sentence(outcome(**facts), started(), Loss())
    assert told.startswith("a doubt. With what was named: Copied live. RocketMQ 5.3.3 would start")
