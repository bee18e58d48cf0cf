"""What every command does alike: help, the unexpected in one sentence, signals. No Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from jobs.audit import results, run_audit
from jobs.audit.earlier_runs import Reading
from jobs.cli import options
from jobs.cli.options import COMMANDS
from jobs.cli.stores import StoreArgument
from jobs.commands import audit
from jobs.installation import SPEAKER
from jobs.runtime import setup as environment
from schemas.outcome import Outcome
from store_io.answer.headline import verdict_text
from store_io.base.errors import StoreError
from tests.support.processes.children import PATIENCE_SECONDS, state_of, until


class Gone(Exception):
    """As Py4JJavaError once the JVM has stopped: its text cannot be had any more."""

    def __str__(self) -> str:
        raise ConnectionRefusedError

    @property
    def java_exception(self) -> Any:
        raise ConnectionRefusedError


def no(*_: Any) -> Any:
    raise AssertionError("nothing may be made or started for a usage")


# ---- help ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("words", [["{}", "--help"], ["{}", "-h"], ["help", "{}"], ["--master", "local", "{}", "--help"]])
def test_every_command_has_its_own_usage_and_makes_nothing(
    command: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "ensure", no)
    monkeypatch.setattr(subprocess, "run", no)
    given = [word.format(command) for word in words]
    assert environment.main(given) == 0
    assert entry.main(given) == 0
    told = capsys.readouterr()
    assert f"\nusage: ./spark-submit.sh {command} " in told.out and told.err == ""


# ---- the unexpected --------------------------------------------------------------------------------------------


PROBLEMS = [
    (KeyError("x"), "KeyError: 'x'"),
    (ValueError("one\ntwo"), "ValueError: one"),
    (OSError(28, "No space left on device", "/x"), "OSError: No space left on device"),
    (MemoryError(), "MemoryError"),
    (Gone(), "Gone"),
]
GUARDED = [c for c in COMMANDS if c not in ("audit", "notebook", "test")]


@pytest.mark.parametrize(
    ("command", "problem", "said"),
    [(command, *PROBLEMS[number % len(PROBLEMS)]) for number, command in enumerate(GUARDED)],  # each problem in some of them
)
def test_the_unexpected_is_one_sentence_and_3(
    command: str, problem: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Any) -> int:
        raise problem

    monkeypatch.setitem(entry._COMMANDS, command, fail)
    words = [command, "--out", "/x.tar.gz"] if command == "pack" else [command]
    assert entry.main(words) == 3
    told = capsys.readouterr().err
    assert told == f"spark-submit.sh: stopped by a fault of this program: {said} (STORE_AUDIT_TRACEBACK=1 shows where)\n"
    monkeypatch.setenv("STORE_AUDIT_TRACEBACK", "1")
    assert entry.main(words) == 3
    assert "Traceback" in (told := capsys.readouterr().err) and "in fail" in told


@pytest.mark.parametrize("problem", [KeyError("x"), Gone()])
def test_an_audit_that_ends_unexpectedly_leaves_a_result_and_metrics(
    problem: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> int:
        raise problem

    monkeypatch.setattr(audit, "_audit_with_quick_start", fail)
    metrics = tmp_path / "a.prom"
    assert entry.main(["audit", str(tmp_path / "s"), "--out", str(tmp_path / "out"), "--prometheus", str(metrics)]) == 3
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["exit_code"], result["complete"], [store["code"] for store in result["stores"]]) == (3, False, [3])
    assert "stopped by a fault of this program" in result["problems"][0]
    assert "rocketmq_store_audit_exit_code" in metrics.read_text()
    assert capsys.readouterr().err.count("\n") == 1


def test_a_result_that_stands_keeps_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(asked: options.AuditOptions, _: Any) -> int:
        results.write_stopped(asked, "whole", results.datetime.now(), 1.0)
        raise Gone

    monkeypatch.setattr(audit, "_audit_with_quick_start", fail)
    assert entry.main(["audit", str(tmp_path / "s"), "--out", str(tmp_path / "out")]) == 3
    assert json.loads((tmp_path / "out" / "result.json").read_text())["problems"] == ["whole"]


# ---- signals ---------------------------------------------------------------------------------------------------

SLEEPER = """
import sys, time
from jobs import entry
from jobs.runtime import interrupts
def work(_):
    print("ready", flush=True)
    {}
