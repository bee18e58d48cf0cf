"""The commands, each option declared once: parser, checks and --help come from these rows. Standard library only.

`jobs.cli` calls `run(command)` of the module that the row names, with what `options.parse` has read; it returns the exit code.
It raises UsageError for a bad value, before anything is read, and StoreError for what cannot be done: `jobs.cli` prints the
sentence. `audit` alone names no module: it may run on a cluster, so `jobs.cli` runs it itself.
"""

from __future__ import annotations

from jobs.command_line.message_filters import FILTER_OPTIONS
from jobs.command_line.parser import CommandSpec, Option
from jobs.command_line.values import duration, earlier_run, one_of, positive, rate, risk, run_id, some_of, storage_option
from jobs.environment.installation import COMMAND, INSTALLED, PACKAGES
from schemas.tables import DATASETS
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.rules.releases import NEWEST_RELEASE
from store_io.source.storage_options import KEYS as STORAGE_KEYS

STORE = (("STORE", "a copied store folder (the one that holds commitlog/), a path or a URI"),)
PART_OPTIONS = (
    Option("--commitlog", "PATH[,PATH]", "where the store keeps its CommitLog, if elsewhere"),
    Option("--consumequeue", "PATH", "where it keeps its ConsumeQueues, if elsewhere"),
    Option("--index", "PATH", "where it keeps its index, if elsewhere"),
)
_RELEASE = f"the broker's RocketMQ release: its rules apply (default {NEWEST_RELEASE})"
_BROKER_CONF = Option("--broker-conf", "FILE", "the broker's own properties file")
STORAGE_OPTION = Option(
    "--storage-option",
    "KEY=VALUE",
    f"of S3 and HDFS, for this command alone; may be given often. Keys: {', '.join(STORAGE_KEYS)}",
    storage_option,
    pairs=True,
)
STORE_OPTIONS = (Option("--release", "X", _RELEASE), _BROKER_CONF, *PART_OPTIONS)  # of a data source, too
TABLES = Option("--tables", "URI", "the tables that audits wrote: DIR/tables of their --out DIR, or their --tables")
ONE_STORE = Option("--store", "NAME", "only this store")
TEXT_OR_JSON = Option("--format", "text|json", "default: the ending of FILE, else text")
OUT_FILE = Option("--out", "FILE", "write there instead of standard output")
LOST = Option("--lost", "", "only messages that a start of the release would lose; the store is audited first")
TRUST_CLOCK = Option("--trust-clock", "", "skip segments whose first messages were stored more than an hour outside the range")
LEVELS, PROGRESS, POLICY, REDACT = "full|quick", "line|json|none", "broker|salvage", "none|hide|hash"
CODE_FORMATS = "text|json|markdown"
SHELLS = ("bash", "zsh", "fish")
SCALE_SHAPES = ("log", "runs", "files", "queues", "lost", "light", "fleet", "findings")
BENCH_PARTS = ("scan", "audit", "datasets", "memory", "command", "cold", "kinds", "repair", "scale")
SLOW_MARKS = ("broker", "soak", "big", "browser", "cluster", "hdfs", "speed")  # of tests that `test` leaves out
TABLES_ACTIONS = ("prune", "compact", "vacuum", "info")
_ON_NOTEBOOKS = "" if INSTALLED else " on the notebooks of this project"  # a wheel has none
PASSED_ON = "Spark's own options are passed on."

COMMAND_TABLE: dict[str, CommandSpec] = {}

