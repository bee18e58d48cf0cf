"""Whole commands take turns; one that ends with another code than it should is not measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dev import cold
from dev.bench_stores import BenchFailed
from dev.cold import COLD_RUNS, YARDSTICK, ColdRun, measure_cold
from dev.figures import cold_figures
from jobs.runtime import setup as environment


@pytest.fixture(autouse=True)
def _ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "is_ready", lambda: True)


def test_each_run_finds_no_results_of_the_run_before_it(tmp_path: Path) -> None:
    words = [sys.executable, "-S", "-c", "import os, sys; os.mkdir(sys.argv[1]); sys.exit(2)", str(tmp_path / "out")]
    least = measure_cold([ColdRun("one", words, tmp_path / "out", 2)], rounds=2)
    assert least is not None and 0 < least["one"] < 60


def test_a_command_that_fails_is_not_measured() -> None:
    with pytest.raises(BenchFailed, match="one ended with 1: wrong"):
        measure_cold([ColdRun("one", [sys.executable, "-S", "-c", "raise SystemExit('wrong')"])], rounds=1)


def test_every_run_has_a_limit_and_the_yardstick_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold.environment, "java_runtime", lambda: environment.JavaRuntime("/java", "21"))
    names = [run.name for run in cold.cold_runs(tmp_path, tmp_path, tmp_path / "out", ["--master", "local[1]"])]
    assert names == [YARDSTICK, *COLD_RUNS]


def test_the_figures_are_ratios_to_the_yardstick() -> None:
    floor, audit, *_ = cold_figures({YARDSTICK: 2.0, "explain": 0.1, "--help": 0.1})
    assert (floor.ratio, floor.met) == ("1.00", None)
    assert (audit.value, audit.ratio, audit.limit, audit.met) == ("0.100 s", "0.0500", "0.06 x", True)
    assert not cold_figures({YARDSTICK: 2.0, "--help": 0.1})[1].met
    assert cold_figures(None)[0].value.startswith("not measured")
