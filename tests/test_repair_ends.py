"""A repair ends: the new store audited again is consistent, or it is said that no repair changes what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.report.files.json_text import document
from jobs.report.texts.commands import repair_commands
from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.layouts.store_names import REPORT_SUFFIX
from schemas.outcome import Outcome
from schemas.rows import NAMED, NOTE
from store_io.answer.repairs import in_place_of_repair
from store_io.answer.steps import steps_of
from store_io.audit.audit_store import run_local
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.model.audit_request import AuditRequest
from store_io.repair.plan_repair_section import repairs_of, steps_tasks
from store_io.repair.proposals import config_helps
from store_io.repair.repair_plan import BROKER, POLICIES, SALVAGE, plan_text, read_plan
from store_io.repair.repair_work import RepairOutcome
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.answers.repaired import Served, repaired, written
from tests.support.handmade.outcome_fields import alter
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Store, StoreBuilder
from tests.support.stores.corpus_tools import Case
from tests.support.stores.made_again import BATCH, FILES, KINDS, RELEASE, ROCKSDB, made_again

CASES = [*corpus_tools.cases(), *corpus_tools.of_kind("rocksdb"), *corpus_tools.of_kind("tables")]
BY_DEFAULT = {
    "g14-533-torn-old-seen", "g61-514-first-time-zero", "g78-514-batch-lmq", "g83-514-ext-damaged", "g85-533-queue-offsets",
    "g93-540-rdb-gone-clean", "k02-533-rocksdb-offsets-bit",
}  # fmt: skip
NO_SEGMENT = {"g32-480-commitlog-empty", "g41-533-fresh"}
# By default these by one policy each, in turn.
RUNS = [
    pytest.param(case, policy, marks=() if case.name in BY_DEFAULT and (number + place) % 2 else pytest.mark.soak)
    for number, case in enumerate(CASES)
    if case.name not in NO_SEGMENT
    for place, policy in enumerate(POLICIES)
]
HELD = [(FILES, 0), (BATCH, 1), (ROCKSDB, 1), (FILES, 1)]
AGAIN = [
    pytest.param(lives, kind, held, policy, marks=() if (life + number + place) % 2 else pytest.mark.soak)
    for life, lives in enumerate([(30, 12), (12, 30)])
    for number, (kind, held) in enumerate(HELD)
    for place, policy in enumerate(POLICIES)
]


def audited(root: Path, release: str, broker_conf: str) -> Outcome:
    """The outcome, with the steps of a repair in its plan."""
    location = StoreLocation(str(root))
    outcome = run_local(AuditRequest(root.name, location, release, broker_conf, release_from=NAMED))
    alter(outcome, repairs=repairs_of(outcome, [task.run() for task in steps_tasks(outcome, location)]))
    return outcome


def mended(root: Path, target: Path, release: str, broker_conf: str, policy: str, **more: Any) -> RepairOutcome:
    """The repair, with its report beside the new store."""
    outcome = audited(root, release, broker_conf)
    plan, helps = read_plan(plan_text(outcome).encode()), config_helps(outcome)
    done = repaired(root, target, plan, policy, fix_offsets=True, fix_config=helps, **more)
    assert done.exit_code == 0, done.report.problems
    report = written(done.report)
    target.with_name(target.name + REPORT_SUFFIX).write_text(document(report))
    return done


def assert_ends(root: Path, release: str, broker_conf: str) -> Outcome:
    """A repair of this store is not offered, and if it is not consistent, a sentence says that none changes it."""
    outcome = audited(root, release, broker_conf)
    if outcome.exit_code:
        assert outcome.complete and repair_commands(outcome, [str(root)], "/plan.json") == []
        repairs = outcome.repairs or ()
        none = in_place_of_repair(outcome) == Advice(Step.NO_REPAIR_MENDS) or all(one.refused for one in repairs)
        assert none and all(step.gives_up is None for step in steps_of(outcome))
    return outcome


@pytest.mark.parametrize(("case", "policy"), RUNS, ids=lambda value: value if isinstance(value, str) else value.name)
def test_corpus(case: Case, policy: str, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    mended(root, tmp_path / "new", case.release, case.broker_conf, policy)
    assert_ends(tmp_path / "new", case.release, case.broker_conf)


@pytest.mark.parametrize(("lives", "kind", "held", "policy"), AGAIN)
def test_a_queue_that_begins_again(lives: tuple[int, int], kind: str, held: int, policy: str, tmp_path: Path) -> None:
    store = made_again(tmp_path / "store", kind, lives, [held])
    done = mended(store.root, tmp_path / "new", store.release, store.broker_conf, policy)
    again = assert_ends(tmp_path / "new", store.release, store.broker_conf)
    assert again.exit_code == 0 and again.loss.messages == 0
    assert done.report.messages_after == again.holds.messages == len(store.records)


def shifted(root: Path) -> Store:
    """A broker that forgot where its queue ends gave queue offsets twice: later entries follow at other numbers."""
    return made_again(root, FILES, [12, 30], [0])


def numbered_twice(root: Path) -> Store:
    """A damaged queue offset, which --heal alone changes."""
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message("A", body=b"some")) for _ in range(30)]
    store = builder.write(root)
    damage.set_field(store, records[20], "queueOffset", lambda number: number ^ 1)
    return store


def test_a_store_without_the_report_of_its_repair_is_offered_none_that_changes_nothing(tmp_path: Path) -> None:
    store = shifted(tmp_path / "store")
    mended(store.root, tmp_path / "new", store.release, store.broker_conf, BROKER)
    assert assert_ends(tmp_path / "new", store.release, store.broker_conf).exit_code == 0
    (tmp_path / ("new" + REPORT_SUFFIX)).unlink()
    without = assert_ends(tmp_path / "new", store.release, store.broker_conf)
    assert without.exit_code in (10, 20)


def test_what_heal_mends_is_recommended_and_ends_it(tmp_path: Path) -> None:
    store = numbered_twice(tmp_path / "store")
    mended(store.root, tmp_path / "new", store.release, store.broker_conf, BROKER)
    (tmp_path / ("new" + REPORT_SUFFIX)).unlink()
    left = audited(tmp_path / "new", store.release, store.broker_conf)
    assert left.exit_code == 20 and repair_commands(left, ["/s"], "/plan.json")[0][1].endswith(" --policy broker --heal")
    mended(tmp_path / "new", tmp_path / "whole", store.release, store.broker_conf, BROKER, heal_risk=DEFAULT_RISK)
    assert assert_ends(tmp_path / "whole", store.release, store.broker_conf).exit_code == 0


def test_what_came_after_the_repair_is_no_note(tmp_path: Path) -> None:
    store = numbered_twice(tmp_path / "store")
    mended(store.root, tmp_path / "new", store.release, store.broker_conf, BROKER)
    damage.set_field(Store(tmp_path / "new", *list(vars(store).values())[1:]), store.records[10], "queueOffset", lambda n: n ^ 1)
    again = audited(tmp_path / "new", store.release, store.broker_conf)
    assert {f.severity for f in again.found.findings if f.code == "queue_offset_wrong"} > {NOTE} or again.exit_code == 20


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lives", [(30, 12), (12, 30)])
def test_earlier_messages_come_back_only_if_they_are_asked_for(lives: tuple[int, int], kind: str, tmp_path: Path) -> None:
    """What is left out is in the report, with the reason."""
    store = made_again(tmp_path / "store", kind, lives, [1])
    left = mended(store.root, tmp_path / "left", store.release, store.broker_conf, SALVAGE).report
    note = next(
        f
        for f in audited(tmp_path / "left", store.release, store.broker_conf).found.findings
        if f.code == Code.QUEUE_BEGINS_AGAIN
    )
    assert note.count == lives[0] and left.moved == ()
    asked = mended(store.root, tmp_path / "asked", store.release, store.broker_conf, SALVAGE, with_earlier=True).report
    assert asked.unserved == ()
    again = audited(tmp_path / "asked", store.release, store.broker_conf)
    assert again.exit_code == 0 and not any(f.code == Code.QUEUE_BEGINS_AGAIN for f in again.found.findings)
    if kind == FILES:
        served = Served(tmp_path / "asked", store.sizes.segment).messages
        own = [r.at for r in store.records if r.topic == "A"]
        assert [served["A", 0, n][1] for n in range(sum(lives))] == own[lives[0] :] + own[: lives[0]]


@pytest.mark.parametrize("policy", POLICIES)
def test_no_line_promises_messages_that_a_repair_leaves_out(policy: str, tmp_path: Path) -> None:
    """A queue that is gone: its later life is made anew, and the earlier one gets no entry."""
    store = made_again(tmp_path / "store", FILES, [12, 30], [], clean=False)
    outcome = audited(store.root, RELEASE[FILES], store.broker_conf)
    lost = outcome.loss.messages
    (proposal,) = (one for one in outcome.repairs or () if one.policy == policy)
    assert proposal.refused is None and proposal.unserved == 12 and lost
    (what, _), *_ = repair_commands(outcome, [str(store.root)], "/plan.json")
    more = f"{lost - 12:,} more than a start would" if lost > 12 else "mends what differs"
    assert more in what and "12 of an earlier life of their queue get no entry without --with-earlier" in what
    report = mended(store.root, tmp_path / "new", store.release, store.broker_conf, policy).report
    rows = report.unserved
    assert sum(row.end - row.first for row in rows) == 12 and all("earlier life" in row.reason for row in rows)
    assert assert_ends(tmp_path / "new", store.release, store.broker_conf).exit_code == 0