COMMAND_TABLE["audit"] = CommandSpec(
    module="",
    usage=f"STORE [STORE ...] --out DIR [options]\n       {COMMAND} audit --fleet FILE --out DIR [options]",
    about="Check copied RocketMQ stores: is a start safe, what would it lose, what would make the store consistent.",
    arguments=STORE,
    options=(
        Option("--fleet", "FILE", "TOML, a [[store]] table per store: name, path, release, broker_conf, replica_group"),
        Option(
            "--out",
            "DIR",
            "for result.json and a folder per store, never inside a store; a second run at the same time ends with 2",
        ),
        Option("--release", "X", f"{_RELEASE}; X,Y,... or all: compare what these would lose, and what settings change"),
        _BROKER_CONF,
        *PART_OPTIONS,
        STORAGE_OPTION,
        Option("--tables", "URI", "where the Delta tables go (default DIR/tables)"),
        Option(
            "--run-id",
            "ID",
            "the run's id; a run with the id of an earlier one replaces it, and takes over the stores that a killed one finished",
            run_id,
        ),
        Option(
            "--level", LEVELS, "quick: read only what a starting broker would read (default full: every byte)", one_of(LEVELS)
        ),
        Option(
            "--max-rate",
            "RATE",
            "read at most 200MB/s, say, on each machine (in each container), however many tasks run there",
            rate,
        ),
        Option("--max-duration", "TIME", "begin no new segment after 90s, 30m or 2h, then write the results", duration),
        Option("--since-run", "ID", 'skip unchanged segments that this run, or "last", has verified', earlier_run),
        Option(
            "--progress",
            PROGRESS,
            "line (default on a terminal), or a JSON object per second on standard error",
            one_of(PROGRESS),
        ),
        Option("--prometheus", "FILE", "also write the result for node_exporter's textfile collector"),
        Option("--summary-markdown", "FILE", "also write the result as Markdown, for the summary page of a CI job"),
        Option("--junit", "FILE", "also write the result as JUnit's XML, a test case per store"),
        Option("--write", "LIST", f"also write datasets: {','.join(DATASETS)}", some_of("datasets", *DATASETS)),
    ),
    epilog="""\
Spark's own options are passed on: --master, --deploy-mode, --conf, --properties-file, --archives, --py-files, --files,
--jars, --packages, memory and core settings. Without --master everything runs on this machine.

exit codes: 0 consistent, 2 usage, 3 not fully audited, 10 derived data differ, 20 damaged, messages lost or no start""",
)

COMMAND_TABLE["rescue"] = CommandSpec(
    module="jobs.rescue.run_rescue",
    usage="COPY [--broker-conf FILE] [options]",
    about="""\
From a damaged copy to a new store in one command: audit, compare both policies, repair.
Without --yes it shows what it would do, and changes nothing; at a terminal it asks. The copy is only read. Beside NEW:
NEW.handover.html, to be gone through box by box, and all names of messages that could not be saved.""",
    arguments=(("COPY", "the copied store folder (the one that holds commitlog/)"),),
    options=(
        Option(
            "--broker-conf",
            "FILE",
            "the broker's own properties file; without it sizes come from the files, all else from the defaults",
        ),
        Option("--release", "X", "the broker's RocketMQ release; asked for where the copy leaves a choice"),
        Option("--donor", "COPY2", "another copy of the same log: damaged ranges are taken from it where its bytes are valid"),
        Option("--to", "NEW", "the new store, which must not exist (default COPY-rescued); NEW.rescue gets the audit's page"),
        Option("--yes", "", "run the repair that is recommended"),
        *PART_OPTIONS,
        STORAGE_OPTION,
    ),
    epilog="""\
exit codes: 0 nothing to do, or the new store is in place and consistent; 2 usage, or something must be named; 3 not
audited completely, refused or failed; 10, 20 a repair is recommended and was not run; 130, 143 interrupted""",
)

COMMAND_TABLE["explain"] = CommandSpec(
    module="jobs.explore.explain",
    usage="STORE --phy-offset N [options]",
    about="""\
Show what is at a physical offset: the record field by field, its neighbours, entries that lead to it.
Says which check fails and why. Needs no Spark.""",
    arguments=STORE,
    options=(
        Option("--phy-offset", "N", "the physical offset; it may also be inside a record, in damage, or outside the log"),
        Option("--format", "text|json", "for people (default), or one JSON object"),
        Option(
            "--redact",
            REDACT,
            "bodies, keys, tags and the like; short ones can be guessed from checksums and hash codes, which stay",
        ),
        *STORE_OPTIONS,
        STORAGE_OPTION,
    ),
    epilog="exit codes: 0 explained, whatever lies there; 2 usage; 3 the store cannot be read; 130, 143 interrupted",
)

