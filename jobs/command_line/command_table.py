"""The commands beside audit, bench, test and pack: what each takes, and the module that runs it. Standard library only.

A module's `run(command)` gets the words that `options.parse` has sorted and returns the exit code. It raises UsageError for a bad
value, before anything is read, and StoreError for what cannot be done: `jobs.cli` prints the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.command_line.message_filters import FILTER_OPTIONS, FILTER_USAGE


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
    module="jobs.explore.explain",
    options=STORE_OPTIONS | {"--phy-offset", "--format", "--redact"},
    usage="""\
usage: ./spark-submit.sh explain STORE --phy-offset N [options]

Shows what is at a physical offset: the record's bytes field by field, which check fails and why, its neighbours, and which
ConsumeQueue and index entries lead to it. Needs no Spark.
  STORE                 a copied store folder (the one that holds commitlog/), a path or a URI
  --phy-offset N        the physical offset; it may also be inside a record, in damage, or outside the log
  --format text|json    for people (default), or one JSON object
  --redact MODE         none (default); hide or hash: do not show bodies, keys, tags and the like. Checksums and hash codes are
                        still shown: short values can be guessed from them
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
""",
)

# ---- report, diff, coverage: what the tables of many runs say ---------------------------------------------------------

COMMAND_TABLE["report"] = CommandSpec(
    "jobs.history.fleet",
    options=frozenset("--tables --since --store --format --out".split()),
    usage="""\
usage: ./spark-submit.sh report --tables URI [--since WHEN] [--store NAME] [--format text|json|html] [--out FILE]

Shows the latest run of each store, most dangerous first, and each store's trend over its runs.
  --tables URI          the tables that audits wrote: DIR/tables of their --out DIR, or their --tables
  --since WHEN          only runs since then: a span back from now (90m, 12h, 7d, 4w) or a date (2026-11-01), UTC
  --store NAME          only this store
  --format F            text, json or html (one self-contained page); default: the ending of FILE, else text
  --out FILE            write there instead of standard output

exit codes: 0 report written, 2 usage, 3 no tables, or no such run or store in them
""",
)

COMMAND_TABLE["diff"] = CommandSpec(
    "jobs.history.difference",
    options=frozenset("--tables --store --format --out".split()),
    usage="""\
usage: ./spark-submit.sh diff RUN_A RUN_B --tables URI [--store NAME] [--format text|json] [--out FILE]

Shows what is different in run B: new, grown and fixed findings, and bytes that changed where a broker no longer writes (bit rot).
What is new at the log's end, and what retention deleted at its front, is expected.
  --tables URI          the tables that both runs wrote
  --store NAME          only this store
  --format F            text or json; default: the ending of FILE, else text
  --out FILE            write there instead of standard output

exit codes: 0 nothing new, 2 usage, 3 a run is missing or incomplete, 10 new: derived data differ, 20 new: loss, or changed bytes
""",
)

COMMAND_TABLE["coverage"] = CommandSpec(
    "jobs.history.coverage",
    options=frozenset("--tables --within --store --format --out".split()),
    usage="""\
usage: ./spark-submit.sh coverage --tables URI --within WHEN [--store NAME] [--format text|json] [--out FILE]

Shows how much of each store's CommitLog all runs within that time have read, and which segments were read longest ago.
  --tables URI          the tables that audits wrote
  --within WHEN         a span back from now (12h, 7d, 4w) or a date (2026-11-01), UTC
  --store NAME          only this store
  --format F            text or json; default: the ending of FILE, else text
  --out FILE            write there instead of standard output

exit codes: 0 written, 2 usage, 3 no tables, or no such store in them
""",
)

# ---- repair --------------------------------------------------------------------------------------------------------

COMMAND_TABLE["repair"] = CommandSpec(
    module="jobs.repair",
    options=STORE_OPTIONS | {"--plan", "--to", "--policy", "--donor"},
    flags=frozenset({"--fix-offsets", "--dry-run"}),
    usage="""\
usage: ./spark-submit.sh repair STORE --plan PLAN --to NEWSTORE [options]

Writes a new store from a copy and its plan.json. A broker of the plan's release starts on the new store as after a clean stop and
serves every message in it. The copy is not changed. NEWSTORE.repair.json, beside the new store, lists what was done.
  STORE                 the copied store folder that the plan was made from
  --plan PLAN           its plan.json, as an audit wrote it
  --to NEWSTORE         the folder to make; it must not exist
  --policy broker       keep what the release itself would keep (default), and rebuild what it gets wrong
  --policy salvage      keep every valid message of the copy, also those after damage; replace damaged bytes with placeholders
  --donor STORE2        another copy of the same log: take damaged ranges from it where its bytes are valid; a store that is no
                        copy of this log is refused
  --fix-offsets         also set back consumer and delay offsets beyond the new queue ends
  --dry-run             only show what a run would do, in all its numbers, and what the other policy would keep. It reads as much
                        as a run, keeps its work in the temporary folder, and writes no new store
  --release X           the release of the plan; needed where the audit assumed one, else only compared
  --broker-conf FILE    compared with the settings that the plan was made with
  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    where the copy keeps these parts elsewhere

