"""Declares the Delta tables: what a row says, and each column's type, comment (with unit and key) and source. No Spark.

All else is made from here: the Delta tables, their Arrow batches, the rows (`Table.row`), and the documents' list of columns.

The tables of results are partitioned by `month`, datasets by `run_id` and `store`. A run counts only once its rows are in `runs`,
which are written last.
Types are those of Spark's own schema JSON ("string", "long", ...), so that they serve Delta and Arrow alike.
Times of a store come twice: as timestamps, and in ms since 1970-01-01 UTC as stored, as a damaged one may lie outside of what a
timestamp can hold. A number that the audit does not know is null, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

ColumnType = str | dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column.

    comment: meaning, unit, and whether it is part of the key.
    of: the field of the row's subject that has the value (`Table.row`); empty: the field of the column's own name.
    ms: the column of which it is the same time.
    """

    name: str
    type: ColumnType
    comment: str
    of: str = ""
    ms: str = ""


class Table(tuple[Column, ...]):
    """A table's columns in their order, without run_id and its partition. about: what a row is, in a sentence or two.

    After each column of a time in ms comes the same time as a timestamp.
    """

    about: str
    _parts: dict[str, tuple[list[str], Any, Any]]

    def __new__(cls, about: str, *columns: Column) -> Table:
        """Add a timestamp after each column of ms."""
        table = super().__new__(cls, (column for each in columns for column in (each, *_as_timestamp(each))))
        parts: dict[str, tuple[list[str], list[str]]] = {}
        for column in table:
            if not column.ms and column not in OF_RUN:
                first, _, rest = (column.of or column.name).partition(".")
                names, fields = parts.setdefault(first if rest else "", ([], []))
                names.append(column.name)
                fields.append(rest or first)
        table.about = about
        table._parts = {part: (names, attrgetter(*of, of[0]), itemgetter(*of, of[0])) for part, (names, of) in parts.items()}
        return table

    def row(self, subject: object) -> dict[str, Any]:
        """Return the row of a subject: a value for each column, but for those of the run and those that are the same time.

        subject: has the fields that the columns name in `of`. PART.FIELD is a field of its part, an object or a dict; as long as
        the part is None, the column is null. PART.FIELD.FIELD is a field of an object in the part.
        """
        row: dict[str, Any] = {}
        for part, (names, of_object, of_dict) in self._parts.items():
            held: Any = getattr(subject, part) if part else subject
            if held is None:
                row |= dict.fromkeys(names)
            else:  # the getters give the first value a second time, at the end: always a tuple
                row |= zip(names, (of_dict if isinstance(held, dict) else of_object)(held), strict=False)
        return row

    def of_parts(self, *parts: str) -> tuple[str, ...]:
        """Return the names of the columns whose values come from these parts of the subject."""
        return tuple(name for part, (names, *_) in self._parts.items() if part in parts for name in names)


def _as_timestamp(column: Column) -> tuple[Column, ...]:
    if not column.name.endswith("_ms"):
        return ()
    name = column.name.removesuffix("_ms")
    comment = f"The time {column.name} as a timestamp, UTC; null also outside of the years 1970 to 2261."
    return (Column(name, "timestamp", comment, ms=column.name),)


def array_of(element: ColumnType) -> ColumnType:
    """Return an array without nulls."""
    return {"type": "array", "elementType": element, "containsNull": False}


def struct_of(*columns: Column) -> dict[str, Any]:
    """Return a struct; its fields keep their comments."""
    return {"type": "struct", "fields": [field_json(column) for column in columns]}


def field_json(column: Column) -> dict[str, Any]:
    """Return one column as Spark's schema JSON has it."""
    return {"name": column.name, "type": column.type, "nullable": True, "metadata": {"comment": column.comment}}


