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

from jobs.bench.store import write_store
from store_io.audit.audit_request import AuditRequest
from store_io.audit.audit_store import run_local
from store_io.sample_store import RELEASE, SampleStore
from store_io.source.byte_source import StoreLocation
from tests import ROOT
from tests.broker_truth.real_broker import Jvm

pytestmark = pytest.mark.big

GIB = 1 << 30
BODY_BYTES = 1024


def test_repair_is_quicker_than_the_broker(tmp_path: Path) -> None:
    """1.5 GiB of messages of about a kilobyte. Both read it from the page cache, and both have what they rebuild in files."""
    root = tmp_path / "store"
    write_store(root, SampleStore([BODY_BYTES] * 2, last_bytes=GIB // 2))
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")
    (root / "abort").touch()  # a clean start would not rebuild them
    (root / "checkpoint").write_bytes(bytes(4096))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(run_local(AuditRequest("store", StoreLocation(str(root)), RELEASE)).plan), "utf-8")

    begin = time.monotonic()
    command = [str(ROOT / "spark-submit.sh"), "repair", str(root), "--plan", str(plan), "--to", str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    repair_seconds = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr

    with Jvm(RELEASE, options=()) as jvm, jvm.broker(root) as broker:
        begin = time.monotonic()
        assert broker.load()
        load_seconds = time.monotonic() - begin
        rebuilt = broker.queues()
    with Jvm(RELEASE, options=()) as jvm, jvm.broker(tmp_path / "new") as broker:
        assert broker.load()
        broker.start()
        assert {key: found[:2] for key, found in broker.queues().items()} == {key: found[:2] for key, found in rebuilt.items()}
        topic, queue_id = next(iter(rebuilt))
        some = broker.pull(topic, queue_id, 1000)
        assert len(some) >= 1000
    print(f"repair {repair_seconds:.1f} s, load() {load_seconds:.1f} s")
    assert repair_seconds < load_seconds
