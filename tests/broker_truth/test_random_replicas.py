"""Random replicas in controller mode, damaged at random: what the real release does, fenced and as master, against the plan."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.kinds import CONTROLLER, CONTROLLER_RELEASES, with_settings
from tests.broker_truth.harness.real_broker import class_path, conf_of
from tests.broker_truth.harness.replicas import Followed, follow, planned
from tests.support.answers import product
from tests.support.stores.random_stores import random_replica, random_settings

SOME, MANY = range(40), range(40, 640)
LEFT_OUT = "duplicationEnable"  # with it no broker in controller mode ever becomes master
WAITS = 3  # seconds after which start() waits without end
ATTEMPTS = 3  # on a busy machine the dispatching thread may be done before an election comes to its cut (controller.md 4)
# With each of these, too: from where on an election looks at the log depends on what start() has dispatched.
SETTINGS = {
    "own settings": "",
    "recheck": "recheckReputOffsetFromCq=true\n",
    "uncommitted": "readUnCommitted=true\n",
    "uncommitted, recheck": "readUnCommitted=true\nrecheckReputOffsetFromCq=true\n",
}
CASES = with_settings(CONTROLLER_RELEASES, SETTINGS)


@dataclass(frozen=True)
class Replica:
    root: Path
    conf: str
    what: str  # was done to it
    planned: Followed
    epoch: int  # of the election

    def started(self) -> tuple[Path, str, int]:
        """A new copy, for the release."""
        copy = self.root.with_name("started")
        shutil.rmtree(copy, ignore_errors=True)
        return Path(shutil.copytree(self.root, copy)), self.conf, self.epoch


@pytest.fixture(autouse=True)
def _network() -> None:
    own_network.needed()


@pytest.mark.parametrize("numbers", [pytest.param(SOME, marks=pytest.mark.broker), pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("release", "more"), CASES)
def test_the_plan_is_what_the_release_does(release: str, more: str, numbers: range, tmp_path: Path) -> None:
    replicas, wrong = [_replica(tmp_path / f"{number}", release, more, number) for number in numbers], list[str]()
    asked, whole = replicas, 0
    for _ in range(ATTEMPTS):
        followed = own_network.run(follow, release, class_path(release), [replica.started() for replica in asked], WAITS)
        apart = [(replica, _differences(replica.planned, real)) for replica, real in zip(asked, followed, strict=True)]
        whole += sum(real.starts and not real.waits for (_, found), real in zip(apart, followed, strict=True) if not found)
        asked = [replica for replica, found in apart if found]
        wrong = [line for replica, found in apart if found for line in (replica.what, *found)]
    assert not wrong, "\n".join(wrong)
    assert whole > len(numbers) / 3


def _replica(folder: Path, release: str, more: str, number: int) -> Replica:
    random = Random(f"replica/{release}/{number}")
    store, done = random_replica(folder / "audited", random, release)
    lines = random_settings(random, store).splitlines(keepends=True)
    conf = "".join(line for line in lines if not line.startswith(LEFT_OUT)) + conf_of(CONTROLLER) + more
    conf += random.choice(["", "brokerId=-1\n"])  # as in the broker.conf that the releases come with
    return Replica(
        store.root, conf, f"{number}: {done}; {' '.join(conf.split())}", *planned(product.audit(store.root, release, conf))
    )


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
