"""JupyterLab gets this environment; what is Spark's own is refused."""

from __future__ import annotations

import os
import sys
from typing import Any

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
