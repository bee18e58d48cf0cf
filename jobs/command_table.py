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

# ---- explain -------------------------------------------------------------------------------------------------------

COMMAND_TABLE["explain"] = CommandSpec(
    module="jobs.explain",
    options=STORE_OPTIONS | {"--phy-offset", "--format", "--redact"},
    usage="""\
usage: ./spark-submit.sh explain STORE --phy-offset N [options]

Says what lies at a physical offset: the record's bytes field by field, which check fails on it and why, its neighbours, and
which ConsumeQueue and index entries lead to it. Needs no Spark.
  STORE                 a copied store folder (the one that holds commitlog/), a path or a URI
  --phy-offset N        the physical offset; one inside a record, in damage, or outside of the log is explained too
  --format text|json    for people (default), or one JSON object
  --redact MODE         none (default); hide or hash: bodies, keys, tags and the like are not shown
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
""",
)
