"""JupyterLab gets this environment; what is Spark's own is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jobs.cli.options import Command, parse
from jobs.commands import notebook
from jobs.runtime import setup as environment
from store_io.base.errors import StoreError, UsageError


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that this process would have become."""
    found: list[list[str]] = []

    def become(path: str, words: list[str], variables: dict[str, str]) -> Any:
        found.append(words)

    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr(notebook, "kernel_environment", dict)
    return found


def test_without_a_place_the_projects_own_notebooks_are_opened(begun: list[list[str]], tmp_path: Any) -> None:
    head, own = [sys.executable, "-P", "-m", "jupyterlab"], f"--ServerApp.root_dir={notebook.FOLDER}"
    for words, expected in (
        ([], [own]),
        (["--no-browser", "--port", "9999"], ["--no-browser", "--port", "9999", own]),
        ([str(tmp_path)], [str(tmp_path)]),
        ([f"--root-dir={tmp_path}"], [f"--root-dir={tmp_path}"]),
    ):
        notebook.run(parse(["notebook", *words]))
        assert begun.pop() == [*head, *expected]


def test_sparks_options_and_a_missing_program_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="say it in the notebook"):
        notebook.run(parse(["notebook", "--master", "local[2]"]))
    assert parse(["notebook", "--help"]) == Command("help", arguments=("notebook",))

    def fails(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "execve", fails)
    monkeypatch.setattr(notebook, "kernel_environment", dict)
    with pytest.raises(StoreError, match="cannot be started: No such file"):
        notebook.run(Command("notebook"))


def test_a_kernel_finds_packages_java_and_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/own{os.pathsep}{environment.ROOT}")
    given = notebook.kernel_environment()
    assert given["PYTHONPATH"].split(os.pathsep) == [str(notebook.FOLDER), str(environment.ROOT), "/own"]
    assert os.path.exists(f"{given['JAVA_HOME']}/bin/java") and given["STORE_AUDIT_HOME"] == str(environment.home())


# ---- without a window ------------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook with parameters; its page is what the cells printed."""
    new = nbformat.v4
    parameters = new.new_code_cell("STORE = None\nPER = 'second'", metadata={"tags": ["parameters"]})
    shown = new.new_code_cell("print(STORE, PER)\nassert PER != 'never', 'as asked'")
    nbformat.write(new.new_notebook(cells=[parameters, shown]), tmp_path / "own.ipynb")
    texts = lambda found: "".join(out.get("text", "") for cell in found.cells for out in cell.get("outputs", []))  # noqa: E731
    monkeypatch.setattr(notebook, "_html", texts)
    for name in ("PYTHONPATH", "STORE_AUDIT_HOME", "JAVA_HOME", "NUMBA_CACHE_DIR", "JUPYTER_PREFER_ENV_PATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # which the command sets
    return tmp_path / "own.ipynb"


@pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")
def test_a_notebook_runs_without_a_window(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.chdir(tmp_path)
    before = written.read_bytes()
    assert notebook.run(parse(["notebook", "--run", "own.ipynb", "-p", "STORE=copies", "-p", "PER=minute"])) == 0
    assert capsys.readouterr().out == "own.html\n" and written.read_bytes() == before
    assert (tmp_path / "own.html").read_text() == f"{tmp_path}/copies minute\n"
    assert notebook.run(parse(["notebook", "--run", "own.ipynb", "-p", "PER=never", "-p", "STORE=5"])) == notebook.FAILED
    assert "AssertionError: as asked; own.html shows it" in capsys.readouterr().err
    assert (tmp_path / "own.html").read_text() == "5 never\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--run", "gone.ipynb"], "'gone.ipynb': there is no such file"),
        (["--run", "{own}", "--run", "{own}"], "one notebook at a time"),
        (["--run", "{own}", "--port", "8889"], "takes -p NAME=VALUE besides, not '--port' '8889'"),
        (["--run", "{own}", "-p", "STORE"], "takes -p NAME=VALUE"),
        (["--run", "{own}", "-p", "SHOP=1"], "the parameters of .* are STORE, PER"),
        (["--run", __file__], "cannot be read as a notebook"),
    ],
)
def test_what_is_no_run_is_told_in_a_sentence(written: Path, words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        notebook.run(Command("notebook", arguments=tuple(word.format(own=written) for word in words)))
