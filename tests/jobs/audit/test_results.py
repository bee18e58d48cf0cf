"""result.json in any case, and the outcomes of stores that no audit judged."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.audit.results import not_audited, put_away, read_result, remove_result, write_stopped
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.report.files.result_files import RunInfo, result_json
from jobs.report.texts.summary_text import summary_text
from jobs.runtime.output import OutputFailed
from jobs.tables.delta_tables import run_rows
from schemas.advice import Advice, Cause, Gap, Step
from schemas.answer import AnswerStep, StepName
from schemas.outcome import Outcome
from store_io.answer.answers import answer_of
from store_io.answer.headline import verdict_text
from store_io.answer.steps import steps_of
from store_io.base import packed
from store_io.outcome.plan_writer import audit_plan
from tests.support.handmade import samples

BEGUN = datetime(2024, 1, 2, tzinfo=UTC)
STORE = StoreArgument("s", "/copy", "4.9.8", replica_group="g")


def options(out: Path) -> AuditOptions:
    stores = (StoreArgument("a", "/a", "5.3.3"), StoreArgument("b", "/b", "5.3.3", problem="no such folder"))
    return AuditOptions(stores, str(out), run_id="one")


def test_a_stopped_run_has_a_result_with_every_store(tmp_path: Path) -> None:
    result = write_stopped(options(tmp_path), "stopped by a signal", BEGUN, 1.5)
    assert result == json.loads((tmp_path / "result.json").read_text()) == read_result(str(tmp_path), "one")
    assert (result["exit_code"], result["complete"], result["run_id"]) == (3, False, "one")
    assert [store["incomplete"] for store in result["stores"]] == [["stopped by a signal"], ["no such folder"]]
    assert {store["answer"] for store in result["stores"]} == {"not_known"}
    assert [[(step["step"], step["text"]) for step in store["steps"]] for store in result["stores"]] == [
        [("condition", "Audit again: this audit ended before it had read the copy.")],
        [("change", "Correct the option or the row of the fleet file that the verdict names, and audit again.")],
    ]


def test_only_the_runs_own_result_is_read(tmp_path: Path) -> None:
    assert read_result(str(tmp_path), "one") is None
    write_stopped(options(tmp_path), "x", BEGUN, 0)
    assert read_result(str(tmp_path), "two") is None
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(OutputFailed, match="cannot read"):
        read_result(str(tmp_path), "one")


def test_an_earlier_result_is_removed_and_the_folder_made(tmp_path: Path) -> None:
    remove_result(str(tmp_path / "new"))
    assert (tmp_path / "new").is_dir()
    write_stopped(options(tmp_path), "x", BEGUN, 0)
    remove_result(str(tmp_path))
    assert not (tmp_path / "result.json").exists()


def test_it_is_code_3_with_the_sentence_and_a_plan_without_steps() -> None:
    outcome = not_audited(STORE, Gap(Cause.ERROR, values=("the disk is gone",)))
    assert (outcome.exit_code, outcome.complete, outcome.incomplete) == (3, False, ["the disk is gone"])
    assert verdict_text(outcome) == "Could not be audited: the disk is gone."
    plan = audit_plan(outcome)
    assert (plan["store"], plan["release"], plan["broker"], plan["steps"]) == ("s", "4.9.8", None, [])
    assert outcome.replica_group == "g" and not plan["complete"]
    assert (answer_of(outcome), steps_of(outcome)) == ("not_known", [AnswerStep(StepName.CHANGE, Advice(Step.CHECK_PATH))])


def test_what_is_written_of_many_stores_is_the_same_from_packed_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FEW", 1)
    info = RunInfo("r", "0", 1, datetime(2026, 1, 1, tzinfo=UTC))

    def said(outcomes: list[Outcome]) -> object:
        rows = {name: [*of] for name, of in run_rows(info, outcomes).items()}
        return rows, result_json(info, outcomes), summary_text(info, outcomes, "out", False)

    plain, away = ([samples.damaged(), samples.clean(), samples.refused()] for _ in range(2))
    away = [*map(put_away, away)]
    assert isinstance(away[0].found.findings, packed.PackedList) and said(away) == said(plain)
