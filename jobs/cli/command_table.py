"""The commands, each option declared once: parser, checks and --help come from these rows. Standard library only.

`jobs.entry` calls `run(command)` of the module that the row names, with what `options.parse` has read; it returns the exit code.
It raises UsageError for a bad value, before anything is read, and StoreError for what cannot be done: `jobs.entry` prints the
sentence.
"""

from __future__ import annotations

import shlex

from jobs.cli.message_filters import FILTER_OPTIONS
from jobs.cli.option_values import duration, earlier_run, hours, moment, positive, rate, risk, run_id, some_of, storage_option
from jobs.cli.parser import CommandSpec, Option
from jobs.cli.start_options import start_options
from jobs.installation import COMMAND, INSTALLED, PACKAGES, ROOT
from schemas.tables import DATASETS
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.broker.releases import NEWEST_RELEASE
from store_io.source.storage_options import KEYS as STORAGE_KEYS

STORE = (("STORE", "a copied store folder (the one that holds commitlog/), a path or a URI"),)
PART_OPTIONS = (
    Option("--commitlog", "PATH[,PATH]", "where the store keeps its CommitLog, if elsewhere"),
    Option("--consumequeue", "PATH", "where it keeps its ConsumeQueues, if elsewhere"),
    Option("--index", "PATH", "where it keeps its index, if elsewhere"),
)
_RELEASE = f"the broker's RocketMQ release, whose rules apply (default {NEWEST_RELEASE})"
_BROKER_CONF = Option("--broker-conf", "FILE", "the broker's own properties file")
STORAGE_OPTION = Option(
    "--storage-option",
    "KEY=VALUE",
    "a setting for S3 or HDFS, for this command alone; audit --help lists the keys",
    storage_option,
    pairs=True,
)
_BROKER = (Option("--release", "X", _RELEASE), _BROKER_CONF)
_ELSEWHERE = (*PART_OPTIONS, STORAGE_OPTION)
STORE_OPTIONS = (*_BROKER, *PART_OPTIONS)  # of a data source, too
TABLES = Option("--tables", "URI", "the tables that audits wrote: DIR/tables of their --out DIR, or their --tables")
ONE_STORE = Option("--store", "NAME", "only this store")
TEXT_OR_JSON = Option("--format", "text|json", "default: as FILE ends, else text")
OUT_FILE = Option("--out", "FILE", "write there instead of to standard output")
SINCE = Option(
    "--since", "WHEN", "only runs since then: a span back from now (90m, 12h, 7d, 4w) or a date (2026-11-01), UTC", moment
)
LOST = Option("--lost", "", "only messages that a start of the release would lose; the store is audited first")
TRUST_CLOCK = Option("--trust-clock", "", "skip segments whose first messages are over an hour outside the range of times")
REDACT = "none|hide|hash"
SHELLS = ("bash", "zsh", "fish")
SCALE_SHAPES = ("log", "runs", "files", "queues", "lost", "light", "fleet", "findings")
BENCH_PARTS = ("scan", "audit", "datasets", "memory", "command", "cold", "kinds", "repair", "scale", "table")
SLOW_MARKS = ("broker", "soak", "big", "browser", "cluster", "hdfs", "speed")  # of tests that `test` leaves out
TABLES_ACTIONS = ("prune", "compact", "vacuum", "info", "views")
_ON_NOTEBOOKS = "" if INSTALLED else " on the notebooks of this project"  # a wheel has none
PASSED_ON = "Spark's own options are passed on; audit --help lists them."

# What the examples read and write: the project's damaged store; what the first example of `audit` leaves.
_FOLDER = shlex.quote(str(ROOT / "examples" / "damaged-store")) if INSTALLED else "examples/damaged-store"
_COPY, _SETTINGS = f"{_FOLDER}/store", f"--release 4.9.8 --broker-conf {_FOLDER}/broker.conf"
_SCRIPT = "script.py" if INSTALLED else "examples/scripts/morning.py"
_AFTER_AUDIT = "Examples, after the first one of audit --help:"

COMMAND_TABLE: dict[str, CommandSpec] = {}

