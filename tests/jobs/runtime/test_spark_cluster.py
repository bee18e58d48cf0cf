"""A real cluster, whose workers have nothing of the project but what a driver sends: the same results as one process, whatever of
it is lost on the way, or one sentence.

    ./spark-submit.sh test -m cluster
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.runtime import setup as environment
from tests.support.processes.opened_files import opened_below
from tests.support.processes.spark_cluster import SECONDS, WORKERS, Cluster, files, here, slow_store, steady
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.corpus_tools import cases
from tests.support.stores.random_stores import RELEASES

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes"),
]
STORES = ("g04", "g19", "g29", "g37", "g103")  # clean, cut, queues wrong, damaged, of a DLedger group


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where commands are typed: no folder of the project."""
    return tmp_path


def test_audit_export_repair_and_history_as_in_one_process(running: Cluster, elsewhere: Path) -> None:
    rows = []
    for case in cases(*STORES):
        case.unpack(elsewhere / case.name)
        place = f'path = "{case.name}/store"\nbroker_conf = "{case.name}/broker.conf"'
        rows.append(f'[[store]]\nname = "{case.name}"\nrelease = "{case.release}"\n{place}\n')
    (elsewhere / "fleet.toml").write_text("".join(rows), "utf-8")
    start = ["--start-at", "2026-11-28T15:00:00Z"]  # plans say which start they are for
    words = ["audit", "--fleet", "fleet.toml", *start, "--write", "consumequeue", "--out"]
    one, many = here([*words, "one"], elsewhere), running.run([*words, "many"], elsewhere)
    assert (many.returncode, many.stderr) == (one.returncode, "")
    # Their steps name their own folders.
    texts = [(elsewhere / name / "result.json").read_text().replace(f"/{name}/", "/OUT/") for name in ("one", "many")]
    results = [json.loads(text) for text in texts]
    assert steady(results[1]) == steady(results[0])
    found = list(cases(*STORES))
    assert len(found) == len(STORES)
    for case in found:
        for name in ("plan.json", "findings.jsonl", "config.json"):
            assert (elsewhere / "many" / case.name / name).read_bytes() == (elsewhere / "one" / case.name / name).read_bytes(), (
                name
            )

    damaged = next(case for case in found if case.name.startswith("g37"))
    store = ["--release", damaged.release, "--broker-conf", f"{damaged.name}/broker.conf"]
    words = ["repair", f"{damaged.name}/store", "--plan", f"many/{damaged.name}/plan.json", *store, "--policy", "salvage", "--to"]
    one, many = here([*words, "new-one"], elsewhere), running.run([*words, "new-many"], elsewhere)
    assert (many.returncode, many.stderr) == (one.returncode, "") == (0, "")
    assert files(elsewhere / "new-many") == files(elsewhere / "new-one") != {}

    words = ["export", f"{damaged.name}/store", *store, "--format", "jsonl", "--to"]
    one, many = here([*words, "rows-one"], elsewhere), running.run([*words, "rows-many"], elsewhere)
    assert (many.returncode, many.stderr) == (one.returncode, "") == (0, "")
    exported = [files(elsewhere / name) for name in ("rows-one", "rows-many")]
    assert exported[1].keys() == exported[0].keys() and exported[0]
    assert all(exported[1][name] == content for name, content in exported[0].items() if "manifest" not in name)

    for words in (["report"], ["coverage", "--within", "1d"]):
        told = [here_only([*words, "--format", "json", "--tables", f"{name}/tables"], elsewhere) for name in ("one", "many")]
        assert [row.returncode for row in told] == [0, 0]
        assert len(json.loads(told[1].stdout)["stores"]) == len(json.loads(told[0].stdout)["stores"]) == len(STORES)


