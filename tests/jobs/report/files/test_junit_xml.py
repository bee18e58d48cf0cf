"""--junit: a test case per store, and names that XML cannot hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jobs import entry
from jobs.audit import results
from jobs.commands import audit
from jobs.report.files.ci_files import junit_xml
from jobs.report.files.result_files import result_json
from jobs.report.texts.text import printable
from store_io.base.errors import UsageError
from tests.support.handmade import samples


def suite_of(*outcomes: object, **run: object) -> ElementTree.Element:
    """The one suite, held against the counts of the root."""
    root = ElementTree.fromstring(junit_xml(json.loads(result_json(replace(samples.RUN, **run), outcomes))).encode())  # type: ignore[arg-type]
    (suite,) = root.findall("testsuite")
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert int(element.attrib["tests"]) == len(cases)
        for kind, plural in (("failure", "failures"), ("error", "errors")):
            assert int(element.attrib[plural]) == sum(case.find(kind) is not None for case in cases)
    return suite


def test_stores_are_cases() -> None:
    suite = suite_of(samples.clean(), samples.damaged(), samples.not_audited())
    assert suite.attrib["timestamp"] == "2026-11-21T08:00:05" and suite.attrib["time"] == "2.500"
    clean, damaged, unread = suite.findall("testcase")
    assert clean.attrib["name"] == "calm" and len(clean) == 0 and clean.attrib["time"] == "0.210"
    failure, error = damaged.find("failure"), unread.find("error")
    assert (
        failure is not None and failure.attrib["type"] == "exit code 20" and "findings of severity loss: 1" in str(failure.text)
    )
    assert error is not None and error.attrib["type"] == "exit code 3" and "incomplete: " in str(error.text)


def test_a_property_that_is_null_is_left_out() -> None:
    result = json.loads(result_json(samples.RUN, [samples.clean()]))
    root = ElementTree.fromstring(junit_xml({**result, "tables": None}))
    named = {element.attrib["name"]: element.attrib["value"] for element in root.iter("property")}
    assert named.keys() == {"run_id", "tool_version", "rules_version", "exit_code"} and "None" not in named.values()


def test_results_that_were_not_written_are_a_case() -> None:
    suite = suite_of(samples.clean(), problems=("table x: no space", "index.html: no space"))
    error = suite.findall("testcase")[-1].find("error")
    assert (
        error is not None and error.attrib["message"] == "table x: no space" and str(error.text).endswith("index.html: no space")
    )


@pytest.mark.parametrize("name", [*samples.HOSTILE_NAMES, "\ufffe\uffff", "]]>", '" onload="x', "a\tb\r\n", "&amp;"])
def test_any_name_is_text(name: str) -> None:
    suite = suite_of(replace(samples.damaged(), name=name, verdict=name))
    (case,) = suite.findall("testcase")
    (failure,) = case
    assert case.attrib["name"] == failure.attrib["message"] == printable(name)


def test_both_files_are_written_whatever_the_audit_finds(tmp_path: Path) -> None:
    words = ["audit", f"{tmp_path}/none", "--out", f"{tmp_path}/out", "--junit", f"{tmp_path}/j.xml"]
    assert entry.main([*words, "--summary-markdown", f"{tmp_path}/missing/s.md"]) == 2
    assert not (tmp_path / "j.xml").exists()


def test_files_of_an_earlier_run_go_when_one_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(results.JOB_SUMMARY, f"{tmp_path}/summary")
    for name in ("j.xml", "s.md", "summary"):
        (tmp_path / name).write_text("earlier\n")
    (tmp_path / "store" / "commitlog").mkdir(parents=True)

    def killed(*_: object) -> int:
        raise UsageError("found late")

    monkeypatch.setattr(audit, "_audit_with_quick_start", killed)
    words = ["audit", f"{tmp_path}/store", "--out", f"{tmp_path}/out", "--release", "5.3.3", "--junit", f"{tmp_path}/j.xml"]
    for summary in ("s.md", "summary"):
        assert entry.main([*words, "--summary-markdown", f"{tmp_path}/{summary}"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["summary"]
    result = json.loads(result_json(samples.RUN, [samples.clean()]))
    results.write_markdown(f"{tmp_path}/summary", result)
    results.write_markdown(f"{tmp_path}/s.md", result)
    results.write_markdown(f"{tmp_path}/s.md", result)
    assert (tmp_path / "summary").read_text() == "earlier\n" + (tmp_path / "s.md").read_text()


@pytest.mark.parametrize("option", ["--junit", "--summary-markdown"])
def test_a_folder_or_an_address_is_refused(tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for value, word in ((str(tmp_path), "is a folder; name a file in it"), ("s3://b/f", "must be a file of this machine")):
        assert entry.main(["audit", f"{tmp_path}/none", "--out", f"{tmp_path}/out", option, value]) == 2
        assert word in capsys.readouterr().err
