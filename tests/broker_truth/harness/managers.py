"""The managers of topics, groups and offsets of a real broker, as its BrokerController makes and loads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.broker_truth.harness.real_broker import Jvm, conf_of

Offset = tuple[str, str, int]


@dataclass(frozen=True)
class Loaded:
    """starts: what initializeMetadata returned; False where it threw, too.  offsets: (group, topic, queue id) -> offset."""

    starts: bool
    topics: Mapping[str, int]
    groups: Mapping[str, int]
    offsets: Mapping[Offset, int]
    thrown: str = ""


class Managers:
    """Those of one store. settings: RocketMQ's own keys."""

    def __init__(self, jvm: Jvm, root: Path, settings: Mapping[str, Any]):
        self._java = jvm.gateway.jvm
        base, java = self._java.org.apache.rocketmq, self._java.java
        properties = java.util.Properties()
        given = {"brokerName": "broker-a", **settings, "storePathRootDir": str(root)}
        properties.load(java.io.ByteArrayInputStream(conf_of(given).encode("latin-1")))
        broker, store = base.common.BrokerConfig(), base.store.config.MessageStoreConfig()
        for each in (broker, store):
            base.common.MixAll.properties2Object(properties, each)
        netty = base.remoting.netty
        self.controller = base.broker.BrokerController(broker, netty.NettyServerConfig(), netty.NettyClientConfig(), store)

    def load(self) -> Loaded:
        """What a start does with config/."""
        thrown = ""
        try:
            starts = bool(self.controller.initializeMetadata())
        except Py4JJavaError as problem:
            starts, thrown = False, str(problem.java_exception)
        return Loaded(starts, *self._tables(), thrown)

    def _tables(self) -> tuple[dict[str, int], dict[str, int], dict[Offset, int]]:
        json = self._java.java.util.TreeMap
        topics = json(self.controller.getTopicConfigManager().getTopicConfigTable())
        groups = json(self.controller.getSubscriptionGroupManager().getSubscriptionGroupTable())
        offsets = {}
        table = self.controller.getConsumerOffsetManager().getOffsetTable()
        for key in list(table):
            topic, _, group = key.partition("@")
            queues = table[key]
            offsets |= {(group, topic, int(queue)): int(queues[queue]) for queue in list(queues)}
        return (
            {str(name): int(topics[name].getReadQueueNums()) for name in list(topics)},
            {str(name): int(groups[name].getRetryMaxTimes()) for name in list(groups)},
            offsets,
        )

    def write(self, topics: Mapping[str, int], groups: Mapping[str, int], offsets: Mapping[Offset, int]) -> None:
        """Put them as administrators and clients do."""
        common = self._java.org.apache.rocketmq.common
        for name, queues in topics.items():
            self.controller.getTopicConfigManager().updateTopicConfig(common.TopicConfig(name, queues, queues, 6))
        for name, retries in groups.items():
            group = self._java.org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig()
            group.setGroupName(name)
            group.setRetryMaxTimes(retries)
            self.controller.getSubscriptionGroupManager().updateSubscriptionGroupConfig(group)
        for (group_name, topic, queue), offset in offsets.items():
            self.controller.getConsumerOffsetManager().commitOffset("client", group_name, topic, queue, offset)
        self.controller.getConsumerOffsetManager().persist()

    def put_records(self, records: Mapping[bytes, bytes]) -> None:
        """Into the database of the second version, after `load`, whatever they are."""
        database = _field(_field(self.controller, "configStorage"), "db")
        for key, value in records.items():
            database.put(key, value)

    def stop(self) -> None:
        """As a clean stop does: tables are written, databases closed."""
        managers = [
            self.controller.getTopicConfigManager(),
            self.controller.getSubscriptionGroupManager(),
            self.controller.getConsumerOffsetManager(),
        ]
        for manager in managers:
            with suppress(Py4JJavaError):
                manager.persist()
        for manager in managers:
            with suppress(Exception):
                manager.stop()
        storage = _field(self.controller, "configStorage")
        if storage is not None:
            storage.shutdown()


def _field(owner: Any, name: str) -> Any:
    """The value of a field of whatever access; None without one."""
    kind = owner.getClass()
    while kind is not None:
        with suppress(Py4JJavaError):
            field = kind.getDeclaredField(name)
            field.setAccessible(True)
            return field.get(owner)
        kind = kind.getSuperclass()
    return None


class Tables:
    """The managers that keep their tables in files, loaded one folder after another. jvm: with the jars of managers."""

    def __init__(self, jvm: Jvm, folder: Path):
        given = jvm.gateway.new_array(jvm.gateway.jvm.java.lang.Object, 1)
        given[0] = jvm.broker(folder).java
        self._java = jvm.compiled("Tables").newInstance(given)

    def load(self, root: Path) -> dict[str, tuple[bool | str, Any]]:
        """File -> whether its manager loads it (or what it throws), and the table that it holds then; None where nobody asks."""
        found = json.loads(self._java.load(str(root)))
        return {name: (loads, table) for name, (loads, table) in found.items()}
