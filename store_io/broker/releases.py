"""Release and settings -> the one rule set that readers, scans and folds take as an argument.

Source: recovery.md, each field by its section, read from RocketMQ's tags 4.6.1 to 5.3.3 and from the jars of 5.3.4 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from schemas.layouts import commitlog_layout, consumequeue_layout, index_layout, timer_layout
from schemas.start_effect import Setting as Setting
from store_io.base.errors import RefusedSetting, UsageError
from store_io.base.java.java_compat import parse_number, split_dropping_tail
from store_io.broker.settings.given_settings import taken_value
from store_io.broker.settings.known_keys import reads


@dataclass(frozen=True, kw_only=True)
class ReleaseRules:
    """The rules in which releases differ, whatever their settings. The defaults are those of the oldest one."""

    # load (recovery.md 1, 2, 8.1)
    skips_folders: bool = False  # among the files of a folder; else their length is wrong
    deletes_empty_last: bool = False  # a last file of length 0; else its length is wrong
    ignores_misfits: bool = False  # a file of another length ends the list; else load() refuses
    folder_in_index_refuses: bool = False  # else it only ends the list of index files
    batch_queues: bool = False  # BatchConsumeQueues, and types of topics
    # the record check (recovery.md 3)
    knows_v2: bool = False
    checks_size_first: bool = False  # rows 1 and 2
    checks_sign_first: bool = False  # a negative size is refused before the magic is read, a filler's as well
    knows_property_crc: bool = False  # forceVerifyPropCRC
    property_crc_zero_ok: bool = False
    knows_dup_info: bool = False  # duplicationEnable demands DUP_INFO
    inner_batch: bool = False  # INNER_NUM and INNER_BASE mean something
    old_property_parser: bool = True
    late_delays: bool = False  # the delay table is read only after recovery, and that makes every level's queue
    # recovery of the CommitLog (recovery.md 4 to 6)
    clean_start_by_queues: bool = False  # the newest segment that a queue reaches, unless start_by_record_check
    dispatches_after_clean_exit: bool = False
    start_by_record_check: bool = False  # the first record of a segment is checked in full, clean exit or not
    limits_start_search: bool = False  # commitLogRecoverMaxNum: the search for that segment looks at so many
    start_by_logics_offset: bool = False  # logicsPhysicalOffset of the checkpoint decides, with it accelerated recovery
    keeps_confirm_offset: bool = False  # confirmPhyOffset of the checkpoint
    reads_unconfirmed: bool = False  # in controller mode load() reads on from confirmOffset for the queues' next numbers
    truncates_by_new_maximum: bool = False  # the queues' maximum is read again after dispatch
    knows_offset_check: bool = False  # checkCommitLogOffsetOnRecover
    # ConsumeQueue, dispatch and index (recovery.md 7, 8)
    minimum_by_search: bool = False  # correctMinOffset searches by bisection; else entry by entry
    empty_last_queue_file_throws: bool = True  # in correctMinOffset's bisection
    resets_empty_queues: bool = False  # correctMinOffset forgets where a queue without files ends
    tag_index: bool = False  # TAGS is a key of the index
    knows_index_switch: bool = False  # indexFileWriteEnable
    knows_multi_dispatch: bool = False
    lmq_leaves_out_retries: bool = False
    lmq_leaves_out_schedule: bool = False
    lmq_leaves_out_system: bool = False
    lmq_leaves_out_slashes: bool = False  # queues with "/" in their name
    splits_folder_names: bool = False  # a folder that is to be made at its commas, as if it were several
    refused_appends_use_offsets: bool = False  # a queue offset is consumed by an append that fails (pitfalls P14)
    # start() and serving (recovery.md 9)
    catches_up: bool = True  # from the queues' maximum on; else only with recheckReputOffsetFromCq
    dispatches_to_log_end: bool = False  # the dispatching thread's offset never passes the log's end
    serves_below_maximum: bool = False  # getMessage ends at the queue's maximum, and at the number asked for
    # settings and files besides
    trims_texts: bool = False  # a value of broker.conf that is a text loses the spaces around it; a number or a switch never
    knows_store_type: bool = False  # storeType
    knows_controller_mode: bool = False
    controller_mode_throws: bool = False  # such a broker ends before it loads its store
    checks_identity: bool = False  # a controller's broker holds brokerIdentity against its names in broker.conf
    refuses_ledger_with_controller: bool = False  # enableDLegerCommitLog beside enableControllerMode ends the broker
    knows_uncommitted: bool = False  # readUnCommitted
    knows_timers: bool = False
    clamps_timer_offset: bool = False  # the timer's queue offset to its queue, when it recovers
    knows_timer_snapshots: bool = False  # timerWheelSnapshotFlush
    knows_timers_in_rocksdb: bool = False  # timerRocksDBEnable
    knows_rocksdb: bool = False  # rocksdbstore/ is made and read
    knows_compaction: bool = False  # compaction/ is made and read (compaction.md 1)
    knows_tiered: bool = False  # the plug-in of a tiered store (compaction.md 7)
    knows_auth_databases: bool = False  # config/users and config/acls (formats.md 15)
    knows_pop_database: bool = False  # kvStore/ (formats.md 15)
    sparse_end_by_first_entry: bool = False  # a compacted log is cut after the first entry of its last file (compaction.md 3)
    # a DLedger log (dledger.md 4)
    ledger_crash_dispatch: bool = False  # after an unclean exit recovery of a DLedger log dispatches, and may cut queues too far
    ledger_crash_demands_dup_info: bool = False  # it demands DUP_INFO of every message there, whatever duplicationEnable says
    ledger_data_path: bool = False  # storePathDLedgerCommitLog
    # ConsumeQueues in RocksDB (rocksdb.md)
    knows_rocksdb_lmq: bool = False  # light queues have entries there, by enableLmq alone
    knows_rocksdb_acceleration: bool = False  # enableAcceleratedRecovery begins at the end mark
    accelerates_after_clean_exit: bool = False  # it does so after a clean exit as well
    knows_separate_folder: bool = False  # useSeparateStorePathForRocksdbCQ
    combines_queues: bool = False  # rocksdbCQDoubleWriteEnable combines the two kinds; before, recovery reads files alone
    keyed_puts_by_thread: bool = False  # recovery does not wait until entries are put (RocksGroupCommitService)
    flushes_after_unclean_exit: bool = False  # what recovery puts then becomes a table of its own at once
    truncates_stored_ends: bool = False  # each queue with a stored end; else those of topics that the broker knows, or it ends
    dispatches_from_marks: bool = False  # recovery dispatches from where index or transactions in RocksDB end, if that is earlier
    combines_with_unwritten: bool = False  # a store of two kinds does not wait for the one that was never written
    lite_needs_rocksdb: bool = False  # a broker with a combined store ends without combineCQUseRocksdbForLmq


# Each release, and what it changes against the one before it; in comments the classes that decide.
CHANGES: dict[str, dict[str, bool]] = {
    "4.6.1": {},
    "4.7.0": {},
    "4.7.1": {},
    "4.8.0": {},
    "4.9.0": {},
    "4.9.1": {"old_property_parser": False},  # MessageDecoder
    "4.9.2": {"late_delays": True, "ignores_misfits": True},  # DefaultMessageStore.load; MappedFileQueue.doLoad
    "4.9.3": {"ignores_misfits": False, "knows_multi_dispatch": True},  # MappedFileQueue; MultiDispatch
    "4.9.4": {"splits_folder_names": True, "ledger_data_path": True},  # UtilAll (ensureDirOK); DLedgerCommitLog
    "4.9.5": {},
    "4.9.6": {},
    "4.9.7": {},
    "4.9.8": {},
    # BatchConsumeQueue, CommitLog, DefaultMessageStore (ReputMessageService), ConsumeQueue, TimerMessageStore
    "5.0.0": {
        "batch_queues": True, "inner_batch": True, "knows_dup_info": True, "late_delays": False, "minimum_by_search": True,
        "refused_appends_use_offsets": True, "catches_up": False, "serves_below_maximum": True, "knows_controller_mode": True,
        "knows_timers": True, "dispatches_to_log_end": True,
    },
    # MappedFileQueue, IndexService, MessageVersion, CompactionStore, TieredMessageStore, SparseConsumeQueue
    "5.1.0": {
        "skips_folders": True, "folder_in_index_refuses": True, "knows_v2": True, "knows_compaction": True,
        "knows_tiered": True,
        "sparse_end_by_first_entry": True,
    },
    # StoreCheckpoint and CommitLog, ConsumeQueue, QueueOffsetOperator, SparseConsumeQueue
    "5.1.1": {"keeps_confirm_offset": True, "lmq_leaves_out_retries": True, "refused_appends_use_offsets": False,
              "sparse_end_by_first_entry": False, "refuses_ledger_with_controller": True,
              "checks_identity": True},
    # ConsumeQueue; BrokerController.initialize
    "5.1.2": {"lmq_leaves_out_schedule": True, "lmq_leaves_out_slashes": True, "controller_mode_throws": True},
    "5.1.3": {"deletes_empty_last": True, "controller_mode_throws": False},  # MappedFileQueue; BrokerController
    "5.1.4": {},
    # MixAll.properties2Object, CommitLog, RocksDBMessageStore, DefaultMessageStore, DLedgerCommitLog
    "5.2.0": {
        "trims_texts": True,
        "knows_property_crc": True, "lmq_leaves_out_system": True, "knows_store_type": True, "reads_unconfirmed": True,
        "ledger_crash_dispatch": True, "ledger_crash_demands_dup_info": True,
    },
    # DefaultMessageStore; DLedgerCommitLog; BrokerController
    "5.3.0": {"knows_uncommitted": True, "ledger_crash_demands_dup_info": False, "knows_auth_databases": True},
    "5.3.1": {},
    # CommitLog, TimerMessageStore, RocksDBConsumeQueueStore, RocksGroupCommitService
    "5.3.2": {
        "checks_size_first": True, "property_crc_zero_ok": True, "clean_start_by_queues": True,
        "dispatches_after_clean_exit": True, "clamps_timer_offset": True, "knows_rocksdb_lmq": True,
        "flushes_after_unclean_exit": True, "keyed_puts_by_thread": True, "truncates_stored_ends": True,
        "knows_pop_database": True,
    },
    "5.3.3": {},
    # CommitLog (isMappedFileMatchedRecover), DefaultMessageStore, TimerMessageStore, CombineConsumeQueueStore
    "5.3.4": {
        "start_by_record_check": True, "truncates_by_new_maximum": True, "knows_timer_snapshots": True,
        "knows_rocksdb_acceleration": True, "accelerates_after_clean_exit": True, "combines_queues": True,
    },
    # CommitLog (recoverNormally, recoverAbnormally), IndexService, MessageRocksDBStorage, TimerMessageRocksDBStore
    "5.4.0": {
        "limits_start_search": True, "tag_index": True, "knows_index_switch": True, "knows_rocksdb": True,
        "knows_timers_in_rocksdb": True,
    },
    # CommitLog, StoreCheckpoint, ConsumeQueue, RocksDBConsumeQueueStore, CombineConsumeQueueStore, RocksDBLiteLifecycleManager
    "5.5.0": {
        "start_by_logics_offset": True, "knows_offset_check": True, "empty_last_queue_file_throws": False,
        "knows_separate_folder": True, "accelerates_after_clean_exit": False,
        "dispatches_from_marks": True, "combines_with_unwritten": True, "lite_needs_rocksdb": True,
    },
    "5.5.1": {"checks_sign_first": True, "resets_empty_queues": True},  # CommitLog.checkMessageAndReturnSize; ConsumeQueue
}  # fmt: skip
KNOWN_RELEASES = tuple(CHANGES)
NEWEST_RELEASE = KNOWN_RELEASES[-1]
# Whose check decides what the audit itself calls a message, under every release asked for: a newer one changes no finding.
AUDIT_RELEASE = "5.5.0"
DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

ROCKSDB_STORE_TYPE = "defaultRocksDB"  # value of storeType

Version = tuple[int, ...]
Held = TypeVar("Held")


def parse_release(text: str) -> Version:
    """Return the release as numbers. Raises UsageError below the oldest known one, or if the text is no release at all."""
    parts = text.strip().split(".")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 5 for p in parts):
        raise UsageError(f"release {text!r}: not of the form 5.3.3")
    version = tuple(int(p) for p in parts)
    if version < parse_known(KNOWN_RELEASES[0]):
        raise UsageError(f"release {text!r}: none before {KNOWN_RELEASES[0]} is known; known are that to {NEWEST_RELEASE}")
    return version


def known_release(text: str) -> str:
    """Return the newest known release that is not above this one: it gives the rules. Raises UsageError."""
    version = parse_release(text)
    return [known for known in KNOWN_RELEASES if parse_known(known) <= version][-1]


@cache
def parse_known(text: str) -> Version:
    """Return a release of the tables as numbers."""
    return tuple(int(p) for p in text.split("."))


def changed_until(version: Version, changes: Mapping[str, Mapping[str, Held]]) -> dict[str, Held]:
    """Return the values of a table like `CHANGES` at this version: later rows over earlier ones."""
    changed: dict[str, Held] = {}
    for release, news in changes.items():
        if parse_known(release) <= version:
            changed.update(news)
    return changed


@cache
def release_rules(version: Version) -> ReleaseRules:
    """Return the rules of the newest known release that is not above this one."""
    return ReleaseRules(**changed_until(version, CHANGES))


TIERED_PLUG_IN = "org.apache.rocketmq.tieredstore.TieredMessageStore"
DEFAULT_COMPACTED_LOG_BYTES = 100 << 20
DEFAULT_COMPACTED_QUEUE_BYTES = 10 << 20
LEAST_COMPACTED_FILES = 5  # of the SparseConsumeQueue that a file of a compacted log is at least as long as
DECISIVE = "duplicationEnable", "forceVerifyPropCRC", "storeType"
"""Settings that move where recovery of the same bytes ends."""

SIZE_DEFAULTS: dict[str, int] = {
    "mappedFileSizeCommitLog": commitlog_layout.DEFAULT_SEGMENT_BYTES,
    "mappedFileSizeConsumeQueue": consumequeue_layout.DEFAULT_FILE_BYTES,
    "mappedFileSizeConsumeQueueExt": consumequeue_layout.DEFAULT_EXT_FILE_BYTES,
    "mapperFileSizeBatchConsumeQueue": consumequeue_layout.DEFAULT_BATCH_FILE_BYTES,
    "maxHashSlotNum": index_layout.DEFAULT_HASH_SLOTS,
    "maxIndexNum": index_layout.DEFAULT_MAX_INDEX,
    "compactionMappedFileSize": DEFAULT_COMPACTED_LOG_BYTES,
    "compactionCqMappedFileSize": DEFAULT_COMPACTED_QUEUE_BYTES,
    "mappedFileSizeTimerLog": timer_layout.LOG_FILE_BYTES,
    "timerPrecisionMs": timer_layout.PRECISION_MS,
    "timerRollWindowSlot": timer_layout.ROLL_SLOTS,
}
FLAG_DEFAULTS: dict[str, bool] = {
    "checkCRCOnRecover": True,
    "forceVerifyPropCRC": False,
    "duplicationEnable": False,
    "messageIndexEnable": True,
    "messageIndexSafe": False,
    "indexFileWriteEnable": True,
    "enableConsumeQueueExt": False,
    "recheckReputOffsetFromCq": False,
    "enableLmq": False,
    "enableMultiDispatch": False,
    "enableControllerMode": False,
    "enableDLegerCommitLog": False,
    "enableAcceleratedRecovery": False,
    "checkCommitLogOffsetOnRecover": False,
    "timerWheelEnable": True,
    "autoCreateTopicEnable": True,
    "traceTopicEnable": False,
    "useSingleRocksDBForAllConfigs": False,
    "enableCompaction": True,
    "timerWheelSnapshotFlush": False,
    "timerRocksDBEnable": False,
    "rocksdbCQDoubleWriteEnable": False,
    "useSeparateStorePathForRocksdbCQ": False,
    "indexRocksDBEnable": False,
    "readUnCommitted": False,
    "transRocksDBEnable": False,
    "transWriteOriginTransHalfEnable": True,
    "combineCQUseRocksdbForLmq": False,
    "popConsumerKVServiceInit": False,
    "rocksdbCQSelectiveDoubleWriteEnable": False,
}
OTHER_DEFAULTS: dict[str, Any] = {
    "commitLogRecoverMaxNum": 10,
    "brokerId": 0,
    "brokerRole": "ASYNC_MASTER",
    "storeType": "default",
    "messageDelayLevel": DEFAULT_DELAY_LEVELS,
    "brokerName": "",
    "brokerClusterName": "DefaultCluster",
    "msgTraceTopicName": "RMQ_SYS_TRACE_TOPIC",
    "configManagerVersion": "v1",
    "dLegerSelfId": "",
    "dLegerPeers": "",
    "storePathDLedgerCommitLog": "",
    "messageStorePlugIn": "",
    "combineCQLoadingCQTypes": "default;defaultRocksDB",
    "combineCQPreferCQType": "default",
    "combineAssignOffsetCQType": "default",
    "combineCQMaxExtraSearchCommitLogFiles": 3,
    "maxMessageSize": 4 << 20,
    "transactionCheckMax": 15,
    "transactionCheckInterval": 30_000,
    "authenticationMetadataProvider": "",
    "authorizationMetadataProvider": "",
}
ALL_DEFAULTS: dict[str, Any] = {**SIZE_DEFAULTS, **FLAG_DEFAULTS, **OTHER_DEFAULTS}


def default_settings() -> dict[str, Setting]:
    """Return every modelled key at its release default."""
    return {key: Setting(value, "default") for key, value in ALL_DEFAULTS.items()}


def taken_setting(key: str, text: str, version: Version) -> Setting:
    """Return a value of broker.conf as the release takes it."""
    trims = release_rules(version).trims_texts
    value = taken_value(key, text, ALL_DEFAULTS[key], trims) if reads(key, version) else None
    return Setting(ALL_DEFAULTS[key], "default", text) if value is None else Setting(value, "broker.conf", text)


def parse_delay_levels(text: str) -> dict[int, int]:
    """messageDelayLevel -> {level: ms}. Raises UsageError naming the part that is no number with a unit of s, m, h, d: a broker
    ends over one, and over two spaces beside each other. Source: ScheduleMessageService.parseDelayLevel."""
    units = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    levels = {}
    for level, part in enumerate(split_dropping_tail(text, " "), 1):
        number = parse_number(part[:-1], 64)
        if number is None or part[-1] not in units:
            raise RefusedSetting(f"messageDelayLevel={text}: {part!r} is no number with a unit of s, m, h or d")
        levels[level] = number * units[part[-1]]
    return levels


def index_bytes(slots: int, entries: int) -> int:
    """Return the length of an index file."""
    return index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * slots + index_layout.ENTRY_BYTES * entries


def compacted_entries_bytes(configured: int) -> int:
    """Return the length of a SparseConsumeQueue's files: whole entries."""
    return configured // consumequeue_layout.BATCH_ENTRY_BYTES * consumequeue_layout.BATCH_ENTRY_BYTES


