"""Each single read of an audit fails once: the answer is the true one, or the audit is incomplete and names the file."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from schemas.outcome import Outcome
from schemas.rows import NOTE
from store_io.base.errors import NotAStore, Unreadable
from tests.support.answers.product import audit
from tests.support.failing_reads import KINDS, Calls, Failure, failing_calls
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

CASES = [
    case
    for found in (
        corpus_tools.cases("g29-", "g78-", "g106-", "g110-"),
        corpus_tools.of_kind("tables"),
        corpus_tools.of_kind("rocksdb"),
    )
    for case in found
]  # an index, many kinds of queues, DLedger, a controller, timers and everything else in RocksDB
FEW = 5  # reads of one store that the default tests have fail, by one kind of failure in turn
RUNS = [
    pytest.param(case, *kind, most, id=f"{case.name}-{name}-{most}", marks=() if default and most else pytest.mark.soak)
    for number, case in enumerate(CASES)
    for at, (name, kind) in enumerate(zip(("system", "server"), KINDS, strict=True))
    for default in (number % 2 == at,)
    for most in (FEW, 0)
]


def answer(outcome: Outcome) -> dict[str, Any]:
    fields = (
        "exit_code",
        "complete",
        "found.findings",
        "effect",
        "plan.steps",
        "plan.inputs",
        "loss",
        "rows.segments",
        "rows.queues",
        "rows.index_files",
        "holds.timers",
    )
    return {name: attrgetter(name)(outcome) for name in fields}


def judged(true: Outcome, got: Outcome, reads: Calls, root: Path) -> str:
    """ "truth", or "incomplete"; fails where it is neither."""
    path, call = reads.failed
    where = f"{call} of {path}: {got.exit_code}, {got.incomplete}"
    assert path, "no read failed"
    if got.complete:
        assert answer(got) == answer(true), where
        return "truth"
    name = root.as_posix() if path == "." else path
    assert any(name in sentence for sentence in got.incomplete), where
    assert got.exit_code in (3, true.exit_code), where
    known = {(f.code, f.file) for f in true.found.findings}
    invented = [(f.code, f.file) for f in got.found.findings if f.severity != NOTE and (f.code, f.file) not in known]
    assert not invented, where
    return "incomplete"


@pytest.mark.parametrize(("case", "names", "failures", "most"), RUNS)
def test_a_read_that_fails_once_is_told_or_changes_nothing(
    case: Case, names: Sequence[str], failures: Sequence[Failure], most: int, tmp_path: Path
) -> None:
    root = case.unpack(tmp_path)
    with failing_calls([root], names) as reads:
        true = audit(root, case.release, case.broker_conf).outcome
    step = max(1, reads.count // most) if most else 1
    came: Counter[str] = Counter()
    for number, fail_at in enumerate(range(step // 2, reads.count, step)):
        with failing_calls([root], names, fail_at, failures[number % len(failures)]) as failing:
            try:
                got = audit(root, case.release, case.broker_conf).outcome
            except (
                Unreadable,
                NotAStore,
            ) as problem:  # of the store's folder: the command ends with code 3
                assert str(problem).startswith(f"{root}: "), problem
                came["not begun"] += 1
                continue
        came[judged(true, got, failing, root)] += 1
    assert came["incomplete"], "no failure was told"
    print(f"{case.name}: {reads.count} reads, {dict(came)}")


UNLISTED = [
    ("g78-", "batchconsumequeue/BatchTopic"),  # without it nobody knows that the topic has several messages in a record
    ("g106-", "dledger-n0/data"),  # entries of the index lead there
    ("k02-", "config/topics"),
    ("k02-", "config/consumerOffsets"),
    ("k03-", "config"),  # where the timers keep their checkpoint
]


@pytest.mark.parametrize(("store", "folder"), UNLISTED)
def test_what_lies_in_a_folder_that_is_not_listed_is_not_called_missing(
    store: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES if case.name.startswith(store))
    root = case.unpack(tmp_path)
    true = audit(root, case.release, case.broker_conf).outcome
    with failing_calls([root], ("scandir",)) as listings:
        places: list[str] = []
        monkeypatch.setattr(listings, "meets", lambda call, what, dir_fd: places.append(listings._path(what, dir_fd)))
        audit(root, case.release, case.broker_conf)
    number = [place for place in places if place.startswith(str(root))].index(str(root / folder))
    with failing_calls([root], ("scandir",), number, errno.EIO) as failing:
        got = audit(root, case.release, case.broker_conf).outcome
    assert failing.failed == (folder, "scandir")
    assert judged(true, got, failing, root) == "incomplete"
