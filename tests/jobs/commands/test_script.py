"""run: a script gets its words, the session and the sources, and its own exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import entry
from jobs.cli import options
from jobs.commands import script
from jobs.runtime import session
from jobs.sources import helpers
from store_io.base.errors import NotAStore


class _Started:
    """A session without Spark."""

    spark = SimpleNamespace(name="the session")

    def __enter__(self) -> _Started:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(session, "start", lambda words: seen.append(words) or _Started())
    monkeypatch.setattr(helpers, "register", seen.append)
    monkeypatch.setattr(sys, "argv", ["cli"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    return seen


def ran(tmp_path: Path, text: str, *words: str) -> int:
    path = tmp_path / "own.py"
    path.write_text(text)
    return script.run(options.parse(["run", str(path), *words]))


def test_all_after_its_name_is_the_scripts(tmp_path: Path, without_spark: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.py"
    (tmp_path / "beside.py").write_text("VALUE = 7")
    path.write_text(
        "import sys, __main__, beside\n"
        "def f(): pass\n"
        "print(sys.argv[1:], spark.name, sources.__name__, __name__, __main__.f is f, f.__module__, beside.VALUE)\n"
    )
    ours = sys.modules["__main__"]
    words = ["run", "--master", "local[1]", str(path), "--help", "-x", "--conf", "--", "--master", "mine"]
    assert script.run(options.parse(words)) == 0
    assert capsys.readouterr().out == (
        "['--help', '-x', '--conf', '--', '--master', 'mine'] the session jobs.sources __main__ True __main__ 7\n"
    )
    assert without_spark == [("--master", "local[1]"), _Started.spark] and sys.modules["__main__"] is ours


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit()", 0, ""),
        ("raise SystemExit('too far behind')", 1, "too far behind\n"),
    ],
)
def test_its_exit_code_is_the_commands(
    tmp_path: Path, text: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(tmp_path, text) == code
    assert capsys.readouterr().err == said


def test_what_it_raises_is_shown_from_the_script_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path, "def f():\n    return {}['gone']\nf()\n") == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and "KeyError: 'gone'" in said and "own.py" in said and "script.py" not in said


def test_what_a_source_cannot_read_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(tmp_path, "sources.read(spark, 'messages', '/nowhere/at/all')") == 1
    assert capsys.readouterr().err == "/nowhere/at/all: there is nothing of this name\n"
    assert NotAStore("gone")._render_traceback_() == ["NotAStore: gone"]


def test_what_is_no_script_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.py").write_text("def :")
    for words, sentence in (
        ([], "run takes a script"),
        ([str(tmp_path / "gone.py")], "there is no such file"),
        ([str(tmp_path / "bad.py")], "is not Python: invalid syntax"),
        ([str(tmp_path)], "it is a folder"),
        (["--deploy-mode", "cluster", str(tmp_path / "bad.py")], "--deploy-mode client"),
        (["--conf", "spark.submit.deployMode=cluster", str(tmp_path / "bad.py")], "--deploy-mode client"),
        (["--unknown", "x.py"], "unknown option"),
    ):
        assert entry.main(["run", *words]) == 2
        assert sentence in capsys.readouterr().err
