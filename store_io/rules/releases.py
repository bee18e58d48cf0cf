"""Release and settings -> the one rule set that readers, scans and folds take as an argument.

Source: recovery.md's table of differences, read from RocketMQ's tags 4.8.0 to 5.5.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from schemas import commitlog_layout, consumequeue_layout, index_layout
from store_io.base.errors import UsageError
from store_io.base.java_compat import parse_number

KNOWN_RELEASES = (
    "4.8.0 4.9.0 4.9.1 4.9.2 4.9.3 4.9.4 4.9.5 4.9.6 4.9.7 4.9.8 "
    "5.0.0 5.1.0 5.1.1 5.1.2 5.1.3 5.1.4 5.2.0 5.3.0 5.3.1 5.3.2 5.3.3 5.4.0 5.5.0"
).split()
NEWEST_RELEASE = KNOWN_RELEASES[-1]
DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

Version = tuple[int, ...]


def parse_release(text: str) -> Version:
    """The release as numbers. Raises UsageError outside 4.8.0 to 5.5.0 or where it is no release at all."""
    parts = text.strip().split(".")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 5 for p in parts):
        raise UsageError(f"release {text!r}: not of the form 5.3.3")
    version = tuple(int(p) for p in parts)
    if not parse_known(KNOWN_RELEASES[0]) <= version <= parse_known(NEWEST_RELEASE):
        raise UsageError(f"release {text!r}: only {KNOWN_RELEASES[0]} to {NEWEST_RELEASE} are known")
    return version


def parse_known(text: str) -> Version:
    return tuple(int(p) for p in text.split("."))


@dataclass(frozen=True)
class Setting:
    """One value and where it came from: "broker.conf", "default" or "inferred" (from the files' own sizes)."""

    value: Any
    origin: str


SIZE_DEFAULTS: dict[str, int] = {
    "mappedFileSizeCommitLog": commitlog_layout.DEFAULT_SEGMENT_BYTES,
    "mappedFileSizeConsumeQueue": consumequeue_layout.DEFAULT_FILE_BYTES,
    "mappedFileSizeConsumeQueueExt": consumequeue_layout.DEFAULT_EXT_FILE_BYTES,
    "mapperFileSizeBatchConsumeQueue": consumequeue_layout.DEFAULT_BATCH_FILE_BYTES,
    "maxHashSlotNum": index_layout.DEFAULT_HASH_SLOTS,
    "maxIndexNum": index_layout.DEFAULT_MAX_INDEX,
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
}
OTHER_DEFAULTS: dict[str, Any] = {
    "commitLogRecoverMaxNum": 10,
    "brokerId": 0,
    "brokerRole": "ASYNC_MASTER",
    "storeType": "default",
    "messageDelayLevel": DEFAULT_DELAY_LEVELS,
}
ALL_DEFAULTS: dict[str, Any] = {**SIZE_DEFAULTS, **FLAG_DEFAULTS, **OTHER_DEFAULTS}


def default_settings() -> dict[str, Setting]:
    """Every modelled key at its release default."""
    return {key: Setting(value, "default") for key, value in ALL_DEFAULTS.items()}


def parse_delay_levels(text: str) -> dict[int, int]:
    """messageDelayLevel -> {level: ms}. Raises UsageError naming the part that is no number with a unit of s, m, h, d."""
    units = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    levels = {}
    for level, part in enumerate(text.split(), 1):
        number = parse_number(part[:-1], 64)
        if number is None or part[-1] not in units:
            raise UsageError(f"messageDelayLevel: {part!r} is no number with a unit of s, m, h or d")
        levels[level] = number * units[part[-1]]
    return levels


@dataclass(frozen=True)
class BrokerRules:
    """Everything a broker of one release with these settings decides by. Picklable.

    `release` is as asked for; `version` its numbers, which `at_least` compares.  delays: the delay table as the broker's
    process has it while serving; delays_in_recovery: as it is during load() (empty in 4.9.2 to 4.9.8, pitfall P12).
    """

    release: str
    version: Version
    settings: Mapping[str, Setting]
    delays: Mapping[int, int]
    delays_in_recovery: Mapping[int, int]
    # the record check (recovery.md 3)
    knows_v2: bool
    checks_size_first: bool  # rows 1 and 2
    check_crc: bool
    verify_property_crc: bool  # forceVerifyPropCRC where the release has it
    property_crc_zero_ok: bool
    dup_info: bool
    inner_batch: bool  # INNER_NUM and INNER_BASE mean something
    old_property_parser: bool
    # dispatch
    tag_index: bool
    multi_dispatch: bool
    batch_queues: bool

    def at_least(self, release: str) -> bool:
        """Whether the rules are those of that release or a later one."""
        return self.version >= parse_known(release)

    def value(self, key: str) -> Any:
        """One setting's value."""
        return self.settings[key].value

    @property
    def builds_index(self) -> bool:
        """Whether dispatch puts index entries: messageIndexEnable, and since 5.4.0 indexFileWriteEnable."""
        return bool(self.value("messageIndexEnable")) and (not self.at_least("5.4.0") or bool(self.value("indexFileWriteEnable")))

    @property
    def segment_bytes(self) -> int:
        return int(self.value("mappedFileSizeCommitLog"))

    @property
    def queue_file_bytes(self) -> int:
        """The getter rounds up to whole entries (formats.md 1)."""
        return (
            -(-int(self.value("mappedFileSizeConsumeQueue")) // consumequeue_layout.ENTRY_BYTES) * consumequeue_layout.ENTRY_BYTES
        )

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
        return index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * self.index_slots + index_layout.ENTRY_BYTES * self.index_max


def broker_rules(release: str = NEWEST_RELEASE, settings: Mapping[str, Setting] | None = None) -> BrokerRules:
    """The rule set of that release under these settings (all defaults when None). Raises UsageError."""
    version = parse_release(release)
    merged = {**default_settings(), **(settings or {})}
    if int(merged["commitLogRecoverMaxNum"].value) <= 0:
        merged["commitLogRecoverMaxNum"] = replace(merged["commitLogRecoverMaxNum"], value=10)
    delays = parse_delay_levels(str(merged["messageDelayLevel"].value))

    def at_least(text: str) -> bool:
        return version >= parse_known(text)

    late_delays = at_least("4.9.2") and not at_least("5.0.0")
    return BrokerRules(
        release=release,
        version=version,
        settings=merged,
        delays=delays,
        delays_in_recovery={} if late_delays else delays,
        knows_v2=at_least("5.1.0"),
        checks_size_first=at_least("5.3.2"),
        check_crc=bool(merged["checkCRCOnRecover"].value),
        verify_property_crc=bool(merged["forceVerifyPropCRC"].value) and at_least("5.2.0"),
        property_crc_zero_ok=at_least("5.3.2"),
        dup_info=bool(merged["duplicationEnable"].value) and at_least("5.0.0"),
        inner_batch=at_least("5.0.0"),
        old_property_parser=not at_least("4.9.1"),
        tag_index=at_least("5.4.0"),
        multi_dispatch=bool(merged["enableMultiDispatch"].value) and at_least("4.9.3"),
        batch_queues=at_least("5.0.0"),
    )
