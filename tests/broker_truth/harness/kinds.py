"""Stores of other kinds than plain ones, opened by the real release: one session from load to stop.

RocksDB ConsumeQueues from 5.2 on; DLedger, as a group of one node, and controller mode (5.x), whose controller makes the
broker master and gives it no slave, both in a network of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.real_broker import RELEASES, Broker, Jvm, Put, PutAnswer, Served, class_path

ROCKSDB: Mapping[str, Any] = {"storeType": "defaultRocksDB"}
ROCKSDB_RELEASES = tuple(release for release in RELEASES if release >= "5.2")
DLEDGER: Mapping[str, Any] = {
    "enableDLegerCommitLog": "true",
    "dLegerGroup": "group",
    "dLegerPeers": "n0-127.0.0.1:0",
    "dLegerSelfId": "n0",
}
CONTROLLER: Mapping[str, Any] = {"enableControllerMode": "true", "brokerClusterName": "cluster", "brokerName": "broker-a"}
CONTROLLER_RELEASES = tuple(release for release in RELEASES if release >= "5")


def with_settings(releases: Sequence[str], settings: Mapping[str, str]) -> list[Any]:
    """A case for each release and each of these settings that it knows: (release, lines of its broker.conf)."""
    return [
        pytest.param(release, more, id=f"{release}-{name}")
        for release in releases
        for name, more in settings.items()
        if release >= "5.3" or "readUnCommitted" not in more
    ]


@dataclass(frozen=True)
class Seen:
    """What one session saw. end: the CommitLog's maximum after load().  answers: to what was put.  served: before the stop."""

    loaded: bool
    end: int = -1
    answers: Sequence[PutAnswer] = ()
    served: Served | None = None


@dataclass(frozen=True)
class Session:
    """A store of a release. settings: RocketMQ's own.  kill: the session ends as by kill -9, else by a clean stop."""

    release: str
    root: Path
    settings: Mapping[str, Any] | str
    kill: bool = False

    def run(self, puts: Sequence[Put] = ()) -> Seen:
        """load, start, put, serve all, stop."""
        return self._run(class_path(self.release), puts, _start)

    def run_dledger(self, puts: Sequence[Put] = ()) -> Seen:
        """The same of a DLedger store; `own_network.allowed` says whether this machine can do it."""
        jars = class_path(self.release, dledger=True)  # here, as nothing can be fetched in there
        return own_network.run(self._run, jars, puts, _lead)

    def run_controlled(self, epoch: int, puts: Sequence[Put] = ()) -> Seen:
        """The same in controller mode: fenced until this broker is made master of this epoch. In a network of its own, too."""
        return own_network.run(self._run, class_path(self.release), puts, _elect, epoch)

    def _run(self, jars: Sequence[Path], puts: Sequence[Put], start: Callable[..., None], *epoch: int) -> Seen:
        with Jvm(self.release, jars) as jvm:
            broker = jvm.broker(self.root, self.settings)
            if epoch:
                broker.fence()
            if not broker.load():
                return Seen(False)
            end = broker.java.getMaxPhyOffset()
            start(broker, *epoch)
            answers = broker.put(puts)
            broker.catch_up()
            seen = Seen(True, end, answers, broker.serve(keys=False))
            if self.kill:
                jvm.kill()
            else:
                broker.shutdown()
            return seen


def _start(broker: Broker) -> None:
    broker.start()


def _lead(broker: Broker) -> None:
    broker.start()
    broker.lead()


def _elect(broker: Broker, epoch: int) -> None:
    broker.start()
    if not broker.elect(epoch):
        raise RuntimeError(f"not made master of epoch {epoch}")
