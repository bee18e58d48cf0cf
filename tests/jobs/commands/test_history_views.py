"""What report, diff and coverage make of rows, without Spark: literal rows in, literal answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import entry
from jobs.cli import options
from jobs.commands.past import coverage, difference, fleet
from jobs.report.texts.history_text import difference_text
from store_io.base.errors import UsageError
from tests.support.handmade.history_rows import A, B, covered, diff, place

# ---- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "x", "--tables", "t"],
        ["report", "--tables", "t", "--since", "soon"],
        ["diff", "a", "--tables", "t"],
        ["diff", "a", "b", "--tables", "t", "--format", "html"],
        ["coverage", "--tables", "t"],
        ["coverage", "--tables", "t", "--within", "0x"],
    ],
)
def test_faults_of_the_command_line_are_told_before_spark_starts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.runtime.session.start", lambda *_, **__: pytest.fail("Spark was started"))
    module = {"report": fleet, "diff": difference, "coverage": coverage}[words[0]]
    with pytest.raises(UsageError):
        module.run(options.parse(words))


@contextmanager
def no_spark(*_: object, **__: object) -> Iterator[Any]:
    yield SimpleNamespace(spark=None)


def test_what_the_commands_write(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("jobs.runtime.session.start", no_spark)
    for command in (difference, coverage, fleet):
        monkeypatch.setattr(command, "History", lambda uri: uri)
    view = diff(A, B, place(0, 1, None, 1, "rebuildable"))
    monkeypatch.setattr(difference, "read_difference", lambda *words: asked.append(words) or view)
    assert entry.main(["diff", "r1", "r2", "--tables", "/t", "--store", "s"]) == 10
    assert asked == [("/t", "r1", "r2", "s")] and capsys.readouterr().out == difference_text(view)
    assert entry.main(["diff", "r1", "r2", "--tables", "/t", "--out", f"{tmp_path}/d.json"]) == 10
    assert json.loads((tmp_path / "d.json").read_text())["exit_code"] == 10 and capsys.readouterr().out == ""
    monkeypatch.setattr(coverage, "read_coverage", lambda uri, now, since, store: asked.append(now - since) or covered({0: 2}))
    assert entry.main(["coverage", "--tables", "/t", "--within", "7d", "--format", "json"]) == 0
    assert (
        timedelta() <= asked[-1] - timedelta(days=7) < timedelta(minutes=1)
        and json.loads(capsys.readouterr().out)["bytes_verified"] == 100
    )
