"""Why an audit is incomplete, or a file not judged: causes as an enum, and one table of what each cause means for an audit.

The words are in `store_io.wording.gaps`. A cause's text is a key of plan.json, result.json and the tables: it never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from schemas.advice import Refusal


class Cause(StrEnum):
    """Why something is a gap. The comment of a cause lists the values of its gaps; `path` is the file or folder concerned."""

    # Left out on request.
    LEVEL_QUICK = "level_quick"  # as TIME_LIMIT with LeftOut.FILES; none if all files were read
    TIME_LIMIT = "time_limit"  # a LeftOut; of FILES then (unread, all, bytes) of segments, queue files, index files

    # A read failed: the error's own text.
    ERROR = "error"
    NOT_A_STORE = "not_a_store"
    NOT_A_FILE = "not_a_file"  # no regular file, or one that is too large for its kind
    UNREADABLE = "unreadable"
    DENIED = "denied"
    UNREACHED = "unreached"
    CHANGED_WHILE_READ = "changed_while_read"
    TEMPORARY_FILE_LOST = "temporary_file_lost"
    STOPPED = "stopped"  # why the whole run was stopped
    WRONG_ARGUMENTS = "wrong_arguments"

    # A name was not opened.
    FILE_FOR_FOLDER = "file_for_folder"  # its bytes
    NOT_LISTED = "not_listed"
    NOT_REGULAR = "not_regular"
    LINK_OUT = "link_out"
    PART_LINK_OUT = "part_link_out"
    DATABASE_LINK_OUT = "database_link_out"
    TIMER_FILE_NOT_OPENED = "timer_file_not_opened"

    # The log is kept elsewhere.
    LOG_ELSEWHERE = "log_elsewhere"  # the place; for the default of an older release that release, else ""
    LEDGER_LOG_ELSEWHERE = "ledger_log_elsewhere"  # the place; the folder into which it belongs

    # The copy changed.
    APPEARED = "appeared"
    VANISHED = "vanished"
    CHANGED = "changed"  # bytes before, after
    LISTED_OTHERWISE = "listed_otherwise"  # bytes by Spark, by us

    # What a file of config/ holds is not known.
    CONFIG_NO_FILE = "config_no_file"  # the kind of the name
    CONFIG_TEXT_UNKNOWN = "config_text_unknown"
    CONFIG_VALUE_UNKNOWN = "config_value_unknown"  # what is wrong with which value
    CONFIG_TABLE_LARGE = "config_table_large"
    CONFIG_TABLE_CUT = "config_table_cut"

    # What is there is not modelled.
    STORE_TYPE = "store_type"  # the setting's value
    ROCKSDB_BESIDE_FILES = "rocksdb_beside_files"  # names of its files
    ROCKSDB_WITHOUT_LOG = "rocksdb_without_log"
    ROCKSDB_BAD_ENDS = "rocksdb_bad_ends"  # the folder; the reason; why not modelled
    ROCKSDB_COMPACTS_BAD_BYTES = "rocksdb_compacts_bad_bytes"  # the folder
    ROCKSDB_TRUNCATION_THROWS = "rocksdb_truncation_throws"  # the queue and what is thrown
    ROCKSDB_TRUNCATES_BY_TOPICS = "rocksdb_truncates_by_topics"  # the release
    ROCKSDB_TOPICS_UNKNOWN = "rocksdb_topics_unknown"  # the release
    ROCKSDB_BAD_OFFSET = "rocksdb_bad_offset"  # what is wrong with which message's offset
    ROCKSDB_RECHECK = "rocksdb_recheck"
    DOUBLE_WRITE_LEDGER = "double_write_ledger"
    DOUBLE_WRITE_RECHECK = "double_write_recheck"
    DOUBLE_WRITE_SELECTIVE = "double_write_selective"
    DOUBLE_WRITE_BATCH = "double_write_batch"
    DOUBLE_WRITE_UNCOMMITTED = "double_write_uncommitted"
    DOUBLE_WRITE_RACE = "double_write_race"  # over what the broker perhaps ends
    UNCOMMITTED_DUPLICATION = "uncommitted_duplication"
    CONTROLLER_DUPLICATION = "controller_duplication"
    CONTROLLER_RECHECK = "controller_recheck"
    CONTROLLER_LEDGER = "controller_ledger"
    LEDGER_NOT_NAMED = "ledger_not_named"
    LEDGER_SEVERAL = "ledger_several"  # the folders
    LEDGER_WITHOUT_NODE = "ledger_without_node"
    LEDGER_OTHER_NODE = "ledger_other_node"
    LEDGER_DATA_PATHS = "ledger_data_paths"  # the setting's value
    LEDGER_ROCKSDB = "ledger_rocksdb"
    LEDGER_OLD_LOG = "ledger_old_log"
    LEDGER_SETTING = "ledger_setting"  # the setting
    TIERED = "tiered"
    SEGMENT_OUT_OF_RANGE = "segment_out_of_range"  # its first physical offset

    # More than is looked at.
    LEDGER_LARGE = "ledger_large"  # a LedgerRows; how many there are; how many were judged
    INDEX_SLOTS = "index_slots"  # hash slots for which there is no memory
    LOSS_NOT_COUNTED = "loss_not_counted"

    # This program, or the machine.
    AUDIT_FAULT = "audit_fault"  # the fault
    TASK_FAULT = "task_fault"  # the fault
    TASK_WITHOUT_RESULT = "task_without_result"
    WORKER_LOST = "worker_lost"  # the task's files; how the process ended; whether as if memory were short
    COPIES_NOT_COMPARED = "copies_not_compared"  # the fault


class LeftOut(StrEnum):
    """What the time limit left undone."""

    FILES = "files"
    LEFTOVERS = "leftovers"
    DOUBLE_WRITE = "double_write"
    COMPACTED = "compacted"
    EPOCHS = "epochs"


class LedgerRows(StrEnum):
    """Rows of a DLedger file of which only the first are judged."""

    STRETCHES = "stretches"
    OTHER_UNITS = "other_units"
    UNIT_RUNS = "unit_runs"


class Gap(NamedTuple):
    """Something that an audit did not read, or does not understand.

    path: below the store's root; "" if no path is concerned.
    refusal: how the broker ends if it ends, which nobody can say.
    """

    cause: Cause
    path: str = ""
    values: tuple[str | int, ...] = ()
    refusal: Refusal | None = None

    @property
    def on_purpose(self) -> bool:
        """Say whether it was left out on request."""
        return MEANINGS.get(self.cause, USUAL).on_purpose

    @property
    def exit_code(self) -> int:
        """Return the exit code that a store with this gap earns at least."""
        return exit_code_of(self.cause)


class Meaning(NamedTuple):
    """exit_code: what a store with such a gap earns at least; 0: the gap is only noted, and the audit is complete.

    on_purpose: left out on request or at the time limit. It is then still said what a start would do.
    """

    exit_code: int = 3
    on_purpose: bool = False


USUAL = Meaning()
MEANINGS: Mapping[str, Meaning] = {
    Cause.LEVEL_QUICK: Meaning(on_purpose=True),
    Cause.TIME_LIMIT: Meaning(on_purpose=True),
}  # every other cause has the usual meaning


def exit_code_of(cause: str) -> int:
    """Return the exit code that a store with a gap of this cause earns at least; the usual one for an unknown cause."""
    return MEANINGS.get(cause, USUAL).exit_code