COMMAND_TABLE["audit"] = CommandSpec(
    module="jobs.commands.audit",
    usage=f"STORE [STORE ...] --out DIR [options]\n       {COMMAND} audit --fleet FILE --out DIR [options]",
    about="Check copied RocketMQ stores: is a start safe, what would it lose, what would make the store consistent.",
    heading="Examples: every byte of a copy; once more, but without segments that have not changed since:",
    examples=(
        f"{COMMAND} audit {_COPY} \\\n    {_SETTINGS} --out out",
        f"{COMMAND} audit {_COPY} \\\n    {_SETTINGS} --out out --since-run last",
    ),
    arguments=STORE,
    read=(
        Option("--fleet", "FILE", "TOML, a [[store]] table per store: name, path, release, broker_conf, replica_group"),
        Option("--release", "X", f"{_RELEASE}; X,Y,... or all: compare"),
        _BROKER_CONF,
    ),
    much=(
        Option("--level", "full|quick", "quick: only what a starting broker would read (default full: every byte)"),
        Option("--since-run", "ID", 'skip unchanged segments that this run, or "last", has verified', earlier_run),
        Option(
            "--max-rate", "RATE", "read at most, say, 200MB/s on each machine (in each container), by all tasks together", rate
        ),
        Option("--max-duration", "TIME", "begin no new segment after 90s, 30m or 2h, then write the results", duration),
        *start_options("default: not known"),
    ),
    write=(
        Option("--out", "DIR", "for result.json and a folder per store, never inside a store; only one run at a time"),
        Option("--tables", "URI", "where the Delta tables are written (default DIR/tables)"),
        Option("--write", "LIST", f"also write datasets: {','.join(DATASETS)}", some_of("datasets", *DATASETS)),
        Option("--progress", "line|json|none", "line (default on a terminal), or a JSON object per second on standard error"),
        Option("--prometheus", "FILE", "also write the result for node_exporter's textfile collector"),
        Option("--summary-markdown", "FILE", "also write the result as Markdown, for the summary page of a CI job"),
        Option("--junit", "FILE", "also write the result as JUnit's XML, a test case per store"),
    ),
    spark="""\
Spark's own options are passed on: --master, --deploy-mode, --conf, --properties-file, --archives, --py-files, --files,
--jars, --packages, memory and core settings. Without --master everything runs on this machine.""",
    rare=(
        Option(
            "--run-id", "ID", "a name for this run; that of an earlier run replaces it, or continues it if it was killed", run_id
        ),
        *PART_OPTIONS,
        STORAGE_OPTION._replace(help=f"a setting for S3 or HDFS, any number of times. Keys: {', '.join(STORAGE_KEYS)}"),
    ),
    epilog="""\
exit codes: 0 consistent, 2 usage, 3 not fully audited, 10 derived data differ, 20 damaged, messages lost or no start""",
)

COMMAND_TABLE["rescue"] = CommandSpec(
    module="jobs.commands.rescue",
    usage="COPY [--broker-conf FILE] [options]",
    about="""\
Make a new store from a damaged copy in one command: audit it, compare both policies, repair.
Without --yes it shows what it would do, and changes nothing; at a terminal it asks. The copy is only read. Beside NEW
it leaves NEW.handover.html, a checklist for the start, and a list of the messages that could not be saved.""",
    heading="Examples: see what is recommended; do it:",
    examples=(
        f"{COMMAND} rescue {_COPY} \\\n    {_SETTINGS} --to new",
        f"{COMMAND} rescue {_COPY} \\\n    {_SETTINGS} --to new --yes",
    ),
    arguments=(("COPY", "the copied store folder (the one that holds commitlog/)"),),
    read=(
        Option("--donor", "COPY2", "another copy of the same log, whose valid bytes replace damaged ranges"),
        Option("--release", "X", "the broker's RocketMQ release; asked for if the copy leaves a choice"),
        Option("--broker-conf", "FILE", "its properties file; without it sizes come from the files, all else from the defaults"),
    ),
    much=start_options("default: that of NEW, with it"),
    write=(
        Option("--to", "NEW", "a folder that does not exist (default COPY-rescued); NEW.rescue gets the audit's page"),
        Option("--yes", "", "run the repair that is recommended"),
        Option("--give-up", "", "repair a copy that is not whole, and give up what it lacks"),
    ),
    rare=_ELSEWHERE,
    instead=tuple(
        (name, "rescue chooses; give it to repair, in the Repair line that rescue shows")
        for name in ("--policy", "--heal", "--fix-config", "--empty-config", "--fix-offsets", "--with-earlier", "--late-timers")
    ),
    epilog="""\
exit codes: 0 nothing to do, or done; 2 usage; 3 not fully audited, refused, failed; 10, 20 not run; 130, 143 interrupted""",
)

