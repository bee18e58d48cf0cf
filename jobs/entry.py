"""Arguments in, the command's exit code out. Checks the command line first, then loads what the command needs: Spark comes last.

Whatever goes wrong ends with one sentence on standard error.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence

from jobs import RULES_VERSION, VERSION
from jobs.cli import options
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.options import Command
from jobs.installation import SetupFailed, module_name
from jobs.runtime import interrupts
from jobs.runtime import setup as environment
from jobs.runtime.compiled_code import numba_cache
from jobs.runtime.faults import say, sentence_and_code
from store_io.base import locks
from store_io.base.errors import RefusedSetting, UsageError
from store_io.base.failed_reads import every_read
from store_io.broker.releases import KNOWN_RELEASES
from store_io.source import storage_options


def main(words: Sequence[str]) -> int:
    """Run one command line; its exit code. Whatever a command does not expect ends here, in one sentence."""
    _stand_in_for_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of GBK or Latin-1 has not every letter that a store may hold
            stream.reconfigure(errors="backslashreplace")
    logging.getLogger().addHandler(logging.NullHandler())  # PySpark and py4j log what they raise: pages of it
    locks.look_with(interrupts.check)
    with interrupts.heard():
        try:
            return _run(words)
        except BaseException as problem:
            sentence, code = sentence_and_code(problem)
            if sentence:
                say(sentence)
            return code


def console() -> int:
    """Run the command rmq-audit of an installed wheel."""
    os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that it starts: a module in the folder where it is typed is not ours
    return interrupts.leave(main(sys.argv[1:]))


def _stand_in_for_closed_streams() -> None:
    """Have something at descriptors 0 to 2 (`<&-`, `>&-`): else the next files that are opened get these numbers."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            setattr(sys, name, open(number, mode, closefd=False))


def _run(words: Sequence[str]) -> int:
    if words[:1] == ["--submitted"]:  # the driver of cluster deploy mode: the options were checked before
        from jobs.commands.audit import run_in_cluster

        return run_in_cluster(options.from_word(words[1]))
    command = options.parse(words)
    options.hide(command.secrets())
    storage_options.use(command.storage)
    if options.needs_environment(command.name) and command.name != "test":  # before anything that compiles is loaded
        os.environ["NUMBA_CACHE_DIR"] = numba_cache()
    try:
        return _COMMANDS.get(command.name, run_module)(command)
    except RefusedSetting as problem:
        if "--broker-conf" not in command.options:
            raise
        raise UsageError(problem.within(f"--broker-conf {command.options['--broker-conf']!r}")) from None


def run_module(command: Command) -> int:
    """Run a command of jobs/cli/command_table.py; its module's own exit code."""
    spec = COMMAND_TABLE[command.name]
    if spec.module.startswith("dev.") and importlib.util.find_spec(module_name("dev")) is None:  # a wheel, an image
        raise SetupFailed(f"{command.name} needs the project's own folder: run ./spark-submit.sh {command.name} there")
    if spec.group:
        environment.ensure(spec.group)
    run = importlib.import_module(module_name(spec.module)).run
    if command.name == "audit":  # says of each store what could not be read of it
        return int(run(command))
    with every_read():
        return int(run(command))


def show_help(command: Command) -> int:
    """Print the usage, of the whole or of one command."""
    print(options.usage_of(command.arguments[0]) if command.arguments else options.usage(), end="")
    return 0


def show_version(_: Command) -> int:
    """Print the versions of this program, of its rules, and the releases that it knows."""
    print(f"rocketmq-store-audit {VERSION}, rules {RULES_VERSION}, RocketMQ {KNOWN_RELEASES[0]} to {KNOWN_RELEASES[-1]}")
    return 0


_COMMANDS: dict[str, Callable[[Command], int]] = {"help": show_help, "version": show_version}


if __name__ == "__main__":
    code = main(sys.argv[1:])
    gc.freeze()  # nothing is looked for in memory that goes as a whole
    sys.exit(interrupts.leave(code))
