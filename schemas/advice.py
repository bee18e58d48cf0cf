"""Why a broker refuses a store, and what a person does next: facts, in no language. `store_io.wording` has the words."""

from __future__ import annotations

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
    # Queues in RocksDB, and queues that are written twice.
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
    setting: the line of broker.conf to correct, as `key=value`; "" if no line is at fault.
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
        """Return the advice to correct the line of broker.conf that stops the start: no repair and no other copy helps."""
        return Advice(Step.CORRECT_LINE, (self.setting,)) if self.setting else None


class Step(StrEnum):
    """What a person does next. The comment of a step lists the values of its advice."""

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
    SWITCH_OFF = auto()  # a setting that asks for what older messages lack
    OWN_CONF = auto()
    OWN_CONF_OR_NONE = auto()
    CORRECT_NAMES = auto()  # pairs: the name that is meant, the name in broker.conf
    NAME_CONF = auto()
    ROCKSDB_TIMERS = auto()
    NEW_NAME = auto()
    # Files that a person puts back or takes away.
    RESTORE = auto()
    RESTORE_OR_FIX = auto()
    RESTORE_TABLES = auto()  # the folder
    RESTORE_TOPICS = auto()
    RESTORE_REFUSED = auto()  # an Overwritten
    RESTORE_REFUSED_ALONE = auto()  # an Overwritten
    COPY_REFUSED_BACKUP = auto()  # an Overwritten
    COPY_BACKUP_FIRST = auto()
    CREATE_TOPICS_DELETE_NONE = auto()
    OLDER_LIGHT_OFFSETS = auto()
    TAKE_OVER = auto()  # the setting by which a start reads the other form, else ""
    TAKE_OVER_OR_COPY = auto()  # that setting; the file to copy; the file to copy it over
    TAKE_OVER_OR_EXPORT = auto()  # that setting
    RAISE_COUNTER = auto()  # that setting; the file to copy, else ""; the file to copy it over; its new counter
    COPY_DATABASE = auto()  # that setting; the folder
    SET_COMPACTED_ASIDE = auto()
    SET_REPLACED_ASIDE = auto()
    SEE_COMPACTED = auto()
    REMOVE_CRASH_MARKS = auto()  # the checkpoint of DLedger


class Overwritten(StrEnum):
    """The tables that a refused start overwrites."""

    ALL_TABLES = auto()
    DELAY_OFFSETS = auto()
    FILTERS = auto()
    OFFSETS = auto()


class Advice(NamedTuple):
    """What to do about a finding or a store. values: those that the comment of the step lists."""

    step: Step
    values: tuple[str | int, ...] = ()
