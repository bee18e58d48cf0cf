"""What the steps of a repair share."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.advice import Cause, Gap
from store_io.base.errors import StoreError
from tests.support.stores.small_repairs import copied, small_store


def test_a_removal_is_a_step_and_a_task_that_failed_ends_the_repair(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, audit):
        size = audit.tree.by_path["checkpoint"].size
        work.remove("checkpoint", "because", audit.tree)
        (step,) = work.steps.done
        assert (step.action, step.file, step.reason, step.lost) == ("remove", "checkpoint", "because", {"bytes": size})
        assert "checkpoint" not in work.tree.by_path and (root / "checkpoint").exists()
        work.run_tasks = lambda tasks, describe: [1, Gap(Cause.TASK_FAULT, values=("out of memory",))]
        with pytest.raises(StoreError, match=r"a task of the repair failed: .*out of memory"):
            work.run([], "index")
