"""Why a broker refuses a store: facts, in no language. `store_io.wording.refusals` has the words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto


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
