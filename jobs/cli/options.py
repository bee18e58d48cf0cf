"""A command line as plain data, checked before anything is read. Standard library only: a mistyped option is answered at once,
on a machine without the environment too.

Every fault is a UsageError with one sentence. A bad row of a fleet file is not: it becomes a StoreArgument with a `problem`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from jobs.cli.argument_places import absolute, join, refuse_all_inside, refuse_not_utf8
from jobs.cli.command_table import COMMAND_TABLE, STORAGE_OPTION
from jobs.cli.option_values import LAST_RUN, near, new_run_id
from jobs.cli.parser import CommandParser, CommandSpec
from jobs.cli.start_options import AskedStart
from jobs.cli.stores import StoreArgument, named_stores, read_fleet_file, with_unique_names
from jobs.cli.terminal import colour_wanted, redraws
from jobs.installation import COMMAND
from schemas.tables import DATASETS as RECORD_TABLES
from schemas.tables import TABLES
from store_io.base.errors import UsageError
from store_io.base.paths import is_uri
from store_io.source.storage_options import SECRETS

COMMANDS = tuple(COMMAND_TABLE)
WAYS = {  # how most people begin: command -> what its first example does
    "audit": "Audit a copy: would a start be safe, what would it lose?",
    "rescue": "A broker has died: what can a new store save of its copy? With --yes the new store is written.",
    "query": "Find a message, by its key:",
}
# Files beside the results, of this machine: option -> (who reads it, a name for it).
_BESIDE = {
    "--prometheus": (", in the folder that its node_exporter reads", "store-audit.prom"),
    "--summary-markdown": ("", "summary.md"),
    "--junit": ("", "store-audit.xml"),
}


@dataclass(frozen=True)
class AuditOptions:
    """The options of one `jobs.audit.run_audit.run_with`.

    out, tables: absolute paths or URIs; tables None means DIR/tables.
    """

    stores: tuple[StoreArgument, ...]
    out: str
    tables: str | None = None
    run_id: str = field(default_factory=new_run_id)
    write: frozenset[str] = frozenset()
    progress: bool = False
    color: bool = False
    prometheus: str | None = None  # these are files of this machine
    summary_markdown: str | None = None
    junit: str | None = None
    level: str = "full"  # or "quick"
    max_seconds: float | None = None  # after which no further segment is started
    since_run: str | None = None  # an earlier run's id, or LAST_RUN
    progress_json: bool = False
    run_id_named: bool = False  # so that the run can be started again under its id
    max_rate: int = 0  # bytes that all tasks of one machine read together in a second; 0: as many as they can
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)  # of --storage-option, for the driver of a cluster
    of_fleet: bool = False  # the stores are rows of a fleet file, which can name groups of copies
    asked_at: int = field(default_factory=time.time_ns, compare=False)  # ns; what is read of a copy after that counts for the run


@dataclass(frozen=True)
class Command:
    """A checked command line.

    spark: Spark's own options, in order.
    audit: of the command of that name.

    options, flags: the ones that are given.
    arguments: the other words; for help, the command that it is asked for.
    storage: what --storage-option gives, by known key.
    """

    name: str
    spark: tuple[str, ...] = ()
    audit: AuditOptions | None = None
    arguments: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def secrets(self) -> list[str]:
        """Return words of the command line that nobody else is to see."""
        return [self.storage[key] for key in SECRETS if key in self.storage]


def parse(words: Sequence[str]) -> Command:
    """Return the command that these words ask for. `help` and `version` are commands of these names. Raises UsageError."""
    if words and words[0] == "--version":
        if len(words) > 1:
            raise UsageError(f"--version takes no other word, as {words[1]!r}")
        return Command("version")
    before = CommandParser("", CommandSpec("", "", ""))  # only Spark's options may come before the command
    position = before.count_leading(words)
    leading = before.read(words[:position])
    if leading is None:
        return Command("help")
    if position == len(words):
        raise UsageError(f"no command: the commands are {', '.join(COMMANDS)} (see --help)")
    name, rest = words[position], words[position + 1 :]
    if name == "help":
        return Command("help", arguments=tuple(word for word in rest[:1] if word in COMMANDS))
    if name not in COMMANDS:
        raise UsageError(f"unknown command {name!r}{near(name, COMMANDS)}; the commands are {', '.join(COMMANDS)}")
    given = CommandParser(name, COMMAND_TABLE[name]).read(rest)
    if given is None:
        return Command("help", arguments=(name,))
    if name == "pack" and (given.arguments or "--out" not in given.options):
        raise UsageError("pack takes one option, --out FILE (a name that ends in .tar.gz)")
    spark = leading.spark + given.spark
    storage = given.options.pop(STORAGE_OPTION.name, {})
    if name == "audit":
        asked = replace(_audit_options(given.arguments, given.options), storage=storage)
        return Command(name, spark, asked, storage=storage)
    flags = frozenset(option for option, value in given.options.items() if value is True)
    values = {option: value for option, value in given.options.items() if option not in flags}
    return Command(name, spark, arguments=tuple(given.arguments), options=values, flags=flags, storage=storage)


def usage_of(command: str) -> str:
    """Return the text of COMMAND --help."""
    return CommandParser(command, COMMAND_TABLE[command]).format_help()


def usage() -> str:
    """Return the text of --help: how most people begin, and a line for every command."""
    ways = "\n".join(f"{sentence}\n  {COMMAND_TABLE[name].examples[0]}\n" for name, sentence in WAYS.items())
    lines = "".join(f"  {name:13}{spec.about.splitlines()[0]}\n" for name, spec in COMMAND_TABLE.items())
    return f"{ways}\nusage: {COMMAND} COMMAND [options]; COMMAND --help shows examples and options. The commands:\n{lines}"


def needs_environment(command: str) -> bool:
    """Say whether a command needs more than Python."""
    return command in COMMAND_TABLE and not COMMAND_TABLE[command].bare


def single_store(command: Command) -> StoreArgument:
    """Return the one STORE of a command that takes `STORE_OPTIONS`. Raises UsageError."""
    if len(command.arguments) != 1:
        given = f"{len(command.arguments)} were given" if command.arguments else "none was given"
        raise UsageError(f"{command.name} takes one STORE, the folder that holds commitlog/; {given}")
    return named_stores(command.arguments, command.options)[0]


# ---- the audit's options -------------------------------------------------------------------------------------------


def _audit_options(paths: Sequence[str], options: Mapping[str, Any]) -> AuditOptions:
    if "--fleet" in options:
        if paths:
            raise UsageError("name either STORE or --fleet, not both")
        for option in ("--broker-conf", "--commitlog", "--consumequeue", "--index"):
            if option in options:
                raise UsageError(f"{option} does not go with --fleet: set it in the store's own table")
    elif not paths:
        raise UsageError("no store: name one or more store folders, or --fleet FILE")
    if "--out" not in options:
        raise UsageError("--out DIR is missing: the folder for the results, for example --out out")
    out = absolute(options["--out"])
    tables = absolute(options["--tables"]) if "--tables" in options else None
    fleet = options.get("--fleet")
    stores = with_unique_names(named_stores(paths, options, True) if fleet is None else read_fleet_file(absolute(fleet), options))
    refuse_not_utf8(*(("--out", out) if tables is None else ("--tables", tables)))
    for option in ("--level", "--max-duration", "--since-run"):
        if "--write" in options and options.get(option, "full") != "full":
            raise UsageError(f"--write has to read every segment: it does not go with {option}")
    for option in ("--level", "--max-duration", "--since-run", "--write"):
        if any(store.releases for store in stores) and options.get(option, "full") != "full":
            raise UsageError(f"--release with several of them does not go with {option}")
    level, run_id, since_run = options.get("--level", "full"), options.get("--run-id"), options.get("--since-run")
    if since_run is not None and level == "quick":
        raise UsageError("--since-run does not go with --level quick")
    if since_run is not None and since_run == run_id:
        raise UsageError(f"--since-run {since_run!r}: must be the id of an earlier run, or {LAST_RUN}")
    progress = options.get("--progress", "line" if redraws(sys.stderr) else "none")
    beside = {option: _local_file(option, options[option]) for option in _BESIDE if option in options}
    _refuse_output_inside(stores, out, tables, beside)
    return AuditOptions(
        stores=tuple(stores),
        out=out,
        tables=tables,
        run_id=run_id or new_run_id(),
        write=options.get("--write", frozenset()),
        progress=progress == "line",
        progress_json=progress == "json",
        level=level,
        max_seconds=options.get("--max-duration"),
        since_run=since_run,
        color=colour_wanted(),
        prometheus=beside.get("--prometheus"),
        summary_markdown=beside.get("--summary-markdown"),
        junit=beside.get("--junit"),
        run_id_named=run_id is not None,
        max_rate=options.get("--max-rate", 0),
        of_fleet=fleet is not None,
    )


def _local_file(option: str, text: str) -> str:
    path = absolute(text)
    where, name = _BESIDE[option]
    if is_uri(path):
        raise UsageError(f"{option} {text!r}: must be a file of this machine{where}")
    if os.path.isdir(path):
        raise UsageError(f"{option} {text!r}: is a folder; name a file in it, such as {name}")
    if not os.path.isdir(os.path.dirname(path)):
        raise UsageError(f"{option} {text!r}: there is no folder {os.path.dirname(path)!r}")
    return path


def _refuse_output_inside(stores: Sequence[StoreArgument], out: str, tables: str | None, beside: Mapping[str, str]) -> None:
    """Raise UsageError if anything that is written would lie inside a store: links and mounts are followed."""
    if not is_uri(out) and os.path.exists(out) and not os.path.isdir(out):
        raise UsageError(f"--out {out!r}: there is a file of that name")
    written = [("--out", out), ("--out", join(out, "tables"))] if tables is None else [("--out", out), ("--tables", tables)]
    option, folder = written[-1]
    for table in (*TABLES, *RECORD_TABLES):  # each may be a link of its own, and so may the folder of its log
        written += [(option, join(folder, table)), (option, join(folder, f"{table}/_delta_log"))]
    written += [("--out", join(out, name)) for name in ("result.json", *(store.name for store in stores))]
    # these are written beside and renamed: a link of that name is replaced, not followed
    written += [(option, os.path.dirname(path)) for option, path in beside.items()]
    refuse_all_inside(written, [root for store in stores for root in store.roots])


# ---- handing an audit to a driver elsewhere --------------------------------------------------------------------------


def to_word(options: AuditOptions) -> str:
    """Return these options as one word for another process's command line.

    They are JSON inside, for no word of a command line becomes code.
    """
    content = json.dumps({**asdict(options), "write": sorted(options.write)})
    return base64.urlsafe_b64encode(zlib.compress(content.encode("utf-8", "surrogatepass"))).decode("ascii")


def from_word(word: str) -> AuditOptions:
    """Return the options that `to_word` made the word from."""
    row = json.loads(zlib.decompress(base64.urlsafe_b64decode(word)).decode("utf-8", "surrogatepass"))
    stores = tuple(
        StoreArgument(
            **{
                **store,
                "parts": tuple((part, tuple(paths)) for part, paths in store["parts"]),
                "releases": tuple(store["releases"]),
                "start": AskedStart(**store["start"]),
            }
        )
        for store in row["stores"]
    )
    return AuditOptions(**{**row, "stores": stores, "write": frozenset(row["write"])})


def hide(secrets: Collection[str]) -> None:
    """Overwrite these words everywhere in this process's title. Linux alone: elsewhere nothing is changed."""
    if not secrets or sys.platform != "linux":
        return
    import ctypes  # every command comes here, few have a secret

    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, of proc_pid_stat(5)
        if not 0 < start < end:
            return
        title = ctypes.string_at(start, end - start)
        for secret in map(os.fsencode, filter(None, secrets)):  # an empty word is everywhere
            place = title.find(secret)
            while place >= 0:
                ctypes.memset(start + place, ord("*"), len(secret))
                place = title.find(secret, place + len(secret))