RUN_ID = Column("run_id", "string", "Key: the run, as --run-id names it.")
MONTH = Column("month", "string", "Partition: month in which the run began, UTC, such as 2026-11.")
STORE = Column(
    "store",
    "string",
    "Key: the store, in every run the same: its name in the fleet file, or else its location; store_from says which.",
)
STORE_FROM = Column(
    "store_from",
    "string",
    "What `store` is: name or location; null in runs of earlier versions, in which it is the store's folder under --out.",
)
NAME, LOCATION = "name", "location"  # of store_from
RUN_STARTED = Column("run_started_at", "timestamp", "When the run began, UTC, as started_at in runs.")
OF_RUN = (STORE, STORE_FROM, RUN_STARTED)
_EXTENT = struct_of(
    Column("kind", "string", "message, filler, unwritten or damaged."),
    Column("start", "long", "First byte in the segment."),
    Column("end", "long", "Byte after the last one in the segment."),
    Column("message_count", "long", "Messages in it."),
    Column("plausible", "boolean", "Found after damage; no local check can prove its boundaries."),
    Column("reason", "string", "Why a damaged one is damaged."),
)
_QUEUE_FILE = struct_of(
    Column("file", "string", "Path below the store."),
    Column("size_bytes", "long", "Length of the file."),
    Column("digest", "string", "Digest over all bytes."),
)
_COMPARED = struct_of(
    Column("file", "string", "Path below the store."),
    Column("entries", "long", "Entries up to the last one that is not zero."),
    Column("digest", "string", "Digest over these entries: a file that has only grown has the same over as many."),
)
_SETTING = struct_of(
    Column("key", "string", "Name, as in broker.conf."),
    Column("value", "string", "Value that applies."),
    Column("from", "string", "broker.conf, default or inferred (from the files' own sizes)."),
)

RUNS = Table(
    "One store in one run: what a start of the copy would do, and what was read. Written last: rows of "
    "other tables count once their run is here.",
    STORE,
    STORE_FROM,
    Column("started_at", "timestamp", "When the run began, UTC.", of="run.started_at"),
    Column("finished_at", "timestamp", "When all stores of the run had been audited, UTC.", of="run.finished_at"),
    Column(
        "outcome_rank",
        "integer",
        "How bad exit_code is, to sort by: 3 damaged, messages lost or no start; 2 incomplete; 1 derived data differ; 0"
        " consistent.",
    ),
    Column("folder", "string", "The store's folder under --out.", of="outcome.name"),
    Column("location", "string", "Where the copy lies, as it was named.", of="outcome.location_text"),
    Column("replica_group", "string", "Stores with the same name here are copies of one broker's log."),
    Column("out", "string", "Where the run's files went, its --out; a later run into the same folder replaces them."),
    Column("release", "string", "RocketMQ release whose rules were applied.", of="outcome.release"),
    Column(
        "exit_code",
        "integer",
        "0 consistent, 3 incomplete, 10 derived data differ, 20 damaged, messages lost or no start.",
        of="outcome.exit_code",
    ),
    Column("complete", "boolean", "Whether all was read and is modelled.", of="outcome.complete"),
    Column("incomplete", array_of("string"), "Why not, in sentences.", of="outcome.incomplete"),
    Column("gaps", array_of("string"), "Why not, by cause, each cause once; also causes that are only noted."),
    Column("level", "string", "full, or quick: only what this release would read when it starts.", of="outcome.covered.level"),
    Column(
        "unread_segments",
        "long",
        "CommitLog segments that were not fully read, in this run or an earlier one that counts.",
        of="unread.segments",
    ),
    Column("unread_bytes", "long", "Their length, bytes.", of="unread.segment_bytes"),
    Column(
        "reused_segments",
        "long",
        "Segments that were not read again because they are as a run before has verified them.",
        of="unread.reused_segments",
    ),
    Column("verdict", "string", "The headline of the answer, and its reasons."),
    Column(
        "safety",
        "string",
        "Whether the copy is safe to start: stop, gone, unknown, refuses, diverged, lacks, care, rebuild, empty or safe,"
        " as result.json's schema explains them; null in runs of versions that did not write it.",
    ),
    Column(
        "answer",
        "string",
        "What to do with the copy: not_known, copy_again, other_copy, change, repair, start_mends, empty or start, as"
        " result.json's schema explains them; null in runs of versions that did not write it.",
    ),
    Column("steps", array_of("string"), "What to do in which order: the names of result.json's steps; null likewise."),
    Column(
        "first_day_at",
        "timestamp",
        "The start, UTC, to which the next five belong: what the broker does in the day after it, as plan.json's first_day. They"
        " are null where that is not known, and in runs of versions that did not write them.",
        of="day.at",
    ),
    Column(
        "first_day_segments", "long", "Segments that it deletes, at once or in the next hour of deleteWhen.", of="day.segments"
    ),
    Column("first_day_messages", "long", "Valid messages in them.", of="day.messages"),
    Column("first_day_timers_lost", "long", "Timer messages that go with them before they are due.", of="day.timers_lost"),
    Column("first_day_timers_never", "long", "Timer messages that are never delivered.", of="day.timers_never"),
    Column("first_day_registers", "boolean", "Whether it registers; false: it stays fenced, or ends.", of="day.registers"),
    Column("starts", "boolean", "Whether this release would start; null where that is not known.", of="effect.starts"),
    Column("refusal", "string", "Why it would not."),
    Column("exit_kind", "string", "clean or unclean: whether the abort marker is absent.", of="effect.exit"),
    Column("start_segment", "string", "Name of the segment at which its recovery begins to read.", of="started.start_segment"),
    Column("stop_reason", "string", "Why its recovery ends; values in schemas/finding_codes.py.", of="started.stop_reason"),
    Column("min_phy_offset", "long", "CommitLog minimum after recovery, physical offset.", of="started.min_phy_offset"),
    Column("truncate_at", "long", "CommitLog end after recovery, physical offset.", of="started.truncate_at"),
    Column(
        "log_end",
        "long",
        "Physical offset after the last message of the copy; null without one, or where it was not read.",
        of="outcome.holds.log_end",
    ),
    Column(
        "lacks_messages",
        "long",
        "Messages that other copies of its group hold and it lacks; null where none was compared.",
        of="group.lacks_messages",
    ),
    Column(
        "diverged",
        "boolean",
        "Whether another copy of its group holds other messages at the same physical offsets.",
        of="group.diverged",
    ),
    Column(
        "lost_messages",
        "long",
        "Valid messages of the copy that consumers would not get after a start; null where that is not known, as if nothing"
        " starts.",
        of="loss.messages",
    ),
    Column("lost_bytes", "long", "Their bytes.", of="loss.bytes"),
    Column("messages", "long", "Valid messages in the copy.", of="listed.messages"),
    Column("first_store_time_ms", "long", "Earliest store time among them, ms since 1970.", of="times.first_store_time"),
    Column("last_store_time_ms", "long", "Latest store time among them, ms since 1970.", of="times.last_store_time"),
    Column("segment_count", "long", "CommitLog segments.", of="listed.segment_count"),
    Column("damaged_extents", "long", "Damaged byte ranges in them.", of="listed.damaged_extents"),
    Column("notes", "long", "Findings of severity note.", of="counted.note"),
    Column("rebuildable", "long", "Findings of severity rebuildable.", of="counted.rebuildable"),
    Column("losses", "long", "Findings of severity loss.", of="counted.loss"),
    Column("findings_dropped", "long", "Disagreements beyond the bound on findings, counted only.", of="counted.dropped"),
    Column("settings", array_of(_SETTING), "Settings that apply, by key."),
    Column("bytes_read", "long", "Bytes read.", of="outcome.cost.bytes_read"),
    Column("seconds", "double", "Duration of this store's audit, s.", of="outcome.cost.seconds"),
    Column("tool_version", "string", "Version of this tool.", of="run.tool_version"),
    Column(
        "rules_version",
        "string",
        "Version of its rules: other rules may judge the same bytes differently.",
        of="run.rules_version",
    ),
)

