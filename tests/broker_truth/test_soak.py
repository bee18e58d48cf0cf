"""Brokers with queues in RocksDB and timers under load, life after life: what the audit says of copies made at any moment.

SOAK_SECONDS (120) is how long all of it takes, or a little longer: each life is followed by its audits and by real starts.
"""

from __future__ import annotations

import os
import shutil
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from schemas.rows import LOSS
from tests.broker_truth.harness.damaged_copies import planned
from tests.broker_truth.harness.kinds import ROCKSDB
from tests.broker_truth.harness.real_broker import COMMIT, Broker, Jvm, Put, conf_of
from tests.support.answers import product

pytestmark = pytest.mark.soak

RELEASES = ("5.4.0", "5.5.0")
TABLES: Mapping[str, Any] = dict.fromkeys(("indexRocksDBEnable", "timerRocksDBEnable", "transRocksDBEnable"), "true")
SECONDS = float(os.environ.get("SOAK_SECONDS", "120")) / len(RELEASES) / 2
LIFE = 10.0  # seconds of load
RATE = 1500  # messages a second at most
TIMERS, HALF, OPERATIONS = "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SETTINGS = ROCKSDB | {"mappedFileSizeCommitLog": 1 << 24, "maxHashSlotNum": 5000, "maxIndexNum": 20_000}
FIRST = ("consumequeue", "timerlog", "timerwheel")  # of a live copy: the log that they lead to is copied after them


@dataclass
class Load:
    """What is put: messages, delayed ones, timers, half messages that are committed, rolled back or left open."""

    random: Random
    number: int = 0
    open_halves: list[tuple[int, int]] = field(default_factory=list)  # (physical offset, queue offset)
    kinds: Counter[str] = field(default_factory=Counter)

    def batch(self, broker: Broker, count: int = 150) -> None:
        """Put so many, and remember which of the half messages are open."""
        puts = [self._one() for _ in range(count)]
        answers = broker.put(puts)
        assert {answer.status for answer in answers} == {"PUT_OK"}
        for put, answer in zip(puts, answers, strict=True):
            if put.topic == HALF:
                self.open_halves.append((answer.phy_offset, answer.queue_offset))

    def _one(self) -> Put:
        self.number += 1
        body, kind = self.random.randbytes(self.random.randrange(20, 900)), self.random.randrange(20)
        uniq, topic = f"{self.number:032X}", f"Topic{self.random.randrange(4)}"
        if kind == 0:
            self.kinds["delayed"] += 1
            return Put(topic, body, uniq=uniq, delay=self.random.randrange(1, 19))
        if kind == 1:
            self.kinds["timer"] += 1
            out = int(time.time()) * 1000 + self.random.choice((2000, 5000, 9000, 3_600_000))
            real = {"TIMER_OUT_MS": str(out), "REAL_TOPIC": topic, "REAL_QID": "0"}
            return Put(TIMERS, body, uniq=uniq, properties=real)
        if kind == 2:
            self.kinds["half"] += 1
            return Put(HALF, body, uniq=uniq, properties={"REAL_TOPIC": topic, "REAL_QID": "1", "TRAN_MSG": "true"})
        if kind == 3 and self.open_halves:
            return self._end(topic, body, uniq)
        self.kinds["message"] += 1
        return Put(topic, body, self.random.randrange(4), "tag", f"k{self.number}", uniq)

    def _end(self, topic: str, body: bytes, uniq: str) -> Put:
        """A commit's message in the real topic, or what marks a half message as done."""
        place = self.random.randrange(len(self.open_halves))
        phy_offset, queue_offset = self.open_halves[place]
        if self.random.random() < 0.5:
            self.kinds["commit"] += 1
            return Put(topic, body, 1, uniq=uniq, transaction=COMMIT, prepared_offset=phy_offset)
        del self.open_halves[place]
        self.kinds["done"] += 1
        return Put(OPERATIONS, f"{queue_offset},".encode(), tags="d")


