"""--prometheus: by a strict reader of the exposition format, with literal values; whole or not there."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import results
from jobs.cli import options
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.commands import audit
from jobs.report.files.ci_files import prometheus_text
from jobs.report.files.result_files import result_json
from store_io.base.errors import StoreError, UsageError
from tests.support.handmade import samples

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)(?: -?\d+)?")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf)|NaN")

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


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
    assert value(found, "damaged_bytes", store="gone") is None and value(found, "unverified_bytes", store="gone") is None


def test_bytes_that_were_not_read_wholly() -> None:
    outcome = samples.damaged()
    first, second = outcome.segments
    first["digest"], second["digest"] = "d", "d"
    assert value(parsed(prometheus_text(result(outcome), 0)), "unverified_bytes", store=outcome.name) == 0
    second["problem"] = "cannot read"
    assert value(parsed(prometheus_text(result(outcome), 0)), "unverified_bytes", store=outcome.name) == 1024


def test_what_is_gone_and_what_copies_lack() -> None:
    stores = [samples.emptied(), samples.shrunk(), samples.empty()]
    stores += [replace(samples.behind(samples.clean(), parted), name=name) for name, parted in (("a", False), ("b", True))]
    for outcome in stores[3:]:
        outcome.replicas = json.loads(json.dumps(outcome.replicas).replace('"calm"', f'"{outcome.name}"'))
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
