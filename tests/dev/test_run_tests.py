"""The command that runs all tests: in two halves side by side, none left out, none twice, any failure reported."""

from __future__ import annotations

import re
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from dev import run_tests
from jobs.cli import options
from jobs.cli.command_table import SLOW_MARKS
from jobs.runtime import setup as environment

MARKS = ("spark", *SLOW_MARKS)


def test_each_test_is_in_one_half() -> None:
    kept = tomllib.loads((environment.ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    everything = Expression.compile(re.findall(r"-m '(.*)'", kept)[0])
    halves = [Expression.compile(words[-1]) for words in (run_tests.WITH_SPARK, run_tests.WITHOUT_SPARK)]
    for marks in (set(some) for count in range(len(MARKS) + 1) for some in combinations(MARKS, count)):
        chosen = [half.evaluate(lambda name, marks=marks: name in marks) for half in halves]
        assert sum(chosen) == everything.evaluate(lambda name, marks=marks: name in marks), marks


def test_help_and_documents_name_the_marks_that_tests_have() -> None:
    texts = [path.read_text("utf-8") for path in (environment.ROOT / "tests").rglob("*.py")]
    used = {mark for mark in SLOW_MARKS if any(re.search(rf"pytest\.mark\.{mark}\b", text) for text in texts)}
    assert used == set(SLOW_MARKS)
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (environment.ROOT / name).read_text("utf-8")
        assert used == {mark for mark in SLOW_MARKS if f"`-m {mark}`" in text}, name


@pytest.mark.parametrize(("failing", "code"), [("none", 0), ("lint", 1), ("with", 1), ("without", 1)])
def test_any_failure_is_the_commands_own(
    failing: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def script(name: str) -> list[str]:
        return ["-c", f"import sys; print('ran {name}', sys.dont_write_bytecode); raise SystemExit({int(failing == name)})"]

    monkeypatch.setattr(run_tests, "_LINT", (("ruff", script("lint")),))
    monkeypatch.setattr(run_tests, "WITH_SPARK", script("with"))
    monkeypatch.setattr(run_tests, "WITHOUT_SPARK", script("without"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    command: Any = options.parse(["test"])
    assert run_tests.run(command) == code
    shown = capfd.readouterr().out
    assert [name for name in ("lint", "with", "without") if f"ran {name} False\n" in shown] == ["lint", "with", "without"]
    assert shown.index("== tests without Spark") < shown.index("ran without")
