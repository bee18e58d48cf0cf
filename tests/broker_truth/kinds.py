"""Stores of other kinds than plain ones, opened by the real release: one session from load to stop.

RocksDB ConsumeQueues from 5.2 on; DLedger, as a group of one node, in a network of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.broker_truth import own_network
from tests.broker_truth.real_broker import RELEASES, Jvm, Put, PutAnswer, Served, class_path

ROCKSDB: Mapping[str, Any] = {"storeType": "defaultRocksDB"}
ROCKSDB_RELEASES = tuple(release for release in RELEASES if release >= "5.2")
DLEDGER: Mapping[str, Any] = {
    "enableDLegerCommitLog": "true",
    "dLegerGroup": "group",
    "dLegerPeers": "n0-127.0.0.1:0",
    "dLegerSelfId": "n0",
}


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
        """load, start, put, serve all, stop. The first start of a store serves what it holds even where `puts` is empty."""
        with Jvm(self.release) as jvm:
            return self._in(jvm, puts)

    def run_dledger(self, puts: Sequence[Put] = ()) -> Seen:
        """The same of a DLedger store; `own_network.allowed` says whether this machine can do it."""
        jars = class_path(self.release, dledger=True)  # here, as nothing can be fetched in there
        return own_network.run(self._dledger, jars, puts)

    def _dledger(self, jars: Sequence[Path], puts: Sequence[Put]) -> Seen:
        with Jvm(self.release, jars) as jvm:
            return self._in(jvm, puts, leads=True)

    def _in(self, jvm: Jvm, puts: Sequence[Put], leads: bool = False) -> Seen:
        broker = jvm.broker(self.root, self.settings)
        if not broker.load():
            return Seen(False)
        end = broker.java.getMaxPhyOffset()
        broker.start()
        if leads:
            broker.lead()
        answers = broker.put(puts)
        broker.catch_up()
        seen = Seen(True, end, answers, broker.serve(keys=False))
        if self.kill:
            jvm.kill()
        else:
            broker.shutdown()
        return seen
