"""export STORE --to DIR --format parquet|delta|jsonl|resend: a store's messages as files that other tools read.

    DIR/manifest.json      what was exported, and each file with its digest; written last
    DIR/messages/          one file per segment, named by it; with --format delta a Delta table
    DIR/unfinished/        all of this until it is whole; the same command continues where an earlier one was stopped

So where DIR/messages is, all of it is there. With --lost, or the column of that name, the store is audited first.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs import VERSION
from jobs.cli.argument_places import absolute, read_salt, refuse_all_inside, refuse_not_utf8
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.message_filters import FILTER_OPTIONS, read_filter
from jobs.cli.options import Command, single_store
from jobs.cli.stores import StoreArgument
from jobs.cli.terminal import redraws
from jobs.messages.export_files import PARQUET, NamedSegment, SegmentFiles, convert_to_delta, export_segment, write_empty
from jobs.messages.message_arguments import (
    NO_SEGMENT,
    RESEND,
    chosen_columns,
    open_named,
    redaction_of,
    refuse_with_resend,
    request_of,
    unknown_topics,
)
from jobs.report.files.json_text import document
from jobs.report.texts.query_text import loss_text, narrowing_text
from jobs.runtime import output, uploads
from jobs.runtime.faults import reason, say
from jobs.runtime.output import write_local
from jobs.runtime.spark_start import LazySpark
from jobs.tasks.progress import Progress, SparkCounters
from jobs.tasks.threads_or_spark import SparkWorkers
from schemas.rows import NAMED, MappedFile
from schemas.sources import LOST
from schemas.tables import Column, struct_of
from store_io.base.crc import checksum
from store_io.base.errors import StoreChanged, StoreError, UsageError, parsed
from store_io.base.paths import is_uri
from store_io.base.wording import bytes_text, count_text
from store_io.messages.lost.sendable import to_resend
from store_io.messages.lost.spared import places_of
from store_io.messages.question import MessageSearch, Narrowing, Question, open_search
from store_io.messages.redaction import HASH, Redaction
from store_io.messages.scans import COLUMNS, DEFAULT_COLUMNS
from store_io.model.premises import assumed_sentence

MANIFEST, MESSAGES, UNFINISHED, STATE, ASKED = "manifest.json", "messages", "unfinished", "state", "export.json"
BODIES = ("none", "raw", "decoded")
SCHEMA_VERSION = 1
EXPORT = "export"  # the speaker of what is said beside the result
_SALT = "salt"
_RESULT = "note string"


@dataclass(frozen=True)
class AskedExport:
    """A checked command line.

    question: the messages that it asks for.
    words: what makes an export the same as another, as JSON.
    """

    store: StoreArgument
    to: str
    form: str
    question: Question
    redaction: Redaction
    given_salt: bool
    words: dict[str, Any]


def run(command: Command) -> int:
    """Export messages; return 0 once the manifest is written."""
    asked = read_arguments(command)
    if is_uri(asked.to):
        return _to_uri(asked, command.spark)
    check_target(asked)
    with output.hold(asked.to, EXPORT, say):
        manifest = read_json(f"{asked.to}/{MANIFEST}")
        if manifest is not None:
            check_same(asked, manifest)
            check_whole(asked.to, manifest)
            shutil.rmtree(f"{asked.to}/{UNFINISHED}", ignore_errors=True)  # of a run that was stopped in its last moment
            print(f"{asked.to}: this export is whole already; nothing was done")
            return 0
        manifest = Export(asked).run(command.spark)
    return _said(asked.to, asked.form, manifest)


def _to_uri(asked: AskedExport, spark_words: Sequence[str]) -> int:
    """Export into S3 or HDFS. The export is made here first, as a whole, so a second run begins anew."""
    uploads.refuse_elsewhere(spark_words)
    target = uploads.target_of(asked.to)
    refuse_all_inside([("--to", asked.to)], asked.store.roots)
    target.check_new(asked.to)
    with tempfile.TemporaryDirectory(prefix="store-audit-export-") as folder:
        here = f"{folder}/export"
        manifest = Export(replace(asked, to=here)).run(spark_words)
        for checksum_file in Path(here).rglob(".*.crc"):  # of Hadoop, for disks
            checksum_file.unlink()
        logged = sorted(str(path.relative_to(here)) for path in Path(here).rglob("_delta_log/*"))
        target.put(here, last=[*logged, MANIFEST])
    return _said(target.uri, asked.form, manifest)


def _said(to: str, form: str, manifest: Mapping[str, Any]) -> int:
    rows, size = sum(f["rows"] for f in manifest["files"]), sum(f["bytes"] for f in manifest["files"])
    segments = count_text(len(manifest["files"]), "segment")
    print(f"{count_text(rows, 'message')} of {segments}, {bytes_text(size)} of {form}, in {to}/{MESSAGES}")
    return 0


# ---- arguments -------------------------------------------------------------------------------------------------------


def read_arguments(command: Command) -> AskedExport:
    """Return the command line, checked. Raises UsageError."""
    store, options = single_store(command), command.options
    for option in ("--to", "--format"):
        if option not in options:
            raise UsageError(f"{option} is missing: export takes {COMMAND_TABLE['export'].usage}")
    form, body = options["--format"], options.get("--body", BODIES[0])
    to = absolute(options["--to"])
    refuse_with_resend(options, form)
    lost, trust_clock = "--lost" in command.flags, "--trust-clock" in command.flags
    columns, unpack = _columns(options.get("--columns"), body, lost), lost or "--unpack" in command.flags
    salt = read_salt(options["--redact-salt-file"], "--redact-salt-file") if "--redact-salt-file" in options else None
    redaction = redaction_of(command, salt)
    wanted = read_filter(options)
    question = Question(
        wanted, columns=columns, decompress=body == "decoded", unpack=unpack, only_lost=lost, trust_clock=trust_clock
    )
    question = to_resend(question) if form == RESEND else question
    words: dict[str, Any] = {
        "store": store.path,
        "parts": {name: list(folders) for name, folders in store.parts},
        "release": store.release,
        "broker_conf": None if store.broker_conf is None else sha256(store.broker_conf.encode("latin-1")).hexdigest(),
        "format": form,
        "columns": list(question.columns),
        "filter": {o.name.removeprefix("--"): options[o.name] for o in sorted(FILTER_OPTIONS) if o.name in options},
        "body": body,
        "unpack": question.unpack,
        "trust_clock": trust_clock,
        "redact": redaction.mode,
        "salt": None if salt is None else sha256(b"export" + redaction.salt).hexdigest()[:16],
        **({"lost": True} if lost else {}),
    }
    return AskedExport(store, to, form, question, redaction, salt is not None, words)


def _columns(text: str | None, body: str, lost: bool) -> tuple[str, ...]:
    bodies = () if body == "none" else ("body", "body_status")
    if text is None:
        return DEFAULT_COLUMNS + bodies + ((LOST,) if lost else ())
    names = chosen_columns(text, body, BODIES)
    return names + tuple(name for name in bodies if name not in names)


def check_target(asked: AskedExport) -> None:
    """Raise UsageError if the folder cannot be this export's: inside the store, a file, a folder with other things."""
    folders = [asked.to, *(f"{asked.to}/{name}" for name in (MESSAGES, UNFINISHED, f"{UNFINISHED}/{MESSAGES}"))]
    if asked.form == "delta":
        refuse_not_utf8("--to", asked.to)
    refuse_all_inside([("--to", folder) for folder in folders], asked.store.roots)
    if not os.path.lexists(asked.to):
        return
    if not os.path.isdir(asked.to):
        raise UsageError(f"--to {asked.to!r}: there is a file of that name")
    names = [name for name in os.listdir(asked.to) if not name.startswith(".")]
    if names and not {MANIFEST, UNFINISHED} & set(names):
        raise UsageError(f"--to {asked.to!r}: holds {sorted(names)[0]!r} and no export; name a folder that is new or empty")
    for name in (MESSAGES, UNFINISHED):
        if name in names and not stat.S_ISDIR(os.lstat(f"{asked.to}/{name}").st_mode):
            raise UsageError(f"--to {asked.to!r}: {name} in it is a link or no folder")


