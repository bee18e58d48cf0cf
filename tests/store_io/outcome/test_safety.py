"""The one decision of safety: which fact counts for more."""

from __future__ import annotations

import pytest

from schemas.advice import Advice, Step
from schemas.finding_codes import CATALOGUE
from schemas.outcome import Outcome
from schemas.rows import LOSS, Finding
from store_io.outcome.safety import Safety, Start, decide
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import varied


def found(code: str, **more: int) -> Outcome:
    """The undamaged sample with one finding."""
    severity = CATALOGUE[code].severity
    finding = Finding(code, "commitlog", severity=severity, message="m", next=Advice(Step.OTHER_COPY))
    return varied(samples.clean(), findings=[finding], counts={severity: 1}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "start", "safety"),
    [
        (samples.clean(), Start.SAFE, Safety.SAFE),
        (found("broker_hangs"), Start.CUTS, Safety.STOP),
        (found("broker_skips_messages"), Start.LEAVES_UNSERVED, Safety.STOP),
        (found("segment_missing"), Start.MISSING, Safety.CARE),
        (found("commitlog_damaged"), Start.DAMAGED, Safety.CARE),
        (found("commitlog_damaged", messages=0), Start.NO_MESSAGE_LEFT, Safety.STOP),
        (varied(samples.clean(), counts={"rebuildable": 1}), Start.REBUILD, Safety.REBUILD),
        (varied(samples.clean(), counts={"rebuildable": 1}, incomplete=["why"]), Start.NOT_READ, Safety.UNKNOWN),
        (varied(samples.empty(), counts={"rebuildable": 1}), Start.EMPTY, Safety.EMPTY),
        (samples.shrunk(), Start.DAMAGED, Safety.GONE),
        (samples.not_audited(), Start.NOT_KNOWN, Safety.UNKNOWN),
        (varied(samples.not_audited(), counts={LOSS: 1}), Start.NOT_KNOWN_OF_DAMAGED, Safety.STOP),
    ],
)
def test_the_first_fact_that_holds_decides(outcome: Outcome, start: Start, safety: Safety) -> None:
    decision = decide(outcome)
    assert (decision.start, decision.safety) == (start, safety)


def test_of_two_answers_the_more_dangerous_counts() -> None:
    assert max(Safety, key=lambda safety: safety.danger) == Safety.STOP
    worse, milder = decide(samples.behind(samples.damaged())), decide(samples.behind(samples.already_damaged(), True))
    assert (worse.alone, worse.safety) == (Safety.STOP, Safety.STOP)
    assert (milder.alone, milder.safety) == (Safety.CARE, Safety.DIVERGED)
