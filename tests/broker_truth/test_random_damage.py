"""Random stores, damaged at random: what load() and start() of the real release make of them, against the plan.

`-m broker` takes some of each release, `-m soak` many. A store follows from its release and number alone.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.broker_truth.harness.damaged_copies import planned, seen_by
from tests.broker_truth.harness.kinds import ROCKSDB_RELEASES, with_settings
from tests.broker_truth.harness.real_broker import RELEASES, Broker, Jvm, batch_topics
from tests.support.answers import product
from tests.support.stores.random_stores import random_keyed, random_settings, random_store

FOLDERS = "commitlog", "consumequeue", "batchconsumequeue", "index"
WAITS, STARTS = 3, 20  # seconds after which start() waits without end: where the plan says so, and where it does not
SOME, MANY = range(40), range(40, 640)
# With each of these, too: what start() dispatches, and what it waits for, depends on both.
SETTINGS = {
    "own settings": "",
    "recheck": "recheckReputOffsetFromCq=true\n",
    "duplication": "duplicationEnable=true\n",
    "duplication, recheck": "duplicationEnable=true\nrecheckReputOffsetFromCq=true\n",
    "duplication, uncommitted": "duplicationEnable=true\nreadUnCommitted=true\n",
}
CASES = with_settings(RELEASES, SETTINGS)
Made = tuple[Path, str, str]  # a store, its broker.conf, and what was done to it


@pytest.mark.parametrize("numbers", [pytest.param(SOME, marks=pytest.mark.broker), pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("release", "more"), CASES)
def test_the_plan_is_what_the_release_does(
    release: str, more: str, numbers: range, jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    hold(release, (random_made(tmp_path / f"{number}", release, number, more) for number in numbers), jvm_of)


@pytest.mark.parametrize("numbers", [pytest.param(SOME, marks=pytest.mark.broker), pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.parametrize("release", ROCKSDB_RELEASES)
def test_so_it_is_with_queues_in_rocksdb(release: str, numbers: range, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    hold(release, (_in_rocksdb(tmp_path / f"{number}", release, number) for number in numbers), jvm_of)


def random_made(folder: Path, release: str, number: int, more: str) -> Made:
    """The random store of that number which this release is to open. more: lines of its broker.conf besides."""
    made = random_store(folder, Random(f"{release}/{number}"))
    return made.store.root, made.broker_conf + more, made.describe()


def _in_rocksdb(folder: Path, release: str, number: int) -> Made:
    random = Random(f"RocksDB/{release}/{number}")
    made, done = random_keyed(folder, random, release)
    return made.write().root, random_settings(random, made.plain) + "storeType=defaultRocksDB\n", done


def hold(release: str, stores: Iterable[Made], jvm_of: Callable[[str], Jvm], least: int = 10) -> None:
    """Fail over each store that the release opens otherwise than the plan says. least: more than so many must start."""
    judged = started = 0
    wrong: list[str] = []
    for root, conf, done in stores:
        audit = product.audit(root, release, conf)
        if audit.broker is None:
            assert "RocksDB" in conf and any("not modelled" in sentence for sentence in audit.incomplete), audit.incomplete
            continue
        copy = root.with_name(f"{root.name}-started")
        shutil.copytree(root, copy)
        with jvm_of(release).broker(copy, conf, batch_topics(root) if release >= "5" else ()) as broker:
            found = _differences(audit, broker, root, "RocksDB" in conf)
        wrong += [f"{root.name}: {done}; {' '.join(conf.split())}", *found] if found else []
        judged, started = judged + 1, started + audit.broker["starts"]
        shutil.rmtree(root)
    assert not wrong, "\n".join(wrong)
    assert started > judged / 2 and started > least


def _differences(audit: product.Audited, broker: Broker, before: Path, keyed: bool) -> list[str]:
    """What the plan tells otherwise, in short. before: the copy that the broker's own is one of."""
    plan, prediction = audit.broker, audit.audit.prediction
    assert plan is not None and prediction is not None
    try:
        loads = broker.load()
    except Py4JJavaError:
        loads = False
    if loads != plan["starts"]:
        return [f"load() is {loads}; the plan: {plan['refusal'] or 'starts'}"]
    if not loads:
        return []
    folders = FOLDERS if not keyed else ("commitlog", "index")
    deleted = [
        sorted(name for name in names if name.partition("/")[0] in folders)
        for names in (plan["deleted_files"], _files(before) - _files(broker.root))
    ]
    ends = plan["min_phy_offset"], plan["truncate_at"]
    found = [f"deleted: plan {deleted[0]}, broker {deleted[1]}"] if deleted[0] != deleted[1] else []
    # Also in RocksDB, as a broker remembers the minima that it worked out when it was asked.
    found += _apart("load()", broker, plan["after_load"], ends, keyed)
    if found:
        return found
    plan_waits = prediction.hangs_at >= 0
    waits = _waits(broker, WAITS if plan_waits else STARTS)
    if waits != plan_waits:
        return [f"start() waits: plan {plan_waits}, broker {waits}"]
    time.sleep(0.1 * keyed)  # entries are put by a thread of its own
    return [] if waits else _apart("start()", broker, plan["after_dispatch"], ends, keyed)


def _apart(moment: str, broker: Broker, plan: Mapping[str, Any], ends: tuple[int, int], keyed: bool) -> list[str]:
    """What differs after `moment`, a line each."""
    state, queues = broker.state(), planned(plan["queues"])
    ours = {
        "ends": ends,
        "log": [(file["file"], file["wrote"]) for file in plan["commitlog"]],
        # A file without entries counts from 1 in memory, whatever it stores.
        "index": [(file["begin_phy_offset"], file["end_phy_offset"], max(file["index_count"], 1)) for file in plan["index"]],
    }
    theirs = {
        "ends": (state["minPhyOffset"], state["maxPhyOffset"]),
        "log": [(file["name"], file["wrotePosition"]) for file in state["commitLogFiles"]],
        "index": [(file["beginPhyOffset"], file["endPhyOffset"], file["indexCount"]) for file in state["indexFiles"]],
    }
    found = [f"after {moment}, {name}: plan {ours[name]}, broker {theirs[name]}" for name in ours if ours[name] != theirs[name]]
    seen = seen_by(broker, queues) if keyed else broker.queues()  # RocksDB lists no queue that nobody asked for
    wrong = {
        key: (queues.get(key), seen.get(key)) for key in seen.keys() | queues.keys() if seen.get(key) not in queues.get(key, [])
    }
    return found + [f"after {moment}, queue {key}: plan {ours}, broker {theirs}" for key, (ours, theirs) in sorted(wrong.items())]


def _waits(broker: Broker, seconds: float) -> bool:
    try:
        broker.start(seconds)
    except TimeoutError:
        return True
    return False


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