COMMAND_TABLE["explain"] = CommandSpec(
    module="jobs.commands.explain_offset",
    usage="STORE --phy-offset N [options]",
    about="""\
Show what is at a physical offset: the record field by field, its neighbours, entries that lead to it.
Says which check fails and why. Needs no Spark.""",
    examples=(
        f"{COMMAND} explain {_COPY} --release 4.9.8 --phy-offset 530,831",
        f"{COMMAND} explain {_COPY} --release 4.9.8 --phy-offset 530,831 --format json",
    ),
    arguments=STORE,
    read=(*_BROKER, Option("--phy-offset", "N", "the physical offset; also one in a record, in damage, or outside the log")),
    write=(
        Option("--format", "text|json", "for people (default), or one JSON object"),
        Option("--redact", REDACT, "bodies, keys, tags and the like; checksums and hash codes stay: short texts can be guessed"),
    ),
    rare=_ELSEWHERE,
    epilog="exit codes: 0 explained, whatever is there; 2 usage; 3 the store cannot be read; 130, 143 interrupted",
)

COMMAND_TABLE["report"] = CommandSpec(
    module="jobs.commands.past.fleet",
    usage="--tables URI [options]",
    about="Show the latest run of each store, most dangerous first, and each store's trend over its runs.",
    heading=_AFTER_AUDIT,
    examples=(
        f"{COMMAND} report --tables out/tables",
        f"{COMMAND} report --tables out/tables --since 7d --out out/trend.html",
    ),
    read=(
        TABLES,
        ONE_STORE,
        SINCE,
    ),
    write=(Option("--format", "text|json|html", "html: one self-contained page; default: as FILE ends, else text"), OUT_FILE),
    rare=(STORAGE_OPTION,),
    epilog="exit codes: 0 report written, 2 usage, 3 no tables, or no such run or store in them",
)

COMMAND_TABLE["runs"] = CommandSpec(
    module="jobs.commands.past.run_list",
    usage="DIR | --tables URI [options]",
    about="List the runs in the tables, the newest first: ids, exit codes, stores, what starts would lose.",
    heading=_AFTER_AUDIT,
    examples=(f"{COMMAND} runs out", f"{COMMAND} runs --tables out/tables --store store --limit 5"),
    arguments=(("DIR", "the --out of audits; or name their tables"),),
    read=(
        TABLES,
        Option("--store", "NAME", "only runs with this store, and of each only what it found there"),
        SINCE,
        Option("--limit", "N", "at most so many runs (default 50)", positive),
    ),
    write=(TEXT_OR_JSON, OUT_FILE),
    rare=(STORAGE_OPTION,),
    epilog="exit codes: 0 written, 2 usage, 3 no tables, or no such store in them",
)

COMMAND_TABLE["diff"] = CommandSpec(
    module="jobs.commands.past.difference",
    usage=f"RUN_A RUN_B --tables URI [options]\n       {COMMAND} diff last --tables URI [options]",
    about="""\
Show what is different in run B: new, grown and fixed findings, and changed bytes (bit rot).
last: of each store its two newest runs. Bytes count where a broker no longer writes. What is new at the log's end, and what
retention deleted at its front, is expected.""",
    heading="Examples, after those of audit --help:",
    examples=(f"{COMMAND} diff last --tables out/tables", f"{COMMAND} diff last --tables out/tables --store store --format json"),
    read=(TABLES, ONE_STORE),
    write=(TEXT_OR_JSON, OUT_FILE),
    rare=(STORAGE_OPTION,),
    epilog="""\
exit codes: 0 nothing new; 2 usage; 3 a run is missing or incomplete; new: 10 derived data differ, 20 loss, changed bytes""",
)

