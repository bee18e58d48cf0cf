"""completion SHELL: a script that completes commands, options, their values and file names.

shtab makes the script of the command table; the script asks no program while somebody types.
"""

from __future__ import annotations

import argparse
from typing import Any

import shtab

from jobs.cli.command_table import COMMAND_TABLE, SHELLS, TABLES_ACTIONS
from jobs.cli.option_values import LAST_RUN
from jobs.cli.options import Command
from jobs.cli.parser import SPARK_OPTIONS, Option
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from store_io.base.errors import UsageError
from store_io.broker.releases import KNOWN_RELEASES

PROGRAMS = ("rmq-audit", "spark-submit.sh")
_WORDS = {  # command -> what its arguments may be, if these are no paths
    "completion": SHELLS,
    "tables": TABLES_ACTIONS,
    "diff": (LAST_RUN,),
    "explain-code": (*CATALOGUE, *STOP_REASONS),
}


def run(command: Command) -> int:
    """Print the script. Raises UsageError."""
    if len(command.arguments) != 1 or command.arguments[0] not in SHELLS:
        raise UsageError(f"completion takes one shell: {', '.join(SHELLS)}")
    print("\n".join(shtab.complete(_parser(program), command.arguments[0]) for program in PROGRAMS))
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    """Return all commands as shtab reads them: one parser, with a parser for each command."""
    parser = argparse.ArgumentParser(program, add_help=False)
    commands = parser.add_subparsers()
    for name, spec in COMMAND_TABLE.items():
        own = commands.add_parser(name, help=_about(spec.about))
        for option in spec.options:
            _add(own, option.name, option)
        for spark_option in sorted(SPARK_OPTIONS) if spec.takes_spark else ():
            if spark_option not in own._option_string_actions:
                own.add_argument(spark_option, help="an option of Spark")
        words: Any = own.add_argument("words", nargs="*", choices=_WORDS.get(name))
        if name not in _WORDS:
            words.complete = shtab.FILE
    return parser


def _add(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    if not option.metavar:
        parser.add_argument(name, action="store_true", help=_about(option.help))
        return
    choices = KNOWN_RELEASES if name == "--release" else option.choices
    action: Any = parser.add_argument(name, metavar=option.metavar, choices=choices or None, help=_about(option.help))
    if not choices:
        action.complete = shtab.FILE


def _about(text: str) -> str:
    """Return the first line of a help text, as argparse takes it."""
    return text.splitlines()[0].rstrip(".").replace("%", "%%")
