"""Bad bytes among the ends of queues in RocksDB, beside the end mark: what the releases do, as rocksdb.md 3 says."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker_truth.damaged_copies import numbers_of, zero_from
from tests.broker_truth.kinds import ROCKSDB
from tests.broker_truth.real_broker import Jvm, Put, conf_of
from tests.support import product
from tests.support.damage import invert_byte

pytestmark = pytest.mark.broker

SEGMENT = 1 << 17
QUEUES = 3000  # their ends take more than one block of a table
SETTINGS = ROCKSDB | {"mappedFileSizeCommitLog": SEGMENT, "maxHashSlotNum": 100, "maxIndexNum": 600}
CUT = 540_128  # inside of the second half of the messages, where each topic gets its second one


@pytest.fixture(scope="module", params=["5.3.3", "5.4.0", "5.5.0"])
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    store = tmp_path_factory.mktemp("written") / "store"
    broker = jvm_of(request.param).broker(store, SETTINGS)
    assert broker.load()
    broker.start()
    broker.put([Put(f"Topic{n % QUEUES:04d}", b"x" * 20) for n in range(2 * QUEUES)])
    broker.catch_up()
    time.sleep(0.3)
    broker.shutdown()
    (table,) = (path for path in (store / "consumequeue").glob("*.sst") if b"CHECKPOINT_TOPIC" in path.read_bytes())
    invert_byte(table, 20, 1)
    return request.param, store


@pytest.mark.parametrize("zeroed", [False, True])
def test_queues_in_the_bad_bytes_serve_nothing_and_all_after_them_keep_their_ends(
    zeroed: bool, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, store = written
    shutil.copytree(store, tmp_path / "s")
    if zeroed:
        zero_from(tmp_path / "s", CUT, SEGMENT)
    audit = product.audit(tmp_path / "s", release, conf_of(SETTINGS))
    assert audit.broker is None and any("bad bytes among the ends" in sentence for sentence in audit.incomplete)
    with jvm_of(release).broker(tmp_path / "s", SETTINGS) as broker:
        assert broker.load()
        broker.start()
        first, last = (broker.java.getConsumeQueue(f"Topic{n:04d}", 0) for n in (0, QUEUES - 1))
        assert numbers_of(first) == (-1, 0, -1)
        assert last.getMaxOffsetInQueue() == 2 and (last.getMaxPhysicOffset() > broker.java.getMaxPhyOffset()) is zeroed
        refused, put = broker.put([Put("Topic0000", b"new"), Put(f"Topic{QUEUES - 1:04d}", b"new")])
        assert refused.status == "UNKNOWN_ERROR" and (put.status, put.queue_offset) == ("PUT_OK", 2)