COMMAND_TABLE["coverage"] = CommandSpec(
    module="jobs.commands.past.coverage",
    usage="--tables URI --within WHEN [options]",
    about="Show how much of each CommitLog the runs within a time have read, and what was read longest ago.",
    heading=_AFTER_AUDIT,
    examples=(
        f"{COMMAND} coverage --tables out/tables --within 7d",
        f"{COMMAND} coverage --tables out/tables --within 12h --store store",
    ),
    read=(
        TABLES,
        ONE_STORE,
        Option("--within", "WHEN", "a span back from now (12h, 7d, 4w) or a date (2026-11-01), UTC", moment),
    ),
    write=(TEXT_OR_JSON, OUT_FILE),
    rare=(STORAGE_OPTION,),
    epilog="exit codes: 0 written, 2 usage, 3 no tables, or no such store in them",
)

COMMAND_TABLE["tables"] = CommandSpec(
    module="jobs.commands.tables_command",
    usage=f"{'|'.join(TABLES_ACTIONS)} --tables URI [options]",
    about="""\
Keep the tables of many runs small, and show what they hold.
prune takes old runs out, but never a store's latest run, its latest full one, or the one that saw its log reach furthest;
compact puts the small files of many runs together; vacuum removes files that no reader needs any more; info changes nothing;
views writes the SQL of views for other programs: each store's latest run, the findings of these, and the stores.
Audits and readers may be at work meanwhile.""",
    heading=_AFTER_AUDIT,
    examples=(f"{COMMAND} tables info --tables out/tables", f"{COMMAND} tables prune --tables out/tables --keep 90d --dry-run"),
    read=(TABLES,),
    much=(
        Option("--keep", "WHEN", "prune: keep runs that began since then: a span back from now (90d, 12w) or a date", moment),
        Option("--keep-runs", "N", "prune: keep the N newest runs of each store; with --keep, what either keeps", positive),
        Option("--older-than", "SPAN", "vacuum: files that no version since then has (36h, 2d; 7d at most, the default)", hours),
        Option("--alone", "", "vacuum: no audit and no reader is at work, so --older-than may be less than 7d"),
        Option("--dry-run", "", "show what would be done, change nothing"),
    ),
    write=(TEXT_OR_JSON, OUT_FILE),
    rare=(STORAGE_OPTION,),
    epilog="exit codes: 0 done, 2 usage, 3 no tables, or they cannot be read or changed",
)

COMMAND_TABLE["repair"] = CommandSpec(
    module="jobs.commands.repair",
    usage="STORE --plan PLAN --to NEWSTORE [options]",
    about="""\
Write a new store from a copy and its plan.json.
A broker of the plan's release starts on the new store as after a clean stop and serves every message in it. The copy is
not changed. NEWSTORE.repair.json, beside the new store, lists what was done, NEWSTORE.handover.html what to do then.""",
    heading="Examples, after the first one of audit --help: see what would be done; do it:",
    examples=(
        f"{COMMAND} repair {_COPY} --plan out/store/plan.json --to repaired --policy salvage --dry-run",
        f"{COMMAND} repair {_COPY} --plan out/store/plan.json --to repaired --policy salvage",
    ),
    arguments=(("STORE", "the copied store folder that the plan was made from"),),
    read=(
        Option("--plan", "PLAN", "its plan.json, as an audit wrote it"),
        Option("--donor", "STORE2", "another copy of the same log, whose valid bytes replace damaged ranges"),
        Option("--release", "X", "the release of the plan; needed if the audit assumed one, else only compared"),
        Option("--broker-conf", "FILE", "compared with the settings that the plan was made with"),
    ),
    much=(
        Option("--policy", "broker|salvage", "end the log as a start would, once healed (default), or keep all valid messages"),
        Option("--heal", "", "first mend records with one changed field or byte, if all else in the store confirms it"),
        Option("--fix-offsets", "", "also set back consumer and delay offsets beyond the new queue ends"),
        Option("--fix-config", "", "also write lost or damaged config/ files from what is left and the log; sets offsets back"),
        Option("--dry-run", "", "write no new store: show all numbers, and what the other policy would keep"),
        *start_options("default: that of NEWSTORE, with it"),
    ),
    write=(Option("--to", "NEWSTORE", "the folder to make; it must not exist"),),
    rare=(
        Option("--empty-config", "", "with --fix-config: a table begins empty if nothing of it can be read; else its file stays"),
        Option("--heal-risk", "R", f"heal only where the risk of a wrong change is below R ({DEFAULT_RISK:g})", risk),
        Option("--with-earlier", "", "also append messages of a queue from before its topic was deleted and made again"),
        Option("--late-timers", "", "make the timer's files anew: a start then delivers late timer messages, too"),
        *_ELSEWHERE,
    ),
    instead=(("--yes", "repair needs none: it runs at once, and with --dry-run only shows"),),
    epilog="""\
exit codes: 0 done, consistent; 2 usage; 3 refused or failed; 10, 20 not consistent: no new store; 130, 143 interrupted""",
)