SEGMENTS = Table(
    "One CommitLog segment of a store in one run.",
    *OF_RUN,
    Column("file", "string", "Key: path below the store.", of="path"),
    Column("base_offset", "long", "Physical offset of its first byte, from its name."),
    Column("size_bytes", "long", "Length of the file.", of="size"),
    Column("modified_ns", "long", "Modification time, ns since 1970."),
    Column("modified_at", "timestamp", "The same as a timestamp, UTC.", ms="modified_ns"),
    Column(
        "digest", "string", "Digest over all bytes, of the run that read them last; null where none has.", of="contents.digest"
    ),
    Column("edge_digest", "string", "Digest over its length and its first and last 4 KiB, as they are in this run."),
    Column("bytes_read", "long", "Bytes read of it in this run."),
    Column(
        "verified_run",
        "string",
        "Run that read all its bytes; length, time and edges have not changed since.",
        of="known.verified_run",
    ),
    Column("verified_at", "timestamp", "When that run began; null where no run has.", of="known.verified_at"),
    Column(
        "first_run",
        "string",
        "Earlier run that first read all of it with this modification time, when a later segment held messages.",
        of="first.run_id",
    ),
    Column("first_digest", "string", "Digest of that run; if it is another, the finding is segment_changed.", of="first.digest"),
    Column("findings", "long", "Findings above note on this file, of the run that read it."),
    Column("problem", "string", "Why it could not be read; everything else is then void."),
    Column("broker_reads", "boolean", "Whether this release's recovery reads it."),
    Column("stop_kind", "string", "How a scan of it ends: end (go to the next one), bad or half (stop).", of="stop.kind"),
    Column("stop_position", "long", "Where, byte in the segment.", of="stop.position"),
    Column("stop_reason", "string", "Why; values in schemas/finding_codes.py.", of="stop.reason"),
    Column("wrote_after_load", "long", "Bytes that count as written after load; null if it is deleted or nothing starts."),
    Column("messages", "long", "Valid messages in it.", of="contents.messages"),
    Column("plausible_messages", "long", "Those of them that were found after damage.", of="contents.plausible_messages"),
    Column(
        "first_store_time_ms",
        "long",
        "Earliest store time, ms since 1970; null without a message.",
        of="contents.first_store_time",
    ),
    Column("last_store_time_ms", "long", "Latest store time, ms since 1970.", of="contents.last_store_time"),
    Column(
        "message_bytes", "long", "Bytes of messages. The four kinds of bytes add up to the size.", of="contents.message_bytes"
    ),
    Column("filler_bytes", "long", "Bytes of fillers.", of="contents.filler_bytes"),
    Column("unwritten_bytes", "long", "Bytes never written, zeros.", of="contents.unwritten_bytes"),
    Column("damaged_bytes", "long", "Bytes that are damaged.", of="contents.damaged_bytes"),
    Column("extents", array_of(_EXTENT), "Byte ranges by kind, ascending; they tile the file.", of="contents.extents"),
)

