"""Spark's options in order, and values that argparse alone would refuse."""

from __future__ import annotations

from pathlib import Path

from jobs.cli import parser
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.options import parse


def test_sparks_options_are_handed_on_unchanged_wherever_they_stand(store: Path, tmp_path: Path) -> None:
    words = ["--master", "yarn", "audit", str(store), "--conf=a=b c", "--out", str(tmp_path / "o"), "--verbose"]
    command = parse([*words, "--executor-memory", "2g", "--conf", "a=d"])
    assert command.spark == ("--master", "yarn", "--conf", "a=b c", "--verbose", "--executor-memory", "2g", "--conf", "a=d")
    assert parser.spark_setting(command.spark, "a") == "d"
    assert parser.spark_setting(command.spark, "spark.master", "--master") == "yarn"
    assert parser.spark_setting(command.spark, "b") is None
    assert command.audit is not None and [s.path for s in command.audit.stores] == [str(store)]


def test_a_value_may_begin_with_one_dash_and_arguments_may_come_anywhere() -> None:
    given = parser.CommandParser("query", COMMAND_TABLE["query"]).read(["S", "--key", "-k", "--since=--x", "T", "--", "--key"])
    assert given is not None
    assert (given.arguments, given.options) == (["S", "T", "--key"], {"--key": "-k", "--since": "--x"})


def test_other_words_pass_where_the_command_takes_them() -> None:
    notebook = parser.CommandParser("notebook", COMMAND_TABLE["notebook"])
    assert notebook.read(["--port", "9", "--master", "yarn", "x"]) == parser.Given(["--port", "9", "x"], {}, ("--master", "yarn"))
    assert notebook.read(["--help"]) is None and notebook.read(["x", "--help"]) is not None
