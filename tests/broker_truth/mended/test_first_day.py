"""What a whole broker does by itself to repaired stores in its first minutes is what their plans say, and what after-start says.

Each store is rescued twice: for a disk over the ratio at which ages do not count, and with the lines that the steps name. A third
broker starts on the store after a cut, which each check of the hand-over page must show.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from jobs.runtime import setup as environment
from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.real_broker import class_path
from tests.broker_truth.harness.whole_broker import WholeBroker, own_disk
from tests.support.answers.repaired import log_bytes
from tests.support.stores import corpus_tools
from tests.support.stores.builders import BORN_V6, decode

pytestmark = pytest.mark.broker
SECONDS = int(os.environ.get("DAY_SECONDS", 180))
CUT_SECONDS = 20
DISK, FULL, QUIET = 1 << 30, 87, 50  # bytes, in memory; percent of it. A timer wheel alone takes 37 MiB
_OWN = ("storePath", "namesrv", "listenPort", "haListen", "fileReservedTime", "diskMax", "deleteWhen", "brokerRole", "brokerId")
STORES = (
    ("g29-498-cq-wrong", "4.9.7"),
    ("g71-498-cq-last-file-zero", "4.9.7"),
    ("g79-498-reput", "4.9.7"),
    ("g5x-533-broker-live", "5.3.3"),
    ("g11-533-zero-tail", "5.3.3"),
    ("g14-533-torn-old-seen", "5.3.3"),
    ("g85-533-queue-offsets", "5.3.3"),
    ("g49-550-stray-checked", "5.5.0"),
    ("g76-550-foreign-commitlog", "5.5.0"),
    ("g81-550-logics-time", "5.5.0"),
)


@dataclass(frozen=True)
class Rescued:
    """A new store with what its plan says. root: of the new store."""

    root: Path
    conf: str
    day: dict[str, Any]
    end: int
    said: str


@dataclass(frozen=True)
class Seen:
    """What a broker left. gone: segments that it has deleted. code: of after-start, while it ran; answer: its first line.

    appended: (topic, whether it is a delivered timer message) of each record behind the end.
    status: of mqadmin brokerStatus. cut: (first, second) number of its lines "truncate dirty".
    ends: topic -> queue id -> (minimum, maximum). consumed: whether a group is beyond the end of a queue.
    """

    gone: list[str]
    code: int
    answer: str
    appended: list[tuple[str, bool]]
    status: dict[str, str]
    cut: list[tuple[int, int]]
    ends: dict[str, dict[int, tuple[int, int]]]
    levels: int


def rescued(folder: Path, name: str, release: str, percent: int, more: str = "") -> Rescued:
    case = corpus_tools.Case(corpus_tools.CORPUS / name)
    folder.mkdir()
    corpus_tools.extract(case.folder / "store.tar.xz", folder)
    lines = [line for line in (case.folder / "broker.conf").read_text().splitlines() if not line.startswith(_OWN)]
    conf = "\n".join([*lines, f"deleteWhen={(time.gmtime().tm_hour + 12) % 24:02d}", more, ""])
    (folder / "broker.conf").write_text(conf)
    asked = ["--release", release, "--broker-conf", str(folder / "broker.conf"), "--to", str(folder / "new"), "--timezone", "UTC"]
    asked += ["--disk-used", str(percent), "--disk-size", str(DISK), "--yes", "--give-up"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert entry.main(["rescue", str(folder / "store"), *asked]) == 0, said.getvalue()
    plan = json.loads((folder / "new.plan.json").read_text())
    report = json.loads((folder / "new.repair.json").read_text())
    return Rescued(folder / "new", conf, plan["first_day"], report["log_end"], said.getvalue())


def watched(java: str, jars: list[Path], new: Rescued, percent: int, seconds: int) -> Seen:
    """Let a broker run on the new store, on a disk that is so full. In a network of its own."""
    home = new.root.parent / f"home-{percent}-{seconds}"
    disk = home / "disk"
    disk.mkdir(parents=True)
    own_disk(disk, DISK)
    store = disk / "new"
    shutil.copytree(new.root, store)
    _fill(disk, percent)
    names = {path.name for path in (store / "commitlog").iterdir()}
    with WholeBroker(home, java, jars, store, new.conf) as broker:
        time.sleep(seconds)
        words = ["after-start", str(store), "--plan", f"{new.root}.plan.json", "--format", "json"]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = entry.main(words)
        status = broker.status()
        table = store / "config" / "topics.json"
        topics = json.loads(table.read_text())["topicConfigTable"] if table.exists() else {}
        ends = {topic: broker.ends(topic) for topic in topics if not topic.startswith(("rmq_sys", "SCHEDULE", "RMQ_SYS"))}
        lines = broker.log_lines()
    found = re.findall(r"maxPhyOffsetOfConsumeQueue\((-?\d+)\) >= processOffset\((-?\d+)\), truncate dirty", "\n".join(lines))
    left = {path.name for path in (store / "commitlog").iterdir()}
    return Seen(
        sorted(names - left),
        code,
        json.loads(said.getvalue())["answer"] if code in (0, 10, 20) else said.getvalue(),
        list(_appended(store, new.end)),
        status,
        [(int(first), int(second)) for first, second in found],
        ends,
        sum("put message failed" in line for line in lines),
    )


def _fill(disk: Path, percent: int) -> None:
    """Fill the disk up to this percentage, by what df says."""
    status = os.statvfs(disk)
    more = status.f_blocks * status.f_frsize * percent // 100 - (status.f_blocks - status.f_bfree) * status.f_frsize
    assert more > 0
    with open(disk / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, more)


def _appended(store: Path, end: int) -> Iterator[tuple[str, bool]]:
    for start, data in sorted(log_bytes(store).items()):
        at = 0
        while at + 8 <= len(data):
            size, magic = (int.from_bytes(data[at + part : at + part + 4], "big") for part in (0, 4))
            if not size or magic == 0xCBD43194:
                break
            if start + at >= end:
                record = decode(data, at)
                yield record.topic, "TIMER_DEQUEUE_MS" in record.properties
            at += size


def cut(new: Rescued) -> Rescued:
    """The new store without the first message of its last segment, as of a broker that was killed."""
    root = Path(shutil.copytree(new.root, new.root.parent / "cut"))
    for suffix in (".plan.json", ".repair.json"):
        shutil.copy(f"{new.root}{suffix}", f"{root}{suffix}")
    segment = max(path for path in (root / "commitlog").iterdir() if int(path.name) < new.end)
    times = segment.stat()
    with open(segment, "r+b") as file:
        file.seek(4)
        file.write(bytes(4))
    os.utime(segment, ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "abort").touch()
    return Rescued(root, new.conf, new.day, new.end, new.said)


@dataclass(frozen=True)
class Runs:
    """A store's three brokers: on a full disk, with the lines of the steps, and after a cut."""

    full: tuple[Rescued, Seen]
    kept: tuple[Rescued, Seen]
    cut: Seen