COMMAND_TABLE["report"] = CommandSpec(
    module="jobs.history.fleet",
    usage="--tables URI [options]",
    about="Show the latest run of each store, most dangerous first, and each store's trend over its runs.",
    options=(
        TABLES,
        Option("--since", "WHEN", "only runs since then: a span back from now (90m, 12h, 7d, 4w) or a date (2026-11-01), UTC"),
        ONE_STORE,
        Option("--format", "text|json|html", "html: one self-contained page; default: the ending of FILE, else text"),
        OUT_FILE,
        STORAGE_OPTION,
    ),
    epilog="exit codes: 0 report written, 2 usage, 3 no tables, or no such run or store in them",
)

COMMAND_TABLE["runs"] = CommandSpec(
    module="jobs.history.run_list",
    usage="DIR | --tables URI [options]",
    about="List the runs in the tables, the newest first: ids, exit codes, stores, what starts would lose.",
    arguments=(("DIR", "the --out of audits; or name their tables"),),
    options=(
        TABLES,
        Option("--since", "WHEN", "only runs since then: a span back from now (12h, 7d, 4w) or a date (2026-11-01), UTC"),
        Option("--limit", "N", "at most so many runs (default 50)", positive),
        Option("--store", "NAME", "only runs with this store, and of each only what it found there"),
        TEXT_OR_JSON,
        OUT_FILE,
        STORAGE_OPTION,
    ),
    epilog="exit codes: 0 written, 2 usage, 3 no tables, or no such store in them",
)

COMMAND_TABLE["diff"] = CommandSpec(
    module="jobs.history.difference",
    usage=f"RUN_A RUN_B --tables URI [options]\n       {COMMAND} diff last --tables URI [options]",
    about="""\
Show what is different in run B: new, grown and fixed findings, and changed bytes (bit rot).
last: of each store its two newest runs.
Bytes count where a broker no longer writes. What is new at the log's end, and what retention deleted at its front, is
expected.""",
    options=(TABLES, ONE_STORE, TEXT_OR_JSON, OUT_FILE, STORAGE_OPTION),
    epilog="""\
exit codes: 0 nothing new, 2 usage, 3 a run is missing or incomplete, 10 new: derived data differ, 20 new: loss, or
changed bytes""",
)

COMMAND_TABLE["coverage"] = CommandSpec(
    module="jobs.history.coverage",
    usage="--tables URI --within WHEN [options]",
    about="Show how much of each CommitLog the runs within a time have read, and what was read longest ago.",
    options=(
        TABLES,
        Option("--within", "WHEN", "a span back from now (12h, 7d, 4w) or a date (2026-11-01), UTC"),
        ONE_STORE,
        TEXT_OR_JSON,
        OUT_FILE,
        STORAGE_OPTION,
    ),
    epilog="exit codes: 0 written, 2 usage, 3 no tables, or no such store in them",
)

COMMAND_TABLE["tables"] = CommandSpec(
    module="jobs.tables.upkeep.command",
    usage=f"{'|'.join(TABLES_ACTIONS)} --tables URI [options]",
    about="""\
Keep the tables of many runs small, and show what they hold.
prune takes old runs out, compact puts the small files of many runs together, vacuum removes files that no reader needs any
more, info changes nothing. Audits and readers may be at work meanwhile.""",
    arguments=(("ACTION", "prune, compact, vacuum or info"),),
    options=(
        TABLES,
        Option("--keep", "WHEN", "prune: runs stay that began since then: a span back from now (90d, 12w) or a date"),
        Option("--keep-runs", "N", "prune: of each store its N newest runs stay; with --keep, what either keeps stays", positive),
        Option("--older-than", "SPAN", "vacuum: files that no version since then has (36h, 2d; 7d at most, the default)"),
        Option("--alone", "", "vacuum: no audit and no reader is at work, so --older-than may be less than 7d"),
        Option("--dry-run", "", "show what would be done, change nothing"),
        TEXT_OR_JSON,
        OUT_FILE,
        STORAGE_OPTION,
    ),
    epilog="""\
prune keeps whatever their age: of each store the latest run, the latest full one, and the one that saw its log reach
furthest. exit codes: 0 done, 2 usage, 3 no tables, or they cannot be read or changed""",
)

