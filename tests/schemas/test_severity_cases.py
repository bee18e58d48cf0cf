"""Severities that depend on a circumstance stand in one table, and nowhere else."""

from __future__ import annotations

import ast

import pytest

from schemas.finding_codes import CATALOGUE, Code
from schemas.rows import LOSS, NOTE, REBUILDABLE
from schemas.severity_cases import SEVERITIES_IN, Case, severity_in
from tests import ROOT
from tests.support.texts import own_code
from tests.support.texts.own_code import nodes_of

TAKE_BACK = {Case.KEPT_BY_REPAIR, Case.COPIED_BY_BROKER}  # a graver case of the same finding, if there is one


def teardown_module() -> None:
    own_code.forget()


@pytest.mark.parametrize("case", Case)
def test_a_case_changes_the_severity_of_each_of_its_codes(case: Case) -> None:
    changed = {code: severity for code, severity in SEVERITIES_IN[case].items() if severity != CATALOGUE[code].severity}
    assert changed and (changed == SEVERITIES_IN[case] or case in TAKE_BACK)


def test_a_case_that_does_not_hold_leaves_the_code_its_own_severity() -> None:
    assert severity_in(Code.CHECKPOINT_ZERO, Case.AFTER_CLEAN_STOP) == REBUILDABLE
    assert severity_in(Code.COMMITLOG_TORN_TAIL, Case.AFTER_CLEAN_STOP) == LOSS
    assert severity_in(Code.CHECKPOINT_ZERO, Case.AFTER_CLEAN_STOP, False) == ""
    with pytest.raises(KeyError):
        severity_in(Code.CHECKPOINT_ZERO, Case.UNREADABLE)


def test_every_note_that_a_case_raises_has_a_step_for_that() -> None:
    pairs = (pair for codes in SEVERITIES_IN.values() for pair in codes.items())
    raised = {code for code, severity in pairs if CATALOGUE[code].severity == NOTE and severity != NOTE}
    assert {code for code, row in CATALOGUE.items() if row.raised_step} == raised


def test_checks_name_cases_and_no_severities() -> None:
    named, spelled = set[str](), []
    for package in ("store_io", "jobs"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in nodes_of(own_code.tree(path)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Case":
                    named.add(node.attr)
                if isinstance(node, ast.Call) and ast.unparse(node.func).lower().endswith(("finding", "_fault", "replace")):
                    given = [*node.args, *(k.value for k in node.keywords)]
                    names = {part.id for value in given for part in ast.walk(value) if isinstance(part, ast.Name)}
                    spelled += [(path.name, node.lineno)] if names & {"NOTE", "REBUILDABLE", "LOSS"} else []
    assert spelled == [] and named >= {case.name for case in Case}