QUEUES = Table(
    "One queue of a store in one run: its ConsumeQueue held against the messages of the CommitLog, and what a start loses of it.",
    *OF_RUN,
    Column("topic", "string", "Key: topic."),
    Column("queue_id", "integer", "Key: queue id."),
    Column("batch", "boolean", "Whether it is a BatchConsumeQueue: its offsets count messages, not entries."),
    Column("lmq", "boolean", "Whether it is a multi-dispatch (LMQ) queue."),
    Column("file_count", "long", "ConsumeQueue files on disk."),
    Column("bytes_read", "long", "Bytes read of them."),
    Column("problem", "string", "Why it could not be fully read."),
    Column("compared", array_of(_COMPARED), "Its files' entries, as they were compared; null at the level quick."),
    Column("disk_entries", "long", "Entries on disk that are not zero.", of="disk.entries"),
    Column("disk_end", "long", "Queue offset after the last entry on disk.", of="disk.end"),
    Column("log_messages", "long", "Messages of the CommitLog that belong to it."),
    Column("log_first_offset", "long", "Queue offset of the first of them; null without one.", of="log.first_offset"),
    Column("log_end_offset", "long", "Queue offset after the last of them.", of="log.end_offset"),
    Column("first_store_time_ms", "long", "Store time of the first of them, ms since 1970.", of="log.first_store_time"),
    Column("last_store_time_ms", "long", "Store time of the last of them, ms since 1970.", of="log.last_store_time"),
    Column("equal", "long", "Messages whose entry is right.", of="both.equal"),
    Column("shifted", "long", "Messages whose entry is at another queue offset.", of="both.shifted"),
    Column("wrong", "long", "Messages whose entry has a wrong size or tags code.", of="both.wrong"),
    Column("missing", "long", "Messages without an entry.", of="both.missing"),
    Column("unexpected", "long", "Entries that lead to no message of this queue.", of="both.unexpected"),
    Column(
        "load_min_offset", "long", "Minimum offset after load; null if nothing starts or the queue is gone.", of="load.min_offset"
    ),
    Column("load_max_offset", "long", "Maximum offset after load, half-open.", of="load.max_offset"),
    Column("load_max_phy_offset", "long", "Physical offset that the queue reaches after load.", of="load.max_phy"),
    Column("dispatch_min_offset", "long", "Minimum offset after start() has caught up.", of="dispatch.min_offset"),
    Column("dispatch_max_offset", "long", "Maximum offset after start() has caught up.", of="dispatch.max_offset"),
    Column("dispatch_max_phy_offset", "long", "Physical offset that the queue reaches then.", of="dispatch.max_phy"),
    Column(
        "lost_messages",
        "long",
        "Valid messages of this queue that consumers would not get after a start; null where that is not known, as if nothing"
        " starts.",
        of="loss.messages",
    ),
    Column("lost_bytes", "long", "Their bytes.", of="loss.bytes"),
    Column(
        "lost_first_store_time_ms",
        "long",
        "Earliest store time among them, ms since 1970; null without one.",
        of="lost.first_store_time",
    ),
    Column("lost_last_store_time_ms", "long", "Latest store time among them, ms since 1970.", of="lost.last_store_time"),
    Column("files", array_of(_QUEUE_FILE), "Its files on disk that were fully read, ext files too, by name."),
)

