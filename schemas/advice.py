"""Why a broker refuses a store, what a person does next, and why an audit is incomplete: facts, in no language.

`store_io.wording` has the words. The values of `RefusalKind` and `Cause` are keys of plan.json, result.json and the tables: they
never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import NamedTuple


class RefusalKind(StrEnum):
    """The cause of a refusal; its value is `refusal_kind` of plan.json. Its words say what it means."""

    # Files by name and length.
    FILE_IS_FOLDER = auto()
    FILE_LENGTH = auto()
    FILE_NAME = auto()
    INDEX_IS_FOLDER = auto()
    TOPIC_TYPE = auto()
    TOPIC_NOT_NAMED = auto()
    # Recovery of the log and of queues in files.
    ACCELERATED_WITHOUT_OFFSET = auto()
    ACCELERATED_BEYOND_FILE = auto()
    QUEUE_FILE_EMPTY = auto()
    EXT_NO_ROOM = auto()
    EXT_UNIT_BEYOND = auto()
    EXT_UNIT_UNWRITTEN = auto()
    LIGHT_OFFSET = auto()
    # A DLedger group.
    LEDGER_LINE_MISSING = auto()
    LEDGER_SELF_ID = auto()
    LEDGER_PEERS = auto()
    LEDGER_AND_CONTROLLER = auto()
    LEDGER_FILE_IS_FOLDER = auto()
    LEDGER_FILE_LENGTH = auto()
    LEDGER_FILES_APART = auto()
    LEDGER_ENDS_EARLY = auto()
    LEDGER_COMMITTED_INDEX = auto()
    LEDGER_COMMITTED_UNIT = auto()
    LEDGER_NO_FILLER = auto()
    LEDGER_DUPLICATION = auto()
    # Controller mode.
    CONTROLLER_MODE = auto()
    CONFIRMED_RECORD = auto()
    EPOCH_FILE = auto()
    # Queues in RocksDB, and a double write of queues.
    QUEUE_DATABASE = auto()
    QUEUE_DATABASE_ELSEWHERE = auto()
    QUEUE_MARK = auto()
    QUEUE_TRUNCATION = auto()
    DOUBLE_WRITE_NOT_LOADED = auto()
    DOUBLE_WRITE_LIGHT = auto()
    DOUBLE_WRITE_SELECTIVE = auto()
    DOUBLE_WRITE_WITHOUT_LIGHT = auto()
    DOUBLE_WRITE_CAST = auto()
    DOUBLE_WRITE_ENDS_DIFFER = auto()
    FILES_END_EARLY = auto()
    ROCKSDB_ENDS_EARLY = auto()
    # Timers.
    TIMER_WHEEL_IS_FOLDER = auto()
    TIMER_WHEEL_LENGTH = auto()
    # config/ and other databases.
    CONFIG_FILE = auto()
    CONFIG_VERSION = auto()
    CONFIG_DATABASE_IS_FILE = auto()
    CONFIG_DATABASE_FAMILIES = auto()
    CONFIG_DATABASE = auto()
    CONFIG_DATABASE_BYTES = auto()
    CONFIG_DATABASE_VERSION = auto()
    CONFIG_DATABASE_VALUE = auto()
    DATABASE_IS_FILE = auto()
    DATABASE = auto()
    # Compacted topics.
    COMPACTED_FOLDER_NAME = auto()
    COMPACTED_SETTING = auto()
    COMPACTED_ENTRIES_ALONE = auto()
    COMPACTED_LOG_ALONE = auto()
    COMPACTED_NAMES_DIFFER = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a broker does not start on a store, or not with a part of it.

    path: the file or folder to blame, below the store; "" if none is, as when a setting is.
    setting: the line of broker.conf to correct, as `key=value`, or the key of a line to add; "" if no line is at fault.
    expected, actual: the two values; None if there is no such value.
    position: in the file, -1 without one.
    phy_offset: of the message or record at fault, -1 without one.
    queue: the topic and queue id, if it is one queue's.
    """

    kind: RefusalKind
    path: str = ""
    expected: int | str | None = None
    actual: int | str | None = None
    setting: str = ""
    position: int = -1
    phy_offset: int = -1
    queue: tuple[str, int] | None = None

    @property
    def correct_line(self) -> Advice | None:
        """Return the advice to correct or add the line of broker.conf that stops the start: no repair and no other copy helps."""
        step = Step.ADD_LINE if self.kind == RefusalKind.LEDGER_LINE_MISSING else Step.CORRECT_LINE
        return Advice(step, (self.setting,)) if self.setting else None