COMMAND_TABLE["after-start"] = CommandSpec(
    module="jobs.commands.after_start",
    usage="STORE --plan NEW.plan.json [options]",
    about="""\
Say whether a store on which a broker was started is what was predicted: nothing cut, missing or changed.""",
    heading="Examples, after those of repair --help, while a broker runs on the new store, which is only read:",
    examples=(
        f"{COMMAND} after-start repaired --plan repaired.plan.json",
        f"{COMMAND} after-start repaired --plan repaired.plan.json --full --format json",
    ),
    arguments=(("STORE", "the folder on which the broker was started, which holds commitlog/: a path or a URI"),),
    read=(
        Option("--plan", "PLAN", "NEW.plan.json, which repair and rescue leave beside the new store"),
        Option("--broker-conf", "FILE", "of the broker that runs, if it was changed since the plan"),
    ),
    much=(Option("--full", "", "compare all bytes before the predicted ends, not only the edges of files"),),
    write=(Option("--format", "text|json", "for people (default), or one JSON object"),),
    rare=_ELSEWHERE,
    epilog="""\
exit codes: 0 as predicted; 10 as predicted, and grown or aged by itself; 20 it differs; 2 usage; 3 not readable""",
)

COMMAND_TABLE["manifest"] = CommandSpec(
    module="jobs.commands.copy_manifest",
    usage="STORE [--write FILE | --verify FILE]",
    about="List names, sizes and SHA-256 digests of all files of a copied store, or compare them with such a list.",
    examples=(f"{COMMAND} manifest {_COPY} --write new.manifest", f"{COMMAND} manifest {_COPY} --verify new.manifest"),
    arguments=STORE,
    read=(*_BROKER, Option("--verify", "FILE", "compare the store with this list")),
    write=(Option("--write", "FILE", "write the list there instead of printing it"),),
    rare=_ELSEWHERE,
    epilog="exit codes: 0 written, or equal; 2 usage; 3 different, or not readable",
)

COMMAND_TABLE["export"] = CommandSpec(
    module="jobs.commands.export",
    usage="STORE --to DIR --format parquet|delta|jsonl|resend [options]",
    about="""\
Write the messages of a store as files for other tools.
One file per segment in DIR/messages, and at the end DIR/manifest.json. If it was stopped, give the same command again: it
continues. Until all is done, the files are in DIR/unfinished.""",
    heading="Examples: a topic as Parquet; what a start would lose, to be sent again:",
    examples=(
        f"{COMMAND} export {_COPY} --topic Topic1 --to out/topic1 --format parquet",
        f"{COMMAND} export {_COPY} --release 4.9.8 --lost --to out/lost --format resend",
    ),
    arguments=STORE,
    read=_BROKER,
    much=(*FILTER_OPTIONS, LOST),
    write=(
        Option("--to", "DIR", "a folder that this machine and all executors see"),
        Option("--format", "parquet|delta|jsonl|resend", "of the files; resend: lines that a producer can send again"),
        Option("--columns", "LIST", "names, separated by commas (default: all but bodies; schemas/sources.py has them)"),
        Option("--body", "none|raw|decoded", "the bodies: left out (default), as they are stored, or uncompressed"),
        Option("--unpack", "", "write the messages inside a batch instead of the batch"),
        Option("--redact", REDACT, "keys, tags, addresses, property values, bodies: hidden, or equal tokens for equal values"),
        Option("--redact-salt-file", "FILE", "the same tokens as other exports with this salt (default: a new one, not kept)"),
    ),
    spark=PASSED_ON,
    rare=(TRUST_CLOCK, *_ELSEWHERE),
    epilog="exit codes: 0 done; 2 usage; 3 not readable, not writable, or not known what a start loses; 130, 143 interrupted",
)

