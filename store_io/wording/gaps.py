"""The words for each cause of a gap (`schemas.advice`), and a gap's row in plan.json and result.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from schemas.advice import Cause, Gap, LedgerRows, LeftOut
from schemas.rows import Row
from store_io.base.wording import count_text
from store_io.wording.refusals import refusal_sentence

_QUICK = "level quick reads what a starting broker reads"
_LATE = "the time limit was reached"
_TOGETHER = "rocksdbCQDoubleWriteEnable=true: the two together are not modelled"
_LINK_OUT = "{path}: a link that leads out of the store"
_ROOT, _LOG, _LEDGER = "storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog"


def gap_text(gap: Gap) -> str:
    """Return the sentence about a gap, without a full stop."""
    words = _WORDS[gap.cause]
    refusal = refusal_sentence(gap.refusal) if gap.refusal is not None else ""
    return words(gap) if callable(words) else words.format(*gap.values, path=gap.path, refusal=refusal)


def distinct(gaps: Iterable[Gap]) -> list[Gap]:
    """Return the gaps without those that would only repeat an earlier one's sentence."""
    told: dict[str, Gap] = {}
    for gap in gaps:
        told.setdefault(gap_text(gap), gap)
    return list(told.values())


def incomplete_texts(gaps: Iterable[Gap]) -> list[str]:
    """Return the sentences about the gaps by which an audit is incomplete, and not about those that are only noted."""
    return [gap_text(gap) for gap in gaps if gap.exit_code]


def gap_rows(gaps: Iterable[Gap]) -> list[Row]:
    """Return the gaps as plan.json and result.json have them."""
    return [
        {"cause": str(gap.cause), "path": gap.path or None, "on_purpose": gap.on_purpose, "text": gap_text(gap)} for gap in gaps
    ]


def log_kept_at(place: str, release: str = "") -> str:
    """Say where a broker keeps its CommitLog. release: the older release whose default the place is; "": broker.conf names it."""
    if release:
        return f"RocketMQ {release} keeps the CommitLog at {place}, as broker.conf names {_ROOT} and no {_LOG}"
    return f"broker.conf keeps the CommitLog at {place}"


def _log_elsewhere(gap: Gap) -> str:
    kept = log_kept_at(*map(str, gap.values))
    return f"{kept}, not in {gap.path}/ of this folder, which has no segment: name it with --{gap.path}"


def _level_quick(gap: Gap) -> str:
    return _files_left_out(gap, _QUICK) if len(gap.values) > 1 else f"not everything was compared: {_QUICK}"


def _time_limit(gap: Gap) -> str:
    left_out = gap.values[0]
    return _files_left_out(gap, _LATE) if left_out == LeftOut.FILES else f"{_LATE}: {_LEFT_OUT[left_out]}"


def _files_left_out(gap: Gap, why: str) -> str:
    counts = [int(value) for value in gap.values[1:]]
    parts = [
        f"{counts[at]:,} of {count_text(counts[at + 1], noun)} ({counts[at + 2]:,} bytes)"
        for at, noun in ((0, "CommitLog segment"), (3, "ConsumeQueue file"), (6, "index file"))
        if counts[at]
    ]
    return f"not read ({why}): {', '.join(parts)}"


def _ledger_large(gap: Gap) -> str:
    rows, count, most = gap.values
    return f"{gap.path}: {count:,} {_LEDGER_ROWS[rows]}; only the first {most:,} were judged"


def _out_of_range(gap: Gap) -> str:
    return f"{gap.path}: a segment with physical offsets {'below 0' if int(gap.values[0]) < 0 else 'beyond 63 bits'}"


def _worker_lost(gap: Gap) -> str:
    files, ending, short = gap.values
    memory = ", as where memory is short" if short else ""
    return f"{files}: could not be read: the process that read it was lost each time ({ending}{memory})"


