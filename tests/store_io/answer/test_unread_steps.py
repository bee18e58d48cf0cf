"""What is to be done about a copy that could not be read, or that a broker uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.report.texts.next_steps import shown_steps
from schemas.advice import Advice, Cause, Gap, Step
from schemas.answer import Answer, StepName
from schemas.rows import ConfigTables
from store_io.answer.answers import answer_of
from store_io.answer.steps import steps_of
from store_io.wording.steps import advice_text
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import varied


@pytest.mark.parametrize(
    ("causes", "steps"),
    [
        ([Cause.NOT_A_STORE], [(StepName.CHANGE, Step.CHECK_PATH)]),
        ([Cause.DENIED, Cause.ERROR], [(StepName.CHANGE, Step.CHECK_PATH)]),
        ([Cause.WRONG_ARGUMENTS], [(StepName.CHANGE, Step.CORRECT_ARGUMENTS)]),
        ([Cause.STOPPED], [(StepName.CONDITION, Step.AUDIT_AGAIN)]),
        ([Cause.TIERED], []),  # another path would not help
    ],
)
def test_a_copy_of_which_nothing_was_read(causes: list[Cause], steps: list[tuple[StepName, Step]]) -> None:
    outcome = replace(samples.not_audited(), gaps=[Gap(cause, values=("why",)) for cause in causes])
    assert answer_of(outcome) == Answer.NOT_KNOWN
    assert [(step.name, step.what) for step in steps_of(outcome)] == [(name, Advice(step)) for name, step in steps]


def test_a_path_is_not_doubted_if_something_was_read_there() -> None:
    outcome = samples.not_audited()
    assert steps_of(outcome)
    assert steps_of(varied(outcome, segment_count=1)) == steps_of(varied(outcome, config=ConfigTables({}, {}, {}, {}))) == []


def test_a_broker_that_uses_the_copy_is_stopped_first() -> None:
    outcome = replace(samples.damaged(), in_use="A broker holds the lock.")
    first, *others = shown_steps(outcome, (), "")
    assert (first.name, first.text, first.command) == (StepName.STOP, "A broker holds the lock.", "")
    assert StepName.STOP not in [step.name for step in others]
    assert advice_text(Advice(Step.STOP_USER, ("{x}",))) == "{x}"
