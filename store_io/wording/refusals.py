"""Why a broker does not start, in words. Each kind of refusal has one sentence here and no other."""

from __future__ import annotations

from schemas.advice import Refusal, RefusalKind
from schemas.rows import Row
from store_io.base.wording import Sentence

_TEXTS = {
    RefusalKind.FILE_IS_FOLDER: "{path}: a directory, where the broker expects a file of {expected:,} bytes",
    RefusalKind.FILE_LENGTH: "{path}: length {actual:,}, where the broker expects a file of {expected:,} bytes",
    RefusalKind.FILE_NAME: "{path}: the name is not a number",
    RefusalKind.INDEX_IS_FOLDER: "{path}: a directory, where the broker expects an index file",
    RefusalKind.TOPIC_TYPE: "{path}: the topic is of type {expected} (config/topics.json)",
    RefusalKind.TOPIC_NOT_NAMED: (  # the type of such a topic is the default (QueueTypeUtils.getCQType)
        "{path}: config/topics.json does not name this topic, so the broker takes it for one of type ConsumeQueue"
    ),
    RefusalKind.ACCELERATED_WITHOUT_OFFSET: (
        "{path}: accelerated recovery needs logicsPhysicalOffset, which is 0 while physicMsgTimestamp is set"
    ),
    RefusalKind.ACCELERATED_BEYOND_FILE: "{path}: accelerated recovery would begin at position {position}, beyond the file",
    RefusalKind.QUEUE_FILE_EMPTY: "{path}: the queue's last file holds no entry, where correctMinOffset reads its last one",
    RefusalKind.EXT_NO_ROOM: "{path}: no room for a unit's size at {position}, where recovery of the ext file fails",
    RefusalKind.EXT_UNIT_BEYOND: (
        "{path}: the unit at {position} leads past the file's end, where recovery of the ext file fails"
    ),
    RefusalKind.EXT_UNIT_UNWRITTEN: (
        "{path}: the unit at {position}, to which the queue's last ext address leads, is longer than what is written"
    ),
    RefusalKind.LIGHT_OFFSET: ("{path}: the message at physical offset {at} names the LMQ offset {actual!r}, which is no number"),
    RefusalKind.LEDGER_LINE_MISSING: (
        "enableDLegerCommitLog=true without {expected} in broker.conf: the broker ends before it loads its store"
    ),
    RefusalKind.LEDGER_SELF_ID: (
        "dLegerSelfId={actual}: the broker takes what follows its first letter for a number, and ends as it is none"
    ),
    RefusalKind.LEDGER_PEERS: (
        "dLegerPeers={actual}: names no address with a port for this node, dLegerSelfId={expected}, so the broker ends"
    ),
    RefusalKind.LEDGER_AND_CONTROLLER: (
        "enableDLegerCommitLog=true and enableControllerMode=true: the broker ends before it loads its store"
    ),
    RefusalKind.LEDGER_FILE_IS_FOLDER: (
        "{path}: a directory, where DLedger expects a file of {expected:,} bytes: it ends the process"
    ),
    RefusalKind.LEDGER_FILE_LENGTH: (
        "{path}: length {actual:,}, where DLedger expects a file of {expected:,} bytes: it ends the process"
    ),
    RefusalKind.LEDGER_FILES_APART: "{path}: does not begin where {expected} ends, as DLedger demands",
    RefusalKind.LEDGER_ENDS_EARLY: (
        "{path}: the entries end at {at:,}, more than one file before the last data file: DLedger ends the process"
    ),
    RefusalKind.LEDGER_COMMITTED_INDEX: "{path}: committedIndex={actual} is no number, so recovery throws",
    RefusalKind.LEDGER_COMMITTED_UNIT: "the index unit of the committed entry {expected} is in no file, so recovery throws",
    RefusalKind.LEDGER_NO_FILLER: ("{path}: too few bytes are left after its last record for the filler that DLedger writes"),
    RefusalKind.LEDGER_DUPLICATION: (
        "{path}: with duplicationEnable=true load() reads messages from physical offset {at} on, where its committed entries"
        " end, and throws over DLedger's header there; set duplicationEnable=false"
    ),
    RefusalKind.CONTROLLER_MODE: (
        "enableControllerMode=true: a broker of {actual} ends before it loads its store; one of {expected} or newer does not"
    ),
    RefusalKind.CONFIRMED_RECORD: (
        "{path}: load() reads from confirmOffset {expected} on and throws over the record at position {position}: {actual}"
    ),
    RefusalKind.EPOCH_FILE: "{path}: {actual}, so start() throws a NumberFormatException",
    RefusalKind.QUEUE_DATABASE: "{path}: RocksDB does not open the queues' database: {actual}",
    RefusalKind.QUEUE_DATABASE_ELSEWHERE: ("{path}: a database where useSeparateStorePathForRocksdbCQ={expected} expects none"),
    RefusalKind.QUEUE_MARK: "{path}: bad bytes hold the end mark of the queues: {actual}",
    RefusalKind.QUEUE_TRUNCATION: "{path}: truncation of the queues throws: {actual}",
    RefusalKind.DOUBLE_WRITE_NOT_LOADED: "{actual}: combineCQLoadingCQTypes={expected} has no such queues",
    RefusalKind.DOUBLE_WRITE_LIGHT: (
        "combineCQUseRocksdbForLmq=true: it needs queues in RocksDB, and numbers that those in files give"
    ),
    RefusalKind.DOUBLE_WRITE_SELECTIVE: (
        "rocksdbCQSelectiveDoubleWriteEnable=true: it needs queues in files that give the numbers and are read"
    ),
    RefusalKind.DOUBLE_WRITE_WITHOUT_LIGHT: (
        "rocksdbCQDoubleWriteEnable=true: a broker of {actual} ends without combineCQUseRocksdbForLmq=true, after its recovery"
    ),
    RefusalKind.DOUBLE_WRITE_CAST: (
        "{path}: the message at physical offset {at:,} enters light queues, and dispatch throws there: enableMultiDispatch=true"
        " does not go with combineCQPreferCQType=defaultRocksDB"
    ),
    RefusalKind.DOUBLE_WRITE_ENDS_DIFFER: (
        "queue {queue[1]} of topic {queue[0]!r} ends elsewhere in RocksDB than in files: start() throws, as one of the two"
        " gives the queue offsets and the other one is read"
    ),
    RefusalKind.FILES_END_EARLY: (
        "the queues in files, which are read, end at {at:,}, too early for those in RocksDB, which give numbers"
    ),
    RefusalKind.ROCKSDB_ENDS_EARLY: (
        "the queues in RocksDB, which are read, end at {at:,}, too early for those in files, which give numbers"
    ),
    RefusalKind.TIMER_WHEEL_IS_FOLDER: "{path}: a directory, where the broker expects a file",
    RefusalKind.TIMER_WHEEL_LENGTH: "{path}: {actual:,} bytes, where a timer wheel has {expected:,}",
    RefusalKind.CONFIG_FILE: "{path}: neither it nor its .bak can be parsed",
    RefusalKind.CONFIG_VERSION: "{path}: cannot be parsed to compare its version with that of {expected}/",
    RefusalKind.CONFIG_DATABASE_IS_FILE: (
        "{path}: a file where the folder with the tables of config/ should be, which RocksDB does not open"
    ),
    RefusalKind.CONFIG_DATABASE_FAMILIES: "{path}/: a later release's database, with families that this one does not open",
    RefusalKind.CONFIG_DATABASE: "{path}: RocksDB does not open the tables of config/: {actual}",
    RefusalKind.CONFIG_DATABASE_BYTES: "{path}: bad bytes among the tables of config/: {actual}",
    RefusalKind.CONFIG_DATABASE_VERSION: "{path}: bad bytes hold the version of a table of config/: {actual}",
    RefusalKind.CONFIG_DATABASE_VALUE: "{path}/: {actual}",
    RefusalKind.DATABASE_IS_FILE: "{path}: a file where RocksDB needs a folder",
    RefusalKind.DATABASE: "{path}: RocksDB does not open {expected}/: {actual}",
    RefusalKind.COMPACTED_FOLDER_NAME: "{path}: a folder whose name is no queue id",
    RefusalKind.COMPACTED_SETTING: "{path}: compactionCqMappedFileSize is less than one entry",
    RefusalKind.COMPACTED_ENTRIES_ALONE: "{path}: entries without a folder {expected}",
    RefusalKind.COMPACTED_LOG_ALONE: "{path}: messages without a folder {expected}",
    RefusalKind.COMPACTED_NAMES_DIFFER: "{path}: no file of this name in {expected}",
}
_ENDS_BROKER = {
    RefusalKind.CONFIG_FILE, RefusalKind.CONFIG_VERSION, RefusalKind.CONFIG_DATABASE_IS_FILE,
    RefusalKind.CONFIG_DATABASE_FAMILIES, RefusalKind.CONFIG_DATABASE, RefusalKind.CONFIG_DATABASE_BYTES,
    RefusalKind.CONFIG_DATABASE_VERSION, RefusalKind.CONFIG_DATABASE_VALUE, RefusalKind.DATABASE_IS_FILE,
    RefusalKind.DATABASE,
}  # fmt: skip


def refusal_cause(refusal: Refusal) -> Sentence:
    """Return the cause alone, without what the broker does, and without a full stop."""
    words = _TEXTS[refusal.kind].format(
        path=refusal.path, expected=refusal.expected, actual=refusal.actual, position=refusal.position,
        at=refusal.phy_offset, queue=refusal.queue,
    )  # fmt: skip
    return Sentence(words)


def refusal_sentence(refusal: Refusal) -> Sentence:
    """Return the whole sentence, without a full stop."""
    ends = ", so the broker ends" if refusal.kind in _ENDS_BROKER else ""
    return Sentence(f"{refusal_cause(refusal)}{ends}")


def refusal_row(refusal: Refusal | None) -> Row:
    """Return what plan.json says of a refusal, or of a start without one."""
    if refusal is None:
        return {"refusal": None, "refusal_kind": None}
    return {"refusal": str(refusal_sentence(refusal)), "refusal_kind": str(refusal.kind)}
