"""Replicas in controller mode: what a real release does, fenced and as master, and what a plan says, in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.broker_truth.harness.real_broker import Broker, Jvm
from tests.support.answers.product import Audited

State = dict[str, Any]
Settings = Mapping[str, Any] | str


@dataclass
class Followed:
    """What a broker did. states: by the plan's name of the moment; none where it does not start.  waits: start() never ends."""

    starts: bool = False
    states: dict[str, State] = field(default_factory=dict)
    confirm: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    waits: bool = False


def follow(
    release: str, jars: Sequence[Path], stores: Sequence[tuple[Path, Settings, int]], seconds: float = 60
) -> list[Followed]:
    """Start the release on each store and make it master of this epoch. To be run in a network of its own.

    seconds: after which start() waits without end.
    """
    with Jvm(release, jars) as jvm:
        return [_follow(jvm.broker(root, settings), epoch, seconds) for root, settings, epoch in stores]


def _follow(broker: Broker, epoch: int, seconds: float) -> Followed:
    with broker:
        broker.fence()
        try:
            if not broker.load():
                return Followed()
        except Py4JJavaError:
            return Followed()
        states, confirmed = {"after_load": state(broker)}, int(broker.java.getConfirmOffset())
        try:
            broker.start(seconds)
        except TimeoutError:
            return Followed(True, waits=True)
        except RuntimeError:  # it throws
            return Followed()
        states["after_dispatch"] = state(broker)
        assert broker.elect(epoch)
        states["after_election"] = state(broker)
        epochs = [(int(e.getEpoch()), int(e.getStartOffset())) for e in broker.java.getHaService().getEpochEntries()]
        return Followed(True, states, confirmed, epochs)


def state(broker: Broker) -> State:
    """A state in the plan's words; the count of an index file without entries is shown in two ways."""
    told = broker.state()
    keys = ("min_offset", "max_offset", "max_phy_offset")
    return {
        "commitlog": [{"file": f["name"], "wrote": f["wrotePosition"]} for f in told["commitLogFiles"]],
        "queues": [{"topic": t, "queue_id": q, **dict(zip(keys, n, strict=True))} for (t, q), n in told["queues"].items()],
        "index": [
            {"begin_phy_offset": f["beginPhyOffset"], "end_phy_offset": f["endPhyOffset"], "index_count": max(f["indexCount"], 1)}
            for f in told["indexFiles"]
        ],
    }


def planned(audit: Audited) -> tuple[Followed, int]:
    """The same of the audit's prediction; and the epoch of its election."""
    assert audit.broker is not None, audit.incomplete
    if not audit.broker["starts"]:
        return Followed(), 1
    prediction = audit.audit.prediction
    assert prediction is not None and prediction.controller is not None
    elected = prediction.controller.elected
    if elected is None:
        return Followed(True, waits=True), 1
    if prediction.election_hangs:
        return Followed(True, waits=True), elected.epoch.epoch
    states = {moment: audit.broker[moment] for moment in ("after_load", "after_dispatch", "after_election")}
    for one in states.values():
        for file in one["index"]:
            file["index_count"] = max(file["index_count"], 1)
    epochs = [(e.epoch, e.start) for e in elected.kept]
    return Followed(True, states, prediction.controller.confirm_offset, epochs), elected.epoch.epoch
