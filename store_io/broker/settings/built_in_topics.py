"""The topics and groups that a broker makes by itself before it reads a file: no file has to name them.

Source: the constructors or init() of TopicConfigManager and SubscriptionGroupManager, 4.8.0 to 5.5.0 (config.md 2).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.layouts import commitlog_layout
from schemas.layouts.store_names import BRIDGE_TOPIC
from schemas.layouts.timer_layout import TIMER_TOPIC
from schemas.rows import Row
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.config_rules import config_rules

READ_WRITE, INHERITED, ONLY_INHERITED = 6, 7, 1  # perm
TRANSACTION_DONE = commitlog_layout.OPERATION_TOPIC
_SYSTEM_PREFIXES = ("rmq_sys_", "RMQ_SYS_")  # no client asks for these; some releases have them in no table
_SYSTEM_TOPICS = frozenset(  # of TopicValidator, whatever release and settings have them in the table at start
    ("TBW102", "BenchmarkTest", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC")
) | {commitlog_layout.SCHEDULE_TOPIC, commitlog_layout.GIVEN_UP_TOPIC}
RETRY, DEAD = "%RETRY%", "%DLQ%"  # before the name of a group
SYSTEM_GROUPS = "CID_RMQ_SYS_"  # before the name of any group of a broker's own
_REPLIES = "_REPLY_TOPIC"  # after the name of any cluster
_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)


def _topic(queues: int, perm: int = READ_WRITE) -> Row:
    return {"readQueueNums": queues, "writeQueueNums": queues, "perm": perm}


def is_brokers_own(topic: str) -> bool:
    """Say whether brokers make this topic by themselves, whatever their release, settings and names: nobody has to create it."""
    return topic in _SYSTEM_TOPICS or topic.startswith(_SYSTEM_PREFIXES) or topic.endswith(_REPLIES)


def built_in_topics(rules: BrokerRules) -> dict[str, Row]:
    """Name -> numbers of queues and perm. Without a brokerName that of the broker's host is unknown, and its topics left out."""
    own = config_rules(rules)
    cluster, broker = str(rules.value("brokerClusterName")), str(rules.value("brokerName"))
    topics = {
        "SELF_TEST_TOPIC": _topic(1),
        "BenchmarkTest": _topic(1024),
        cluster: _topic(16, INHERITED),
        "OFFSET_MOVED_EVENT": _topic(1),
        commitlog_layout.SCHEDULE_TOPIC: _topic(18),
        f"{cluster}_REPLY_TOPIC": _topic(1),
    }
    if broker:
        topics[broker] = _topic(1, INHERITED)
    if rules.value("autoCreateTopicEnable"):
        topics["TBW102"] = _topic(8, INHERITED)
    if rules.value("traceTopicEnable"):
        topics[str(rules.value("msgTraceTopicName"))] = _topic(1)
    if not own.topics_of_transactions:
        return topics
    topics |= {
        commitlog_layout.HALF_TOPIC: _topic(1),
        TRANSACTION_DONE: _topic(1),
        f"rmq_sys_REVIVE_LOG_{cluster}": _topic(8),
    }
    if broker:
        topics[f"rmq_sys_SYNC_BROKER_MEMBER_{broker}"] = _topic(1, ONLY_INHERITED)
    if own.timer_topic and rules.timers:
        topics[TIMER_TOPIC] = _topic(1)
    if own.topics_of_rocksdb_transactions:
        topics |= {
            "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC": _topic(1),
            "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC": _topic(1),
        }
    return topics


def built_in_groups(rules: BrokerRules) -> frozenset[str]:
    return frozenset(_GROUPS) | ({"CID_RMQ_SYS_TRANS"} if config_rules(rules).topics_of_transactions else set())


def is_asked_for(topic: str) -> bool:
    """Say whether clients ask for such a topic, so that a table has to name it."""
    return topic != BRIDGE_TOPIC and not topic.startswith(LMQ_PREFIX) and not is_brokers_own(topic)


def group_of(topic: str) -> Iterator[str]:
    """Yield the names of groups whose retries or dead messages such a topic may hold; none for an ordinary topic.

    A retry topic of pop has the name of the group, "_" or "+", and the topic: nothing shows where the first of them ends.
    """
    for prefix in (RETRY, DEAD):
        if topic.startswith(prefix):
            name = topic.removeprefix(prefix)
            yield name
            yield from (name[:at] for at, sign in enumerate(name) if sign in "_+" and at)
