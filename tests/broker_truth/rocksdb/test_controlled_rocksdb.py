"""Replicas in controller mode with ConsumeQueues in RocksDB, damaged: the plan against what the real release does, fenced and
elected."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.damaged_copies import (
    SEGMENT,
    SIZES,
    flip,
    numbers_of,
    older,
    planned,
    random_lives,
    records,
    seen_by,
    unclean,
    zero,
)
from tests.broker_truth.harness.kinds import CONTROLLER, ROCKSDB, ROCKSDB_RELEASES
from tests.broker_truth.harness.real_broker import Broker, Jvm, class_path, conf_of
from tests.broker_truth.rocksdb.test_combined import (
    LIGHT,
    LIGHT_IN_ROCKSDB,
    NUMBERS,
    READS,
    TWICE,
    no_database,
    no_files,
    older_database,
    older_files,
)
from tests.support.answers import product
from tests.support.damage import overwrite, remove

pytestmark = pytest.mark.broker

SETTINGS = ROCKSDB | SIZES | CONTROLLER | {"enableLmq": "true", "enableMultiDispatch": "true"}
MOMENTS = "after_load", "after_dispatch", "after_election"
WAITS = 10  # seconds after which start() waits without end
ATTEMPTS = 3  # on a busy machine the dispatching thread may be done before an election comes to its cut (controller.md 4)
UNCOMMITTED: Mapping[str, Any] = {"readUnCommitted": "true"}
RECHECK: Mapping[str, Any] = {"recheckReputOffsetFromCq": "true"}
State = dict[str, Any]
Damage = Callable[[Path], object]


def confirm(part: float) -> Damage:
    """confirmOffset at the start of a message, as on a slave that lagged."""

    def change(store: Path) -> None:
        found = records(store)
        overwrite(store / "checkpoint", 32, found[int(len(found) * part)].at.to_bytes(8, "big"))

    return change


def refused(part: float, by: int = 0) -> Damage:
    """A message over which only an election stumbles: another size, or another magic."""

    def change(store: Path) -> None:
        found = records(store)
        record = found[int(len(found) * part)]
        data = (record.size + by).to_bytes(4, "big") if by else record.size.to_bytes(4, "big") + b"\x11\x22\x33\x44"
        overwrite(store / "commitlog" / f"{record.at - record.at % SEGMENT:020d}", record.at % SEGMENT, data)

    return change


def database_gone(store: Path) -> None:
    remove(store / "consumequeue")


def log_torn(store: Path) -> None:
    zero(store, 0.8, 20)


DAMAGES: Mapping[str, Sequence[Damage]] = {
    "none": [],
    "unclean": [unclean],
    "confirmed half, unclean": [confirm(0.5), unclean],
    "older": [older, confirm(0.3)],
    "older, unclean": [older, confirm(0.9), unclean],
    "database gone": [database_gone, confirm(0.7)],
    "database gone, unclean": [database_gone, confirm(0.7), unclean],
    "log torn, confirmed before": [confirm(0.5), log_torn, unclean],
    "log torn, confirmed beyond": [confirm(0.9), log_torn, unclean],
    "bit": [confirm(0.9), lambda s: flip(s, 0.6), unclean],
    "refused size": [confirm(0.2), refused(0.3, 1 << 20)],
    "size that does not fit": [confirm(0.2), refused(0.3, 5000)],
    "refused near the end": [confirm(0.2), refused(0.97)],
    "refused, older, unclean": [older, confirm(0.2), refused(0.5), unclean],
    "no epochs": [lambda s: (s / "epochFileCheckpoint").write_bytes(b"")],
}


ONE_KIND: Mapping[str, Sequence[Damage]] = {
    "no database": [no_database],
    "no database, unclean": [no_database, unclean],
    "no files, unclean": [no_files, unclean],
    "older database": [older_database],
    "older files, unclean": [older_files, unclean],
    "older database, confirmed half, unclean": [older_database, confirm(0.5), unclean],
}


def write(release: str, jars: Sequence[Path], folder: Path, settings: Mapping[str, Any]) -> None:
    """Two lives of a master; `older` is the database after the first."""
    with Jvm(release, jars) as jvm:
        for epoch, wanted in enumerate(random_lives(release), 1):
            broker = jvm.broker(folder / "store", settings)
            broker.fence()
            broker.begin()
            assert broker.elect(epoch)
            broker.put(wanted)
            broker.catch_up()
            time.sleep(0.1)  # entries are put by a thread of its own
            broker.shutdown()
            if epoch == 1:
                shutil.copytree(folder / "store" / "consumequeue", folder / "older")


def follow(
    release: str, jars: Sequence[Path], stores: Sequence[tuple[Path, int, State]], settings: Mapping[str, Any]
) -> list[State | None]:
    """Start the release on each store and make it master of this epoch. Each comes with its plan, whose queues are asked for."""
    with Jvm(release, jars) as jvm:
        return [_follow(jvm.broker(root, settings), epoch, plan) for root, epoch, plan in stores]


def _follow(broker: Broker, epoch: int, plan: State) -> State | None:
    with broker:
        broker.fence()
        if not broker.load():
            return None
        found: State = {"confirm": int(broker.java.getConfirmOffset()), "after_load": state(broker, plan, "after_load")}
        try:
            broker.start(WAITS)
        except RuntimeError:
            return None
        except TimeoutError:
            return found | {"waits": True}
        found["after_dispatch"] = state(broker, plan, "after_dispatch")
        assert broker.elect(epoch)
        found["after_election"] = state(broker, plan, "after_election")
        found["epochs"] = [(int(e.getEpoch()), int(e.getStartOffset())) for e in broker.java.getHaService().getEpochEntries()]
        return found


def state(broker: Broker, plan: State, moment: str) -> State:
    time.sleep(0.1)
    told = broker.state()
    both: State = {}
    store = broker.java.getQueueStore()
    for kind in ("queues", "queues_files") if plan and plan[moment]["queues_files"] else ():
        config = broker.java.getMessageStoreConfig()
        reads = str(config.getCombineCQPreferCQType()) == "defaultRocksDB"
        light = broker.jvm.release >= "5.5" and bool(config.isCombineCQUseRocksdbForLmq())
        for key in plan[moment][kind]:
            in_rocksdb = (reads or light and key[0].startswith("%LMQ%")) == (kind == "queues")
            inner = store.getRocksDBConsumeQueueStore() if in_rocksdb else store.getConsumeQueueStore()
            both.setdefault(kind, {})[key] = numbers_of(inner.findOrCreateConsumeQueue(*key))
    queues = both.get("queues", {}) if both else seen_by(broker, plan[moment]["queues"] if plan else {})
    if "Combine" in str(store.getClass().getName()):  # RocksDB lists what was asked for, and start() compares what is listed
        store.getRocksDBConsumeQueueStore().getConsumeQueueTable().clear()
    return {
        "log": [(file["name"], file["wrotePosition"]) for file in told["commitLogFiles"]],
        "queues": queues,
        "queues_files": both.get("queues_files", {}),
        "index": [(file["beginPhyOffset"], file["endPhyOffset"], max(file["indexCount"], 1)) for file in told["indexFiles"]],
    }


def plan_of(root: Path, release: str, settings: Mapping[str, Any]) -> tuple[State, int] | None:
    """The same of the audit's prediction, each queue with all answers that it leaves open; the epoch of its election. None where
    a race decides whether the broker starts."""
    audit = product.audit(root, release, conf_of(settings))
    if audit.broker is None and "a race inside the broker decides whether it starts" in audit.incomplete[0]:
        return None
    assert audit.broker is not None, audit.incomplete
    if not audit.broker["starts"]:
        return {}, 1
    prediction = audit.audit.prediction
    assert prediction is not None and prediction.controller is not None
    fenced, elected = prediction.controller, prediction.controller.elected
    found: State = {
        moment: {
            "log": [(file["file"], file["wrote"]) for file in audit.broker[moment]["commitlog"]],
            "queues": planned(audit.broker[moment]["queues"]),
            "queues_files": planned(audit.broker[moment].get("queues_files", [])),
            "index": [
                (file["begin_phy_offset"], file["end_phy_offset"], max(file["index_count"], 1))
                for file in audit.broker[moment]["index"]
            ],
        }
        for moment in MOMENTS
        if audit.broker[moment] is not None
    }
    if elected is None:
        return {"confirm": fenced.confirm_offset, "after_load": found["after_load"], "waits": True}, 1
    found["confirm"], found["epochs"] = fenced.confirm_offset, [(e.epoch, e.start) for e in elected.kept]
    return found, elected.epoch.epoch


@pytest.mark.parametrize("more", [{}, UNCOMMITTED], ids=lambda more: ",".join(more) or "plain")
@pytest.mark.parametrize("release", ROCKSDB_RELEASES)
def test_plans_of_damaged_replicas(release: str, more: Mapping[str, Any], tmp_path: Path) -> None:
    found = compared(release, tmp_path, DAMAGES, SETTINGS, SETTINGS | more)
    assert [name for name, starts in found.items() if not starts] == ["no epochs"]


@pytest.mark.parametrize(
    ("release", "more"),
    [
        ("5.4.0", {}),
        ("5.4.0", RECHECK),
        ("5.4.0", READS),
        ("5.4.0", NUMBERS),
        ("5.4.0", READS | NUMBERS),
        ("5.4.0", LIGHT),
        ("5.5.0", {}),
        ("5.5.0", RECHECK),
        ("5.5.0", READS),
        ("5.5.0", LIGHT),
        ("5.5.0", LIGHT_IN_ROCKSDB | READS),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value) or "files",
)
def test_plans_of_damaged_replicas_that_write_queues_twice(release: str, more: Mapping[str, Any], tmp_path: Path) -> None:
    light = {key: value for key, value in more.items() if key in LIGHT}
    compared(release, tmp_path, DAMAGES | ONE_KIND, TWICE | CONTROLLER | light, TWICE | CONTROLLER | more)


def compared(
    release: str, folder: Path, damages: Mapping[str, Sequence[Damage]], written: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, bool]:
    """Hold the plan of each damage against the release; which of them start. written: settings of the broker that wrote."""
    own_network.needed()
    own_network.run(write, release, class_path(release), folder, written)
    stores: dict[str, Path] = {}
    for number, (name, those) in enumerate(damages.items()):
        stores[name] = folder / str(number) / "store"
        shutil.copytree(folder / "store", stores[name])
        shutil.copytree(folder / "older", stores[name].parent / "older")
        for damage in those:
            damage(stores[name])
    plans = {name: plan for name, root in stores.items() if (plan := plan_of(root, release, settings)) is not None}
    assert len(plans) > len(stores) // 2
    wrong: dict[str, list[Any]] = {name: [] for name in plans}
    for attempt in range(ATTEMPTS):
        asked = []
        for name in wrong:
            copy = shutil.copytree(stores[name], stores[name].parent / f"attempt {attempt}")
            asked.append((copy, plans[name][1], plans[name][0]))
        real = own_network.run(follow, release, class_path(release), asked, settings)
        found = {name: _differences(plans[name][0], seen or {}) for name, seen in zip(wrong, real, strict=True)}
        wrong = {name: differences for name, differences in found.items() if differences}
        if not wrong:
            break
    assert not wrong
    return {name: bool(plan) for name, (plan, _) in plans.items()}


def _differences(plan: State, real: State) -> list[Any]:
    found: list[Any] = [(key, plan.get(key), real.get(key)) for key in ("confirm", "epochs") if plan.get(key) != real.get(key)]
    if plan.keys() != real.keys():
        return [*found, sorted(real)]
    for moment in plan.keys() & set(MOMENTS):
        ours, theirs = plan[moment], real[moment]
        found += [(moment, key, ours[key], theirs[key]) for key in ("log", "index") if ours[key] != theirs[key]]
        found += [
            (moment, kind, key, ours[kind].get(key), numbers)
            for kind in ("queues", "queues_files")
            for key, numbers in theirs[kind].items()
            if numbers not in ours[kind].get(key, [])
        ]
    return found
