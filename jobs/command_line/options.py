"""The command line as plain data, checked before anything is read. Standard library only: a mistyped option is answered
at once, on a machine without the environment too.

`parse` sorts the words into a command, Spark's own options (passed on unchanged) and ours. Every fault of the command
line is a UsageError with one sentence. A bad row of a fleet file is not: it becomes a StoreArgument with a `problem`.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
import sys
import tomllib
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from jobs.command_line.command_table import COMMAND_TABLE
from jobs.command_line.places import (
    absolute,
    folder_name,
    is_uri,
    join,
    last_part,
    open_regular,
    read_broker_conf,
    reason_of,
    refuse_all_inside,
    refuse_not_utf8,
)
from jobs.report.texts.terminal import colour_wanted
from schemas.tables import DATASETS as RECORD_TABLES
from schemas.tables import TABLES
from store_io.base.errors import UsageError
from store_io.rules.releases import NEWEST_RELEASE, parse_release

COMMANDS = ("audit", *COMMAND_TABLE, "bench", "test", "pack")
DATASETS = ("messages", "consumequeue", "index")
LEVELS = ("full", "quick")
PARTIAL_OPTIONS = ("--level", "--max-duration", "--since-run")
PROGRESS = ("line", "json", "none")
LAST_RUN = "last"
PARTS = ("commitlog", "consumequeue", "index")
# What `--out` holds beside the stores' own folders, with all of `_TEMPORARY`: names that `jobs.output` and `run_lock` use.
TAKEN_NAMES = ("tables", ".", "..", "result.json", "index.html", "replicas.json", ".lock", "run.lock", "")
_TEMPORARY = re.compile(r"\..*\.writing")

# Spark's options that reach spark-submit unchanged. Its others would change what is run, or are of no use here.
SPARK_OPTIONS = frozenset(
    "--master --deploy-mode --conf --properties-file --archives --py-files --files --jars --packages --repositories "
    "--driver-memory --driver-cores --driver-java-options --driver-library-path --driver-class-path --executor-memory "
    "--executor-cores --total-executor-cores --num-executors --queue --principal --keytab --proxy-user".split()
)
SPARK_FLAGS = frozenset({"--verbose", "--supervise"})
AUDIT_OPTIONS = frozenset(
    "--out --release --broker-conf --fleet --commitlog --consumequeue --index --tables --run-id --write --prometheus "
    "--level --max-duration --since-run --progress".split()
)
PACK_OPTIONS = frozenset({"--out"})

_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smh])")

USAGE = f"""\
usage: ./spark-submit.sh audit STORE [STORE ...] --out DIR [options]
       ./spark-submit.sh audit --fleet FILE --out DIR [options]
       ./spark-submit.sh bench | test | pack --out FILE

