"""How long a repair takes whose queues and index are gone, against the release's own load() of the same store.

Mark `big`: it writes some five gigabytes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from dev.bench_stores import write_store
from dev.sample_store import RELEASE, SampleStore
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests import ROOT
from tests.broker_truth.harness.real_broker import Jvm

pytestmark = pytest.mark.big

GIB = 1 << 30
ROUNDS = 3


@pytest.mark.parametrize("body_bytes", [200, 1024, 4096, 16384])
def test_a_repair_of_a_large_store_rebuilds_what_the_broker_does(body_bytes: int, tmp_path: Path) -> None:
    """1.5 GiB of messages, read from the page cache. The broker works on a copy as it is, a repair on one that it makes: so it
    may take a copy longer. The times of some rounds are printed (`-s`) and decide nothing: other programs change them."""
    root = tmp_path / "store"
    write_store(root, SampleStore([body_bytes] * 2, last_bytes=GIB // 2))
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")
    (root / "abort").touch()  # a clean start would not rebuild them
    (root / "checkpoint").write_bytes(bytes(4096))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(audit_plan(run_local(AuditRequest("store", StoreLocation(str(root)), RELEASE)))), "utf-8")

    copy, new = tmp_path / "copy", tmp_path / "new"
    copied, repaired, loaded = [], [], []
    for _ in range(ROUNDS):
        for made in (*tmp_path.glob("copy*"), *tmp_path.glob("new*")):
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        os.sync()  # what was written or removed before slows nothing that is measured
        begin = time.monotonic()
        subprocess.run(["cp", "-r", str(root), str(copy)], check=True)
        copied.append(time.monotonic() - begin)
        os.sync()

        begin = time.monotonic()
        command = [str(ROOT / "spark-submit.sh"), "repair", str(root), "--plan", str(plan), "--to", str(new)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
        repaired.append(time.monotonic() - begin)
        assert done.returncode == 0, done.stdout + done.stderr
        os.sync()

        with Jvm(RELEASE, options=()) as jvm, jvm.broker(copy) as broker:
            begin = time.monotonic()
            assert broker.load()
            loaded.append(time.monotonic() - begin)
            rebuilt = broker.queues()
    with Jvm(RELEASE, options=()) as jvm, jvm.broker(new) as broker:
        broker.begin()
        assert {key: found[:2] for key, found in broker.queues().items()} == {key: found[:2] for key, found in rebuilt.items()}
        (topic, queue_id), (first, end, *_) = next(iter(rebuilt.items()))
        some = broker.pull(topic, queue_id, 1000)
        assert len(some) >= min(1000, end - first) > 100
    for what, seconds in (("repair", repaired), ("load()", loaded), ("cp", copied)):
        print(f"bodies of {body_bytes}: {what} {', '.join(f'{second:.1f}' for second in seconds)} s")
