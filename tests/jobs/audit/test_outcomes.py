"""A store that was not audited has an outcome like any other, with the reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.audit.results import not_audited, put_away
from jobs.cli.stores import StoreArgument
from jobs.report.files.result_files import RunInfo, result_json
from jobs.report.texts.summary_text import summary_text
from jobs.tables.delta_tables import run_rows
from schemas.gaps import Cause, Gap
from schemas.rows import AuditOutcome
from store_io.base import packed
from tests.support.handmade import samples

STORE = StoreArgument("s", "/copy", "4.9.8", replica_group="g")


def test_it_is_code_3_with_the_sentence_and_a_plan_without_steps() -> None:
    outcome = not_audited(STORE, Gap(Cause.ERROR, values=("the disk is gone",)))
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
    assert not_audited(STORE, Gap(Cause.STOPPED, values=("why",)), "Was not audited: why").verdict == "Was not audited: why"


def test_what_is_written_of_many_stores_is_the_same_from_packed_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FEW", 1)
    info = RunInfo("r", "0", 1, datetime(2026, 1, 1, tzinfo=UTC))

    def said(outcomes: list[AuditOutcome]) -> object:
        rows = {name: [*of] for name, of in run_rows(info, outcomes).items()}
        return rows, result_json(info, outcomes), summary_text(info, outcomes, "out", False)

    plain, away = ([samples.damaged(), samples.clean(), samples.refused()] for _ in range(2))
    for outcome in away:
        put_away(outcome)
    assert isinstance(away[0].findings, packed.PackedList) and said(away) == said(plain)