def check_same(asked: AskedExport, other: Mapping[str, Any]) -> None:
    """Raise UsageError if the folder holds an export of something else."""
    before = other.get("asked")
    if before != asked.words:
        before = before if isinstance(before, dict) else {}
        other_words = ", ".join(_different(before, asked.words))
        raise UsageError(f"--to {asked.to!r} holds an export that was asked for differently ({other_words}); name another folder")


def _different(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the options that differ, without those that only follow from another one.

    The option --lost adds a column and unpacks, and so does the format resend.
    """
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    follow: set[str] = set()
    if "lost" in names:
        follow.add("unpack")
        without = [[column for column in words.get("columns") or () if column != LOST] for words in (before, now)]
        follow |= {"columns"} if without[0] == without[1] else set()
    if "format" in names and RESEND in (before.get("format"), now.get("format")):
        follow |= {"columns", "unpack"}
    return [name for name in names if name not in follow]


def check_whole(to: str, manifest: Mapping[str, Any]) -> None:
    """Raise StoreError if a file that the manifest names is gone or has another length."""
    for file in manifest["files"]:
        if file["file"] is None:
            continue
        path = f"{to}/{MESSAGES}/{file['file']}"
        try:
            size = os.stat(path).st_size
        except OSError as problem:
            raise StoreError(f"{path}: {problem.strerror}, though the manifest names it") from None
        if size != file["bytes"]:
            raise StoreError(f"{path}: {size} bytes, {file['bytes']} by the manifest")


def read_json(path: str) -> dict[str, Any] | None:
    """Read a file of ours; None if there is none. Raises StoreError if it is no JSON object."""
    try:
        with open(path, encoding="utf-8") as file:
            found = parsed(json.loads, file.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    if not isinstance(found, dict):
        raise StoreError(f"{path}: not what an export writes")
    return found


# ---- the work --------------------------------------------------------------------------------------------------------


class Export:
    """One export, from the listing to the manifest; new or continued."""

    def __init__(self, asked: AskedExport):
        self.asked = asked
        self.unfinished = f"{asked.to}/{UNFINISHED}"
        self.state = f"{self.unfinished}/{STATE}"
        self.folder = f"{self.unfinished}/{MESSAGES}"

    def run(self, spark_words: Sequence[str]) -> dict[str, Any]:
        """Do what is left to do; the manifest."""
        store = open_named(self.asked.store)
        search = open_search(store, self.asked.question)
        segments = [part.file for part in search.parts(_tell)]
        listed = [[s.path, s.size, store.listing.by_path[s.path].mtime_ns] for s in segments]
        salt = self._begin(listed)
        names = file_names(segments)
        notes = self._notes(names)
        moved = os.path.isdir(f"{self.asked.to}/{MESSAGES}")
        left = [name for name in names if name not in notes]
        if moved and left:
            raise StoreError(f"{self.asked.to}/{MESSAGES}: is there although {left[0]} is not done; remove the folder")
        if not moved:
            if left or self.asked.form == "delta":
                with LazySpark(spark_words) as spark:
                    search = self._with_places(search, spark) if left else search
                    sql = spark.session.spark
                    parts = zip(search.parts(_tell), names, strict=True)
                    todo = [NamedSegment(part.scan(search.scan), name) for part, name in parts if name not in notes]
                    notes |= self._write(sql, todo, salt)
                    self._say_columns()
                    if self.asked.form == "delta":
                        self._make_delta(sql)
            self._say_columns()
            with self._writing():
                os.rename(self.folder, f"{self.asked.to}/{MESSAGES}")
        manifest = self._manifest([notes[name] for name in names])
        wanted = self.asked.question.wanted
        for lacking in filter(None, ("" if search.segments else NO_SEGMENT, unknown_topics(store, wanted.topics))):
            say(lacking, EXPORT)
        with self._writing():
            write_local(f"{self.asked.to}/{MANIFEST}", [document(manifest).encode()])
        shutil.rmtree(self.unfinished, ignore_errors=True)
        return manifest

    def _with_places(self, search: MessageSearch, spark: LazySpark) -> MessageSearch:
        """Return the search that knows what a start would take, if that is asked for."""
        store = self.asked.store
        if not self.asked.question.needs_audit:
            return search
        if store.release_from != NAMED:
            say(assumed_sentence(store.release, store.release_from), EXPORT)
        places = places_of(request_of(store), SparkWorkers(spark), self.asked.form == RESEND)
        say(loss_text(places), EXPORT)
        return replace(search, places=places)

    def _begin(self, listed: list[list[Any]]) -> bytes:
        """Make the folders, or find what an earlier run left there; the salt of this export's tokens."""
        before = read_json(f"{self.state}/{ASKED}")
        with self._writing():
            if before is None:
                shutil.rmtree(self.unfinished, ignore_errors=True)  # stopped before it said what it would be
                os.makedirs(self.state)
                os.makedirs(self.folder)
                if self.asked.redaction.mode == HASH and not self.asked.given_salt:
                    # For the run that continues; removed with the folder, since tokens could be tried with it.
                    handle = os.open(f"{self.state}/{_SALT}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                    with os.fdopen(handle, "wb") as file:
                        file.write(self.asked.redaction.salt)
                write_local(f"{self.state}/{ASKED}", [json.dumps({"asked": self.asked.words, "segments": listed}).encode()])
                return self.asked.redaction.salt
            check_same(self.asked, before)
            if before.get("segments") != listed:
                changed = next((row[0] for row in listed if row not in before.get("segments", [])), "a segment less than before")
                raise StoreChanged(f"{changed}: the store has changed since this export began; begin again in another folder")
            if not os.path.isdir(f"{self.asked.to}/{MESSAGES}"):
                for name in os.listdir(self.folder):
                    if name.startswith("."):
                        os.unlink(f"{self.folder}/{name}")
            if self.asked.redaction.mode == HASH and not self.asked.given_salt:
                with open(f"{self.state}/{_SALT}", "rb") as file:
                    return file.read()
        return self.asked.redaction.salt

    def _notes(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the notes of earlier runs, by the names of the files."""
        notes = {name: read_json(f"{self.state}/{name}.json") for name in names}
        return {name: note for name, note in notes.items() if note is not None}

    def _write(self, spark: Any, left: Sequence[NamedSegment], salt: bytes) -> dict[str, dict[str, Any]]:
        """Write these parts' files; their notes. Raises StoreError once all others are done."""
        files = SegmentFiles(self.folder, self.state, self.asked.form, Redaction(self.asked.redaction.mode, salt))
        if not left:
            return {}
        order = sorted(left, key=lambda part: -part.scan.size)
        counters = SparkCounters(spark.sparkContext)
        with Progress(sys.stderr if redraws(sys.stderr) else None, counters) as progress:
            progress.expect("exporting", sum(part.scan.size for part in left), len(left))
            work = _worker(files, order, counters.report)
            rows = spark.range(0, len(order), 1, len(order)).mapInArrow(work, _RESULT).collect()
        notes = [json.loads(row["note"]) for row in rows]
        if problems := sorted(note["problem"] for note in notes if "problem" in note):
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise StoreError(f"{problems[0]}{more}; give the same command again to continue")
        return {note.pop("name"): note for note in notes}

    def _say_columns(self) -> None:
        """Write a file without rows if there is none: it shows the columns of an export without a message."""
        if self.asked.form not in ("jsonl", RESEND) and not any(name.endswith(f".{PARQUET}") for name in os.listdir(self.folder)):
            with self._writing():
                write_empty(self.folder, self.asked.question.columns)

    def _make_delta(self, spark: Any) -> None:
        """Turn the folder of Parquet files into a Delta table, in one version."""
        shutil.rmtree(f"{self.folder}/_delta_log", ignore_errors=True)  # of a run that was stopped in the middle of this
        try:
            convert_to_delta(spark, self.folder, struct_of(*(COLUMNS[name] for name in self.asked.question.columns)))
        except Exception as problem:
            raise StoreError(f"{self.folder}: no Delta table could be made of it: {reason(problem)}") from None

    def _manifest(self, notes: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "tool_version": VERSION,
            "store": self.asked.store.name,
            "asked": self.asked.words,
            "columns": [_column(COLUMNS[name]) for name in self.asked.question.columns],
            "messages": sum(note["rows"] for note in notes),
            "bytes": sum(note["bytes"] for note in notes),
            "files": notes,
        }

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise StoreError(f"{problem.filename or self.asked.to}: cannot write: {problem.strerror or problem}") from None


def _column(column: Column) -> dict[str, Any]:
    """Return the manifest's row of a column."""
    return {"name": column.name, "type": column.type, "comment": column.comment}


def _tell(fact: Narrowing) -> None:
    say(narrowing_text(fact), EXPORT)


def file_names(segments: Sequence[MappedFile]) -> list[str]:
    """Return the name of each segment's file: its base offset. A number follows if a store has several of one name."""
    met: Counter[int] = Counter()
    names = []
    for segment in segments:
        met[segment.start] += 1
        twin = f"-{met[segment.start]}" if met[segment.start] > 1 else ""
        names.append(f"{segment.start:020d}{twin}")
    return names


def _worker(
    files: SegmentFiles, order: Sequence[NamedSegment], report: Callable[[int, int], None]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        checksum.trust()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = order[number]
                try:
                    note = {**export_segment(files, part), "name": part.name}
                except StoreError as problem:
                    note = {"problem": str(problem)}
                yield pa.RecordBatch.from_pydict({"note": [json.dumps(note)]})
                report(part.scan.size, 1)

    return work