_LEFT_OUT: Mapping[str | int, str] = {
    LeftOut.LEFTOVERS: "ConsumeQueue entries that lead to no message were not examined",
    LeftOut.DOUBLE_WRITE: "ConsumeQueues in files were not compared with those in RocksDB",
    LeftOut.COMPACTED: "logs of compacted topics were not examined",
    LeftOut.EPOCHS: "the starts of epochs were not looked up in the log",
}
_LEDGER_ROWS: Mapping[str | int, str] = {
    LedgerRows.STRETCHES: "stretches of entries",
    LedgerRows.OTHER_UNITS: "ranges of entries with other index units",
    LedgerRows.UNIT_RUNS: "runs of index units",
}

_WORDS: Mapping[Cause, str | Callable[[Gap], str]] = {
    Cause.LEVEL_QUICK: _level_quick,
    Cause.TIME_LIMIT: _time_limit,
    **dict.fromkeys(
        (
            Cause.ERROR,
            Cause.NOT_A_STORE,
            Cause.NOT_A_FILE,
            Cause.UNREADABLE,
            Cause.DENIED,
            Cause.UNREACHED,
            Cause.CHANGED_WHILE_READ,
            Cause.TEMPORARY_FILE_LOST,
            Cause.STOPPED,
            Cause.WRONG_ARGUMENTS,
        ),
        "{0}",
    ),
    Cause.FILE_FOR_FOLDER: "{path}: a file of {0:,} bytes where a folder is expected; not opened",
    Cause.NOT_LISTED: "{path}: cannot be read or listed",
    Cause.NOT_REGULAR: "{path}: not a file or a directory; not opened",
    Cause.LINK_OUT: _LINK_OUT + " or in a circle; not followed",
    Cause.PART_LINK_OUT: _LINK_OUT + "; name its place with --{path}",
    Cause.DATABASE_LINK_OUT: _LINK_OUT + "; not followed",
    Cause.TIMER_FILE_NOT_OPENED: "{path}: no regular file of this copy: it was not opened",
    Cause.LOG_ELSEWHERE: _log_elsewhere,
    Cause.LEDGER_LOG_ELSEWHERE: f"broker.conf keeps the data files of DLedger at {{0}} ({_LEDGER}), and this folder has none:"
    " copy them into {1} of the copy",
    Cause.APPEARED: "{path}: appeared during the audit",
    Cause.VANISHED: "{path}: vanished during the audit",
    Cause.CHANGED: "{path}: changed during the audit ({0} bytes before, {1} after)",
    Cause.LISTED_OTHERWISE: "{path}: {0} bytes by Spark's listing, {1} by ours",
    Cause.CONFIG_NO_FILE: "{path}: {0}, not a file: its content is not known",
    Cause.CONFIG_TEXT_UNKNOWN: "{path}: not what a broker writes, and what this release makes of it is not known",
    Cause.CONFIG_VALUE_UNKNOWN: "{path}/: {0}",
    Cause.CONFIG_TABLE_LARGE: "{path}/: more than is read of a table of config/",
    Cause.CONFIG_TABLE_CUT: "{path}/: cannot be read to its end, and what a start takes of it is not known",
    Cause.STORE_TYPE: "storeType={0}: only default and defaultRocksDB are modelled",
    Cause.ROCKSDB_BESIDE_FILES: "{path}/ holds RocksDB files ({0}): ConsumeQueues in RocksDB are modelled with"
    " storeType=defaultRocksDB alone",
    Cause.ROCKSDB_WITHOUT_LOG: "{path}/ holds queues in RocksDB, and there is no CommitLog: not modelled",
    Cause.ROCKSDB_BAD_ENDS: "{path}: bad bytes among the ends of the queues ({1}): not modelled, {2}; without the files of {0}/"
    " the copy can be audited whole",
    Cause.ROCKSDB_COMPACTS_BAD_BYTES: "{path}: bad bytes in tables that RocksDB compacts when a broker starts: not modelled;"
    " a copy without the files of {0}/ can be audited whole, and a repair rebuilds them",
    Cause.ROCKSDB_TRUNCATION_THROWS: "{refusal}. What the broker does then is not modelled",
    Cause.ROCKSDB_TRUNCATES_BY_TOPICS: "{0} truncates queues by their topics: not modelled with bad bytes among the"
    " ends of queues",
    Cause.ROCKSDB_TOPICS_UNKNOWN: "{path}/: no table of topics could be read, and {0} truncates the queues of topics that"
    " it knows alone",
    Cause.ROCKSDB_BAD_OFFSET: "{refusal}: what RocksDB gets then is not modelled",
    Cause.ROCKSDB_RECHECK: "recheckReputOffsetFromCq=true with ConsumeQueues that are read in RocksDB: where a start begins to"
    " dispatch again depends on which queues the broker's services ask for before it, which is not modelled",
    Cause.DOUBLE_WRITE_LEDGER: f"enableDLegerCommitLog=true beside {_TOGETHER}",
    Cause.DOUBLE_WRITE_RECHECK: f"duplicationEnable=true and recheckReputOffsetFromCq=true beside {_TOGETHER}",
    Cause.DOUBLE_WRITE_SELECTIVE: "rocksdbCQSelectiveDoubleWriteEnable=true: that topics of type LITE alone are in RocksDB is not"
    " modelled",
    Cause.DOUBLE_WRITE_BATCH: f"topics of type BatchCQ beside {_TOGETHER}",
    Cause.DOUBLE_WRITE_UNCOMMITTED: "readUnCommitted=true beside rocksdbCQDoubleWriteEnable=true: start() compares the ends of"
    " both kinds of queues while messages beyond confirmOffset are put into them, which is not modelled",
    Cause.DOUBLE_WRITE_RACE: "a race inside the broker decides whether it starts; perhaps {refusal}: not modelled",
    Cause.UNCOMMITTED_DUPLICATION: "readUnCommitted=true and duplicationEnable=true with ConsumeQueues in RocksDB: not modelled",
    Cause.CONTROLLER_DUPLICATION: "duplicationEnable=true beside enableControllerMode=true: such a broker has no replication"
    " service, so it never becomes master or slave, and serves nobody; set duplicationEnable=false; what a start does with it is"
    " not modelled",
    Cause.CONTROLLER_RECHECK: "recheckReputOffsetFromCq=true beside enableControllerMode=true: the two together are not modelled"
    " before 5.1.1",
    Cause.CONTROLLER_LEDGER: "enableDLegerCommitLog=true and enableControllerMode=true: the two together are not modelled before"
    " 5.1.1",
    Cause.LEDGER_SEVERAL: "{0}: logs of several DLedger nodes; name with dLegerSelfId in broker.conf whose is meant",
    Cause.LEDGER_DATA_PATHS: f"{_LEDGER}={{0}}: data files outside of the node's own folder are not read",
    Cause.LEDGER_ROCKSDB: "ConsumeQueues in RocksDB beside a DLedger CommitLog: not modelled before 5.3.2",
    Cause.LEDGER_OLD_LOG: "{path}/: a log from before DLedger, with index or transactions in rocksdbstore/: not modelled",
    Cause.LEDGER_SETTING: "{0}=true beside a DLedger CommitLog and ConsumeQueues in RocksDB: not modelled",
    Cause.TIERED: "messageStorePlugIn: load() opens a tiered store, too, and whether it can is not modelled",
    Cause.SEGMENT_OUT_OF_RANGE: _out_of_range,
    Cause.LEDGER_LARGE: _ledger_large,
    Cause.INDEX_SLOTS: "{path}: there is not enough memory for its {0:,} slots (maxHashSlotNum)",
    Cause.LOSS_NOT_COUNTED: "could not determine message by message what a start would lose",
    Cause.AUDIT_FAULT: "an error in this program ended the audit: {0}",
    Cause.TASK_FAULT: "a fault of this program stopped a scan: {0}",
    Cause.TASK_WITHOUT_RESULT: "a task gave no result",
    Cause.WORKER_LOST: _worker_lost,
    Cause.COPIES_NOT_COMPARED: "the copies of this log could not be compared: {0}",
}