COMMAND_TABLE["query"] = CommandSpec(
    module="jobs.commands.query",
    usage="STORE [conditions] [options]",
    about="""\
Find messages in the copy, or as a broker would serve them after a start; all conditions must hold.
They are shown in order of physical offset, also those after damage (status "plausible").""",
    heading="Examples: by key; what a start would lose:",
    examples=(
        f"{COMMAND} query {_COPY} --key k0",
        f"{COMMAND} query {_COPY} --release 4.9.8 --lost --limit 2",
    ),
    arguments=STORE,
    read=(
        *_BROKER,
        Option("--view", "copy|broker", "the copy (default), or what the release would serve by queue, or by key (with --topic)"),
        Option("--tables", "URI", "with --since or --until: skip segments that have none, by these tables of earlier audits"),
    ),
    much=(
        Option("--key", "K", "messages with this key or unique key"),
        Option("--unique-key", "K", "messages with this unique key, all duplicates"),
        Option("--offset-msg-id", "ID", "the message that this id names (32 or 56 hexadecimal digits)"),
        Option("--phy-offset", "N", "the message at this physical offset"),
        Option("--body-contains", "TEXT", "messages whose body holds this text, uncompressed or as stored; bytes: hex:0AFF"),
        *FILTER_OPTIONS,
        LOST,
        Option("--only-here", "COPY2", "only messages that this other copy of the log lacks, none twice; both are audited first"),
        Option("--limit", "N", "at most this many (default: 100 in a table, all as JSON lines)", positive),
        Option(
            "--last", "N", "the last N of them by physical offset; the log is read from its end, a segment at a time", positive
        ),
    ),
    write=(
        Option(
            "--format", "table|jsonl|csv|resend", "for people (default), a JSON object a line, RFC 4180, or lines to send again"
        ),
        Option("--columns", "A,B", "which columns, in this order"),
        Option("--body", "none|text|base64", "bodies, uncompressed (default none)"),
        Option("--redact", REDACT, "bodies, keys, tags and the like, and their checksums"),
        OUT_FILE,
    ),
    spark=PASSED_ON,
    rare=(
        Option("--scan", "", "read the whole log, even if ConsumeQueues say which segments hold a queue's messages"),
        TRUST_CLOCK,
        *_ELSEWHERE,
    ),
    epilog="""\
exit codes: 0 answered, even if no message is found; 2 usage; 3 the store cannot be read, or the answer is not
known (--lost, --only-here, --view broker); 130, 143 interrupted""",
)

COMMAND_TABLE["notebook"] = CommandSpec(
    module="jobs.commands.notebook",
    usage="[JupyterLab's own arguments] | --run FILE.ipynb [-p NAME=VALUE ...]",
    about=f"""\
Start JupyterLab{_ON_NOTEBOOKS}, with packages, Java and Spark ready in every kernel.
In a notebook:
  from {PACKAGES[0]} import session, sources
  spark = session.start().spark
  sources.read(spark, "messages", "copies/broker-a", columns="topic").groupBy("topic").count().show()
Arguments are passed to JupyterLab: a folder or a notebook to open, --no-browser ... With --run FILE.html shows the run.""",
    examples=(f"{COMMAND} notebook --no-browser --port 8889", f"{COMMAND} notebook --run my.ipynb -p STORE=copies/broker-a"),
    group="notebook",
    others_pass=True,
)

COMMAND_TABLE["run"] = CommandSpec(
    module="jobs.commands.script",
    usage="[Spark's own options] SCRIPT.py [its arguments]",
    about=f"""\
Run a Python script with Spark and the data sources ready; all words after its name are the script's own.
`spark` is the session, which SparkSession.builder.getOrCreate() gives, too. read, lag and traffic are in `sources`:
from {PACKAGES[0]} import sources.""",
    examples=(
        f"{COMMAND} run {_SCRIPT} {_COPY}",
        f"{COMMAND} run --master 'local[2]' {_SCRIPT} {_COPY} 5000 4.9.8",
    ),
    arguments=(("SCRIPT.py", "a file of this machine; it can import what is beside it"),),
    rare=(STORAGE_OPTION,),
    epilog="exit codes: the script's own; 1 if it raises, with Python's traceback; 2 usage",
    rest_passes=True,
)

