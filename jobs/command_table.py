"""The commands beside audit, bench, test and pack: what each takes, and the module that runs it. Standard library only.

A module's `run(command)` gets the words that `jobs.options.parse` has sorted and gives the exit code. It raises UsageError for a
value that is no good, before anything is read, and StoreError for what cannot be done: `jobs.cli` says the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.message_filters import FILTER_OPTIONS, FILTER_USAGE


@dataclass(frozen=True)
class CommandSpec:
    """module: imported when the command runs.  options: with a value.  flags: without.  usage: the text of --help.
    group: the dependency group in pyproject.toml that it needs besides the product's own packages.  others_pass: words that are
    neither its own options nor Spark's are its arguments, also those that begin with "-"."""

    module: str
    options: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    usage: str = ""
    group: str = ""
    others_pass: bool = False


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
  --redact MODE         none (default); hide or hash: bodies, keys, tags and the like are not shown; the checksums and hash
                        codes that are compared here are, and short values can be guessed from them
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
""",
)

# ---- report, diff, coverage: what the tables of many runs say ---------------------------------------------------------

COMMAND_TABLE["report"] = CommandSpec(
    "jobs.history.fleet",
    options=frozenset("--tables --since --store --format --out".split()),
    usage="""\
usage: ./spark-submit.sh report --tables URI [--since WHEN] [--store NAME] [--format text|json|html] [--out FILE]

The latest run of each store, the copies that are unsafe to start first, and each store's trend over its runs.
  --tables URI          the tables that audits wrote: DIR/tables of their --out DIR, or what their --tables named
  --since WHEN          only runs since then: a span back from now (90m, 12h, 7d, 4w) or a date (2026-11-01), UTC
  --store NAME          this store alone
  --format F            text, json or html (one self-contained page); without it what the name of FILE ends with, else text
  --out FILE            write there instead of standard output

exit codes: 0 the report is written, 2 usage, 3 no tables, or no such run or store in them
""",
)

COMMAND_TABLE["diff"] = CommandSpec(
    "jobs.history.difference",
    options=frozenset("--tables --store --format --out".split()),
    usage="""\
usage: ./spark-submit.sh diff RUN_A RUN_B --tables URI [--store NAME] [--format text|json] [--out FILE]

What is different in run B: new, grown and fixed findings, and bytes that changed where a broker no longer writes (bit rot), apart
from what is new at the log's end and what retention took from its front.
  --tables URI          the tables that both runs wrote
  --store NAME          this store alone
  --format F            text or json; without it what the name of FILE ends with, else text
  --out FILE            write there instead of standard output

exit codes: 0 nothing new, 2 usage, 3 a run is missing or incomplete, 10 new: derived data differ, 20 new: loss, or changed bytes
""",
)

COMMAND_TABLE["coverage"] = CommandSpec(
    "jobs.history.coverage",
    options=frozenset("--tables --within --store --format --out".split()),
    usage="""\
usage: ./spark-submit.sh coverage --tables URI --within WHEN [--store NAME] [--format text|json] [--out FILE]

How much of each store's CommitLog was read wholly within that time, over all its runs, and which segments waited longest.
  --tables URI          the tables that audits wrote
  --within WHEN         a span back from now (12h, 7d, 4w) or a date (2026-11-01), UTC
  --store NAME          this store alone
  --format F            text or json; without it what the name of FILE ends with, else text
  --out FILE            write there instead of standard output

exit codes: 0 it is written, 2 usage, 3 no tables, or no such store in them
""",
)

# ---- repair --------------------------------------------------------------------------------------------------------

COMMAND_TABLE["repair"] = CommandSpec(
    module="jobs.repair",
    options=STORE_OPTIONS | {"--plan", "--to", "--policy", "--donor"},
    flags=frozenset({"--fix-offsets", "--dry-run"}),
    usage="""\
usage: ./spark-submit.sh repair STORE --plan PLAN --to NEWSTORE [options]

Writes a new store from a copy and its plan.json, on which a broker of the plan's release starts as after a clean stop and serves
every message that it should. The copy is not touched. What was done is told in NEWSTORE.repair.json beside it.
  STORE                 the copied store folder that the plan was made from
  --plan PLAN           its plan.json, as an audit wrote it
  --to NEWSTORE         the folder to make; it must not exist
  --policy broker       what the release itself would keep (default), with what it gets wrong about it made right
  --policy salvage      every valid message of the copy, also those behind damage; damaged ranges are bridged
  --donor STORE2        a second copy of the same log: damaged ranges are taken from it where its bytes are valid; one that is
                        no copy of this log is refused
  --fix-offsets         also correct consumer and delay offsets that lie past the new ends
  --dry-run             say what a run would do, in all its numbers, and what the other policy would keep; reads as much as a run,
                        keeps what it works out in the temporary folder, writes no new store
  --broker-conf FILE    compared with the settings that the plan was made with
  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    where the copy keeps these parts elsewhere