INDEX_FILES = Table(
    "One index file of a store in one run.",
    *OF_RUN,
    Column("file", "string", "Key: path below the store.", of="summary.path"),
    Column("size_bytes", "long", "Length of the file.", of="summary.size"),
    Column("digest", "string", "Digest over all bytes.", of="summary.digest"),
    Column("bytes_read", "long", "Bytes read of it.", of="summary.bytes_read"),
    Column("problem", "string", "Why it could not be read."),
    Column("begin_time_ms", "long", "Store time of the first message, ms since 1970, as stored.", of="header.begin_timestamp"),
    Column("end_time_ms", "long", "Store time of the last message, ms since 1970, as stored.", of="header.end_timestamp"),
    Column("begin_phy_offset", "long", "Physical offset of the first message, as stored.", of="header.begin_phy_offset"),
    Column("end_phy_offset", "long", "Physical offset of the last message, as stored.", of="header.end_phy_offset"),
    Column("hash_slot_count", "long", "Slots in use, as stored.", of="header.hash_slot_count"),
    Column("index_count", "long", "Number of the next entry, as stored.", of="header.index_count"),
    Column("entries", "long", "Entries in it.", of="header.entries"),
    Column("findings", "long", "Findings on this file."),
    Column("kept", "boolean", "Whether it is still there after load; null if nothing starts."),
)

FINDINGS = Table(
    "One finding of a store in one run, as a line of findings.jsonl.",
    *OF_RUN,
    Column("number", "long", "Key: place in findings.jsonl, from 0."),
    Column("code", "string", "Stable code; meaning in schemas/finding_codes.py."),
    Column("severity", "string", "note, rebuildable or loss."),
    Column("file", "string", "Path below the store; a missing file's is the one that it would have; null if none is to blame."),
    Column("start", "long", "First byte in the file; null where the whole file is concerned."),
    Column("end", "long", "Byte after the last one."),
    Column("phy_offset", "long", "Physical offset of the message concerned."),
    Column("topic", "string", "Topic concerned."),
    Column("queue_id", "integer", "Queue id concerned."),
    Column("queue_offset", "long", "Queue offset concerned."),
    Column("expected", "string", "What should be there."),
    Column("actual", "string", "What is there."),
    Column("message", "string", "The finding as a sentence."),
    Column("next", "string", "What to do about it."),
    Column("count", "long", "Neighbouring ones of one code and cause that were folded into this one."),
)

PLAN_STEPS = Table(
    "What a start leaves of one file of a store: a row of `steps` in plan.json.",
    *OF_RUN,
    Column("number", "long", "Key: place in `steps` of plan.json (what a start leaves, not a repair's steps), from 0."),
    Column("action", "string", "keep, truncate, delete or rebuild."),
    Column("file", "string", "Path below the store."),
    Column("start", "long", "First byte concerned; null: the whole file."),
    Column("end", "long", "Byte after the last one concerned."),
    Column("reason", "string", "Why."),
    Column("lost_messages", "long", "Valid messages that the step gives up."),
    Column("lost_bytes", "long", "Their bytes."),
)

REPLICA_PARTS = Table(
    "One range of the log that a copy lacks and another copy of its group has.",
    *OF_RUN,
    Column("holder", "string", "Key: the copy of the same group that has what `store` lacks, named in the same way."),
    Column("start", "long", "Key: physical offset of the first of them.", of="part.start"),
    Column("end", "long", "Physical offset after the last of them.", of="part.end"),
    Column("replica_group", "string", "The group."),
    Column(
        "other_has",
        "string",
        "What the store has in their place: beyond (its log ends before), missing (no file), unwritten, damaged, filler,"
        " disputed (the same message with other bytes) or other (other messages).",
        of="part.other_has",
    ),
    Column("messages", "long", "How many they are.", of="part.messages"),
    Column("bytes", "long", "Their bytes.", of="part.bytes"),
    Column("first_store_time_ms", "long", "Earliest store time among them, ms since 1970.", of="part.first_store_time"),
    Column("last_store_time_ms", "long", "Latest store time among them, ms since 1970.", of="part.last_store_time"),
)

