"""Random replicas in controller mode, damaged at random: what the real release does, fenced and as master, against the plan."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.kinds import CONTROLLER, CONTROLLER_RELEASES
from tests.broker_truth.harness.real_broker import class_path, conf_of
from tests.broker_truth.harness.replicas import Followed, follow, planned
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
    followed = own_network.run(follow, release, class_path(release), stores, WAITS)
    wrong = []
    for replica, real in zip(replicas, followed, strict=True):
        found = _differences(replica.planned, real)
        wrong += [f"{replica.root.parent.name}: {replica.done}; {' '.join(replica.conf.split())}", *found] if found else []
    assert not wrong, "\n".join(wrong)
    assert sum(real.starts and not real.waits for real in followed) > len(numbers) / 3


def _replica(folder: Path, release: str, number: int) -> Replica:
    random = Random(f"replica/{release}/{number}")
    store, done = random_replica(folder / "audited", random, release)
    lines = random_settings(random, store).splitlines(keepends=True)
    conf = "".join(line for line in lines if not line.startswith(LEFT_OUT)) + conf_of(CONTROLLER)
    ours, epoch = planned(product.audit(store.root, release, conf))
    shutil.copytree(store.root, folder / "started")
    return Replica(folder / "started", conf, done, ours, epoch)


def _differences(ours: Followed, theirs: Followed) -> list[str]:
    """A line for each."""
    found = [
        f"{name}: plan {mine}, broker {real}"
        for name in ("starts", "waits", "confirm", "epochs")
        if (mine := getattr(ours, name)) != (real := getattr(theirs, name))
    ]
    for moment in ours.states.keys() & theirs.states.keys():
        parts = [part for part, rows in theirs.states[moment].items() if rows != ours.states[moment][part]]
        found += [f"{moment}, {part}: plan {ours.states[moment][part]}, broker {theirs.states[moment][part]}" for part in parts]
    return found