@pytest.fixture(scope="module", params=STORES, ids=[name for name, _ in STORES])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    own_network.needed()
    (name, release), folder = request.param, tmp_path_factory.mktemp("day")
    java, jars = str(environment.java_runtime().home), class_path(release, cluster=True)

    def run(new: Rescued, percent: int, seconds: int) -> Seen:
        return own_network.run(watched, java, jars, new, percent, seconds)

    full = rescued(folder / "full", name, release, FULL)
    hours = re.search(r"Set fileReservedTime=(\d+)", full.said)
    assert hours and "cleanFileForciblyEnable=false" in full.said
    kept = rescued(folder / "kept", name, release, QUIET, f"fileReservedTime={hours[1]}\ncleanFileForciblyEnable=false")
    with ThreadPoolExecutor() as threads:
        seen = threads.map(run, (full, kept), (FULL, QUIET), (SECONDS, SECONDS))
        with_full, with_lines = seen
    return Runs((full, with_full), (kept, with_lines), run(cut(kept), QUIET, CUT_SECONDS))


def test_a_full_disk_takes_what_was_said(runs: Runs) -> None:
    new, seen = runs.full
    said = [path.rpartition("/")[2] for path in new.day["retention"]["at_once"]]
    assert seen.gone == said != []
    assert seen.code == 10 and f"retention has deleted {len(said)} segment" in seen.answer


def test_with_the_lines_of_the_steps_all_stays_and_each_check_passes(runs: Runs) -> None:
    new, seen = runs.kept
    assert seen.gone == [] == new.day["retention"]["at_once"]
    assert seen.code in (0, 10), seen.answer
    if seen.status:
        assert int(seen.status["commitLogMaxOffset"]) >= new.end and int(seen.status["commitLogMinOffset"]) >= 0
    else:  # CommitLog.pickupStoreTimestamp reads too few bytes for such a message: the page says so
        assert decode(log_bytes(new.root)[min(log_bytes(new.root))], 0).sys_flag & BORN_V6
    assert all(first <= second for first, second in seen.cut)
    plan = json.loads(Path(f"{new.root}.plan.json").read_text())
    for row in plan["broker"]["after_dispatch"]["queues"]:
        if (ends := seen.ends.get(row["topic"], {}).get(row["queue_id"])) is not None:
            assert ends[0] == max(0, row["min_offset"]) and ends[1] >= row["max_offset"], row


def test_timers_and_delay_levels_are_delivered_as_said(runs: Runs) -> None:
    new, seen = runs.kept
    if (timers := new.day["timers"]) is not None:
        assert timers["never"] == 0 and sum(timer for _, timer in seen.appended) == timers["at_once"]
    assert (seen.levels > 0) is bool(new.day["delays"]["stuck_levels"])


def test_after_a_cut_each_check_fails(runs: Runs) -> None:
    new, _ = runs.kept
    seen = runs.cut
    assert seen.code == 20 and seen.answer.startswith("It differs from the plan")
    assert not seen.status or int(seen.status["commitLogMaxOffset"]) < new.end or seen.appended
    assert any(first > second for first, second in seen.cut)
