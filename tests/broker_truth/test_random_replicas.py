"""Random replicas in controller mode, damaged at random: what the real release does, fenced and as master, against the plan."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.kinds import CONTROLLER, CONTROLLER_RELEASES
from tests.broker_truth.harness.real_broker import Jvm, class_path, conf_of
from tests.broker_truth.test_controlled import Followed, State, state
from tests.support.answers import product
from tests.support.stores.random_stores import random_replica, random_settings

SOME, MANY = range(40), range(40, 640)
# Not modelled together with controller mode.
LEFT_OUT = "duplicationEnable", "recheckReputOffsetFromCq", "readUnCommitted"
WAITS = 15  # seconds after which start() waits without end


@dataclass(frozen=True)
class Replica:
    root: Path
    conf: str
    done: str
    planned: Followed
    epoch: int  # of the election
    waits: bool  # start() waits without end, by the plan


@pytest.fixture(autouse=True)
def _network() -> None:
    if reason := own_network.allowed():
        pytest.skip(reason)


@pytest.mark.broker
@pytest.mark.parametrize("release", CONTROLLER_RELEASES)
def test_the_plan_is_what_the_release_does(release: str, tmp_path: Path) -> None:
    _hold(release, SOME, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("release", CONTROLLER_RELEASES)
def test_the_plans_of_many_are(release: str, tmp_path: Path) -> None:
    _hold(release, MANY, tmp_path)


def _hold(release: str, numbers: range, folder: Path) -> None:
    replicas = [_replica(folder / f"{number}", release, number) for number in numbers]
    stores = [(replica.root, replica.conf, replica.epoch) for replica in replicas]
    followed = own_network.run(follow, release, class_path(release), stores)
    wrong = []
    for replica, real in zip(replicas, followed, strict=True):
        if replica.waits != (real is None):
            found = [f"start() waits: plan {replica.waits}, broker {real is None}"]
        else:
            found = _differences(replica.planned, real) if real is not None else []
        wrong += [f"{replica.root.parent.name}: {replica.done}; {' '.join(replica.conf.split())}", *found] if found else []
    assert not wrong, "\n".join(wrong)
    assert sum(real is not None and real.starts for real in followed) > len(numbers) / 3


def _replica(folder: Path, release: str, number: int) -> Replica:
    random = Random(f"replica/{release}/{number}")
    store, done = random_replica(folder / "audited", random, release)
    lines = random_settings(random, store).splitlines(keepends=True)
    conf = "".join(line for line in lines if not line.startswith(LEFT_OUT)) + conf_of(CONTROLLER)
    audit = product.audit(store.root, release, conf)
    broker, prediction = audit.broker, audit.audit.prediction
    assert broker is not None and prediction is not None, audit.incomplete
    shutil.copytree(store.root, folder / "started")
    planned, epoch = Followed(), 1
    if broker["starts"]:
        fenced = prediction.controller
        assert fenced is not None
        epochs, epoch = [(epoch.epoch, epoch.start) for epoch in fenced.elected.kept], fenced.elected.epoch.epoch
        states = {moment: broker[moment] for moment in ("after_load", "after_dispatch", "after_election")}
        planned = Followed(True, states, fenced.confirm_offset, epochs)
    return Replica(folder / "started", conf, done, planned, epoch, broker["starts"] and prediction.hangs_at >= 0)


def follow(release: str, jars: Sequence[Path], stores: Sequence[tuple[Path, str, int]]) -> list[Followed | None]:
    """Start the release on each store and make it master of this epoch; None where start() waits. In a network of its own."""
    with Jvm(release, jars) as jvm:
        return [_follow(jvm, root, conf, epoch) for root, conf, epoch in stores]


def _follow(jvm: Jvm, root: Path, conf: str, epoch: int) -> Followed | None:
    with jvm.broker(root, conf) as broker:
        broker.fence()
        try:
            if not broker.load():
                return Followed()
        except Py4JJavaError:
            return Followed()
        states, confirmed = {"after_load": state(broker)}, int(broker.java.getConfirmOffset())
        try:
            broker.start(WAITS)
        except TimeoutError:
            return None
        except RuntimeError:  # it throws
            return Followed()
        states["after_dispatch"] = state(broker)
        assert broker.elect(epoch)
        states["after_election"] = state(broker)
        epochs = [(int(e.getEpoch()), int(e.getStartOffset())) for e in broker.java.getHaService().getEpochEntries()]
        return Followed(True, states, confirmed, epochs)


def _differences(ours: Followed, theirs: Followed) -> list[str]:
    """A line each, of the first moment that differs."""
    if ours.starts != theirs.starts:
        return [f"starts: plan {ours.starts}, broker {theirs.starts}"]
    found = []
    for name in ("confirm", "epochs"):
        if getattr(ours, name) != getattr(theirs, name):
            found.append(f"{name}: plan {getattr(ours, name)}, broker {getattr(theirs, name)}")
    for moment, real in theirs.states.items():
        parts = [part for part, rows in _comparable(ours.states[moment]).items() if rows != real[part]]
        if parts:
            return [*found, *(f"{moment}, {part}: plan {list(ours.states[moment][part])}, broker {real[part]}" for part in parts)]
    return found


def _comparable(planned: Mapping[str, Any]) -> State:
    """A file of the index without entries counts from 1 in memory, whatever it stores."""
    index = [{**file, "index_count": max(file["index_count"], 1)} for file in planned["index"]]
    return {"commitlog": list(planned["commitlog"]), "queues": [dict(queue) for queue in planned["queues"]], "index": index}
