"""Completion: bash's answers as bash gives them, and scripts that the other shells take."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jobs.cli import completion, options
from jobs.cli.command_table import COMMAND_TABLE, SHELLS
from jobs.cli.options import Command
from store_io.base.errors import UsageError

TRY = """
source ./script
ask() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  local of="_shtab_${1//[^a-z]/_}"
  "$of"
  echo "${COMPREPLY[*]}"
}
ask rmq-audit ex
ask spark-submit.sh audit --lev
ask rmq-audit audit --level ''
ask spark-submit.sh audit STORE --mas
ask rmq-audit completion ''
ask rmq-audit audit --out a-fol
ask rmq-audit audit a-fol
ask rmq-audit explain-code no_c
ask rmq-audit tables ''
ask rmq-audit diff ''
ask rmq-audit query STORE --release 4.9.7
"""
ANSWERS = ["explain export explain-code", "--level", "full quick", "--master", "bash zsh fish", "a-folder", "a-folder"]
ANSWERS += ["no_commitlog", "prune compact vacuum info views", "last", "4.9.7"]


def test_bash_completes_commands_options_values_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.run(options.parse(["completion", "bash"])) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "a-folder").mkdir()
    done = subprocess.run(["bash", "--norc", "-c", TRY], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr) == (ANSWERS, "")


def script_of(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    completion.run(Command("completion", arguments=(shell,)))
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script_of(shell, capsys)
    for name, spec in COMMAND_TABLE.items():
        assert name in text
        for option in spec.options:
            assert option.name in text or f"-l {option.name[2:]}" in text


@pytest.mark.parametrize(
    "shell", [pytest.param(s, marks=pytest.mark.skipif(shutil.which(s) is None, reason=f"{s} is not installed")) for s in SHELLS]
)
def test_a_shell_takes_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert subprocess.run([shell, "-n"], input=script_of(shell, capsys), capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"]])
def test_other_shells(words: list[str]) -> None:
    with pytest.raises(UsageError, match="completion takes one shell: bash, zsh, fish"):
        completion.run(options.parse(["completion", *words]))
