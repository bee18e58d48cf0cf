"""A store that tests of repairs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.repair.repair_plan import RepairPlan
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.stores import corpus_tools


@pytest.fixture(scope="session")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RepairPlan, dict[str, str]]:
    """A small store with a bridge to build, queues and an index to rebuild, its plan, and what a repair makes of it."""
    case = next(c for c in corpus_tools.cases() if c.name == "g79-498-reput")
    folder = tmp_path_factory.mktemp("damaged")
    root = case.unpack(folder)
    plan = plan_of(root, case.release, case.broker_conf)
    outcome = repaired(root, folder / "whole", plan)
    assert outcome.exit_code == 0 and outcome.report.bridges and outcome.report.queues
    return root, plan, content(folder / "whole")
