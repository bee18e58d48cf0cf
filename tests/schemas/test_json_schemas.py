"""plan.json, findings.jsonl and result.json as they are really written, held against schemas/json: every store of the corpus,
and the runs that go wrong. A key that the schemas do not describe is a fault here, though not for those who use them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import results
from jobs.audit.results import not_audited
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.commands.audit import guarded
from jobs.report.files.result_files import FIELDS, RunInfo, findings_jsonl, plan_parts, result_json
from jobs.runtime import interrupts
from schemas.advice import Cause, Gap
from store_io.audit.audit_store import run_local
from store_io.base.errors import StoreError
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.support.answers.product import Audited
from tests.support.answers.promises import RUN, broken_promises, schema_faults
from tests.support.handmade import samples
from tests.support.stores.corpus_tools import Case, cases
from tests.support.texts.json_schemas import SCHEMAS, faults


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_is_written_of_a_real_store(case: Case, audited: Callable[[Case], Audited]) -> None:
    audit = audited(case)
    assert broken_promises(audit.root, audit.outcome) == []


def test_the_corpus_has_every_kind_of_outcome(tmp_path: Path) -> None:
    """Else the test above would not try them: a store that is refused, and here one that cannot be read wholly."""
    (refused,) = cases("g72-514")
    root = refused.unpack(tmp_path)
    outcome = run_local(AuditRequest("s", StoreLocation(str(root)), refused.release, refused.broker_conf))
    assert audit_plan(outcome)["broker"]["starts"] is False
    segment = next(p for p in sorted((root / "commitlog").iterdir()) if p.is_file())
    target = root / "consumequeue" / "gone"
    segment.rename(target)
    os.mkfifo(segment)
    outcome = run_local(AuditRequest("s", StoreLocation(str(root)), refused.release, refused.broker_conf))
    assert not outcome.complete and audit_plan(outcome)["broker"] is None
    assert schema_faults(outcome) == []


def test_a_store_that_could_not_be_audited(tmp_path: Path) -> None:
    no_store = run_local(AuditRequest("s", StoreLocation(f"{tmp_path}/none"), "5.3.3"))
    bad_row = not_audited(
        StoreArgument("s", "", "5.3.3"), Gap(Cause.WRONG_ARGUMENTS, values=("store 1 of the fleet file: path is missing",))
    )
    for outcome in (no_store, bad_row):
        assert schema_faults(outcome) == []
        (store,) = json.loads(result_json(RUN, [outcome]))["stores"]
        assert (store["code"], store["starts"], store["unverified_bytes"], store["segments"]) == (3, None, None, None)


def test_hostile_names() -> None:
    for outcome in (samples.clean(), samples.damaged(), samples.not_audited()):
        found = schema_faults(outcome)
        assert [fault for fault in found if not fault.startswith(("$.stores[0].name: 'hurt-", "$.store: 'hurt-"))] == []


@pytest.fixture
def asked(tmp_path: Path) -> AuditOptions:
    return AuditOptions((StoreArgument("a", "/copies/a", "5.3.3"), StoreArgument("b", "/copies/b", "4.9.8")), f"{tmp_path}/out")


def stopped(asked: AuditOptions, problem: BaseException | signal.Signals) -> tuple[int, dict[str, Any]]:
    def work(_: AuditOptions) -> int:
        if isinstance(problem, signal.Signals):
            os.kill(os.getpid(), problem)
            raise AssertionError("the signal did not interrupt")
        raise problem

    with interrupts.heard():  # as every command does
        code = guarded(asked, work)
    return code, json.loads((Path(asked.out) / "result.json").read_text())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run(asked: AuditOptions, number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    ended, result = stopped(asked, number)
    assert ended == code
    assert (result["exit_code"], result["complete"], result["tables"]) == (3, False, None)
    assert [(s["name"], s["code"], s["release"]) for s in result["stores"]] == [("a", 3, "5.3.3"), ("b", 3, "4.9.8")]
    assert faults("result", json.dumps(result)) == []
    whole = json.loads(result_json(RUN, [samples.clean()]))
    assert result.keys() == whole.keys() and result["stores"][0].keys() == whole["stores"][0].keys()
    assert capsys.readouterr().err == "spark-submit.sh: interrupted before it was done\n"


def test_a_run_that_a_fault_stopped(asked: AuditOptions, capsys: pytest.CaptureFixture[str]) -> None:
    for problem in (StoreError("Spark did not start: \x1b[31m\ud800"), ValueError("no")):
        code, result = stopped(asked, problem)
        assert (code, result["exit_code"]) == (3, 3)
        assert faults("result", json.dumps(result)) == []
    said = capsys.readouterr().err
    assert "ValueError: no" in said and "\x1b" not in said


def test_what_was_written_whole_before_the_interrupt_stands(asked: AuditOptions) -> None:
    def work(_: AuditOptions) -> int:
        text = result_json(RunInfo(asked.run_id, "1", "1", RUN.started_at), [samples.refused()])
        results.OutputFolder(asked.out).write("result.json", text)
        raise KeyboardInterrupt

    def interrupted(_: AuditOptions) -> int:
        try:
            return work(asked)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    assert guarded(asked, interrupted) == 20


def described(schema: Any, path: str = "$") -> Iterator[str]:
    """Paths of properties without a word on what they are."""
    if isinstance(schema, list):
        for item in schema:
            yield from described(item, path)
    elif isinstance(schema, dict):
        for key, item in schema.get("properties", {}).items() if "required" in schema else ():
            if "description" not in item:
                yield f"{path}.{key}"
        for key, item in schema.items():
            if key not in ("if", "then", "else", "allOf"):
                yield from described(item, f"{path}.{key}")


@pytest.mark.parametrize("name", ["plan", "finding", "result", "config", "repair", "unsaved"])
def test_every_key_is_described(name: str) -> None:
    assert list(described(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))) == []


def test_the_schemas_can_fail() -> None:
    """Each of these is wrong by one thing."""
    plan = json.loads("".join(plan_parts(samples.clean())))
    finding = json.loads(next(iter(findings_jsonl(samples.damaged().found.findings))))
    result = json.loads(result_json(RUN, [samples.clean()]))
    assert list(finding) == FIELDS
    entry = {
        "why": "missing", "topic": "T", "queue_id": 0, "queue_offset": 7, "messages": 1, "phy_offset": 900, "size": 90,
        "key_hashes": [3],
    }  # fmt: skip
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("unsaved", {**entry, "messages": 2}),  # an entry leads to one message
        ("unsaved", {**entry, "why": "cut", "phy_offset": None}),
        ("unsaved", {**entry, "size": None}),
        ("plan", {**plan, "schema_version": 2}),
        ("plan", {**plan, "broker": {**plan["broker"], "starts": False}}),
        ("plan", {**plan, "broker": {**plan["broker"], "truncate_at": None}}),
        ("plan", {key: value for key, value in plan.items() if key != "inputs"}),
        ("finding", {**finding, "severity": "error"}),
        ("finding", {**finding, "start": -1}),
        ("finding", {**finding, "more": 1}),
        ("result", {**result, "exit_code": 130}),
        ("result", {**result, "complete": False}),
        ("result", {**result, "stores": []}),
    ]
    for name, value in wrong:
        assert len(faults(name, json.dumps(value))) >= 1, value
    assert (
        faults("plan", json.dumps(plan)) == faults("finding", json.dumps(finding)) == faults("result", json.dumps(result)) == []
    )
    for row in (entry, {**entry, "why": "cut", "size": None}, {**entry, "messages": 9, "phy_offset": None, "size": None}):
        assert faults("unsaved", json.dumps(row)) == []
