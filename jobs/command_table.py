"""The commands beside audit, bench, test and pack: what each takes, and the module that runs it. Standard library only.

A module's `run(command)` gets the words that `jobs.options.parse` has sorted and gives the exit code. It raises UsageError for a
value that is no good, before anything is read, and StoreError for what cannot be done: `jobs.cli` says the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandSpec:
    """module: imported when the command runs.  options: with a value.  flags: without.  usage: the text of --help.
    group: the dependency group in pyproject.toml that it needs besides the product's own packages."""

    module: str
    options: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    usage: str = ""
    group: str = ""


STORE_OPTIONS = frozenset("--release --broker-conf --commitlog --consumequeue --index".split())
"""What says how a single STORE is to be read, as for an audit."""

COMMAND_TABLE: dict[str, CommandSpec] = {}
