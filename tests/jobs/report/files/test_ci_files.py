"""A run's result as Markdown, as JUnit's XML and as metrics, each read by a parser of its own."""

from __future__ import annotations

import html
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jobs import entry
from jobs.audit import results
from jobs.cli import options
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.commands import audit
from jobs.report.files.ci_files import ROWS, junit_xml, prometheus_text, summary_markdown
from jobs.report.files.result_files import result_json
from jobs.report.texts.text import printable
from jobs.runtime.output import OutputFailed
from schemas.replicas import NO_GROUP
from store_io.base.errors import StoreError, UsageError
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter, varied

MARKUP = "@everyone https://evil.example www.evil.example a|b `x` [l](u) **b** #1 ~~s~~ a_b_c &lt; <!--".split()
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)(?: -?\d+)?")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf)|NaN")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def text_of(*outcomes: object, **run: object) -> str:
    return summary_markdown(json.loads(result_json(replace(samples.RUN, **run), outcomes)))  # type: ignore[arg-type]


def test_the_whole_file() -> None:
    lines = text_of(samples.clean(), samples.damaged(), samples.not_audited(), problems=("table x: no space",)).splitlines()
    meaning = "bytes or messages are damaged or missing, or a start would lose messages or fail"
    assert lines[0] == f"## RocketMQ store audit: exit code 20 ({meaning})"
    assert "* table x&#58; no space" in lines
    assert "* Not audited completely: 1 store of 3" in lines
    rows = [line for line in lines if line.startswith("| ")]
    severities = "loss | rebuildable | note"
    heads = f"| code | store | release | answer | safe to start? | lost messages | {severities} | verdict | first step |"
    assert rows[0] == heads
    assert [row.split(" | ")[0] for row in rows[1:]] == ["| 20", "| 3", "| 0"]
    assert rows[3].startswith("| 0 | <code>calm</code> | 5.3.3 | ") and " | 0 | 0 | 0 | 0 | Safe to start. Every byte" in rows[3]
    assert " | not known | " in rows[2]
    assert [html.unescape(row.split(" | ")[3]) for row in rows[1:]] == [
        f"<code>{answer}</code>" for answer in ("repair", "not_known", "start")
    ]
    assert rows[2].endswith(
        " | Check the path&#58; it must be the folder that holds commitlog/, and it must be readable. Then audit again. |"
    )


def test_an_assumed_release_is_said_first() -> None:
    lines = text_of(varied(samples.clean(), release_from="default")).splitlines()
    assert lines[2] == "* Release 5.3.3 was assumed for 1 store: nobody named a known one (`--release`)"


@pytest.mark.parametrize("name", [*samples.HOSTILE_NAMES, *MARKUP])
def test_no_name_is_markup(name: str) -> None:
    found = result(replace(samples.clean(), name=name))
    found["stores"][0]["verdict"] = name
    (row,) = [line for line in summary_markdown(found).splitlines() if line.startswith("| 0 ")]
    assert row.count("|") == 12
    cell = row.split("|")[2].strip().removeprefix("<code>").removesuffix("</code>")
    assert re.fullmatch(r"(?:[^\x00-\x7f]|[\w\s,.;%'/…-]|&#\d+;|<span>[@/.]</span>)*", cell) and "_" not in cell
    assert "//" not in cell and "www." not in cell and not re.search(r"@\w", cell)
    shown = html.unescape(re.sub(r"</?span>", "", cell))
    assert shown == printable(name, 100)


@pytest.mark.parametrize("name", [*samples.HOSTILE_NAMES, *MARKUP])
def test_a_step_is_text_and_its_length_is_bounded(name: str) -> None:
    found = result(samples.clean())
    found["stores"][0]["steps"][0]["text"] = name * 400
    (row,) = [line for line in summary_markdown(found).splitlines() if line.startswith("| 0 ")]
    cell = row.split("|")[-2].strip()
    assert row.count("|") == 12 and html.unescape(re.sub(r"</?span>", "", cell)) == printable(name * 400, 300)
    assert "//" not in cell and "www." not in cell and not re.search(r"<(?!/?span>)|@\w", cell)


def test_a_store_without_a_step_has_an_empty_cell() -> None:
    found = result(samples.clean())
    found["stores"][0]["steps"] = []
    assert summary_markdown(found).splitlines()[-1].endswith(" |  |")


def test_many_stores_are_cut_and_counted() -> None:
    lines = text_of(*(replace(samples.clean(), name=f"s{n}") for n in range(ROWS + 7))).splitlines()
    assert sum(line.startswith("| 0 |") for line in lines) == ROWS and lines[-1] == "and 7 more stores: result.json has all"


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    for write, option in (
        (results.write_markdown, "--summary-markdown"), (results.write_junit, "--junit"), (results.write_metrics, "--prometheus"),
    ):  # fmt: skip
        with pytest.raises(OutputFailed, match=f"^{option} .*: cannot write: "):
            write(f"{tmp_path}/none/file", json.loads(result_json(samples.RUN, [samples.clean()])))


