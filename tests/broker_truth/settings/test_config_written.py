"""What --fix-config writes, read by the parser of each release: the same tables as the audit's own reader gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker_truth.harness.real_broker import RELEASES, Jvm
from tests.store_io.kinds.config.rebuild.test_fix_config import fixed, store, tables, topics

pytestmark = pytest.mark.broker
TORN = {f"{name}.json{end}": "{" for name in ("topics", "subscriptionGroup", "delayOffset") for end in ("", ".bak")}


@pytest.mark.parametrize("release", RELEASES)
def test_releases_read_what_is_written(release: str, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    older = '{"offsetTable":{"T@g":{0:3,2:70}}}'
    made = store(tmp_path / "store", release, {**TORN, "consumerOffset.json": "{", "consumerOffset.json.bak": older})
    assert fixed(made, tmp_path / "new").exit_code == 0
    _compare(jvm_of(release), tmp_path / "new", tables(tmp_path / "new", made))


@pytest.mark.parametrize("release", RELEASES)
def test_releases_read_an_older_table_with_what_the_log_adds(release: str, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    made = store(tmp_path / "store", release, {"topics.json": "{", "topics.json.bak": topics("kept", 'a "name" – 组')})
    assert fixed(made, tmp_path / "new").exit_code == 0
    _compare(jvm_of(release), tmp_path / "new", tables(tmp_path / "new", made))


def _compare(jvm: Jvm, root: Path, held: Any) -> None:
    """held: the audit's tables. The wrappers are those that the managers decode, or of the same fields."""
    old = jvm.release.startswith("4.")
    body = "common.protocol.body" if old else "remoting.protocol.body"
    remoting = jvm.gateway.jvm.org.apache.rocketmq.remoting.protocol.RemotingSerializable

    def read(name: str, wrapper: str) -> Any:
        text = (root / "config" / f"{name}.json").read_text()
        return remoting.fromJson(text, jvm.gateway.jvm.java.lang.Class.forName(f"org.apache.rocketmq.{wrapper}"))

    found = dict(read("topics", f"{body}.TopicConfigSerializeWrapper").getTopicConfigTable())
    assert {
        name: (topic.getTopicName(), topic.getReadQueueNums(), topic.getWriteQueueNums(), topic.getPerm(), topic.isOrder())
        for name, topic in found.items()
    } == {
        name: (name, topic["readQueueNums"], topic["writeQueueNums"], topic["perm"], topic["order"])
        for name, topic in held.topics.items()
    }
    found = dict(read("subscriptionGroup", f"{body}.SubscriptionGroupWrapper").getSubscriptionGroupTable())
    assert {name: (own.getGroupName(), own.isConsumeEnable(), own.getRetryMaxTimes()) for name, own in found.items()} == {
        name: (name, group["consumeEnable"], group["retryMaxTimes"]) for name, group in held.groups.items()
    }
    found = dict(read("consumerOffset", f"{body}.ConsumerOffsetSerializeWrapper").getOffsetTable())
    assert {
        (group, topic, queue): offset
        for key, queues in found.items()
        for topic, _, group in [key.partition("@")]
        for queue, offset in dict(queues).items()
    } == held.offsets
    if old:  # later ones have this class in the broker's own module
        found = dict(read("delayOffset", "store.schedule.DelayOffsetSerializeWrapper").getOffsetTable())
        assert found == held.delay_offsets == {2: 2}