def compacted_log_bytes(configured: int, entries_bytes: int) -> int:
    """Return the length of a compacted log's files: a multiple of the other files', at least `LEAST_COMPACTED_FILES` of them."""
    count, rest = divmod(configured, entries_bytes)
    if count < LEAST_COMPACTED_FILES:
        return entries_bytes * LEAST_COMPACTED_FILES
    return (count if 0 < rest < entries_bytes >> 1 else count + 1) * entries_bytes


@dataclass(frozen=True, kw_only=True)
class BrokerRules(ReleaseRules):
    """Everything a broker of one release with these settings decides by. Picklable.

    `release` is as asked for; `version` its numbers.

    delays: the delay table as the broker's process has it while serving;
    delays_in_recovery: as it is during load() (empty in 4.9.2 to 4.9.8, pitfall P12).
    """

    release: str
    version: Version
    settings: Mapping[str, Setting]
    delays: Mapping[int, int]
    delays_in_recovery: Mapping[int, int]
    # what release and settings decide together
    check_crc: bool
    verify_property_crc: bool
    dup_info: bool
    entries_need_dup_info: bool  # so it is with entries of a DLedger log, in recovery after an unclean exit
    multi_dispatch: bool  # dispatch puts entries into light queues
    lmq_in_files: bool  # of these queues: those in files
    lmq_in_rocksdb: bool  # those in RocksDB
    builds_index: bool  # dispatch puts index entries
    dispatches_at_start: bool  # start() catches up
    controller_mode: bool  # a controller says which replica is master, and in which epoch
    controlled: bool  # confirmOffset limits what recovery dispatches, as with duplicationEnable
    confirms_last: bool  # duplicationEnable: recovery leaves confirmOffset at the start of the last message that it read
    waits_for_confirm: bool  # start() dispatches up to confirmOffset alone
    accelerated: bool  # recovery after an unclean exit begins at logicsPhysicalOffset
    checks_phy_offset: bool  # recovery after an unclean exit stops at a record whose offset lies outside its file
    reads_uncommitted: bool  # readUnCommitted
    lmq_offsets: bool  # offsets of light queues have a file of their own
    timers: bool  # the broker reads files of timers
    tiered: bool  # load() opens a tiered store, too
    compacts: bool  # the broker reads compaction/, and consumers of compacted topics read from there alone
    timer_snapshots: bool  # the wheel is read from the newest of its snapshots
    timers_in_rocksdb: bool  # they lie in rocksdbstore/
    rocksdb_queues: bool  # ConsumeQueues are in RocksDB
    separate_rocksdb_folder: bool  # in a folder of its own
    combined_queues: bool  # ConsumeQueues are in files and in RocksDB

    def at_least(self, release: str) -> bool:
        """Say whether the rules are those of that release or a later one."""
        return self.version >= parse_known(release)

    def value(self, key: str) -> Any:
        """Return one setting's value."""
        return self.settings[key].value

    def first_recovered(self, count: int, found: int | None = None) -> int:
        """Return the place, among so many files, of the first that recovery reads.

        found: where the release's search ended; None for files among which it does not search: queues, DLedger's data and, up to
        5.3.1, segments after a clean exit. Then it is the third from the end.
        Source: recover of ConsumeQueue, BatchConsumeQueue, SparseConsumeQueue and DLedgerMmapFileStore;
        CommitLog.recoverNormally.
        """
        return max(0, count - 3) if found is None else found

    @property
    def numbers_inner_messages(self) -> bool:
        """Say whether an inner batch outside of BatchConsumeQueues takes up a queue offset for each of its messages.

        It has one entry there (rocksdb.md 2).
        """
        return self.rocksdb_queues

    @property
    def is_slave(self) -> bool:
        """Say whether the log comes, or may come, from a master. A master's id is 0, and a negative one waits for its role.

        Source: MixAll.MASTER_ID, BrokerStartup.buildBrokerController (sets -1 with DLedger or a controller).
        """
        return str(self.value("brokerRole")) == "SLAVE" or int(self.value("brokerId")) != 0

    @property
    def segment_bytes(self) -> int:
        return int(self.value("mappedFileSizeCommitLog"))

    @property
    def queue_file_bytes(self) -> int:
        """Return the size of a ConsumeQueue's file, rounded up to whole entries (formats.md 1)."""
        return (
            -(-int(self.value("mappedFileSizeConsumeQueue")) // consumequeue_layout.ENTRY_BYTES) * consumequeue_layout.ENTRY_BYTES
        )

    @property
    def timer_file_bytes(self) -> int:
        return int(self.value("mappedFileSizeTimerLog"))

    @property
    def timer_precision(self) -> int:
        """Return the precision of a slot of the timer wheel, ms."""
        return int(self.value("timerPrecisionMs"))

    @property
    def timer_roll_slots(self) -> int:
        """Return how many slots away a unit may be. Source: the constructor of TimerMessageStore."""
        asked, most = int(self.value("timerRollWindowSlot")), timer_layout.SLOTS // 2 - timer_layout.BLANK_SLOTS
        return asked if 2 <= asked <= most else most

    @property
    def ext_file_bytes(self) -> int:
        return int(self.value("mappedFileSizeConsumeQueueExt"))

    @property
    def batch_file_bytes(self) -> int:
        return int(self.value("mapperFileSizeBatchConsumeQueue"))

    @property
    def index_slots(self) -> int:
        return int(self.value("maxHashSlotNum"))

    @property
    def index_max(self) -> int:
        return int(self.value("maxIndexNum"))

    @property
    def index_file_bytes(self) -> int:
        return index_bytes(self.index_slots, self.index_max)


def _only_kind(settings: Mapping[str, Setting]) -> str:
    """Return the kind of queues that a combined store opens if it opens one alone, else "".

    A broker must be able to make that store (rocksdb.md 8).
    """
    known = {"default", ROCKSDB_STORE_TYPE.lower()}
    kinds = {part.strip().lower() for part in str(settings["combineCQLoadingCQTypes"].value).split(";")} & known
    asked = {str(settings[key].value).lower() for key in ("combineCQPreferCQType", "combineAssignOffsetCQType")}
    return next(iter(kinds)) if len(kinds) == 1 and asked == kinds else ""


def broker_rules(release: str = NEWEST_RELEASE, settings: Mapping[str, Setting] | None = None) -> BrokerRules:
    """Return the rule set of that release under these settings (all defaults when None). Raises UsageError."""
    version = parse_release(release)
    merged = {
        key: setting if setting.text is None else taken_setting(key, setting.text, version)
        for key, setting in {**default_settings(), **(settings or {})}.items()
    }
    delays = parse_delay_levels(str(merged["messageDelayLevel"].value))
    own = release_rules(version)

    def on(key: str) -> bool:
        return bool(merged[key].value)

    in_rocksdb = own.knows_store_type and str(merged["storeType"].value).lower() == ROCKSDB_STORE_TYPE.lower()
    combined = own.combines_queues and not in_rocksdb and on("rocksdbCQDoubleWriteEnable")
    alone = _only_kind(merged) if combined and not own.lite_needs_rocksdb else ""  # with that one no such broker starts
    if alone:
        combined, in_rocksdb = False, alone == ROCKSDB_STORE_TYPE.lower()
        own = replace(own, knows_rocksdb_acceleration=False)  # it goes by the storeType
    lmq_in_rocksdb = own.knows_rocksdb_lmq and on("enableLmq") and (in_rocksdb or combined)
    lmq_alone = in_rocksdb or combined and own.lite_needs_rocksdb and on("combineCQUseRocksdbForLmq")
    lmq_in_files = own.knows_multi_dispatch and on("enableMultiDispatch") and not lmq_alone
    if in_rocksdb:
        own = replace(own, lmq_leaves_out_slashes=False, reads_unconfirmed=False)
    elif lmq_in_rocksdb:
        own = replace(own, lmq_leaves_out_slashes=False)
    controlled = own.keeps_confirm_offset and on("enableControllerMode")
    confirms_last = (
        own.knows_dup_info
        and on("duplicationEnable")
        and not on("enableDLegerCommitLog")
        and not on("enableControllerMode")
        and not in_rocksdb
    )
    return BrokerRules(
        **vars(own),
        release=release,
        version=version,
        settings=merged,
        delays=delays,
        delays_in_recovery={} if own.late_delays else delays,
        check_crc=on("checkCRCOnRecover"),
        verify_property_crc=own.knows_property_crc and on("forceVerifyPropCRC"),
        dup_info=own.knows_dup_info and on("duplicationEnable"),
        entries_need_dup_info=own.ledger_crash_demands_dup_info and on("enableDLegerCommitLog"),
        multi_dispatch=lmq_in_files or lmq_in_rocksdb,
        lmq_in_files=lmq_in_files,
        lmq_in_rocksdb=lmq_in_rocksdb,
        builds_index=on("messageIndexEnable") and (not own.knows_index_switch or on("indexFileWriteEnable")),
        dispatches_at_start=own.catches_up or on("recheckReputOffsetFromCq"),
        controller_mode=own.knows_controller_mode and on("enableControllerMode"),
        controlled=controlled,
        confirms_last=confirms_last,
        waits_for_confirm=controlled or confirms_last,
        accelerated=own.start_by_logics_offset and on("enableAcceleratedRecovery"),
        checks_phy_offset=own.knows_offset_check and on("checkCommitLogOffsetOnRecover"),
        reads_uncommitted=own.knows_uncommitted and on("readUnCommitted"),
        lmq_offsets=own.knows_multi_dispatch and on("enableLmq"),
        timers=own.knows_timers and on("timerWheelEnable"),
        tiered=own.knows_tiered and TIERED_PLUG_IN in str(merged["messageStorePlugIn"].value),
        compacts=own.knows_compaction and on("enableCompaction"),
        timer_snapshots=own.knows_timer_snapshots and on("timerWheelSnapshotFlush"),
        timers_in_rocksdb=own.knows_timers_in_rocksdb and on("timerRocksDBEnable"),
        rocksdb_queues=in_rocksdb,
        separate_rocksdb_folder=own.knows_separate_folder and on("useSeparateStorePathForRocksdbCQ"),
        combined_queues=combined,
    )
