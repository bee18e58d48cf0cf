"""The places in RocksDB of a table of config/, and how a release reads such a database (config.md 6).

Source: RocksDBTopicConfigManager, RocksDBSubscriptionGroupManager, RocksDBConsumerOffsetManager (rocksdbConfigFilePath, load,
migrateFromSeparateRocksDBs), RocksDBConfigManager.loadData, ConfigRocksDBStorage.iterate; 5.1.4, 5.3.0 to 5.3.3, 5.4.0, 5.5.0.
Of the second version ConfigStorage, TableId, TopicConfigManagerV2, SubscriptionGroupManagerV2, ConsumerOffsetManagerV2; 5.3.2 to
5.5.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from store_io.broker.releases import BrokerRules
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    SECOND_VERSION,
    SECOND_VERSION_FOLDER,
    SINGLE_FOLDER,
    TOPICS,
    config_rules,
    tables_database,
)

VERSION_KEY = b"kvDataVersionKey"
_SEPARATE = {TOPICS: "topics", GROUPS: "subscriptionGroups", CONSUMER_OFFSETS: "consumerOffsets", LMQ_OFFSETS: "consumerOffsets"}
_FAMILIES = {TOPICS: "topic", GROUPS: "subscriptionGroup", CONSUMER_OFFSETS: "consumerOffset", LMQ_OFFSETS: "consumerOffset"}

_NUMBERS = {TOPICS: 3, GROUPS: 4, CONSUMER_OFFSETS: 1, LMQ_OFFSETS: 1}


@dataclass(frozen=True)
class TablePlace:
    """One table: the family of a database, and the family with its dataVersion; "" if a release keeps none.

    other_families_refused: a database with families that the release does not name stops it.
    ends_silently: a load that meets bad bytes takes the entries before them; else the broker ends.
    number: that of the table, in the keys of a database of the second version, which holds all in one family; 0 for the first.
    """

    folder: str
    family: str
    versions: str
    other_families_refused: bool = False
    ends_silently: bool = False
    number: int = 0


def table_places(rules: BrokerRules) -> dict[str, list[TablePlace]]:
    """Return, by the path of the file in its place, the databases of a table.

    The first is read, the second is taken into it if it is newer.
    """
    folder = tables_database(rules)
    if not folder:
        return {}
    own = config_rules(rules)
    if folder == SECOND_VERSION_FOLDER:
        numbers = {path: _NUMBERS[path] for path in (TOPICS, LMQ_OFFSETS if rules.lmq_offsets else CONSUMER_OFFSETS, GROUPS)}
        return {
            path: [TablePlace(folder, "default", "", other_families_refused=True, ends_silently=True, number=number)]
            for path, number in numbers.items()
        }
    found = {}
    for path, name in _SEPARATE.items():
        place = TablePlace(
            f"config/{name}",
            "default",
            "kvDataVersion" if own.imports_files else "",
            other_families_refused=not own.imports_files,
            ends_silently=not own.knows_single_database,
        )
        found[path] = [place]
        if folder == SINGLE_FOLDER:
            family = _FAMILIES[path]
            found[path].insert(0, TablePlace(folder, family, f"{family}Version"))
    return found


def all_places(path: str) -> list[TablePlace]:
    """Return the places in databases at which any release may have left the table of that file.

    A file that each release keeps as it is has none.
    """
    if path not in _SEPARATE:
        return []
    family = _FAMILIES[path]
    return [
        TablePlace(f"config/{_SEPARATE[path]}", "default", "kvDataVersion", ends_silently=True),
        TablePlace(SINGLE_FOLDER, family, f"{family}Version", ends_silently=True),
        TablePlace(SECOND_VERSION_FOLDER, "default", "", ends_silently=True, number=_NUMBERS[path]),
    ]


def setting_of(form: str, path: str, rules: BrokerRules) -> str:
    """Return the lines of broker.conf with which this release takes the table from the form, or "".

    path: the file of the table.
    form: a file, or the folder of a database with a slash after it.
    """
    own, folder = config_rules(rules), form.removesuffix("/")
    in_files = {"configManagerVersion": "v1", "storeType": "default"}
    if folder == SECOND_VERSION_FOLDER:
        known, wanted = own.knows_second_version, {"configManagerVersion": SECOND_VERSION}
    elif folder == SINGLE_FOLDER:
        known = own.knows_single_database
        wanted = {**in_files, "storeType": "defaultRocksDB", "useSingleRocksDBForAllConfigs": "true"}
    elif form.endswith("/"):
        known = own.tables_in_rocksdb
        wanted = {**in_files, "storeType": "defaultRocksDB", "useSingleRocksDBForAllConfigs": "false"}
    else:
        known, wanted = True, in_files
        if path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
            wanted |= {"enableLmq": str(form.startswith(LMQ_OFFSETS)).lower()}
    lines = [f"{key}={value}" for key, value in wanted.items() if str(rules.value(key)).lower() != value.lower()]
    return " and ".join(lines) if known else ""