entry._COMMANDS["export"] = work
sys.exit(entry.main(["export", "x"]))
"""


@pytest.mark.parametrize(
    ("work", "number", "code"),
    [
        ("time.sleep(60)", signal.SIGINT, 130),
        ("time.sleep(60)", signal.SIGTERM, 143),
        # what Python drops, because nothing can catch it there, is met at the next step
        (
            "sys.unraisablehook = lambda _: None\n    class A:\n        def __del__(self): time.sleep(60)\n    A()\n"
            "    interrupts.check(); time.sleep(60)",
            signal.SIGINT,
            130,
        ),
        (
            "try: time.sleep(60)\n    except BaseException: raise RuntimeError('what the interrupted call made of it')",
            signal.SIGTERM,
            143,
        ),
        # each dataclass is made so; CPython marks what an interrupt leaves
        ("exec('time.sleep(60)')", signal.SIGINT, 130),
    ],
)
def test_a_signal_ends_any_command_with_its_code(tmp_path: Path, work: str, number: signal.Signals, code: int) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER.format(work))
    process = subprocess.Popen(
        [sys.executable, "-m", "sleeper"],  # run as spark-submit.sh runs jobs.entry
        env={**os.environ, "PYTHONPATH": f"{environment.ROOT}:{tmp_path}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    until(lambda: state_of(process.pid) == "S", "the command sleeps")
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (code, "")


def test_a_store_error_is_its_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: Any) -> int:
        raise StoreError("the tables are gone")

    monkeypatch.setitem(entry._COMMANDS, "report", fail)
    assert entry.main(["report"]) == 3
    assert capsys.readouterr().err == "spark-submit.sh: the tables are gone\n"


def test_something_stands_in_for_streams_that_are_closed(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom jobs import entry\nentry._stand_in_for_closed_streams()\n"
        "assert os.open(sys.argv[1], os.O_RDONLY) > 2 and sys.stdin.read() == ''\nprint('x', flush=True)"
    )
    command = ["sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, stderr=subprocess.PIPE, cwd=environment.ROOT, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_refused_line_of_broker_conf_is_told_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s" / "commitlog").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for line, why in (
        ("maxIndexNum=-3", "maxIndexNum=-3: not above 0"),
        ("messageDelayLevel=1s 2x", "messageDelayLevel=1s 2x: '2x' is no number with a unit of s, m, h or d"),
        ("brokerName=\\u12", "'\\\\u12': \\u needs four hexadecimal digits"),
    ):
        Path("my.conf").write_text(line + "\n")
        told = f"{why}; correct the line or leave it out\n"
        for words in (["query", "s"], ["explain", "s", "--phy-offset", "0"], ["export", "s", "--to", "e", "--format", "jsonl"]):
            assert entry.main([*words, "--release", "5.3.3", "--broker-conf", "my.conf"]) == 2
            assert capsys.readouterr().err.endswith(f": --broker-conf 'my.conf': {told}"), words
        store = StoreArgument("s", f"{tmp_path}/s", "5.3.3", line, broker_conf_file=f"{tmp_path}/my.conf")
        outcome = run_audit._prepare(0, store, Reading())
        assert isinstance(outcome, Outcome) and f"{tmp_path}/my.conf: {told.strip()}" in verdict_text(outcome)


@pytest.mark.parametrize("command", ["bench", "test"])
def test_what_measures_and_tests_is_no_part_of_a_wheel(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "dev" else real(name, *more))
    assert entry.main([command]) == 3
    said = f"{SPEAKER}: {command} needs the project's own folder: run ./spark-submit.sh {command} there\n"
    assert capsys.readouterr().err == said