def here_only(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that needs no Spark."""
    own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    return subprocess.run(
        [sys.executable, "-m", "jobs.entry", *words],
        env={"PATH": os.environ["PATH"], **own}, cwd=cwd, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip


# ---- what is lost on the way -----------------------------------------------------------------------------------------


@pytest.fixture
def slow(elsewhere: Path) -> list[str]:
    """An audit that takes its time: 32 MB at 1 MB/s on each of two workers."""
    store = slow_store(elsewhere / "store", 320)
    (elsewhere / "broker.conf").write_text(store.broker_conf or "")
    return ["audit", str(store.root), "--release", "5.3.3", "--broker-conf", "broker.conf"]


def test_a_worker_that_is_lost_in_the_middle_changes_nothing(running: Cluster, elsewhere: Path, slow: list[str]) -> None:
    whole = here([*slow, "--out", "whole"], elsewhere)
    code, shown = running.run_and_lose_a_worker([*slow, "--out", "out"], elsewhere)
    assert code == whole.returncode == 0, shown
    assert steady(json.loads((elsewhere / "out" / "result.json").read_text())) == steady(
        json.loads((elsewhere / "whole" / "result.json").read_text())
    )
    for name in ("plan.json", "findings.jsonl"):
        assert (elsewhere / "out" / "store" / name).read_bytes() == (elsewhere / "whole" / "store" / name).read_bytes()


def test_executors_that_the_system_ends_again_and_again_end_in_a_sentence(
    running: Cluster, elsewhere: Path, slow: list[str]
) -> None:
    """As where memory is short: every executor is killed (SIGKILL) as soon as its Python workers run."""
    words = [*slow, "--out", "out", "--max-rate", "1MB/s"]
    ended = threading.Event()

    def short_of_memory() -> None:
        while not ended.wait(0.2):
            for worker in range(WORKERS):
                for executor in running.executors(worker):
                    if running.has_python(executor):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(executor, signal.SIGKILL)

    killer = threading.Thread(target=short_of_memory)
    killer.start()
    try:
        done = running.run(words, elsewhere)
    finally:
        ended.set()
        killer.join()
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("spark-submit.sh: Spark failed: "), done.stderr
    assert "SparkContext" not in done.stderr and "Traceback" not in done.stderr
    result = json.loads((elsewhere / "out" / "result.json").read_text())
    assert (result["complete"], result["exit_code"]) == (False, 3) and len(result["problems"]) == 1
    assert not (elsewhere / "out" / "store" / "plan.json").exists()


@pytest.mark.parametrize("progress", ["none", "json"])
def test_a_cluster_without_room_is_named(progress: str, running: Cluster, elsewhere: Path) -> None:
    """No worker has so much memory."""
    small_store(elsewhere / "store")
    words = ["audit", "store", "--release", "5.3.3", "--out", "out", "--executor-memory", "64g", "--progress", progress]
    with running.started(words, elsewhere) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "waiting for an executor" in line)
        if progress == "json":
            said = json.loads(said)["said"]
        assert f"waiting for an executor from {running.master}: look at the master's page, application app-" in said
        assert process.poll() is None


def test_a_task_that_throws_costs_its_own_store_alone(running: Cluster, elsewhere: Path) -> None:
    """The driver's own packages are sent: a fault is put into its tasks."""
    driver = """
import sys
from jobs import entry
from store_io.audit.audit_store import StoreAudit

first = StoreAudit.first_tasks

def tasks(audit):
    found = first(audit)
    if audit.request.name == "bad":
        object.__setattr__(found[0], "location", None)  # whatever asks it for its root raises
    return found

StoreAudit.first_tasks = tasks
sys.exit(entry.main(sys.argv[1:]))
"""
    for name in ("good", "bad"):
        small_store(elsewhere / name)
    done = driven(driver, running, ["good", "bad", "--release", "5.3.3", "--out", "out"], elsewhere)
    assert (done.returncode, done.stderr) == (3, "")
    result = json.loads((elsewhere / "out" / "result.json").read_text())
    assert {store["name"]: store["code"] for store in result["stores"]} == {"good": 0, "bad": 3}
    assert any("stopped a scan" in sentence for sentence in result["stores"][1]["incomplete"])


def test_a_fleet_continues_where_its_driver_was_killed(running: Cluster, elsewhere: Path) -> None:
    """Under the same --run-id, with a new driver: what was finished is not opened again."""
    driver = """
import os, signal, sys
from jobs import entry
from jobs.audit.finished_stores import FinishedStores

keep, kept = FinishedStores.keep, []

def killed(self, *words):
    keep(self, *words)
    kept.append(words)
    if len(kept) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

FinishedStores.keep = killed
sys.exit(entry.main(sys.argv[1:]))
"""
    stores = [f"stores/store-{number}" for number in range(5)]
    for name in stores:
        small_store(elsewhere / name)
    words = [*stores, "--release", "5.3.3", "--run-id", "night", "--out"]
    whole = here(["audit", *words, "whole"], elsewhere)
    killed = driven(driver, running, [*words, "out"], elsewhere)
    assert killed.returncode == -signal.SIGKILL and not (elsewhere / "out" / "result.json").exists()
    with opened_below(elsewhere / "stores") as opened:
        again = running.run(["audit", *words, "out"], elsewhere)
    assert (again.returncode, again.stderr) == (whole.returncode, "")
    assert {path.partition("/")[0] for path in opened} == {"store-3", "store-4"}
    results = [json.loads((elsewhere / name / "result.json").read_text()) for name in ("whole", "out")]
    assert [result.pop("taken_over") for result in results] == [0, 3]
    assert steady(results[1]) == steady(results[0])
    for number in range(5):
        for name in ("plan.json", "findings.jsonl"):
            place = f"store-{number}/{name}"
            assert (elsewhere / "out" / place).read_bytes() == (elsewhere / "whole" / place).read_bytes(), place


def test_two_hundred_stores_of_all_releases_in_one_run(running: Cluster, elsewhere: Path) -> None:
    """One that is not there and one whose row is wrong are told, and stop no other one; each store's end is told."""
    rows, bad = [], {"store-057", "store-123"}
    for number in range(200):
        name, release = f"store-{number:03}", RELEASES[number % len(RELEASES)]
        if name != "store-057":
            small_store(elsewhere / "stores" / name, release)
        named = "1.0.0" if name == "store-123" else release
        rows.append(f'[[store]]\nname = "{name}"\nrelease = "{named}"\npath = "stores/{name}"\n')
    (elsewhere / "fleet.toml").write_text("".join(rows), "utf-8")
    words = ["audit", "--fleet", "fleet.toml", "--run-id", "night", "--progress", "json", "--out"]
    one, many = here([*words, "one"], elsewhere), running.run([*words, "many"], elsewhere)
    assert (one.returncode, many.returncode) == (3, 3), many.stderr
    # Their steps name their own folders.
    texts = [(elsewhere / name / "result.json").read_text().replace(f"/{name}/", "/OUT/") for name in ("one", "many")]
    results = [json.loads(text) for text in texts]
    assert steady(results[1]) == steady(results[0])
    assert {store["name"] for store in results[1]["stores"] if store["code"]} == bad and len(results[1]["stores"]) == 200
    names = [f"store-{number:03}" for number in range(200)]
    assert sorted(row["store"] for row in map(json.loads, many.stderr.splitlines()) if row["phase"] == "store") == names
    for name in set(names) - bad:
        for file in ("plan.json", "findings.jsonl"):
            assert (elsewhere / "many" / name / file).read_bytes() == (elsewhere / "one" / name / file).read_bytes(), name


def small_store(folder: Path, release: str = "5.3.3") -> None:
    builder = StoreBuilder(release, Sizes(segment=4096, queue_file=200))
    for message in range(40):
        builder.put(Message(queue_id=message % 3, body=b"%04d" % message * 10, uniq=f"u{message}"))
    builder.write(folder)


def driven(driver: str, running: Cluster, words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """An audit by a driver of its own code."""
    (cwd / "driver.py").write_text(driver)
    own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, "driver.py", "audit", *running.words, *words],
        env={"PATH": os.environ["PATH"], **own}, cwd=cwd, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