COMMAND_TABLE["repair"] = CommandSpec(
    module="jobs.repair",
    usage="STORE --plan PLAN --to NEWSTORE [options]",
    about="""\
Write a new store from a copy and its plan.json.
A broker of the plan's release starts on the new store as after a clean stop and serves every message in it. The copy is
not changed. NEWSTORE.repair.json, beside the new store, lists what was done.""",
    arguments=(("STORE", "the copied store folder that the plan was made from"),),
    options=(
        Option("--plan", "PLAN", "its plan.json, as an audit wrote it"),
        Option("--to", "NEWSTORE", "the folder to make; it must not exist"),
        Option(
            "--policy", POLICY, "keep what the release would (default), or every valid message, also after damage", one_of(POLICY)
        ),
        Option("--donor", "STORE2", "another copy of the same log: damaged ranges are taken from it where its bytes are valid"),
        Option(
            "--fix-config",
            "",
            "also write damaged and lost files of config/ from what can be read of them in the copy and what the log shows; sets"
            " offsets back as well",
        ),
        Option(
            "--empty-config",
            "",
            "with --fix-config: a table of which nothing in the copy can be read begins empty; else its file stays as it is",
        ),
        Option(
            "--heal",
            "",
            "first make damaged records whole by a single changed field or byte, where everything else in the store leads to it",
        ),
        Option("--heal-risk", "R", f"how likely other damage may look like one that is healed, at most ({DEFAULT_RISK:g})", risk),
        Option(
            "--with-earlier",
            "",
            "also put messages of an earlier life of a queue, whose topic was deleted and made again, into it, after all others",
        ),
        Option("--fix-offsets", "", "also set back consumer and delay offsets beyond the new queue ends"),
        Option(
            "--dry-run",
            "",
            "write no new store: show what a run would do, in all its numbers, and what the other policy would keep",
        ),
        Option("--release", "X", "the release of the plan; needed where the audit assumed one, else only compared"),
        Option("--broker-conf", "FILE", "compared with the settings that the plan was made with"),
        *PART_OPTIONS,
        STORAGE_OPTION,
    ),
    epilog="""\
exit codes: 0 done and consistent; 2 usage; 3 refused or failed; 10, 20 the result was not consistent, no new store was
left; 130, 143 interrupted""",
)

COMMAND_TABLE["manifest"] = CommandSpec(
    module="jobs.explore.manifest",
    usage="STORE [--write FILE | --verify FILE]",
    about="List names, sizes and SHA-256 digests of all files of a copied store, or compare them with such a list.",
    arguments=STORE,
    options=(
        Option("--write", "FILE", "write the list there instead of printing it"),
        Option("--verify", "FILE", "compare the store with this list"),
        *STORE_OPTIONS,
        STORAGE_OPTION,
    ),
    epilog="exit codes: 0 written, or equal; 2 usage; 3 different, or not readable",
)

