"""Truncation of queues in RocksDB up to 5.3.1 goes by the broker's topics: the plan against what 5.3.1 does (rocksdb.md 3)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.broker_truth.harness.damaged_copies import (
    SIZES,
    damaged_twice,
    flip,
    older,
    planned,
    seen_by,
    two_lives,
    unclean,
    zero,
)
from tests.broker_truth.harness.kinds import ROCKSDB
from tests.broker_truth.harness.real_broker import Jvm, Put, conf_of
from tests.support.answers import product
from tests.support.stores.rocksdb_stores import write_database

pytestmark = pytest.mark.broker
RELEASE = "5.3.1"
SETTINGS = ROCKSDB | SIZES
TOPICS = {"Topic0": 2, "Topic1": 1, "Late": 4}  # Topic1 had two queues; Topic2 was deleted
PUTS = [Put(f"Topic{n % 3}", b"x" * (20 + n % 90), n // 3 % 2, "tag", uniq=f"U{n}") for n in range(300)]
LATE = 260  # from here on there are messages of Late
LIVES = [PUTS[:120], [*PUTS[120:LATE], *(Put("Late", b"y" * 30, n % 2) if n % 5 == 0 else PUTS[n] for n in range(LATE, 300))]]
DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "none": lambda s: None,
    "unclean": unclean,
    "older": older,
    "older, unclean": lambda s: (older(s), unclean(s)),
    "log zeroed near the end": lambda s: zero(s, 0.97),
    "log torn near the end": lambda s: zero(s, 0.97, 10),
    "before the first message of a queue": lambda s: zero(s, 0.5),
    "before the first message of a queue, unclean": lambda s: (zero(s, 0.5), unclean(s)),
    "bit": lambda s: flip(s, 0.95),
    "torn, unclean": lambda s: (zero(s, 0.96, 20), unclean(s)),
    "all gone": lambda s: zero(s, 0),
}


@pytest.fixture(scope="module")
def stopped(jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    two_lives(jvm_of(RELEASE), folder, SETTINGS, LIVES)
    return folder / "stopped"


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("topics", [TOPICS, {}, {"Topic0": 4, "Topic1": 4, "Topic2": 4}], ids=["some", "none", "without Late"])
def test_the_plan_is_what_the_release_does(
    topics: Mapping[str, int], what: str, stopped: Path, jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    audited, started = damaged_twice(stopped, DAMAGES[what], tmp_path)
    rows = [(name.encode(), json.dumps({"topicName": name, "writeQueueNums": n}).encode()) for name, n in topics.items()]
    write_database(audited / "config" / "topics", {"default": rows, "kvDataVersion": [(b"kvDataVersionKey", b'{"counter":7}')]})
    audit = product.audit(audited, RELEASE, conf_of(SETTINGS))
    plan = audit.broker
    assert plan is not None, audit.incomplete
    with jvm_of(RELEASE).broker(started, SETTINGS, topics=topics) as broker:
        assert broker.load() is plan["starts"], plan["refusal"]
        if not plan["starts"]:
            assert topics
            return
        broker.start()
        time.sleep(0.1)
        queues = planned(plan["after_dispatch"]["queues"])
        found = seen_by(broker, queues)
        end = broker.state()["maxPhyOffset"]
    assert end == plan["truncate_at"]
    assert not {key: (queues.get(key), numbers) for key, numbers in found.items() if numbers not in queues.get(key, [])}