COMMAND_TABLE["bench"] = CommandSpec(
    module="dev.run_bench",
    usage="[options]",
    about="Make sample stores, measure audits of them, and print one table with the limits beside the figures.",
    examples=(f"{COMMAND} bench --only scan,audit --size 0.5 --audit-size 0.5 --rounds 2", f"{COMMAND} bench --only cold"),
    much=(
        Option("--size", "GIB", "messages to scan, a third of each body size (3)", float),
        Option("--audit-size", "GIB", "messages of the store that is audited (1.5)", float),
        Option("--kinds-size", "GIB", "messages of the store of each kind (1)", float),
        Option("--large", "GIB", "the segment for the memory figure (2)", float),
        Option("--rounds", "N", "of which the fastest counts (5)", int),
        Option("--only", "LIST", f"some of {','.join(BENCH_PARTS)} (the first six)", some_of("parts", *BENCH_PARTS)),
        Option("--shapes", "LIST", f"of scale, some of {','.join(SCALE_SHAPES)} (all)", some_of("shapes", *SCALE_SHAPES)),
        Option("--part", "NUMBER", "of scale: so much of each shape, as 0.1 (1)", float),
        Option("--compare", "FILE", "print the ratios beside FILE's of this processor; code 1 if one is over a tenth worse"),
        Option("--peers", "DIR", "measure load() of the release whose jars are there (its lib/), too"),
    ),
    write=(
        Option("--dir", "DIR", "where the stores are made; their files are removed at the end"),
        Option("--keep", "", "leave them there"),
        Option("--write", "FILE", "write the ratios of this processor to this file, for --compare; others stay in it"),
    ),
    spark=PASSED_ON,
)

COMMAND_TABLE["test"] = CommandSpec(
    module="dev.run_tests",
    usage="[pytest's own arguments]",
    about=f"""\
Check lint and types; run tests but those marked {", ".join(SLOW_MARKS[:-1])} or {SLOW_MARKS[-1]}.
With arguments: pytest alone, with these (-m broker). The first run installs what the tests need.""",
    examples=(f"{COMMAND} test", f"{COMMAND} test tests/store_io -k index"),
    group="dev",
    others_pass=True,
    takes_spark=False,
)

COMMAND_TABLE["pack"] = CommandSpec(
    module="jobs.commands.pack",
    usage="--out FILE",
    about="Write an archive of the Python environment for the executors of a cluster, to be named by --archives.",
    heading="Examples: make it; use it, here on a small cluster in this machine:",
    examples=(
        f"{COMMAND} pack --out environment.tar.gz",
        f"{COMMAND} audit {_COPY} --release 4.9.8 --out out --master 'local-cluster[2,1,1024]' \\\n"
        "    --archives environment.tar.gz#environment --conf spark.pyspark.python=./environment/bin/python",
    ),
    write=(Option("--out", "FILE", "a name that ends in .tar.gz"),),
    epilog="exit codes: 0 written, 2 usage, 3 the file cannot be written",
)

COMMAND_TABLE["explain-code"] = CommandSpec(
    module="jobs.commands.explain_code",
    usage="[CODE ...] [options]",
    about="""\
Say what a finding or a stop reason means, what follows from it, and what to do about it.
Codes are in findings.jsonl, on the pages and in summaries; stop reasons in plan.json. Without CODE all are listed.""",
    examples=(f"{COMMAND} explain-code broker_drops_messages body_crc", f"{COMMAND} explain-code --format markdown"),
    arguments=(("CODE", "a finding's code (queue_entry_missing) or a stop reason (body_crc)"),),
    write=(Option("--format", "text|json|markdown", "for people (default), one JSON object a line, or a page"),),
    takes_spark=False,
)

COMMAND_TABLE["completion"] = CommandSpec(
    module="jobs.cli.completion",
    usage="|".join(SHELLS),
    about="""\
Print a script with which a shell completes commands, options and their values.""",
    heading="Examples: in bash (in zsh: by eval, after compinit); in fish:",
    examples=(f"source <({COMMAND} completion bash)", f"{COMMAND} completion fish | source"),
    takes_spark=False,
)
