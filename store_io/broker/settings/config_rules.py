"""Gives the rules by which a release reads config/ (config.md 1, 2, 3, 6).

They are: which files it reads, its parser's grammar, its managers' refusals and their use of the tables. It also says without
which files a broker does not start, and where it keeps its tables.
Source: fastjson 1.2.69 (4.x), 1.2.83 (5.0 to 5.3.3), fastjson2 (from 5.4.0); BrokerController.initialize (the order of the
loaders); ConfigManager.load; TopicConfigManager, SubscriptionGroupManager, ConsumerOffsetManager (decode);
ScheduleMessageService.correctDelayOffset; RocksDBTopicConfigManager.merge; TimerMessageStore.load.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas.layouts.timer_layout import TIMER_CHECK
from store_io.broker.releases import KNOWN_RELEASES, BrokerRules, Version, changed_until, parse_known

TABLES_IN_ROCKSDB = "defaultrocksdb"
SECOND_VERSION, SECOND_VERSION_FOLDER = "v2", "config/rdb"
SINGLE_FOLDER = "config/metadata"
OLDEST = parse_known(KNOWN_RELEASES[0])
TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"
DELAY_OFFSETS = "config/delayOffset.json"
CONSUMER_OFFSETS = "config/consumerOffset.json"
LMQ_OFFSETS = "config/lmqConsumerOffset.json"
TIMER_COUNTERS = "config/timermetrics"  # TimerMetrics: counters alone, which a broker without the file begins anew
DATABASE_TABLES = (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS)  # the files whose tables may lie in a database
TABLE_NOUNS = {  # of one entry
    TOPICS: "topic", GROUPS: "group", CONSUMER_OFFSETS: "offset", LMQ_OFFSETS: "offset", DELAY_OFFSETS: "delay offset",
}  # fmt: skip
# What is read of a file at most, as a value may take a hundred bytes of memory: a million topics are some 230 MB and 21 million
# values, the offsets of a group in four queues of each of them some 110 MB and 10 million.
MAX_FILE_BYTES = 256 << 20


@dataclass(frozen=True, kw_only=True)
class ConfigRules:
    """The rules in which releases differ. The defaults are those of the oldest one.

    version: for the fields that its objects have (`store_io.broker.texts.beans`).
    """

    version: Version = OLDEST
    # the parser
    blank_is_nothing: bool = True  # white space alone, a byte 0x1A, NULL and [] are no object: nothing is loaded, no fault
    bare_names: bool = True  # keys without quotes, repeated commas, control characters between tokens
    names_by_likeness: bool = True  # TopicConfigTable and topic_config_table are topicConfigTable
    fastjson2: bool = False  # another parser: what it takes in place of a number or a truth value differs
    newer_fastjson2: bool = False  # "1,000" and 1.5D are numbers there, a list of one number is one in a map as well
    skips_numbers_as_names: bool = False  # without quotes, within a field that is not known; fastjson2 refused them before
    booleans_are_longs: bool = False  # true is 1 where a long is asked for, as it is in all releases where an int is
    long_wraps: bool = False  # an offset beyond 64 bits becomes another number; else it is refused
    hash_map_type: bool = False  # "@type" may name java.util.HashMap
    ignores_types: bool = False  # "@type" of any class is skipped; else refused
    # the form in which it writes
    pair_a_line: bool = False  # each pair of a map of offsets, and the inside of an empty map, have lines of their own
    attributes: bool = False  # topics and groups have attributes, versions a stateVersion
    pull_offsets: bool = False  # consumerOffset.json has pullOffsetTable
    # the managers
    blank_groups_refused: bool = True  # white space, "" and } in subscriptionGroup.json
    blank_offsets_refused: bool = False  # the same in consumerOffset.json
    empty_text_offsets_refused: bool = False  # "" in consumerOffset.json
    skips_light_offsets: bool = (
        False  # fastjson finds no constructor without arguments, and fills no field of lmqConsumerOffset.json
    )
    clamps_delay_offsets: bool = False  # into [min, max] of the level's queue
    # what is there without a file
    topics_of_transactions: bool = False  # their topics, that of pop and of the members, a group
    timer_topic: bool = False
    topics_of_rocksdb_transactions: bool = False
    # where tables are kept
    tables_in_rocksdb: bool = False  # storeType=defaultRocksDB: topics, groups and offsets
    imports_files: bool = False  # a file with a greater dataVersion than the database's is taken into it
    knows_second_version: bool = False  # configManagerVersion=v2
    knows_single_database: bool = False  # useSingleRocksDBForAllConfigs
    # what follows
    deletion_cleans_unknown: bool = True  # deleting any topic deletes the queues of all topics that are not in the table
    deletion_cleans_offsets: bool = False  # deleting a topic deletes the offsets that groups have on it
    backup_is_moved: bool = False  # the next write moves the file to .bak; else it copies what the file holds over .bak
    refusal_saves_all: bool = False  # after an early refusal all tables are written as they are in memory


CHANGES: dict[str, dict[str, bool]] = {
    "4.9.2": {"clamps_delay_offsets": True},
    "4.9.3": {"skips_light_offsets": True},  # LmqConsumerOffsetManager is new, its constructor for the parser comes with 4.9.4
    "4.9.4": {"skips_light_offsets": False},
    "5.0.0": {
        "hash_map_type": True, "blank_groups_refused": False, "blank_offsets_refused": True, "deletion_cleans_unknown": False,
        "deletion_cleans_offsets": True,  # AdminBrokerProcessor.deleteTopic, ConsumerOffsetManager.cleanOffsetByTopic
        "topics_of_transactions": True, "attributes": True, "booleans_are_longs": True,
    },
    "5.1.4": {"tables_in_rocksdb": True},
    "5.3.1": {"imports_files": True, "timer_topic": True},
    "5.3.2": {"knows_second_version": True},
    # RocksDBTopicConfigManager; ConfigManager.persist, which from here on catches what ScheduleMessageService.configFilePath
    # throws, so that BrokerController.shutdownBasicService writes the other tables, too. It came with the calls of
    # MixAll.fsyncDirectory that 5.3.4's TimerMetrics and TransactionMetrics have.
    "5.3.4": {"knows_single_database": True, "backup_is_moved": True, "refusal_saves_all": True},
    "5.4.0": {
        "blank_is_nothing": False, "bare_names": False, "names_by_likeness": False, "fastjson2": True,
        "long_wraps": True, "ignores_types": True, "blank_offsets_refused": False, "empty_text_offsets_refused": True,
        "topics_of_rocksdb_transactions": True, "pair_a_line": True,
    },
    "5.5.0": {"long_wraps": False, "newer_fastjson2": True, "pull_offsets": True},
    "5.5.1": {"skips_numbers_as_names": True, "pull_offsets": False},
}  # fmt: skip

_PARSER = (
    "blank_is_nothing", "bare_names", "names_by_likeness", "fastjson2", "long_wraps", "hash_map_type", "ignores_types",
    "blank_offsets_refused", "empty_text_offsets_refused", "booleans_are_longs", "skips_numbers_as_names",
)  # fmt: skip


def config_rules(rules: BrokerRules) -> ConfigRules:
    """Return the rules of the newest known release that is not above this one."""
    return _rules_of(rules.version)


def _rules_of(version: Version) -> ConfigRules:
    return ConfigRules(version=version, **changed_until(version, CHANGES))


def tables_database(rules: BrokerRules) -> str:
    """Return the folder of the database in which the release keeps topics by these settings. "" if it keeps them in files."""
    own = config_rules(rules)
    if own.knows_second_version and rules.value("configManagerVersion") == SECOND_VERSION:
        return SECOND_VERSION_FOLDER
    if not own.tables_in_rocksdb or str(rules.value("storeType")).lower() != TABLES_IN_ROCKSDB:
        return ""
    single = own.knows_single_database and rules.value("useSingleRocksDBForAllConfigs")
    return SINGLE_FOLDER if single else "config/topics"


def record_rules(rules: BrokerRules) -> ConfigRules:
    """Return how the values of a database of the second version are parsed: by fastjson2 in all releases that know it."""
    own = config_rules(rules)
    later = _rules_of(parse_known("5.4.0"))
    return own if own.ignores_types else replace(own, **{name: getattr(later, name) for name in _PARSER})


def imports_files(rules: BrokerRules) -> bool:
    """Say whether a release that keeps its tables in a database takes newer files into it."""
    return config_rules(rules).imports_files and tables_database(rules) != SECOND_VERSION_FOLDER


@dataclass(frozen=True)
class ConfigFile:
    """One file that a broker reads from release `since` on.

    stops: a broker ends if neither the file nor its .bak can be parsed; late: only after recovery.
    timers: only a broker with timers reads it.
    """

    path: str
    since: str = KNOWN_RELEASES[0]
    stops: bool = True
    late: bool = False
    timers: bool = False


CONFIG_FILES = (  # in the order in which they are loaded
    ConfigFile(TOPICS),
    ConfigFile("config/topicQueueMapping.json", since="5.0.0"),
    ConfigFile(CONSUMER_OFFSETS),
    ConfigFile(GROUPS),
    ConfigFile("config/consumerFilter.json"),
    ConfigFile("config/consumerOrderInfo.json", since="5.0.0"),
    ConfigFile(TIMER_COUNTERS, since="5.0.0", late=True, timers=True),
    ConfigFile(DELAY_OFFSETS, late=True),
    ConfigFile(TIMER_CHECK, since="5.0.0", stops=False, timers=True),
    ConfigFile("config/messageRequestMode.json", since="5.0.0", stops=False),
    ConfigFile("config/transactionMetrics", since="5.3.0", stops=False),
)


def config_files(rules: BrokerRules) -> list[ConfigFile]:
    """Return the files that a broker with these rules reads."""
    known = [file for file in CONFIG_FILES if rules.at_least(file.since) and (rules.timers or not file.timers)]
    if not config_rules(rules).clamps_delay_offsets:  # it reads them before the CommitLog
        known = [replace(file, late=False) if file.path == DELAY_OFFSETS else file for file in known]
    if rules.lmq_offsets:
        return [replace(file, path=LMQ_OFFSETS) if file.path == CONSUMER_OFFSETS else file for file in known]
    return known
