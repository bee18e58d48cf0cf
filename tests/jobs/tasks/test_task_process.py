"""Tasks in a process of their own, which may be lost with one of them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jobs.tasks.task_process import Apart, files_of
from schemas.advice import Gap
from store_io.audit.audit_store import StoreAudit
from store_io.kinds.queues.consumequeue_reader import QueueGroup
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text
from tests.support.processes.deadly_tasks import deadly, fleet


def test_apart_every_task_is_run_whatever_the_one_before_did(tmp_path: Path) -> None:
    store = fleet(tmp_path)[0]
    tasks = StoreAudit(AuditRequest("a", StoreLocation(store.path), store.release, store.broker_conf)).first_tasks()
    one, two = [task for task in tasks if isinstance(task, SegmentTask)][:2]
    (tmp_path / "marks").mkdir()
    with Apart() as apart:
        found = [pickle.loads(apart.run(task, None, ())) for task in (one, deadly(two, tmp_path / "marks", -1), two)]
    assert [None if isinstance(answer, Gap) else answer.path for answer in found] == [one.path, None, two.path]
    assert isinstance(found[1], Gap) and two.path in gap_text(found[1])
    assert len(os.listdir(tmp_path / "marks")) == 2


def test_what_a_task_reads_is_named() -> None:
    def files(*paths: str) -> Any:
        return tuple(SimpleNamespace(path=path) for path in paths)

    one: Any = SimpleNamespace(paths=("commitlog/0",))
    assert files_of(one) == "commitlog/0"
    queues: Any = (SimpleNamespace(files=files("a", "b"), audit_files=files("b", "c")),)
    assert files_of(QueueGroup(queues)) == "a and 2 more"
