"""Every command takes the options that its help names, and no others."""

from __future__ import annotations

import re

import pytest

from jobs.command_line import options
from jobs.command_line.command_table import COMMAND_TABLE
from jobs.command_line.parser import SPARK_OPTIONS
from store_io.base.errors import UsageError

NAMED = re.compile(r"--[a-z][a-z-]*[a-z]")


@pytest.mark.parametrize("command", sorted(COMMAND_TABLE.keys() - {"notebook"}))  # its words are JupyterLab's
def test_help_and_parser_know_the_same_options(command: str) -> None:
    taken = {option.name for option in COMMAND_TABLE[command].options}
    assert len(taken) == len(COMMAND_TABLE[command].options)
    assert set(NAMED.findall(options.usage_of(command))) - (SPARK_OPTIONS - taken) == taken


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
