"""One way to run any task, of an audit or of a repair."""

from __future__ import annotations

from typing import Any

from store_io.audit_store import run_task
from store_io.rebuild import BuildTask, LinkTask


def do_task(task: Any) -> Any:
    """What the task gives. A repair's raises StoreError where it fails; an audit's never."""
    return task.run() if isinstance(task, BuildTask | LinkTask) else run_task(task)