def suite_of(*outcomes: object, **run: object) -> ElementTree.Element:
    return suite_in(json.loads(result_json(replace(samples.RUN, **run), outcomes)))  # type: ignore[arg-type]


def suite_in(found: dict[str, Any]) -> ElementTree.Element:
    """The one suite, held against the counts of the root."""
    root = ElementTree.fromstring(junit_xml(found).encode())
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


def test_a_failure_has_the_answer_and_the_steps_by_number() -> None:
    found = result(samples.damaged())
    steps = found["stores"][0]["steps"]
    steps[1] |= {"command": "./spark-submit.sh repair '/copies/a b'", "text": "Repair \x1b[31m\nit"}
    (failure,) = ElementTree.fromstring(junit_xml(found).encode()).iter("failure")
    lines = str(failure.text).splitlines()
    assert "answer: repair" in lines
    assert [line.partition(":")[0] for line in lines if line[0].isdigit()] == ["1. other", "2. repair", "3. start", "4. check"]
    place = lines.index("2. repair: Repair \\x1b[31m\\x0ait")
    assert lines[place + 1] == "   ./spark-submit.sh repair '/copies/a b'" and lines[place + 2].startswith("3. start: ")


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
    found = result(replace(samples.damaged(), name=name))
    found["stores"][0]["verdict"] = name
    suite = suite_in(found)
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


def parsed(text: str) -> Samples:
    """What the format's rules allow and nothing more: HELP and TYPE before a metric's samples, all its samples together, no
    sample twice, only known escapes, a line feed at the end."""
    assert text.endswith("\n") and "\r" not in text
    found: Samples = {}
    helped: set[str] = set()
    typed: list[str] = []
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            assert re.fullmatch(NAME, name) and name not in helped and words
            assert re.fullmatch(r"(?:[^\\]|\\[\\n])*", words)
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name in helped and name not in typed and kind in ("gauge", "counter", "untyped")
            typed.append(name)
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            assert name == typed[-1], f"{name} is not under its own TYPE"
            pairs, at = [], 0
            while at < len(labels or ""):
                label = LABEL.match(labels, at)
                assert label, line
                pairs.append((label[1], re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), label[2])))
                at = label.end()
            key = (name, tuple(sorted(pairs)))
            assert key not in found and NUMBER.fullmatch(value), line
            assert len(dict(pairs)) == len(pairs)
            found[key] = float(value)
    return found


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"rocketmq_store_audit_{name}", tuple(sorted(labels.items()))))


def result(*outcomes: Any) -> dict[str, Any]:
    return dict(json.loads(result_json(samples.RUN, outcomes)))


def test_a_fleet() -> None:
    stores = [samples.damaged(), samples.clean(), samples.not_audited(), samples.refused()]
    found = parsed(prometheus_text(result(*stores), 1_795_300_000.1234))
    hurt = stores[0].name
    assert value(found, "info", store="calm", release="5.3.3", tool_version="1.2.3", rules_version="7") == 1
    codes = {"calm": 0, hurt: 20, "gone": 3, "stuck": 20}
    assert {name: value(found, "exit_code", store=name) for name in codes} == codes
    assert {value(found, "last_run_timestamp_seconds", store=name) for name in codes} == {1_795_300_000.123}
    assert {name: value(found, "starts", store=name) for name in codes} == {"calm": 1, hurt: 1, "gone": None, "stuck": 0}
    assert {name: value(found, "complete", store=name) for name in codes} == {"calm": 1, hurt: 1, "gone": 0, "stuck": 1}
    assert {name: value(found, "emptied", store=name) for name in codes} == {"calm": 0, hurt: 0, "gone": None, "stuck": 0}
    assert {value(found, name, store="calm") for name in ("earlier_messages", "lacks_messages", "diverged")} == {None}
    assert {name: value(found, "lost_messages", store=name) for name in codes} == {
        "calm": 0,
        hurt: 12,
        "gone": None,
        "stuck": None,
    }
    assert value(found, "lost_bytes", store=hurt) == 3456
    assert value(found, "truncate_at", store=hurt) == 1124
    assert [value(found, "findings", store=hurt, severity=s) for s in ("loss", "rebuildable", "note")] == [1, 25, 1]
    assert [value(found, "findings", store="gone", severity=s) for s in ("loss", "rebuildable", "note")] == [0, 0, 0]
    assert value(found, "findings_dropped", store=hurt) == 5
    assert (value(found, "read_bytes", store=hurt), value(found, "duration_seconds", store=hurt)) == (1_610_613_762, 75)
    assert (value(found, "messages", store=hurt), value(found, "segments", store=hurt)) == (18, 2)
    assert (value(found, "damaged_extents", store=hurt), value(found, "damaged_bytes", store=hurt)) == (1, 200)
    assert (value(found, "commitlog_bytes", store="calm"), value(found, "damaged_bytes", store="calm")) == (1024, 0)
    answers = {labels: number for (metric, labels), number in found.items() if metric == "rocketmq_store_audit_answer"}
    assert answers == {
        (("answer", answer), ("store", store)): 1
        for store, answer in {"calm": "start", hurt: "repair", "gone": "not_known", "stuck": "repair"}.items()
    }
    assert value(found, "damaged_bytes", store="gone") is None and value(found, "unverified_bytes", store="gone") is None


