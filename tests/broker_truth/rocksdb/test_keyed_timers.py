"""Timers in RocksDB: what the real release delivers, delivers again and never delivers, against the audit (timer.md 9)."""

from __future__ import annotations

import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.broker_truth.harness.real_broker import Put, conf_of
from tests.broker_truth.harness.repairs import repair
from tests.broker_truth.test_timers import Run
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.damage import remove

pytestmark = pytest.mark.broker
SETTINGS = {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeTimerLog": 52 * 40 + 16, "timerRocksDBEnable": "true"}
TOPIC = "orders"
EACH, OVERDUE = 10, 3
DUE, LATER = 4, 45  # seconds from when they are sent


def begun(release: str, root: Path) -> Run:
    """One life of a broker, with its timers."""
    return Run(release, root, SETTINGS)


def timer(name: str, out: int) -> Put:
    properties = {"TIMER_OUT_MS": str(out), "REAL_TOPIC": TOPIC, "REAL_QID": "0"}
    return Put("rmq_sys_wheel_timer", name.encode(), uniq=f"{name:->32}", properties=properties)


def written(release: str, root: Path) -> int:
    """In `root`: `killed`, a copy while the broker runs, and `stopped`. Of both: timers that were due and delivered; others that
    wait; some that were sent when they were due already. Answers with when the last one is due, ms."""
    live = root / "live"
    (live / "config").mkdir(parents=True)
    check = struct.pack(">4q", int(time.time()) * 1000, 0, 0, 0)  # else it goes through the slots of seven days first
    (live / "config" / "timercheck").write_bytes(check.ljust(4096, b"\0"))
    run = begun(release, live)
    now = int(time.time()) * 1000
    puts = [timer(f"due {n}", now + DUE * 1000) for n in range(EACH)]
    puts += [timer(f"later {n}", now + LATER * 1000) for n in range(EACH)]
    run.broker.put(puts)
    until = time.time() + 20
    while run.delivered().total() < EACH and time.time() < until:
        time.sleep(0.2)
    run.broker.put([timer(f"overdue {n}", now) for n in range(OVERDUE)])
    while run.delivered().total() < EACH + OVERDUE and time.time() < until:
        time.sleep(0.2)
    time.sleep(2)  # the checkpoints follow
    shutil.copytree(live, root / "killed")
    run.broker.shutdown()
    run.jvm.close()
    shutil.copytree(live, root / "stopped")
    shutil.copytree(live, root / "gone")
    remove(root / "gone" / "rocksdbstore")
    again = begun(release, live)  # from now on the checkpoint in files says, too, that these messages were taken
    time.sleep(1.5)
    again.broker.shutdown()
    again.jvm.close()
    shutil.copytree(live, root / "lost")
    remove(root / "lost" / "rocksdbstore")
    return now + LATER * 1000


def never_delivered(release: str, root: Path) -> None:
    """In `root` / `late`: timers wait, and none was delivered yet. Returns eleven seconds after they were due."""
    late = root / "late"
    (late / "config").mkdir(parents=True)
    check = struct.pack(">4q", int(time.time()) * 1000, 0, 0, 0)
    (late / "config" / "timercheck").write_bytes(check.ljust(4096, b"\0"))
    run, due = begun(release, late), int(time.time()) * 1000 + 6000
    run.broker.put([timer(f"late {n}", due) for n in range(EACH)])
    time.sleep(2)
    run.broker.shutdown()
    run.jvm.close()
    time.sleep(max(0.0, due / 1000 + 12 - time.time()))


Seen = Mapping[str, tuple[Audited, Counter[str]]]
CASES = ("killed", "stopped", "gone", "lost", "late")
REPAIRED = ("killed", "lost")


@pytest.fixture(scope="module", params=["5.4.0", "5.5.0"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Of each case its audit, and what was delivered when the last timer was due on a started copy."""
    folder = tmp_path_factory.mktemp("timers")
    with ThreadPoolExecutor(2) as both:
        late, last = both.submit(never_delivered, request.param, folder), written(request.param, folder)
        late.result()
    audits = {case: product.audit(folder / case, request.param, conf_of(SETTINGS)) for case in CASES}
    for case in REPAIRED:
        done = repair(folder / case, request.param, conf_of(SETTINGS), "broker", folder / f"{case}-repaired")
        assert done.exit_code == 0 and done.report["timers"]["rebuilt"]
        audits[f"{case}-repaired"] = product.audit(folder / f"{case}-repaired", request.param, conf_of(SETTINGS))
    with ThreadPoolExecutor(len(audits)) as threads:
        runs = list(threads.map(lambda case: begun(request.param, folder / case), audits))
        time.sleep(max(0.0, last / 1000 + 4 - time.time()))
        bodies = [run.delivered() for run in runs]
        for run in runs:
            run.jvm.close()
    yield {case: (audits[case], found) for case, found in zip(audits, bodies, strict=True)}


def names(kind: str, count: int, times: int) -> Counter[str]:
    return Counter({f"{kind} {n}": times for n in range(count)})


def fates(audit: Audited) -> dict[str, int]:
    return {name: row["messages"] for name, row in asdict(audit.outcome.holds.timers.fates).items() if row["messages"]}


@pytest.mark.parametrize(
    ("case", "again"),
    [
        ("stopped", {"overdue": OVERDUE}),  # what was due when it was sent comes twice
        ("killed", {"due": EACH, "overdue": OVERDUE}),  # all that was delivered does
        ("gone", {"due": EACH, "overdue": OVERDUE}),  # without the database all are taken again, as the checkpoint in files says
    ],
)
def test_what_comes_twice(case: str, again: dict[str, int], seen: Seen) -> None:
    audit, delivered = seen[case]
    assert case == "gone" or audit.above_note == [] and not audit.incomplete
    assert fates(audit) == {"waiting": EACH, "again": sum(again.values())}
    sent = names("due", EACH, 1) + names("later", EACH, 1) + names("overdue", OVERDUE, 1)
    assert delivered == sum((names(kind, count, 1) for kind, count in again.items()), sent)


def test_without_the_database_what_the_checkpoint_in_files_counts_as_taken_is_never_delivered(seen: Seen) -> None:
    audit, delivered = seen["lost"]
    lost = [f for f in audit.above_note if f.code == "timer_message_lost"]
    assert sum(f.count for f in lost) == EACH and audit.broker is not None and audit.broker["timer"]["lost"]["messages"] == EACH
    assert delivered == names("due", EACH, 1) + names("overdue", OVERDUE, 3)  # once in each life


def test_a_late_start_passes_over_what_is_due_where_nothing_was_delivered_before(seen: Seen) -> None:
    audit, delivered = seen["late"]
    assert audit.above_note == [] and [f.count for f in audit.findings if f.code == "timer_start_late"] == [EACH]
    assert delivered == Counter()


@pytest.mark.parametrize("case", REPAIRED)
def test_of_a_repaired_store_each_timer_is_delivered_once(case: str, seen: Seen) -> None:
    audit, delivered = seen[f"{case}-repaired"]
    before = 1 if case == "killed" else 2  # lives
    assert audit.above_note == [] and fates(audit) == {"waiting": EACH}
    assert delivered == names("due", EACH, 1) + names("later", EACH, 1) + names("overdue", OVERDUE, before)