audit: check copied RocketMQ stores: is a start safe, what would it lose, and what would make the store consistent.
  STORE                 a copied store folder (the one that holds commitlog/), a path or a URI
  --fleet FILE          a TOML file with a [[store]] table per store: name, path, release, broker_conf, replica_group
  --out DIR             where result.json and a folder per store go; never inside a store. Only one run at a time: a second
                        one ends with 2 (on s3:// and the like there is no such lock)
  --release X           the broker's RocketMQ release: its rules apply (without it {NEWEST_RELEASE} is assumed)
  --broker-conf FILE    the broker's own properties file
  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    for a store that keeps these parts elsewhere
  --tables URI          where the Delta tables go (default DIR/tables)
  --run-id ID           the run's id; a run with the id of an earlier one replaces it
  --level quick         read only what the release itself would read when it starts (default full: every byte)
  --max-duration TIME   begin no new segment after 90s, 30m or 2h, then write the results
  --since-run ID        skip unchanged segments that this run, or "last", has verified
  --progress HOW        line (default on a terminal), json (one object per second on standard error) or none
  --prometheus FILE     also write the result for node_exporter's textfile collector
  --write LIST          also write datasets: {",".join(DATASETS)}
bench: make a store of several GiB and measure.   test: lint, types and tests; with arguments, pytest with these.
pack: write an archive of the Python environment for the executors of a cluster (--archives).

Spark's own options are passed on: --master, --deploy-mode, --conf, --properties-file, --archives, --py-files, --files,
--jars, --packages, memory and core settings. Without --master everything runs on this machine.

exit codes: 0 consistent, 2 usage, 3 not fully audited, 10 derived data differ, 20 damaged, messages lost or no start
"""


_OTHER_USAGES = {
    "bench": """\
usage: ./spark-submit.sh bench [options]

Makes sample stores, measures audits of them, and prints one table with the limits beside the figures.
  --size GIB            messages to scan, a third of each body size (3)
  --audit-size GIB      messages of the store that is audited (1.5)
  --large GIB           the segment for the memory figure (2)
  --dir DIR             where the stores are made; their files are removed at the end
  --keep                leave them there
  --rounds N            of which the fastest counts (5)
  --only LIST           some of scan,audit,datasets,memory,command
Spark's own options are passed on.
""",
    "test": """\
usage: ./spark-submit.sh test [pytest's own arguments]

Without arguments: lint, format, types and all tests but those that are marked broker, soak, big or browser. With arguments:
pytest alone, with these (tests/store_io -k index; -m broker). The first run installs what the tests need.
""",
    "pack": """\
usage: ./spark-submit.sh pack --out FILE

Writes an archive of the Python environment for the executors of a cluster, to be named by --archives.
  --out FILE            a name that ends in .tar.gz
""",
}


def usage_of(command: str) -> str:
    """What COMMAND --help prints."""
    if command == "audit":
        return USAGE
    return COMMAND_TABLE[command].usage if command in COMMAND_TABLE else _OTHER_USAGES[command]


def usage() -> str:
    """What --help prints: the audit's usage, and the first lines of every other command's."""
    others = "".join(f"{spec.usage.splitlines()[0].removeprefix('usage: ')}\n" for spec in COMMAND_TABLE.values())
    return USAGE + (f"\nmore commands (COMMAND --help shows its options):\n{others}" if others else "")


@dataclass(frozen=True)
class StoreArgument:
    """One store to audit.

    name: its folder under --out, unique in the run.  path: an absolute path, or a URI other than file:.
    broker_conf: the properties file's text, None without one; broker_conf_file: where it was read.
    named: whether a person gave it its name; else its folder did.
    parts: ("commitlog", (path, ...)) and its like, where a part lies elsewhere.  problem: why it cannot be audited at all (a bad
    row of a fleet file), one sentence; then it earns 3.
    """

    name: str
    path: str
    release: str = NEWEST_RELEASE
    broker_conf: str | None = None
    replica_group: str | None = None
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    problem: str | None = None
    broker_conf_file: str | None = None
    release_from: str = "named"  # or "default": nobody named one
    named: bool = False


@dataclass(frozen=True)
class AuditOptions:
    """What `jobs.audit.run_audit.run` is asked to do. out, tables: absolute paths or URIs; tables None means DIR/tables."""

    stores: tuple[StoreArgument, ...]
    out: str
    tables: str | None = None
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    write: frozenset[str] = frozenset()
    progress: bool = False
    color: bool = False
    prometheus: str | None = None  # a file of this machine
    level: str = "full"  # or "quick"
    max_seconds: float | None = None  # after which no further segment is begun
    since_run: str | None = None  # an earlier run's id, or LAST_RUN
    progress_json: bool = False


@dataclass(frozen=True)
class Command:
    """A checked command line. spark: Spark's own options, in order. rest: what bench and test get. out: for pack.

    arguments, options, flags: of the commands in command_table.py; for help, `arguments` names the one it is asked for.
    """

    name: str
    spark: tuple[str, ...] = ()
    audit: AuditOptions | None = None
    rest: tuple[str, ...] = ()
    out: str | None = None
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()


# ---- sorting the words ---------------------------------------------------------------------------------------------


def parse(words: Sequence[str]) -> Command:
    """The command that these words ask for. Raises UsageError. `help` comes back as a command of that name."""
    spark: list[str] = []
    position = 0
    while position < len(words) and words[position].startswith("-"):  # Spark's options may stand before the command
        if words[position] in ("-h", "--help"):
            return Command("help")
        position = _take_spark(words, position, spark, SPARK_OPTIONS | SPARK_FLAGS)
    if position == len(words):
        raise UsageError(f"no command: the commands are {', '.join(COMMANDS)} (see --help)")
    name, rest = words[position], words[position + 1 :]
    if name == "help":
        return Command("help", arguments=tuple(word for word in rest[:1] if word in COMMANDS))
    if name not in COMMANDS:
        raise UsageError(f"unknown command {name!r}{_near(name, COMMANDS)}; the commands are {', '.join(COMMANDS)}")
    if name in ("test", "bench") and rest[:1] in (["-h"], ["--help"]):
        return Command("help", arguments=(name,))
    if name == "test":
        return Command(name, tuple(spark), rest=tuple(rest))
    if name == "bench":
        own: list[str] = []
        _split(rest, frozenset(), spark, positional=own, others_pass=True)
        return Command(name, tuple(spark), rest=tuple(own))
    positional: list[str] = []
    if (spec := COMMAND_TABLE.get(name)) is not None:
        flags: set[str] = set()
        given = _split(rest, spec.options, spark, positional, spec.others_pass, (spec.flags, flags))
        if given is None or spec.others_pass and rest[:1] in (["-h"], ["--help"]):
            return Command("help", arguments=(name,))
        return Command(name, tuple(spark), arguments=tuple(positional), options=given, flags=frozenset(flags))
    known = AUDIT_OPTIONS if name == "audit" else PACK_OPTIONS
    options = _split(rest, known, spark, positional)
    if options is None:
        return Command("help", arguments=(name,))
    if name == "pack":
        if positional or "--out" not in options:
            raise UsageError("pack takes one option, --out FILE (a name that ends in .tar.gz)")
        return Command(name, tuple(spark), out=absolute(options["--out"]))
    return Command(name, tuple(spark), _audit_options(positional, options, os.getcwd()))


def _split(
    words: Sequence[str],
    known: frozenset[str],
    spark: list[str],
    positional: list[str],
    others_pass: bool = False,
    flags: tuple[frozenset[str], set[str]] = (frozenset(), set()),
) -> dict[str, str] | None:
    """Our options' values; Spark's words go to `spark`, all others to `positional`. None: help is asked for.

    flags: (our options that take no value, where those that are given go).
    """
    known_flags, flags_given = flags
    options: dict[str, str] = {}
    position = 0
    while position < len(words):
        word = words[position]
        option, equals, value = word.partition("=")
        if word == "--":
            positional.extend(words[position + 1 :])
            break
        if word in ("-h", "--help") and not others_pass:
            return None
        if word in known_flags:
            flags_given.add(word)
            position += 1
        elif option in known:
            if option in options:
                raise UsageError(f"{option} is given twice")
            if not equals:
                position += 1
                value = _value_of(words, position, option)
            options[option] = value
            position += 1
        elif option in SPARK_OPTIONS or word in SPARK_FLAGS or (word.startswith("-") and len(word) > 1 and not others_pass):
            position = _take_spark(words, position, spark, known | known_flags | SPARK_OPTIONS | SPARK_FLAGS)
        else:
            positional.append(word)
            position += 1
    return options


def _take_spark(words: Sequence[str], position: int, spark: list[str], known: frozenset[str]) -> int:
    """Move one of Spark's options and its value over; where to go on. Anything else that begins with "-" is an error."""
    word = words[position]
    option, equals, value = word.partition("=")
    if word in SPARK_FLAGS:
        spark.append(word)
        return position + 1
    if option not in SPARK_OPTIONS:
        if option in known:
            raise UsageError(f"{option} takes no value")
        raise UsageError(f"unknown option {option!r}{_near(option, known)}")
    if not equals:
        position += 1
        value = _value_of(words, position, option)
    if not value:
        raise UsageError(f"{option} needs a value")
    if option == "--conf" and "=" not in value:
        raise UsageError(f"--conf {value!r}: Spark wants key=value")
    spark += [option, value]
    return position + 1


def _value_of(words: Sequence[str], position: int, option: str) -> str:
    if position >= len(words) or words[position].startswith("--"):
        raise UsageError(f"{option} needs a value")
    return words[position]


def _near(word: str, known: Sequence[str] | frozenset[str]) -> str:
    close = difflib.get_close_matches(word, sorted(known), 1, 0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def spark_setting(spark: Sequence[str], key: str, option: str | None = None) -> str | None:
    """The value that these words give a Spark setting, by its option or by --conf; the last --conf wins, as in Spark."""
    value = None
    for name, text in _spark_pairs(spark):
        if name == "--conf" and text.startswith(key + "="):
            value = text[len(key) + 1 :]
    if option:
        for name, text in _spark_pairs(spark):
            if name == option:
                value = text
    return value


def _spark_pairs(spark: Sequence[str]) -> list[tuple[str, str]]:
    words = [word for word in spark if word not in SPARK_FLAGS]
    return list(zip(words[::2], words[1::2], strict=True))


# ---- the audit's options -------------------------------------------------------------------------------------------


def _audit_options(paths: Sequence[str], options: Mapping[str, str], base: str) -> AuditOptions:
    for option, value in options.items():
        if not value.strip():
            raise UsageError(f"{option} needs a value")
    if "--fleet" in options:
        if paths:
            raise UsageError("name either STORE or --fleet, not both")
        for option in ("--broker-conf", "--commitlog", "--consumequeue", "--index"):
            if option in options:
                raise UsageError(f"{option} does not go with --fleet: set it in the store's own table")
    elif not paths:
        raise UsageError("no store: name one or more store folders, or --fleet FILE")
    if "--out" not in options:
        raise UsageError("--out DIR is missing: the folder for the results")
    release = _release(options.get("--release", NEWEST_RELEASE))
    release_from = "named" if "--release" in options else "default"
    run_id = options.get("--run-id", uuid.uuid4().hex)
    if not _RUN_ID.fullmatch(run_id) or run_id in (".", ".."):
        raise UsageError(f"--run-id {run_id!r}: must be at most 100 letters, digits, '.', '_' and '-'")
    out = absolute(options["--out"], base)
    if "--fleet" in options:
        stores = read_fleet(absolute(options["--fleet"], base), release, release_from)
    else:
        stores = _command_line_stores(paths, options, release, base)
    stores = _with_unique_names(stores)
    tables = absolute(options["--tables"], base) if "--tables" in options else None
    refuse_not_utf8(*(("--out", out) if tables is None else ("--tables", tables)))
    partial = [option for option in PARTIAL_OPTIONS if option in options and options[option] != "full"]
    if partial and "--write" in options:
        raise UsageError(f"--write has to read every segment: it does not go with {partial[0]}")
    if options.get("--level") == "quick" and "--since-run" in options:
        raise UsageError("--since-run does not go with --level quick")
    progress = options.get("--progress", "line" if sys.stderr.isatty() else "none")
    if progress not in PROGRESS:
        raise UsageError(f"--progress {progress!r}: must be one of {', '.join(PROGRESS)}")
    since_run = options.get("--since-run")
    if since_run is not None and (not _RUN_ID.fullmatch(since_run) or since_run == run_id):
        raise UsageError(f"--since-run {since_run!r}: must be the id of an earlier run, or {LAST_RUN}")
    prometheus = _metrics_file(options["--prometheus"], base) if "--prometheus" in options else None
    _refuse_output_inside(stores, out, tables, prometheus)
    return AuditOptions(
        stores=tuple(stores),
        out=out,
        tables=tables,
        run_id=run_id,
        write=_datasets(options.get("--write", "")),
        progress=progress == "line",
        progress_json=progress == "json",
        level=_level(options.get("--level", "full")),
        max_seconds=_duration(options["--max-duration"]) if "--max-duration" in options else None,
        since_run=since_run,
        color=colour_wanted(),
        prometheus=prometheus,
    )


def _level(text: str) -> str:
    if text not in LEVELS:
        raise UsageError(f"--level {text!r}: must be {' or '.join(LEVELS)}")
    return text


def _duration(text: str) -> float:
    """Seconds of "90s", "30m", "2h"."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--max-duration {text!r}: must be a number with s, m or h, such as 90s, 30m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def _metrics_file(text: str, base: str) -> str:
    path = absolute(text, base)
    if is_uri(path):
        raise UsageError(f"--prometheus {text!r}: must be a file of this machine, in the folder that its node_exporter reads")
    if os.path.isdir(path):
        raise UsageError(f"--prometheus {text!r}: is a folder; name a file in it, such as store-audit.prom")
    if not os.path.isdir(os.path.dirname(path)):
        raise UsageError(f"--prometheus {text!r}: there is no folder {os.path.dirname(path)!r}")
    return path


def single_store(command: Command) -> StoreArgument:
    """The one STORE of a command in jobs/command_line/command_table.py that takes `STORE_OPTIONS`. Raises UsageError."""
    if len(command.arguments) != 1:
        given = f"{len(command.arguments)} were given" if command.arguments else "none was given"
        raise UsageError(f"{command.name} takes one STORE, the folder that holds commitlog/; {given}")
    for option, value in command.options.items():
        if not value.strip():
            raise UsageError(f"{option} needs a value")
    release = _release(command.options.get("--release", NEWEST_RELEASE))
    return _command_line_stores(command.arguments, command.options, release, os.getcwd())[0]


def _command_line_stores(paths: Sequence[str], options: Mapping[str, str], release: str, base: str) -> list[StoreArgument]:
    elsewhere = [f"--{part}" for part in PARTS if f"--{part}" in options]
    if elsewhere and len(paths) > 1:
        raise UsageError(f"{elsewhere[0]} works with one store only; use --fleet for several")
    conf = conf_file = None
    if "--broker-conf" in options:
        conf_file = absolute(options["--broker-conf"], base)
        try:
            conf = read_broker_conf(conf_file)
        except (OSError, ValueError) as problem:
            raise UsageError(f"--broker-conf {options['--broker-conf']!r}: {reason_of(problem)}") from None
    parts = tuple((part, _part_paths(options[f"--{part}"], f"--{part}", base)) for part in PARTS if f"--{part}" in options)
    stores = []
    for text in paths:
        if not text:
            raise UsageError("an empty store path")
        path = absolute(text, base)
        stores.append(StoreArgument(last_part(path), path, release, conf, None, parts, broker_conf_file=conf_file))
        if "--release" not in options:
            stores[-1] = replace(stores[-1], release_from="default")
    return stores


def _datasets(text: str) -> frozenset[str]:
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in DATASETS:
            raise UsageError(f"--write {name!r}{_near(name, DATASETS)}: the datasets are {', '.join(DATASETS)}")
    return frozenset(names)


def _release(text: str) -> str:
    parse_release(text)
    return text.strip()


def _part_paths(text: str, where: str, base: str) -> tuple[str, ...]:
    paths = [path.strip() for path in text.split(",")]
    if not all(paths):
        raise UsageError(f"{where} {text!r}: an empty path in the list")
    return tuple(absolute(path, base) for path in paths)


# ---- the fleet file ------------------------------------------------------------------------------------------------

_FLEET_KEYS = frozenset({"name", "path", "release", "broker_conf", "replica_group", *PARTS})


def read_fleet(path: str, release: str, release_from: str = "named") -> list[StoreArgument]:
    """The stores of a fleet file; `release` holds where a row names none. Names are not unique yet.

    Raises UsageError where the file cannot be read, is no TOML, or has no [[store]] table: then no store is known. Whatever
    is wrong with one row becomes that store's `problem`.
    """
    try:
        with open_regular(path) as file:
            content = file.read()
    except (OSError, ValueError) as problem:
        raise UsageError(f"--fleet {path!r}: {reason_of(problem)}") from None
    try:
        rows = tomllib.loads(content.decode("utf-8")).get("store")
    except ValueError as problem:
        raise UsageError(f"--fleet {path!r}: no TOML: {problem}") from None
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"--fleet {path!r}: no [[store]] table in it")
    stores = [_fleet_row(row, number, os.path.dirname(path), release) for number, row in enumerate(rows, 1)]
    named = [isinstance(row, dict) and "release" in row for row in rows]
    return [s if here else replace(s, release_from=release_from) for s, here in zip(stores, named, strict=True)]


def _fleet_row(row: Any, number: int, base: str, release: str) -> StoreArgument:
    if not isinstance(row, dict):
        return StoreArgument(f"store-{number}", "", release, problem=f"store {number} of the fleet file is no table")
    name, path = row.get("name"), row.get("path")
    store = StoreArgument(name if isinstance(name, str) and name else f"store-{number}", "", release)
    try:
        for key, value in row.items():
            if key not in _FLEET_KEYS:
                raise UsageError(f"unknown key {key!r}{_near(key, _FLEET_KEYS)}")
            listed = key in PARTS and isinstance(value, list) and value and all(isinstance(v, str) and v for v in value)
            if not listed and (not isinstance(value, str) or not value):
                raise UsageError(f"{key} must be a text that is not empty")
        if path is None:
            raise UsageError("path is missing")
        where = absolute(path, base)
        group = row.get("replica_group")
        store = replace(store, name=name or last_part(where), path=where, replica_group=group, named=bool(name))
        if "release" in row:
            store = replace(store, release=_release(row["release"]))
        parts = []
        for part in PARTS:
            if part in row:
                text = row[part] if isinstance(row[part], str) else ",".join(row[part])
                parts.append((part, _part_paths(text, part, base)))
        store = replace(store, parts=tuple(parts))
        if "broker_conf" in row:
            conf_file = absolute(row["broker_conf"], base)
            try:
                store = replace(store, broker_conf=read_broker_conf(conf_file), broker_conf_file=conf_file)
            except (OSError, ValueError) as problem:
                raise UsageError(f"broker_conf {row['broker_conf']!r}: {reason_of(problem)}") from None
    except UsageError as problem:
        return replace(store, problem=f"store {number} of the fleet file: {problem}")
    return store


# ---- paths and names -----------------------------------------------------------------------------------------------


def _with_unique_names(stores: Sequence[StoreArgument]) -> list[StoreArgument]:
    taken = set(TAKEN_NAMES)
    named = []
    for store in stores:
        wanted = name = folder_name(store.name)
        number = 2
        while name in taken or _TEMPORARY.fullmatch(name):
            name = f"{wanted}-{number}"
            number += 1
        taken.add(name)
        named.append(replace(store, name=name, named=store.named and name == wanted))
    return named


def _refuse_output_inside(stores: Sequence[StoreArgument], out: str, tables: str | None, prometheus: str | None = None) -> None:
    """Raise UsageError where anything that is written would lie inside a store: links and mounts are followed."""
    if not is_uri(out) and os.path.exists(out) and not os.path.isdir(out):
        raise UsageError(f"--out {out!r}: there is a file of that name")
    written = [("--out", out), ("--out", join(out, "tables"))] if tables is None else [("--out", out), ("--tables", tables)]
    option, folder = written[-1]
    for table in (*TABLES, *RECORD_TABLES):  # each may be a link of its own, and so may the folder of its log
        written += [(option, join(folder, table)), (option, join(folder, f"{table}/_delta_log"))]
    written += [("--out", join(out, name)) for name in ("result.json", *(store.name for store in stores))]
    if prometheus is not None:  # written beside and renamed: a link of that name is replaced, not followed
        written.append(("--prometheus", os.path.dirname(prometheus)))
    refuse_all_inside(
        written, [root for store in stores for root in (store.path, *(path for _, paths in store.parts for path in paths))]
    )


# ---- handing an audit to a driver elsewhere --------------------------------------------------------------------------


def to_word(options: AuditOptions) -> str:
    """These options as one word for another process's command line."""
    content = json.dumps({**asdict(options), "write": sorted(options.write)})
    return base64.urlsafe_b64encode(zlib.compress(content.encode("utf-8", "surrogatepass"))).decode("ascii")


def from_word(word: str) -> AuditOptions:
    """The options that `to_word` made the word from."""
    row = json.loads(zlib.decompress(base64.urlsafe_b64decode(word)).decode("utf-8", "surrogatepass"))
    stores = tuple(
        StoreArgument(**{**store, "parts": tuple((part, tuple(paths)) for part, paths in store["parts"])})
        for store in row["stores"]
    )
    return AuditOptions(**{**row, "stores": stores, "write": frozenset(row["write"])})
