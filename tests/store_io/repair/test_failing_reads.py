"""Each single call of a repair that reads or writes fails once: the new store is right, or there is none, and a sentence."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from pathlib import Path

import pytest

from store_io.base.errors import StoreError
from store_io.repair.repair_plan import POLICIES, RepairPlan
from store_io.repair.writing import store_writer
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.failing_reads import CHANGING, READING, Calls, failing_calls
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

CASES = corpus_tools.cases("g79-", "g29-", "g85-")
FEW, MANY = 4, 100  # calls that are made to fail, by default and under the mark soak
SOME = [(CASES[0], policy, FEW) for policy in POLICIES]
SPREADS = SOME + [pytest.param(case, policy, MANY, marks=pytest.mark.soak) for case in CASES for policy in POLICIES]


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
    assert content(target) == whole, calls.failed
    return "truth"


@pytest.mark.parametrize(("case", "policy", "most"), SPREADS, ids=lambda value: getattr(value, "name", str(value)))
@pytest.mark.parametrize("names", [READING, CHANGING], ids=["read", "change"])
def test_a_call_of_a_repair_fails_once(
    case: Case, policy: str, names: tuple[str, ...], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if names == CHANGING:  # by Python's own calls, which can be made to fail
        monkeypatch.setattr(store_writer, "_system_call", lambda *_: None)
    root = case.unpack(tmp_path / "copy")
    plan, before = plan_of(root, case.release, case.broker_conf), content(root)
    around, new = tmp_path / "new", tmp_path / "new" / "store"
    around.mkdir()
    below = (root, around) if names == READING else (around,)
    with failing_calls(below, names) as calls:
        try:
            assert repaired(root, new, plan, policy).exit_code == 0
        except StoreError as refused:
            pytest.skip(f"no repair: {refused}")
    whole = content(new)
    shutil.rmtree(new)
    step = max(1, calls.count // most)
    came: Counter[str] = Counter()
    for fail_at in range(step // 2, calls.count, step):
        with failing_calls(below, names, fail_at, errno.EIO) as failing:
            came[whole_or_named(root, new, plan, policy, whole, failing)] += 1
        shutil.rmtree(new, ignore_errors=True)
        assert not list(around.iterdir()), f"left after {failing.failed}"
    assert content(root) == before
    print(f"{case.name} {policy}: {calls.count} calls, {dict(came)}")
