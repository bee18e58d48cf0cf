"""Each single call of a repair that reads or writes fails once: the new store is the right one, or there is none and a sentence."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from pathlib import Path

import pytest

from store_io.base.errors import StoreError
from store_io.repair.repair_plan import POLICIES, RepairPlan
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.failing_reads import CHANGING, READING, Calls, failing_calls
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

CASES = corpus_tools.cases("g29-", "g79-", "g85-")
FEW = 12  # calls that the default tests have fail


def whole_or_named(root: Path, target: Path, plan: RepairPlan, policy: str, whole: dict[str, str], calls: Calls) -> str:
    """ "truth", or "named"; fails where it is neither."""
    try:
        assert repaired(root, target, plan, policy).exit_code == 0, calls.failed
    except StoreError as problem:
        path, call = calls.failed
        assert problem.exit_code == 3
        name = path.partition("/store/")[2] or path.rpartition("/")[2]  # below the hidden folder the new store has its own
        assert name in str(problem) or target.name in str(problem), f"{call} of {path}: {problem}"
        if not target.exists():
            return "named"
        assert "is in place and whole" in str(problem), problem
    assert calls.failed[0], "no call failed"
    assert content(target) == whole, calls.failed
    return "truth"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("names", [READING, CHANGING], ids=["read", "change"])
@pytest.mark.parametrize("most", [FEW, pytest.param(0, marks=pytest.mark.soak)], ids=["few", "each"])
def test_a_call_of_a_repair_fails_once(case: Case, policy: str, names: tuple[str, ...], most: int, tmp_path: Path) -> None:
    root = case.unpack(tmp_path / "copy")
    plan, before, around, new = (
        plan_of(root, case.release, case.broker_conf),
        content(root),
        tmp_path / "new",
        tmp_path / "new" / "store",
    )
    around.mkdir()
    below = (root, around) if names == READING else (around,)
    with failing_calls(below, names) as calls:
        try:
            assert repaired(root, new, plan, policy).exit_code == 0
        except StoreError as refused:
            pytest.skip(f"no repair: {refused}")
    whole = content(new)
    shutil.rmtree(new)
    step = max(1, calls.count // most) if most else 1
    came: Counter[str] = Counter()
    for fail_at in range(step // 2, calls.count, step):
        with failing_calls(below, names, fail_at, errno.EIO) as failing:
            came[whole_or_named(root, new, plan, policy, whole, failing)] += 1
        shutil.rmtree(new, ignore_errors=True)
        assert not list(around.iterdir()), f"left after {failing.failed}"
    assert content(root) == before
    print(f"{case.name} {policy}: {calls.count} calls, {dict(came)}")