class Step(StrEnum):
    """Names what a person does next. The comment of a step lists the values of its advice."""

    OF_CODE = auto()  # a finding's code: the step that the catalogue has for this code alone
    RAISED_OF_CODE = auto()  # a finding's code: the same, for a finding above a note
    NOTHING = auto()
    # A repair.
    REBUILD_QUEUE = auto()
    REBUILD_DATABASE = auto()
    REBUILD_OTHER_KIND = auto()
    REBUILD_INDEX = auto()
    REBUILD_TABLES = auto()
    REBUILD_TIMERS = auto()
    WRITE_CHECKPOINT = auto()
    WRITE_EPOCHS = auto()
    SALVAGE = auto()
    LEAVE_OUT = auto()
    REMOVE_FILE = auto()
    CORRECT_OFFSETS = auto()
    FIX_OFFSETS = auto()  # how many offsets; of how many groups
    # Another copy; a repair takes the bytes with --donor, but for the steps on "alone".
    OTHER_COPY = auto()
    OTHER_COPY_OR_HEAL = auto()
    OTHER_COPY_ALONE = auto()
    SEEK_LAST_MESSAGE = auto()
    SEEK_LAST_MESSAGE_ALONE = auto()
    SEEK_SEGMENT = auto()
    SEEK_SEGMENT_ALONE = auto()
    SEEK_LOG_END = auto()
    SEEK_INDEXED_MESSAGES = auto()
    SEEK_HEADERS = auto()
    LOOK_AT_ORIGIN = auto()  # physical offset of the message whose copy this is
    LOOK_AT_FOLDER = auto()
    COPY_AGAIN_IF_LIVE = auto()
    # No repair helps.
    NO_LEDGER_REPAIR = auto()
    NO_COMPACTED_REPAIR = auto()
    NO_DOUBLE_WRITE_REPAIR = auto()  # what is in use besides
    NO_DATABASE_REPAIR = auto()  # the folder; its entries
    NO_QUEUE = auto()
    # A start does it, or it is left as it is.
    STARTS_DISPATCH = auto()
    SWITCHED_ON_LATER = auto()
    ENDED_BY_PRODUCERS = auto()
    ASKED_AGAIN = auto()
    INDEX_AHEAD = auto()
    TRANSACTIONS_AHEAD = auto()
    UNUSED_TABLE = auto()
    # Settings.
    CORRECT_LINE = auto()  # the line as `key=value`
    ADD_LINE = auto()  # the key of the line
    READ_WITH_LINES = auto()  # the folder of a log; lines as `key=value`, with which a start reads it
    SWITCH_OFF = auto()  # a setting that asks for what older messages lack
    OWN_CONF = auto()
    OWN_CONF_OR_NONE = auto()
    CORRECT_NAMES = auto()  # pairs: the name that is meant, the name in broker.conf
    NAME_CONF = auto()
    MAKE_MASTER = auto()  # the lines of broker.conf by which it is a slave
    ROCKSDB_TIMERS = auto()
    NEW_NAME = auto()
    SPLIT_SEGMENTS = auto()  # the size with which the log was written; that of its files
    # Files that a person puts back or takes away.
    RESTORE = auto()
    RESTORE_OR_FIX = auto()
    RESTORE_TABLES = auto()  # the folder
    RESTORE_TOPICS = auto()
    RESTORE_REFUSED = auto()  # an Overwritten
    RESTORE_REFUSED_ALONE = auto()  # an Overwritten
    COPY_REFUSED_BACKUP = auto()  # an Overwritten
    COPY_BACKUP_FIRST = auto()
    REMOVE_COUNTERS = auto()  # the file
    CREATE_TOPICS_DELETE_NONE = auto()
    CREATE_IF_NOT_DELETED = auto()
    OLDER_LIGHT_OFFSETS = auto()
    TAKE_OVER = auto()  # the setting by which a start reads the other form, else ""
    TAKE_FORM = auto()  # the form of the table that a repair takes
    TAKE_OVER_OR_COPY = auto()  # that setting; the file to copy; the file to copy it over
    TAKE_OVER_OR_EXPORT = auto()  # that setting
    RAISE_COUNTER = auto()  # that setting; the file to copy, else ""; the file to copy it over; its new counter
    COPY_DATABASE = auto()  # that setting; the folder
    SET_COMPACTED_ASIDE = auto()
    SET_REPLACED_ASIDE = auto()
    SEE_COMPACTED = auto()
    REMOVE_CRASH_MARKS = auto()  # the checkpoint of DLedger
    # In place of a repair.
    NAME_RELEASE = auto()
    NAME_KNOWN_RELEASE = auto()
    AUDIT_WITH_OWN = auto()
    NO_MESSAGE_LEFT = auto()
    NO_REPAIR_MENDS = auto()
    NO_REPAIR_GOES = auto()  # why; so for the two that follow
    NO_REPAIR_OTHER_COPY = auto()
    NO_REPAIR_NAME_DONOR = auto()
    # Steps of the answer that no finding has.
    CHECK_PATH = auto()
    CORRECT_ARGUMENTS = auto()
    AUDIT_AGAIN = auto()
    STOP_BROKER = auto()
    STOP_USER = auto()  # sentences on the broker that uses the copy
    COPY_LOG = auto()  # the place where broker.conf keeps the log, or ""
    COPY_WHOLE = auto()
    COPY_CONFIG = auto()  # what is absent; what a start does not know without it
    WROTE = auto()  # releases that wrote the copy by its files
    SET_LINE = auto()  # a sentence on a setting that is unsafe
    NAME_OWN_CONF = auto()
    SEEK_TABLES = auto()
    COPY_COMPACTED = auto()
    TAKE_OFFSETS = auto()
    SET_OFFSETS = auto()
    EMPTY_THIS = auto()  # the copy that is to be master
    EMPTY_OTHER = auto()  # a copy that is to be a slave
    MASTER_INSTEAD = auto()  # the other copy; messages that it holds and this one lacks; so for those that follow
    MASTER_INSTEAD_OF_REFUSED = auto()
    SAVE_FROM = auto()
    COMPARE_DIVERGED = auto()
    COMPARE_FORMS = auto()  # the other copy; messages of two forms
    ONLY_IF_LATER_ONE_IS_GONE = auto()  # as for MASTER_INSTEAD
    TAKE_TABLE = auto()  # the file; the copy; entries that this copy lacks, 0 for greater offsets; their noun
    PUT_TOGETHER = auto()  # what to take, then file and copy of each table
    DO_NOT_START = auto()
    START = auto()  # the release; so for those that follow
    START_JUDGED = auto()
    START_MENDING = auto()
    START_DAMAGED = auto()
    START_ONCE = auto()
    START_ALL_BUT = auto()
    START_NEW_STORE = auto()
    START_COPY = auto()
    START_CHANGED = auto()
    START_OTHER = auto()
    CHECK_LOG_END = auto()  # the physical offset at which the log ends
    CHECK_NEW_STORE = auto()
    SEND_AGAIN = auto()  # messages that are missing; whether there may be more
    SEND_TIMERS = auto()  # timer messages that the start passes over
    SEND_GIVEN_UP = auto()  # messages that the repair gives up; whether it may give up more
    SEND_ONLY_OTHERS = auto()  # a copy; messages that it alone holds; the copy that is to be master
    CREATE_TOPIC = auto()  # the topic; its read queues; its write queues; what shows these; its attributes, or ""
    CREATE_MORE = auto()  # how many further topics; the file that names them
    SET_GROUP = auto()  # the group
    SET_MORE = auto()  # how many further groups
    MORE_STEPS = auto()  # how many are not listed
    # What a started broker does by itself in its first day.
    # The start; segments at once, in deleteWhen; their messages, timers among them; deleteWhen, when it begins, the time zone;
    # hours now, to set or 0; by disk.
    KEEP_SEGMENTS = auto()
    LET_GROUPS_READ = auto()  # the group, topic, queue id; messages; how many other queues of groups
    START_BEFORE = auto()  # timer messages; the start; the moment before which all are delivered, or ""
    DECIDE_HALF_MESSAGES = auto()  # how many
    LEVELS_STAND_STILL = auto()  # delay levels


