"""Timers of a repaired store: the real release delivers every one that was not delivered yet, once (timer.md 8)."""

from __future__ import annotations

import shutil
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schemas.rows import Finding
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, conf_of
from tests.broker_truth.harness.repairs import Repaired, repair
from tests.support.answers import product
from tests.support.stores import builders

pytestmark = pytest.mark.broker
SETTINGS = {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeTimerLog": 52 * 40 + 16, "timerRollWindowSlot": 12}
CONF = conf_of(SETTINGS)
TOPIC = "orders"
DUE, SOON, FAR = 4, 15, 45  # seconds from when they are sent
EACH = 30


def timer(number: int, out: int, cancels: str = "") -> Put:
    """A timer message as the broker's hook rewrites it. cancels: the key of the one that it deletes."""
    properties = {"TIMER_OUT_MS": str(out), "REAL_TOPIC": TOPIC, "REAL_QID": "0"}
    if cancels:
        properties["TIMER_DEL_UNIQKEY"] = cancels
    return Put("rmq_sys_wheel_timer", f"timer {number}".encode(), uniq=key(number), properties=properties)


def key(number: int) -> str:
    return f"{number:032X}"


class Run:
    """A store with its timers, from load to stop or kill."""

    def __init__(self, release: str, root: Path, settings: str | Mapping[str, Any] = CONF):
        self.jvm = Jvm(release)
        self.broker: Broker = self.jvm.broker(root, settings)
        assert self.broker.load() and self.broker.load_timers()
        self.broker.start()
        self.broker.start_timers()

    def delivered(self) -> Counter[str]:
        """Bodies in the real topic. An entry that answers for a missing message serves the next one, which is no second copy."""
        queue = self.broker.serve(keys=False).queues.get((TOPIC, 0))
        copies = {m.phy_offset: m.record.body.decode() for m in queue.messages} if queue is not None else {}
        return Counter(copies.values())

    def end(self, kill: bool) -> None:
        if not kill:
            self.broker.shutdown()
        self.jvm.close()


def written(release: str, root: Path, kill: bool) -> tuple[int, set[str]]:
    """A store whose first timers were delivered: (when the last one is due, what is to be delivered in all)."""
    (root / "config").mkdir(parents=True)
    started = int(time.time()) * 1000  # else it goes through the slots of seven days first
    (root / "config" / "timercheck").write_bytes(struct.pack(">4q", started, 0, 0, 0).ljust(4096, b"\0"))
    run = Run(release, root)
    run.broker.put([Put("other", b"first", uniq=key(999))])
    now = int(time.time()) * 1000
    puts = [timer(n, now + wait * 1000) for n, wait in enumerate([DUE] * EACH + [SOON] * EACH + [FAR] * EACH)]
    plain = [Put("other", b"x" * 50, uniq=f"F{n:031X}") for n in range(30)]
    deleted = key(EACH)  # with its topic since 5.3.2, by default without it since 5.4.0
    cancels = [timer(900 + n, now + SOON * 1000, cancels=text) for n, text in enumerate((deleted, f"{TOPIC}+{deleted}"))]
    run.broker.put([*puts, *cancels, *plain])
    end = time.time() + 20
    while run.delivered().total() < EACH and time.time() < end:
        time.sleep(0.2)
    run.broker.put(plain)
    time.sleep(1.5)  # the checkpoint follows
    assert run.delivered() == Counter({f"timer {n}": 1 for n in range(EACH)})
    run.end(kill)
    return now + FAR * 1000, {f"timer {n}" for n in range(3 * EACH) if n != EACH}


def no_files(root: Path) -> None:
    for path in ("timerlog", "timerwheel", "config/timercheck"):
        file = root / path
        shutil.rmtree(file) if file.is_dir() else file.unlink()


def cut(root: Path) -> None:
    """Some delivered copies, and all that follows, no longer fit their CRC."""
    path = root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    at, copies = 0, 0
    while copies < EACH // 2:
        record = builders.decode(data, at)
        copies += record.topic == TOPIC
        at += record.size
    data[at - 1] ^= 0xFF
    body = data.rindex(b"timer ", 0, at)
    data[body] ^= 0xFF
    path.write_bytes(data)


@dataclass(frozen=True)
class Case:
    """What is written, damaged and repaired. kill: how the first run ends."""

    release: str
    damage: Callable[[Path], None]
    policy: str
    kill: bool = False

    @property
    def name(self) -> str:
        return f"{self.release}-{self.damage.__name__}-{self.policy}"


CASES = (
    Case("5.1.4", cut, "broker", kill=True),
    Case("5.3.3", cut, "salvage"),
    Case("5.4.0", no_files, "broker"),
    Case("5.5.0", cut, "broker"),
)


@dataclass(frozen=True)
class Result:
    """repaired: what the command says.  delivered: of the new store, after the last one was due, and how often each."""

    repaired: Repaired
    above_note: list[Finding]
    wanted: set[str]
    delivered: Counter[str]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Result]]:
    """All cases side by side, as they wait most of the time."""
    folder = tmp_path_factory.mktemp("timers")
    with ThreadPoolExecutor(len(CASES)) as threads:
        stores = list(threads.map(lambda case: written(case.release, folder / case.name / "store", case.kill), CASES))
        done = []
        for case in CASES:
            root = folder / case.name
            case.damage(root / "store")
            done.append(repair(root / "store", case.release, CONF, case.policy, root / "new"))
        found = [product.audit(folder / case.name / "new", case.release, CONF).above_note for case in CASES]
        runs = list(threads.map(lambda case: Run(case.release, folder / case.name / "new"), CASES))
        while time.time() < max(last for last, _ in stores) / 1000 + 15:
            if all(set(run.delivered()) >= wanted for run, (_, wanted) in zip(runs, stores, strict=True)):
                break
            time.sleep(1)
        time.sleep(2)
        delivered = [run.delivered() for run in runs]
        for run in runs:
            run.end(kill=True)
    told = zip(CASES, done, found, stores, delivered, strict=True)
    yield {case.name: Result(one, above, wanted, bodies) for case, one, above, (_, wanted), bodies in told}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_timer_is_delivered_once(case: Case, results: dict[str, Result]) -> None:
    result = results[case.name]
    assert result.repaired.exit_code == 0 and result.repaired.report["timers"]["rebuilt"]
    assert result.above_note == []
    assert {body: count for body, count in result.delivered.items() if count != 1} == {}
    assert set(result.delivered) == result.wanted