COMMAND_TABLE["export"] = CommandSpec(
    module="jobs.explore.export",
    usage="STORE --to DIR --format parquet|delta|jsonl|resend [options]",
    about="""\
Write the messages of a store as files for other tools.
One file per segment in DIR/messages, and at the end DIR/manifest.json. If it was stopped, give the same command again: it
continues. Until all is done, the files are in DIR/unfinished.""",
    arguments=STORE,
    options=(
        Option("--to", "DIR", "a folder that this machine and all executors see"),
        Option("--format", "parquet|delta|jsonl|resend", "of the files; resend: lines that a producer can send again"),
        LOST,
        Option("--columns", "LIST", "names of columns, separated by commas (default: all but bodies; see schemas/sources.py)"),
        *FILTER_OPTIONS,
        Option("--body", "none|raw|decoded", "the bodies: left out (default), as they are stored, or uncompressed"),
        Option("--unpack", "", "write the messages inside a batch instead of the batch"),
        Option(
            "--redact",
            "hide|hash",
            "keys, tags, addresses, property values, bodies: hidden, or as tokens that equal values share",
        ),
        Option("--redact-salt-file", "FILE", "the same tokens as other exports with this salt (default: a new one, not kept)"),
        TRUST_CLOCK,
        *STORE_OPTIONS,
        STORAGE_OPTION,
    ),
    epilog=f"""\
{PASSED_ON}

exit codes: 0 done; 2 usage; 3 the store cannot be read, a file cannot be written, or what a start loses is
not known (--lost); 130, 143 interrupted""",
)

COMMAND_TABLE["query"] = CommandSpec(
    module="jobs.explore.query",
    usage="STORE [conditions] [options]",
    about="""\
Find messages in the copy, or as a broker would serve them after a start. All conditions must hold.
They are shown in order of physical offset, also those after damage (status "plausible").""",
    arguments=STORE,
    options=(
        *FILTER_OPTIONS,
        Option("--phy-offset", "N", "the message at this physical offset"),
        Option("--offset-msg-id", "ID", "the message that this id names (32 or 56 hexadecimal digits)"),
        Option("--key", "K", "messages with this key or unique key"),
        Option("--unique-key", "K", "messages with this unique key, all duplicates"),
        Option("--body-contains", "TEXT", "messages whose body holds this text, uncompressed or as stored; bytes: hex:0AFF"),
        Option("--view", "copy|broker", "the copy (default), or what the release would serve by queue, or by key (with --topic)"),
        Option("--limit", "N", "at most this many (default: 100 in a table, all as JSON lines)"),
        Option("--last", "N", "the last N of them by physical offset; the log is read from its end, a segment at a time"),
        Option("--columns", "A,B", "which columns, in this order"),
        Option("--body", "none|text|base64", "bodies, uncompressed (default none)"),
        Option(
            "--format",
            "table|jsonl|csv|resend",
            "for people (default), one JSON object a line, RFC 4180, or what a producer can send again",
        ),
        LOST,
        OUT_FILE,
        Option("--scan", "", "read the whole log, also where ConsumeQueues say which segments hold what is asked of a queue"),
        TRUST_CLOCK,
        Option(
            "--tables",
            "URI",
            "with --since or --until: skip segments that by these tables of earlier audits hold no such message",
        ),
        Option("--redact", REDACT, "bodies, keys, tags and the like, and their checksums"),
        *STORE_OPTIONS,
        STORAGE_OPTION,
    ),
    epilog=f"""\
{PASSED_ON}

exit codes: 0 answered, also where no message is found; 2 usage; 3 the store cannot be read, or the answer is not
known (--lost, --view broker); 130, 143 interrupted""",
)

COMMAND_TABLE["notebook"] = CommandSpec(
    module="jobs.explore.notebook",
    usage="[JupyterLab's own arguments]",
    about=f"""\
Start JupyterLab{_ON_NOTEBOOKS}, with packages, Java and Spark ready in every kernel.
In a notebook:
  from {PACKAGES[0]} import session, sources
  spark = session.start().spark
  sources.read(spark, "messages", "copies/broker-a").groupBy("topic").count().show()
Arguments are passed to JupyterLab: a folder or a notebook to open, --no-browser, --port N, --ip ADDRESS ...""",
    group="notebook",
    others_pass=True,
)