class Overwritten(StrEnum):
    """The tables that a refused start overwrites."""

    ALL_TABLES = auto()
    DELAY_OFFSETS = auto()
    FILTERS = auto()
    OFFSETS = auto()


class Advice(NamedTuple):
    """Says what to do about a finding or a store. values: those that the comment of the step lists."""

    step: Step
    values: tuple[str | int, ...] = ()


class Lack(StrEnum):
    """What shows that a copy is not all that its broker had: the gravest first. The comment lists what `place` is."""

    OTHER_COPY = auto()  # a copy that holds more at the end of its log; the path of that copy
    LOG_ELSEWHERE = auto()  # broker.conf keeps the log in another folder, and the copy's log ends too early; that folder
    STORES_MERGED = auto()  # segments of two brokers lie in one folder
    SEGMENTS_BETWEEN = auto()  # segments are missing between others
    SEGMENTS_AT_END = auto()
    ZEROS = auto()  # zeros of the log before later messages
    QUEUES_LATER = auto()  # the queues were copied later than the log
    NO_CONFIG = auto()


@dataclass(frozen=True, slots=True)
class NotWhole:
    """One thing that shows that a copy is not whole, while what is missing may still be where the copy was made.

    file: the first file or folder that is missing, or shows it, below the store.
    files: how many such files there are.
    messages: how many are missing, 0 if nothing says it. at_least: there may be more.
    place: where to look, a path on the broker's machine or of another copy; "" if nothing names it.
    own: messages of this copy that the other copy lacks.
    """

    kind: Lack
    file: str
    files: int = 1
    messages: int = 0
    at_least: bool = False
    place: str = ""
    own: int = 0


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
    LEDGER_SEVERAL = "ledger_several"  # the folders
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
    """Names what the time limit left undone."""

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
    """exit_code: what a store with such a gap earns at least. 0: the gap is only noted, and the audit is complete.

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
    """Return the exit code that a store with a gap of this cause earns at least. The usual one for an unknown cause."""
    return MEANINGS.get(cause, USUAL).exit_code
