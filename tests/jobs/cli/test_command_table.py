"""Every command takes the options that its help names, and no others; the examples of a help can be pasted."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from itertools import combinations, dropwhile, takewhile
from pathlib import Path

import pytest

from jobs.cli import options
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.parser import SPARK_OPTIONS
from jobs.installation import COMMAND
from jobs.runtime import setup as environment
from store_io.base.errors import UsageError

NAMED = re.compile(r"--[a-z][a-z-]*[a-z]")


@pytest.mark.parametrize("command", sorted(COMMAND_TABLE.keys() - {"notebook"}))  # its words are JupyterLab's
def test_help_and_parser_know_the_same_options(command: str) -> None:
    taken = {option.name for option in COMMAND_TABLE[command].options}
    assert len(taken) == len(COMMAND_TABLE[command].options)
    _, usage, rest = options.usage_of(command).partition("\nusage: ")  # the examples before may be another command's
    assert usage and set(NAMED.findall(rest)) - {"--help"} - (SPARK_OPTIONS - taken) == taken


@pytest.mark.parametrize("command", sorted(COMMAND_TABLE))
def test_a_flag_takes_no_value_and_an_option_needs_one(command: str) -> None:
    for option in COMMAND_TABLE[command].options:
        wrong, said = ([f"{option.name}=1"], "takes no value") if not option.metavar else ([option.name], "needs a value")
        with pytest.raises(UsageError, match=f"{option.name} {said}"):
            options.parse([command, *wrong])


def test_help_lists_every_command_and_is_no_wider_than_a_page() -> None:
    told = options.usage()
    assert all(f"\n  {command} " in told for command in COMMAND_TABLE)
    assert max(map(len, told.splitlines())) <= 120
    assert [told.index(COMMAND_TABLE[name].examples[0]) for name in options.WAYS] < [told.index("usage: ")] * 3


def test_all_help_together_stays_short() -> None:
    assert sum(map(len, map(str.splitlines, (options.usage(), *map(options.usage_of, COMMAND_TABLE))))) <= 505


def test_options_come_in_the_same_order_in_every_command() -> None:
    for one, other in combinations(COMMAND_TABLE, 2):
        names, others = ([option.name for option in COMMAND_TABLE[command].options] for command in (one, other))
        shared = set(names) & set(others) - ({"--tables"} if one == "audit" else set())  # these are written, the others' are read
        assert [name for name in names if name in shared] == [name for name in others if name in shared], (one, other)


# ---- examples --------------------------------------------------------------------------------------------------

SEVERAL_MINUTES = {"notebook", "bench", "test"}  # or without an end
NO_SPARK = {"explain", "manifest", "query", "explain-code", "completion"}
CODES = {"audit": (20, 20), "rescue": (20, 0), "pack": (0, 20)}  # the others' examples end with 0; 20: this copy's damage


def words_of(example: str) -> list[str]:
    """The words that the shell gives to this program."""
    shell = shlex.shlex(example.replace("\\\n", " "), posix=True, punctuation_chars=True)
    shell.whitespace_split, shell.commenters = True, ""
    _, *words = dropwhile(lambda word: word != COMMAND, shell)
    return list(takewhile(lambda word: not set(word) <= set("();<>|&"), words))


@pytest.mark.parametrize("command", sorted(COMMAND_TABLE))
def test_help_begins_with_a_sentence_and_two_examples_that_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(environment.ROOT)
    sentence, *head = options.usage_of(command).partition("\n\nusage: ")[0].splitlines()
    examples = COMMAND_TABLE[command].examples
    assert sentence == COMMAND_TABLE[command].about.splitlines()[0] and sentence.endswith(".") and ". " not in sentence
    assert "\n".join(["", *head]).endswith("\n  ".join(["", *examples])) and len(set(examples)) == 2
    asked = [options.parse(words_of(example)) for example in examples]
    assert command in (found.name for found in asked)
    assert [word for example in examples for word in words_of(example) if "examples/" in word and not os.path.exists(word)] == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder in which examples write: it has what they read in the project's."""
    for name in ("spark-submit.sh", "examples"):
        (tmp_path / name).symlink_to(environment.ROOT / name)
    return tmp_path


@pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")
@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(NO_SPARK, id="without Spark"),
        pytest.param(
            COMMAND_TABLE.keys() - NO_SPARK - SEVERAL_MINUTES, id="the others", marks=[pytest.mark.soak, pytest.mark.spark]
        ),
    ],
)
def test_examples_can_be_pasted_one_after_the_other(commands: set[str], project: Path) -> None:
    for command in COMMAND_TABLE:
        if command not in commands:
            continue
        for example, code in zip(COMMAND_TABLE[command].examples, CODES.get(command, (0, 0)), strict=True):
            shell = ["fish", "-c"] if "fish" in example else ["bash", "-c"]
            if shutil.which(shell[0]) is None:
                continue
            done = subprocess.run([*shell, example], cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            assert done.returncode == code, (example, done.stderr)