COMMAND_TABLE["run"] = CommandSpec(
    module="jobs.explore.script",
    usage="[Spark's own options] SCRIPT.py [its arguments]",
    about=f"""\
Run a Python script with Spark and the data sources ready; all words after its name are the script's own.
`spark` is the session, which SparkSession.builder.getOrCreate() gives, too. read, lag and traffic are in `sources`:
from {PACKAGES[0]} import sources.""",
    arguments=(("SCRIPT.py", "a file of this machine; it can import what is beside it"),),
    options=(STORAGE_OPTION,),
    epilog="exit codes: the script's own; 1 where it raises, with Python's traceback; 2 usage",
    rest_passes=True,
)

COMMAND_TABLE["bench"] = CommandSpec(
    module="jobs.bench.run_bench",
    usage="[options]",
    about="Make sample stores, measure audits of them, and print one table with the limits beside the figures.",
    options=(
        Option("--size", "GIB", "messages to scan, a third of each body size (3)", float),
        Option("--audit-size", "GIB", "messages of the store that is audited (1.5)", float),
        Option("--kinds-size", "GIB", "messages of the store of each kind (1)", float),
        Option("--large", "GIB", "the segment for the memory figure (2)", float),
        Option("--dir", "DIR", "where the stores are made; their files are removed at the end"),
        Option("--keep", "", "leave them there"),
        Option("--rounds", "N", "of which the fastest counts (5)", int),
        Option(
            "--only", "LIST", f"some of {','.join(BENCH_PARTS)} (all but kinds, repair and scale)", some_of("parts", *BENCH_PARTS)
        ),
        Option("--shapes", "LIST", f"of scale, some of {','.join(SCALE_SHAPES)} (all)", some_of("shapes", *SCALE_SHAPES)),
        Option("--part", "NUMBER", "of scale: so much of each shape, as 0.1 (1)", float),
        Option("--compare", "FILE", "print the ratios beside FILE's of this processor; code 1 if one is over a tenth worse"),
        Option("--peers", "DIR", "measure load() of the release whose jars are there (its lib/), too"),
        Option("--write", "FILE", "write the ratios of this processor to this file, for --compare; others stay in it"),
    ),
    epilog=PASSED_ON,
)

COMMAND_TABLE["test"] = CommandSpec(
    module="jobs.run_tests",
    usage="[pytest's own arguments]",
    about=f"""\
Check lint and types; run tests but those marked {", ".join(SLOW_MARKS[:-1])} or {SLOW_MARKS[-1]}.
With arguments: pytest alone, with these (tests/store_io -k index; -m broker). The first run installs what the tests need.""",
    group="dev",
    others_pass=True,
    takes_spark=False,
)

COMMAND_TABLE["pack"] = CommandSpec(
    module="jobs.environment.packaging",
    usage="--out FILE",
    about="Write an archive of the Python environment for the executors of a cluster, to be named by --archives.",
    options=(Option("--out", "FILE", "a name that ends in .tar.gz"),),
    epilog="exit codes: 0 written, 2 usage, 3 the file cannot be written",
)

COMMAND_TABLE["explain-code"] = CommandSpec(
    module="jobs.explore.explain_code",
    usage="[CODE ...] [options]",
    about="""\
Say what a finding or a stop reason means, what follows from it, and what to do about it.
Codes are in findings.jsonl, on the pages and in summaries; stop reasons in plan.json. Without CODE all are listed.""",
    arguments=(("CODE", "a finding's code (queue_entry_missing) or a stop reason (body_crc)"),),
    options=(
        Option(
            "--format",
            CODE_FORMATS,
            "for people (default), one JSON object a line, or a page",
            one_of(CODE_FORMATS),
        ),
    ),
    takes_spark=False,
)

COMMAND_TABLE["completion"] = CommandSpec(
    module="jobs.command_line.completion",
    usage="|".join(SHELLS),
    about=f"""\
Print a script with which a shell completes commands, options and their values.
  bash   source <({COMMAND} completion bash)
  zsh    source <({COMMAND} completion zsh), after compinit
  fish   {COMMAND} completion fish | source""",
    arguments=(("SHELL", f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}"),),
    epilog="Only bash's script completes Spark's own options.",
    takes_spark=False,
    bare=True,
)
