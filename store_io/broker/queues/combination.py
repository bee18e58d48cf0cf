"""The kinds of queues of a broker that writes them twice, in files and in RocksDB, and the kind that it asks (rocksdb.md 8).

Source: CombineConsumeQueueStore's constructor and getCurrentReadStoreForTopic, MultiDispatchUtils.checkMultiDispatchQueue,
StoreType.fromString, RocksDBLiteLifecycleManager.init, read at 5.3.4 to 5.5.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.advice import Refusal, RefusalKind
from store_io.broker.releases import ROCKSDB_STORE_TYPE, BrokerRules

FILES = "default"
_TYPES = FILES, ROCKSDB_STORE_TYPE.lower()


@dataclass(frozen=True)
class Combination:
    """The way in which a store uses queues in files and in RocksDB.

    reads_rocksdb: consumers get what RocksDB has, else what the files have.
    assigns_rocksdb: RocksDB gives the numbers.
    extra_files: so many segments more are looked at for the store that gives no numbers; None: as many as there are.
    loads: the kinds that are opened.
    light_in_rocksdb: light queues are in RocksDB alone, whatever is said of others.
    """

    loads: frozenset[str]
    reads_rocksdb: bool = False
    assigns_rocksdb: bool = False
    extra_files: int | None = None
    light_in_rocksdb: bool = False

    @property
    def one_gives_all(self) -> bool:
        """Say whether the store that gives the numbers is the one that is read."""
        return self.reads_rocksdb == self.assigns_rocksdb


def combination(rules: BrokerRules) -> Combination:
    """Return the combination of a broker with `combined_queues`."""
    named = (part.strip().lower() for part in str(rules.value("combineCQLoadingCQTypes")).split(";"))
    waits = rules.lite_needs_rocksdb and bool(rules.value("combineCQUseRocksdbForLmq"))
    return Combination(
        frozenset(part for part in named if part in _TYPES),
        _kind(rules, "combineCQPreferCQType") != FILES,
        _kind(rules, "combineAssignOffsetCQType") != FILES,
        None if waits else int(rules.value("combineCQMaxExtraSearchCommitLogFiles")),
        waits,
    )


def reads_rocksdb(rules: BrokerRules) -> bool:
    """Say whether consumers get what lies in RocksDB."""
    return rules.rocksdb_queues or rules.combined_queues and combination(rules).reads_rocksdb


def light_from_rocksdb(rules: BrokerRules) -> bool:
    """Say whether light queues are read in RocksDB and all others in files."""
    return rules.combined_queues and combination(rules).light_in_rocksdb and not combination(rules).reads_rocksdb


def light_expected(rules: BrokerRules) -> bool:
    """Say whether light queues get entries in the kind from which consumers are served."""
    return rules.lmq_in_rocksdb if reads_rocksdb(rules) or light_from_rocksdb(rules) else rules.lmq_in_files


def light_twice(rules: BrokerRules) -> bool:
    """Say whether both kinds of queues of a combined store get entries of light queues."""
    return rules.lmq_in_files and rules.lmq_in_rocksdb


def combination_refusal(rules: BrokerRules) -> Refusal | None:
    """Return why the combined store cannot be made."""
    made = combination(rules)
    for key in ("combineAssignOffsetCQType", "combineCQPreferCQType"):
        if _kind(rules, key) not in made.loads:
            line = line_to_correct(rules, key, "combineCQLoadingCQTypes")
            loaded, wanted = str(rules.value("combineCQLoadingCQTypes")), f"{key}={rules.value(key)}"
            return Refusal(RefusalKind.DOUBLE_WRITE_NOT_LOADED, expected=loaded, actual=wanted, setting=line)
    if rules.lite_needs_rocksdb and rules.value("combineCQUseRocksdbForLmq"):
        if _TYPES[1] not in made.loads or made.assigns_rocksdb:
            assigns = ("combineAssignOffsetCQType",) if made.assigns_rocksdb else ()
            line = line_to_correct(rules, *assigns, "combineCQLoadingCQTypes")
            return Refusal(RefusalKind.DOUBLE_WRITE_LIGHT, setting=line)
    if rules.value("rocksdbCQSelectiveDoubleWriteEnable"):
        if made.assigns_rocksdb or made.reads_rocksdb:
            line = line_to_correct(rules, "rocksdbCQSelectiveDoubleWriteEnable")
            return Refusal(RefusalKind.DOUBLE_WRITE_SELECTIVE, setting=line)
    return None


def late_combination_refusal(rules: BrokerRules) -> Refusal | None:
    """Return why a broker ends after load() has done its work."""
    if rules.lite_needs_rocksdb and not rules.value("combineCQUseRocksdbForLmq"):
        line = line_to_correct(rules, "combineCQUseRocksdbForLmq", "rocksdbCQDoubleWriteEnable")
        return Refusal(RefusalKind.DOUBLE_WRITE_WITHOUT_LIGHT, actual=rules.release, setting=line)
    return None


def line_to_correct(rules: BrokerRules, *keys: str) -> str:
    """Return the first of these lines that broker.conf has; the first one's default if it has none of them."""
    named = next((key for key in keys if rules.settings[key].origin == "broker.conf"), keys[0])
    value = rules.value(named)
    return f"{named}={str(value).lower() if isinstance(value, bool) else value}"


def _kind(rules: BrokerRules, key: str) -> str:
    return str(rules.value(key)).lower()