exit codes: 0 done and consistent; 2 usage; 3 could not; 10, 20 the result was not consistent, so nothing was put in place;
130, 143 interrupted
""",
)

# ---- manifest ------------------------------------------------------------------------------------------------------

COMMAND_TABLE["manifest"] = CommandSpec(
    module="jobs.manifest",
    options=STORE_OPTIONS | {"--write", "--verify"},
    usage="""\
usage: ./spark-submit.sh manifest STORE [--write FILE | --verify FILE]

Names, sizes and SHA-256 digests of all files of a copied store: printed, written to FILE, or compared with those in FILE.
  STORE                 a copied store folder, a path or a URI

exit codes: 0 written, or the same; 2 usage; 3 not the same, or not readable
""",
)

# ---- export --------------------------------------------------------------------------------------------------------

COMMAND_TABLE["export"] = CommandSpec(
    module="jobs.export",
    options=STORE_OPTIONS | FILTER_OPTIONS | {"--to", "--format", "--columns", "--body", "--redact", "--redact-salt-file"},
    flags=frozenset({"--unpack", "--trust-clock"}),
    usage=f"""\
usage: ./spark-submit.sh export STORE --to DIR --format parquet|delta|jsonl [options]

Writes the messages of a store as files for other tools: one per segment in DIR/messages, and DIR/manifest.json once all is there.
Stopped, it goes on when the same command is given again; until it is whole all lies in DIR/unfinished.
  --columns LIST             names of columns, separated by commas (all without bodies, unless told; see schemas/sources.py)
{FILTER_USAGE}\
  --body none|raw|decoded    the bodies: left out (default), as they are stored, or uncompressed
  --unpack                   the messages of inner batches instead of the batches
  --redact hide|hash         keys, tags, unique keys, clients' addresses, property values and bodies: hidden, or as tokens that
                             equal values share; tags code and body CRC are left out
  --redact-salt-file FILE    tokens as in other exports with this salt; else a new salt, which nobody gets to know
  --trust-clock              do not read segments whose first messages' store times lie more than an hour outside of the range
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
Spark's own options are handed on.
""",
)

# ---- query ---------------------------------------------------------------------------------------------------------

COMMAND_TABLE["query"] = CommandSpec(
    module="jobs.query",
    options=STORE_OPTIONS
    | FILTER_OPTIONS
    | set("--phy-offset --key --unique-key --offset-msg-id --body-contains".split())
    | set("--limit --columns --format --body --redact --view".split()),
    flags=frozenset({"--trust-clock"}),
    usage=f"""\
usage: ./spark-submit.sh query STORE [conditions] [options]

Finds messages: as the copy holds them, also behind damage (then their status is "plausible"), by physical offset; or as a
broker would serve them after its start. All conditions must hold.
  STORE                      a copied store folder (the one that holds commitlog/), a path or a URI
{FILTER_USAGE}\
  --phy-offset N             the message at this physical offset
  --offset-msg-id ID         the message that this id names (32 or 56 hexadecimal digits)
  --key K                    messages with this key or unique key
  --unique-key K             messages with this unique key, all duplicates
  --body-contains TEXT       messages in whose body this stands, uncompressed or as stored; bytes: hex:0AFF
  --view copy|broker         the copy as it is (default), or what the release would serve: by queue what consumers get, by
                             key what a lookup through the index gives (with --topic)
  --limit N                  at most so many (default: 100 in a table, all as JSON lines)
  --columns A,B              which columns, in this order      --body none|text|base64   bodies, uncompressed (default none)
  --format table|jsonl       for people (default), or one JSON object a line
  --trust-clock              skip segments that by their first messages' times hold nothing of --since and --until
  --redact MODE              none (default); hide or hash: bodies, keys, tags and the like are not shown, nor sums of them
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
""",
)

# ---- notebook ------------------------------------------------------------------------------------------------------

COMMAND_TABLE["notebook"] = CommandSpec(
    module="jobs.notebook",
    usage="""\
usage: ./spark-submit.sh notebook [JupyterLab's own arguments]

Starts JupyterLab on the notebooks of this project, with the packages, Java and Spark ready in every kernel. In a notebook:
  from jobs import session, sources
  spark = session.start().spark
  sources.read(spark, "messages", "copies/broker-a").groupBy("topic").count().show()
Arguments go to JupyterLab as they are: a folder or a notebook to open instead, --no-browser, --port N, --ip ADDRESS ...
""",
    group="notebook",
    others_pass=True,
)