TABLES: dict[str, Table] = {
    "segments": SEGMENTS,
    "queues": QUEUES,
    "index_files": INDEX_FILES,
    "findings": FINDINGS,
    "plan_steps": PLAN_STEPS,
    "replica_parts": REPLICA_PARTS,
    "runs": RUNS,
}
"""Table -> its columns without run_id, in the order in which they are written."""

# ---- record-level datasets, written when asked for -----------------------------------------------------------------

_PLAUSIBLE = Column("plausible", "boolean", "Found after damage: no local check can prove where this message begins.")

DATASET_MESSAGES = Table(
    "One valid message of a store in one run that was asked to write them.",
    Column("segment", "long", "Base offset of the segment, physical offset."),
    Column("phy_offset", "long", "Key: physical offset of the message's first byte."),
    Column("total_size", "integer", "Bytes of the whole message."),
    Column("topic", "string", "Topic."),
    Column("queue_id", "integer", "Queue id."),
    Column("queue_offset", "long", "Entry number in its ConsumeQueue, as stored."),
    Column("store_time_ms", "long", "The broker's time, ms since 1970.", of="store_time"),
    Column("born_time_ms", "long", "The producer's time, ms since 1970.", of="born_time"),
    Column("tags", "string", "Tags; null without."),
    Column("keys", "string", "Keys as sent, separated by spaces; null without."),
    Column("unique_key", "string", "The client's unique key; null without."),
    Column(
        "tags_code", "long", "What its ConsumeQueue entry holds: hash of the tags, or a delayed message's deliver time in ms."
    ),
    Column("sys_flag", "integer", "Flag bits: transaction type, compression, IPv6 hosts, batch."),
    Column("flag", "integer", "The producer's own flag."),
    Column("body_size", "integer", "Bytes of the body as stored.", of="body_len"),
    Column("body_crc", "integer", "CRC-32 of the body without its top bit, as stored; it fits."),
    Column("properties_size", "integer", "Bytes of the properties.", of="props_len"),
    Column("reconsume_times", "integer", "How often it was consumed in vain."),
    Column("prepared_offset", "long", "Transactions: physical offset of the prepared message."),
    Column("batch_base", "long", "Queue offset of the first message in an inner batch; else the queue offset."),
    Column("batch_count", "integer", "Messages in an inner batch; else 1."),
    _PLAUSIBLE,
)

DATASET_CONSUMEQUEUE = Table(
    "One ConsumeQueue entry that dispatch makes of a store's messages.",
    Column("topic", "string", "Key: topic of the queue."),
    Column("queue_id", "integer", "Key: queue id."),
    Column("queue_offset", "long", "Key: entry number; a BatchConsumeQueue's: offset of the first message."),
    Column("phy_offset", "long", "Physical offset of the message."),
    Column("size", "integer", "Bytes of the message.", of="total_size"),
    Column("tags_code", "long", "Hash of the tags, or a delayed message's deliver time in ms."),
    Column("store_time_ms", "long", "Store time of the message, ms since 1970.", of="store_time"),
    Column("message_count", "integer", "Messages of this entry: more than 1 in a BatchConsumeQueue only."),
    Column("kind", "string", "queue, batch (a BatchConsumeQueue) or lmq (a multi-dispatch queue)."),
    _PLAUSIBLE,
)

DATASET_INDEX = Table(
    "One index entry that dispatch makes of a store's messages.",
    Column("phy_offset", "long", "Key: physical offset of the message."),
    Column("number", "integer", "Key: place among the message's entries, from 0."),
    Column("key_hash", "integer", "Hash that the entry holds."),
    Column("topic", "string", "Topic of the message."),
    Column("key", "string", "The key."),
    Column("kind", "string", "unique, key or tag (since 5.4.0)."),
    Column("store_time_ms", "long", "Store time of the message, ms since 1970."),
    _PLAUSIBLE,
)

DATASETS: dict[str, Table] = {
    "messages": DATASET_MESSAGES,
    "consumequeue": DATASET_CONSUMEQUEUE,
    "index": DATASET_INDEX,
}
"""What every valid message of the copy is, and the entries that dispatch makes of it: partitioned by run_id and store."""