class Life:
    """One life of the broker, from load to its end."""

    def __init__(self, release: str, root: Path, load: Load, settings: Mapping[str, Any]):
        self.load, self._root = load, root
        self._jvm = Jvm(release)
        self._broker = self._jvm.broker(root, settings)
        assert self._broker.load() and self._broker.load_timers()
        self._broker.start()
        self._broker.start_timers()
        self._stop, self._faults = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._put)
        self._thread.start()

    def _put(self) -> None:
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                self.load.batch(self._broker)
                self._stop.wait(max(0.0, 150 / RATE - (time.monotonic() - began)))
        except BaseException as fault:
            self._faults.append(fault)

    def end(self, kill: bool) -> None:
        """kill: as kill -9 ends it, in the middle of the load."""
        if kill:
            self._jvm.process.kill()
        self._stop.set()
        self._thread.join()
        if not kill:
            assert not self._faults
            self._broker.shutdown()
        self._jvm.close()


def copied_live(root: Path, target: Path) -> None:
    """As an operator copies a running broker's store: file by file; what is deleted meanwhile is not there."""
    paths = sorted((path for path in root.rglob("*") if path.is_file()), key=lambda p: p.relative_to(root).parts[0] not in FIRST)
    for path in paths:
        to = target / path.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(path, to)


def real_start(
    release: str, root: Path, settings: Mapping[str, Any]
) -> tuple[bool, int, Mapping[tuple[str, int], tuple[int, int, int]]]:
    """(whether it starts, the log's end after load(), the queues after start()) of the real release on this copy."""
    with Jvm(release) as jvm, jvm.broker(root, settings) as broker:
        if not broker.load():
            return False, -1, {}
        end = broker.java.getMaxPhyOffset()
        broker.start()
        time.sleep(0.5)
        return True, end, {key: (low, high, phy) for key, (low, high, phy) in broker.queues().items() if high}


def as_the_release(release: str, audit: product.Audited, copy: Path, settings: Mapping[str, Any]) -> None:
    """Hold the plan against a real start."""
    plan = audit.broker
    assert plan is not None, audit.incomplete
    starts, end, queues = real_start(release, copy, settings)
    assert plan["starts"] is starts
    if starts:
        assert plan["truncate_at"] == end
        told = planned(plan["after_dispatch"]["queues"])
        assert {key: (numbers, told.get(key)) for key, numbers in queues.items() if numbers not in told.get(key, [])} == {}


def ends() -> Iterator[str]:
    """How each life ends, until the time is over."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        yield from ("stop", "kill")


@pytest.mark.parametrize("tables", [{}, TABLES], ids=["files", "tables"])
@pytest.mark.parametrize("release", RELEASES)
def test_copies_of_a_broker_under_load(release: str, tables: Mapping[str, Any], tmp_path: Path) -> None:
    settings = SETTINGS | tables
    live = tmp_path / "live"
    (live / "config").mkdir(parents=True)
    check = struct.pack(">4q", int(time.time()) * 1000, 0, 0, 0)  # else it goes through the slots of seven days first
    (live / "config" / "timercheck").write_bytes(check.ljust(4096, b"\0"))
    levels = ",".join(f"{level}:0" for level in range(1, 19))  # no level is delivered here
    (live / "config" / "delayOffset.json").write_text(f'{{"offsetTable":{{{levels}}}}}')
    load, seen = Load(Random(release)), Counter[str]()
    for how in ends():
        life = Life(release, live, load, settings)
        time.sleep(LIFE / 2)
        copied_live(live, tmp_path / "copy")
        time.sleep(LIFE / 2)
        life.end(how == "kill")
        shutil.copytree(live, tmp_path / "ended")
        for name in ("copy", "ended"):
            audit = product.audit(tmp_path / name, release, conf_of(settings))
            moment = how if name == "ended" else "live"
            seen.update(f"{moment}: {f.code} {f.severity}" for f in audit.findings)
            seen[f"{moment}: audits"] += 1
            seen["messages audited"] += audit.outcome.holds.messages
            if moment == "live" and audit.broker is None:  # RocksDB's files are of several moments
                seen[f"live, not judged: {audit.incomplete[0]}"] += 1
            else:
                as_the_release(release, audit, tmp_path / name, settings)
            if moment == "stop":
                assert audit.above_note == [] and not audit.incomplete
            if moment == "kill":
                assert [f for f in audit.above_note if f.severity == LOSS] == []
            shutil.rmtree(tmp_path / name)
    print(release, dict(load.kinds), *(f"{what}: {count}" for what, count in sorted(seen.items())), sep="\n  ")
