"""Every command takes the options that its help names, and no others."""

from __future__ import annotations

import re

import pytest

from jobs.command_line import options
from jobs.command_line.command_table import COMMAND_TABLE, STORE_OPTIONS
from store_io.base.errors import UsageError

NAMED = re.compile(r"--[a-z][a-z-]*[a-z]")


def taken(command: str) -> set[str]:
    if command in COMMAND_TABLE:
        return set(COMMAND_TABLE[command].options | COMMAND_TABLE[command].flags)
    return set(options.AUDIT_OPTIONS if command == "audit" else options.PACK_OPTIONS)


@pytest.mark.parametrize("command", sorted({*COMMAND_TABLE, "audit", "pack"} - {"notebook"}))  # its words are JupyterLab's
def test_help_and_parser_know_the_same_options(command: str) -> None:
    named = set(NAMED.findall(options.usage_of(command))) - options.SPARK_OPTIONS - {"--archives"}
    unnamed = STORE_OPTIONS if command == "manifest" else set()  # it takes them, so that one line of options serves all commands
    spark = options.SPARK_OPTIONS & taken(command)
    assert named | spark | unnamed == taken(command)


@pytest.mark.parametrize("command", sorted(COMMAND_TABLE))
def test_a_flag_takes_no_value_and_an_option_needs_one(command: str) -> None:
    spec = COMMAND_TABLE[command]
    assert not spec.options & spec.flags
    for flag in spec.flags:
        with pytest.raises(UsageError, match=f"{flag} takes no value"):
            options.parse([command, f"{flag}=1"])
    for option in spec.options:
        with pytest.raises(UsageError, match=f"{option} needs a value"):
            options.parse([command, option])