def test_bytes_that_were_not_read_wholly() -> None:
    outcome = samples.damaged()
    first, second = outcome.rows.segments
    first["digest"], second["digest"] = "d", "d"
    assert value(parsed(prometheus_text(result(outcome), 0)), "unverified_bytes", store=outcome.name) == 0
    second["problem"] = "cannot read"
    assert value(parsed(prometheus_text(result(outcome), 0)), "unverified_bytes", store=outcome.name) == 1024


def test_what_is_gone_and_what_copies_lack() -> None:
    stores = [samples.emptied(), samples.shrunk(), samples.empty()]
    stores += [replace(samples.behind(samples.clean(), parted), name=name) for name, parted in (("a", False), ("b", True))]
    for outcome in stores[3:]:
        alter(outcome, replicas=samples.behind(replace(outcome, replicas=NO_GROUP), outcome.name == "b").replicas)
    found = parsed(prometheus_text(result(*stores), 0))
    gone = {s.name: (value(found, "emptied", store=s.name), value(found, "earlier_messages", store=s.name)) for s in stores}
    assert gone == {"wiped": (1, 2153), "short": (1, 2153), "new": (0, None), "a": (0, None), "b": (0, None)}
    group = {s.name: (value(found, "lacks_messages", store=s.name), value(found, "diverged", store=s.name)) for s in stores}
    none = (None, None)
    assert group == {"wiped": none, "short": none, "new": none, "a": (300, 0), "b": (300, 1)}


def test_labels_are_escaped() -> None:
    found = result(samples.clean())
    found["stores"][0]["name"] = 'a"b\\c\nd} 1'
    assert value(parsed(prometheus_text(found, 0)), "exit_code", store='a"b\\c\nd} 1') == 0


def asked(tmp_path: Path) -> AuditOptions:
    return AuditOptions((StoreArgument("s", "/copies/s"),), f"{tmp_path}/out", prometheus=f"{tmp_path}/audit.prom")


def test_a_run_that_was_stopped_has_metrics_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_spark(_: AuditOptions, __: Any) -> int:
        raise StoreError("Spark did not start")

    monkeypatch.setattr(audit, "_audit_with_quick_start", no_spark)
    before = os.umask(0o077)  # as a service with UMask=0077 has it
    try:
        assert audit.run(options.Command("audit", audit=asked(tmp_path))) == 3
    finally:
        os.umask(before)
    found = parsed((tmp_path / "audit.prom").read_text())
    assert (value(found, "exit_code", store="s"), value(found, "complete", store="s")) == (3, 0)
    assert value(found, "output_problems", store="s") == 1
    assert sorted(os.listdir(tmp_path)) == ["audit.prom", "out"]
    assert os.stat(tmp_path / "audit.prom").st_mode & 0o444 == 0o444, "node_exporter is another user"


def test_the_old_file_stands_where_the_new_one_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.prom"
    path.write_text("old\n")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jobs.runtime.output.os.fsync", full)
    with pytest.raises(StoreError, match=r"^--prometheus .*audit\.prom: cannot write: No space left on device$"):
        results.write_metrics(str(path), result(samples.clean()))
    assert path.read_text() == "old\n" and os.listdir(tmp_path) == ["audit.prom"]


def test_where_the_file_may_be(tmp_path: Path) -> None:
    (tmp_path / "s" / "commitlog").mkdir(parents=True)
    words = ["audit", f"{tmp_path}/s", "--out", f"{tmp_path}/out", "--prometheus"]
    command = options.parse([*words, f"{tmp_path}/a.prom"])
    assert command.audit is not None and command.audit.prometheus == f"{tmp_path}/a.prom"
    assert options.from_word(options.to_word(command.audit)) == command.audit
    for file, sentence in {
        f"{tmp_path}": "is a folder; name a file in it",
        f"{tmp_path}/none/a.prom": "there is no folder",
        "s3://bucket/a.prom": "a file of this machine",
        f"{tmp_path}/s/a.prom": "lies inside the store",
    }.items():
        with pytest.raises(UsageError, match=sentence):
            options.parse([*words, file])