exit codes: 0 done and consistent; 2 usage; 3 refused or failed; 10, 20 the result was not consistent, no new store was left;
130, 143 interrupted
""",
)

# ---- manifest ------------------------------------------------------------------------------------------------------

COMMAND_TABLE["manifest"] = CommandSpec(
    module="jobs.explore.manifest",
    options=STORE_OPTIONS | {"--write", "--verify"},
    usage="""\
usage: ./spark-submit.sh manifest STORE [--write FILE | --verify FILE]

Lists names, sizes and SHA-256 digests of all files of a copied store: prints or writes them, or compares them with FILE.
  STORE                 a copied store folder, a path or a URI

exit codes: 0 written, or equal; 2 usage; 3 different, or not readable
""",
)

# ---- export --------------------------------------------------------------------------------------------------------

COMMAND_TABLE["export"] = CommandSpec(
    module="jobs.explore.export",
    options=STORE_OPTIONS | FILTER_OPTIONS | {"--to", "--format", "--columns", "--body", "--redact", "--redact-salt-file"},
    flags=frozenset({"--unpack", "--trust-clock"}),
    usage=f"""\
usage: ./spark-submit.sh export STORE --to DIR --format parquet|delta|jsonl [options]

Writes the messages of a store as files for other tools: one per segment in DIR/messages, and at the end DIR/manifest.json.
If it was stopped, give the same command again: it continues. Until all is done, the files are in DIR/unfinished.
  --columns LIST             names of columns, separated by commas (default: all but bodies; see schemas/sources.py)
{FILTER_USAGE}\
  --body none|raw|decoded    the bodies: left out (default), as they are stored, or uncompressed
  --unpack                   write the messages inside a batch instead of the batch
  --redact hide|hash         keys, tags, unique keys, clients' addresses, property values and bodies: hidden, or as tokens that
                             equal values share; tags code and body CRC are left out
  --redact-salt-file FILE    the same tokens as other exports with this salt; default: a new salt that is not kept
  --trust-clock              skip segments whose first messages were stored more than an hour outside the range
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
Spark's own options are passed on.
""",
)

# ---- query ---------------------------------------------------------------------------------------------------------

COMMAND_TABLE["query"] = CommandSpec(
    module="jobs.explore.query",
    options=STORE_OPTIONS
    | FILTER_OPTIONS
    | set("--phy-offset --key --unique-key --offset-msg-id --body-contains".split())
    | set("--limit --columns --format --body --redact --view".split()),
    flags=frozenset({"--trust-clock"}),
    usage=f"""\
usage: ./spark-submit.sh query STORE [conditions] [options]

Finds messages in the copy, in order of physical offset, also those after damage (status "plausible"); or as a broker would serve
them after a start. All conditions must hold.
  STORE                      a copied store folder (the one that holds commitlog/), a path or a URI
{FILTER_USAGE}\
  --phy-offset N             the message at this physical offset
  --offset-msg-id ID         the message that this id names (32 or 56 hexadecimal digits)
  --key K                    messages with this key or unique key
  --unique-key K             messages with this unique key, all duplicates
  --body-contains TEXT       messages whose body holds this text, uncompressed or as stored; bytes: hex:0AFF
  --view copy|broker         the copy as it is (default), or what the release would serve: by queue what consumers get, by
                             key what a lookup through the index gives (with --topic)
  --limit N                  at most this many (default: 100 in a table, all as JSON lines)
  --columns A,B              which columns, in this order      --body none|text|base64   bodies, uncompressed (default none)
  --format table|jsonl       for people (default), or one JSON object a line
  --trust-clock              skip segments whose first messages' times are outside --since and --until
  --redact MODE              none (default); hide or hash: do not show bodies, keys, tags and the like, nor their checksums
  --release X  --broker-conf FILE  --commitlog PATH[,PATH]  --consumequeue PATH  --index PATH    as for audit
""",
)

# ---- notebook ------------------------------------------------------------------------------------------------------

COMMAND_TABLE["notebook"] = CommandSpec(
    module="jobs.explore.notebook",
    usage="""\
usage: ./spark-submit.sh notebook [JupyterLab's own arguments]

Starts JupyterLab on the notebooks of this project, with the packages, Java and Spark ready in every kernel. In a notebook:
  from jobs import session, sources
  spark = session.start().spark
  sources.read(spark, "messages", "copies/broker-a").groupBy("topic").count().show()
Arguments are passed to JupyterLab: a folder or a notebook to open, --no-browser, --port N, --ip ADDRESS ...
""",
    group="notebook",
    others_pass=True,
)
