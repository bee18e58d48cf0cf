"""A store that was not audited has an outcome like any other, with the reason."""

from __future__ import annotations

from jobs.audit.outcomes import not_audited
from jobs.command_line.stores import StoreArgument

STORE = StoreArgument("s", "/copy", "4.9.8", replica_group="g")


def test_it_is_code_3_with_the_sentence_and_a_plan_without_steps() -> None:
    outcome = not_audited(STORE, "the disk is gone")
    assert (outcome.exit_code, outcome.complete, outcome.incomplete) == (3, False, ["the disk is gone"])
    assert outcome.verdict == "Could not be audited: the disk is gone"
    assert (outcome.plan["store"], outcome.plan["release"], outcome.plan["broker"], outcome.plan["steps"]) == (
        "s",
        "4.9.8",
        None,
        [],
    )
    assert outcome.replica_group == "g" and not outcome.plan["complete"]


def test_a_verdict_of_its_own_stands_as_it_is() -> None:
    assert not_audited(STORE, "why", "Was not audited: why").verdict == "Was not audited: why"
