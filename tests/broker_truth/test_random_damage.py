"""Random stores, damaged at random: what load() and start() of the real release make of them, against the plan.

`-m broker` takes some of each release, `-m soak` many. A store follows from its release and number alone: `damaged_store`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.broker_truth.damaged_copies import Numbers, planned
from tests.broker_truth.real_broker import RELEASES, Broker, Jvm, batch_topics
from tests.support import product
from tests.support.random_stores import RandomStore, random_store

FOLDERS = "commitlog", "consumequeue", "batchconsumequeue", "index"
WAITS, STARTS = 3, 20  # seconds after which start() waits without end: where the plan says so, and where it does not
SOME, MANY = range(40), range(40, 640)
# With each of these, too: what start() dispatches, and what it waits for, depends on both.
SETTINGS = {
    "own settings": "",
    "recheck": "recheckReputOffsetFromCq=true\n",
    "duplication": "duplicationEnable=true\n",
    "duplication, recheck": "duplicationEnable=true\nrecheckReputOffsetFromCq=true\n",
}


def damaged_store(folder: Path, release: str, number: int) -> RandomStore:
    return random_store(folder, Random(f"{release}/{number}"))


@pytest.mark.broker
@pytest.mark.parametrize("more", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("release", RELEASES)
def test_the_plan_is_what_the_release_does(release: str, more: str, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    _hold_against(release, more, SOME, jvm_of, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("more", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("release", RELEASES)
def test_the_plans_of_many_are_what_the_release_does(
    release: str, more: str, jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    _hold_against(release, more, MANY, jvm_of, tmp_path)


def _hold_against(release: str, more: str, numbers: range, jvm_of: Callable[[str], Jvm], folder: Path) -> None:
    started, wrong = 0, dict[int, list[str]]()
    for number in numbers:
        made = damaged_store(folder / f"{number}", release, number)
        conf, root = made.broker_conf + more, made.store.root
        audit = product.audit(root, release, conf)
        assert audit.broker is not None, audit.incomplete
        shutil.copytree(root, folder / f"{number}-started")
        with jvm_of(release).broker(folder / f"{number}-started", conf, batch_topics(root) if release >= "5" else ()) as broker:
            if found := _differences(audit, broker, root):
                wrong[number] = [f"{made.describe()} {' '.join(more.split())}", *found]
        started += audit.broker["starts"]
        shutil.rmtree(root)
    assert not wrong, "\n".join(f"{number}: {line}" for number, lines in wrong.items() for line in lines)
    assert started > len(numbers) / 2


def _differences(audit: product.Audited, broker: Broker, before: Path) -> list[str]:
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
    ours: dict[str, Any] = {
        "min": plan["min_phy_offset"],
        "end": plan["truncate_at"],
        "deleted": _of_folders(plan["deleted_files"]),
    }
    state = broker.state()
    theirs: dict[str, Any] = {
        "min": state["minPhyOffset"],
        "end": state["maxPhyOffset"],
        "deleted": _of_folders(_files(before) - _files(broker.root)),
    }
    ours |= _planned_state(plan["after_load"])
    theirs |= _state(state)
    if ours == theirs:
        waits = prediction.hangs_at >= 0
        ours, theirs = {"waits": waits}, {"waits": _waits(broker, WAITS if waits else STARTS)}
        if not theirs["waits"]:
            ours |= _planned_state(plan["after_dispatch"])
            theirs |= _state(broker.state())
    return [f"{name}: plan {ours[name]}, broker {theirs[name]}" for name in ours if ours[name] != theirs[name]]


def _waits(broker: Broker, seconds: float) -> bool:
    try:
        broker.start(seconds)
    except TimeoutError:
        return True
    return False


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def _of_folders(names: Any) -> list[str]:
    return sorted(name for name in names if name.partition("/")[0] in FOLDERS)


def _planned_state(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "log": [(file["file"], file["wrote"]) for file in state["commitlog"]],
        # A file without entries counts from 1 in memory, whatever it stores.
        "index": [(file["begin_phy_offset"], file["end_phy_offset"], max(file["index_count"], 1)) for file in state["index"]],
        "queues": {key: answers[0] for key, answers in planned(state["queues"]).items()},
    }


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    queues: dict[tuple[str, int], Numbers] = state["queues"]
    return {
        "log": [(file["name"], file["wrotePosition"]) for file in state["commitLogFiles"]],
        "index": [(file["beginPhyOffset"], file["endPhyOffset"], file["indexCount"]) for file in state["indexFiles"]],
        "queues": queues,
    }
