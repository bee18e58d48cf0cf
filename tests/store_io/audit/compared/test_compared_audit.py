"""Every row of a comparison is what an audit by those rules alone says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from schemas.advice import Cause, Gap
from schemas.rows import LOSS, Finding
from store_io.audit.audit_store import run_audit
from store_io.audit.compared import compared_audit
from store_io.audit.compared.compared_audit import ComparedAudit, compare, run_compared
from store_io.audit.compared.comparison import answer_of
from store_io.audit.compared.shared_tasks import SharedRound
from store_io.audit.compared.variants import SETTINGS, Variant
from store_io.base.tasks import run_task
from store_io.broker.releases import KNOWN_RELEASES
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.support.stores import corpus_tools

# Records of version 2, which old releases refuse, and a torn tail; a queue that some releases do not load.
FEW = ("g14-533-torn-old-seen", "g71-498-cq-last-file-zero")
SCHEMA = json.loads((Path(__file__).parents[4] / "schemas" / "json" / "plan.schema.json").read_text(encoding="utf-8"))
SOME_RELEASES = ("4.8.0", "5.0.0", "5.5.0")


def request_of(case: corpus_tools.Case, folder: Path, releases: tuple[str, ...] = KNOWN_RELEASES) -> AuditRequest:
    root = case.unpack(folder)
    return AuditRequest(case.name, StoreLocation(str(root)), case.release, case.broker_conf, releases=releases)


def hold_against_single_audits(asked: AuditRequest, releases: tuple[str, ...]) -> None:
    """Compare this row by row with audits of one release each, and what it says of its own release with an audit of that."""
    audit = run_compared(asked)
    outcome, single = audit.outcome(), run_audit(replace(asked, releases=())).outcome()
    assert {key: audit_plan(outcome)[key] for key in audit_plan(single)} == audit_plan(single)
    assert outcome.found.findings == single.found.findings and outcome.exit_code == single.exit_code
    assert not list(Draft202012Validator(SCHEMA).iter_errors(audit_plan(outcome)))
    assert [row["release"] for row in audit_plan(outcome)["releases"]] == list(asked.releases)
    compared = outcome.comparison
    assert compared is not None and [row.release for row in compared.releases] == list(asked.releases)
    for row in compared.releases:
        if row.release in releases:
            one = answer_of(run_audit(replace(asked, releases=(), release=row.release)).outcome(), Variant(row.release)).start
            assert (row.release, row.result, row.why) == (one.release, one.result, one.why)
    for row in compared.settings:
        conf = f"{asked.broker_conf or ''}\n{row.setting}={'true' if row.value else 'false'}\n"
        one = answer_of(run_audit(replace(asked, releases=(), broker_conf=conf)).outcome(), Variant(row.release)).start
        assert (row.setting, row.result) == (row.setting, one.result)
    assert {row.setting for row in compared.settings} | set(compared.unchanged) <= set(SETTINGS)


@pytest.mark.parametrize("name", FEW)
def test_each_row_is_what_a_single_audit_says(tmp_path: Path, name: str) -> None:
    [case] = corpus_tools.cases(name)
    hold_against_single_audits(request_of(case, tmp_path, SOME_RELEASES), SOME_RELEASES)


@pytest.mark.soak
@pytest.mark.parametrize("case", [*corpus_tools.cases(), *corpus_tools.of_kind("rocksdb")], ids=lambda case: case.name)
def test_each_row_of_every_real_store_is_what_a_single_audit_says(tmp_path: Path, case: corpus_tools.Case) -> None:
    hold_against_single_audits(request_of(case, tmp_path), KNOWN_RELEASES)


def test_one_scan_serves_all_releases(tmp_path: Path) -> None:
    [case] = corpus_tools.cases("g11-533-zero-tail")
    audit = ComparedAudit(request_of(case, tmp_path))
    tasks = audit.first_tasks()
    assert sum(isinstance(task, SegmentTask) for task in tasks) == len(audit.segment_files)
    scanned = 0
    while tasks := audit.next_tasks([run_task(task) for task in tasks]):
        scanned += sum(isinstance(task, SegmentTask) for task in tasks)
    assert scanned == 2  # where a changed setting lets a walk go on, and where a cut lies inside a run


def test_of_a_large_store_few_audits_are_folded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [case] = corpus_tools.cases("g11-533-zero-tail")
    asked = request_of(case, tmp_path, SOME_RELEASES)
    together = compare(asked)
    monkeypatch.setattr(compared_audit, "MOST_AT_ONCE", 1)
    audit = ComparedAudit(asked)
    tasks, scanned, most = audit.first_tasks(), 0, 0
    while tasks := audit.next_tasks([run_task(task) for task in tasks]):
        scanned += sum(isinstance(task, SegmentTask) for task in tasks)
        most = max(most, len(audit._asked) if audit._at_once else 0)
    assert audit.outcome().comparison == together
    assert most == 1 and scanned < len(audit.segment_files)  # what all share is read once


def test_what_others_add_to_the_own_audit_counts_in_every_row(tmp_path: Path) -> None:
    [case] = corpus_tools.cases("g41-533-fresh")
    audit = run_compared(request_of(case, tmp_path, ("5.3.3", "5.4.0")))
    before = audit.outcome().comparison
    assert before is not None and [row.exit_code for row in before.releases] == [0, 0]
    audit.findings += [Finding("commitlog_shrunk", "commitlog", severity=LOSS)]
    audit.gaps.add([Gap(Cause.LISTED_OTHERWISE, "commitlog/0", (1, 2))])
    after = audit.outcome().comparison
    assert after is not None and [(row.exit_code, row.complete) for row in after.releases] == [(20, False)] * 2


@pytest.mark.parametrize("part", ["take", "__init__"])
def test_a_fault_of_this_program_ends_the_comparison_of_one_store(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [case] = corpus_tools.cases("g11-533-zero-tail")
    monkeypatch.setattr(SharedRound, part, lambda *_: 1 // 0)
    outcome = run_compared(request_of(case, tmp_path, ("5.3.3", "5.4.0"))).outcome()
    assert outcome.comparison is None and not outcome.complete and "an error in this program" in outcome.incomplete[0]


def test_a_folder_that_is_no_store_has_no_comparison(tmp_path: Path) -> None:
    assert compare(AuditRequest("s", StoreLocation(str(tmp_path)), "5.3.3", releases=("5.3.3", "5.4.0"))) is None
