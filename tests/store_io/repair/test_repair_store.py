"""Repaired stores: what they serve, that they are consistent, and that nothing is put in place that is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.report.files.json_text import document
from schemas.repair import OtherPolicy, RepairReport
from tests.support import damage
from tests.support.answers import product
from tests.support.answers.repaired import (
    Served,
    content,
    numbers,
    plan_of,
    plan_with_steps,
    planned_options,
    previewed,
    repaired,
    written,
)
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.corpus_tools import Case
from tests.support.texts.json_schemas import faults

CASES = corpus_tools.plain_cases()
LARGE = {"g5x-533-broker-live"}
AGAIN = {"g14-533-torn-old-seen", "g85-533-queue-offsets"}
NOTHING = {"g32-480-commitlog-empty", "g41-533-fresh"}  # no segment
# Their plans have each kind of step that any plan of the corpus has, with all that a step keeps, loses and gives as its reason;
# but for the timers' (kinds/timers/test_timer_rebuild.py) and entries after an index file's count, as a broker leaves them.
BY_DEFAULT = {
    ("g14-533-torn-old-seen", "broker"),
    ("g14-533-torn-old-seen", "salvage"),
    ("g25-480-first-gone-crash", "broker"),
    ("g65-533-filler-size", "salvage"),
    ("g67-540-force-crc", "salvage"),
    ("g71-498-cq-last-file-zero", "broker"),
    ("g72-514-cq-last-file-empty", "broker"),
    ("g75-480-foreign-names", "broker"),
    ("g76-550-foreign-commitlog", "broker"),
    ("g78-514-batch-lmq", "broker"),
    ("g79-498-reput", "salvage"),
    ("g83-514-ext-damaged", "broker"),
    ("g83-514-ext-damaged", "salvage"),
    ("g85-533-queue-offsets", "salvage"),
    ("g112-550-controller-epoch-crc", "broker"),
}
RUNS = [
    pytest.param(case, policy, marks=() if (case.name, policy) in BY_DEFAULT else pytest.mark.soak)
    for case in CASES
    if case.name not in NOTHING
    for policy in ("broker", "salvage")
    if case.name not in LARGE or policy == "salvage"
]


def test_what_runs_by_default_is_there() -> None:
    assert {(case.name, policy) for case in CASES for policy in ("broker", "salvage")} >= BY_DEFAULT


def segment_bytes(case: Case) -> int:
    found = re.search(r"mappedFileSizeCommitLog=(\d+)", case.broker_conf)
    return int(found[1]) if found else 1 << 30


@pytest.mark.parametrize(("case", "policy"), RUNS, ids=lambda value: value if isinstance(value, str) else value.name)
def test_corpus(case: Case, policy: str, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    before = content(root)
    plan = plan_with_steps(root, case.release, case.broker_conf, policy)
    asked = planned_options(plan, policy)
    dry = previewed(root, tmp_path / "new", plan, policy, **asked)
    outcome = repaired(root, tmp_path / "new", plan, policy, **asked)
    assert content(root) == before
    assert numbers(dry) == outcome.report and dry.exit_code == outcome.exit_code
    assert plan.repair[policy].steps == outcome.report.steps and outcome.report.steps_from == "plan"
    assert outcome.exit_code == 0, outcome.report.problems
    assert_told(outcome.report)
    served = Served(tmp_path / "new", segment_bytes(case))
    batch = {p.name for p in (tmp_path / "new" / "batchconsumequeue").glob("*")}
    led_to = {phy for _, phy, _ in served.messages.values()}
    for record in served.records():
        if record.transaction in (0, 8) and record.topic not in batch:
            assert record.at in led_to, f"nothing leads to {record.at} of {record.topic}"
    if case.expected["load"].get("result") is True and policy == "broker":
        for name, queue in case.expected["served"]["queues"].items():
            topic, _, number = name.rpartition("-")
            if topic not in batch:
                assert sum(key[:2] == (topic, int(number)) for key in served.messages) >= queue["served"], name
    if policy == "salvage" and case.name not in AGAIN or not list((tmp_path / "new" / "commitlog").iterdir()):
        return  # or a start would cut all there is, so nothing is left to repair from
    again = plan_of(tmp_path / "new", case.release, case.broker_conf)
    assert repaired(tmp_path / "new", tmp_path / "again", again, policy).exit_code == 0
    assert content(tmp_path / "again") == content(tmp_path / "new")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def assert_told(report: RepairReport) -> None:
    """The report is as its schema has it, and its steps say the same as its other parts."""
    assert faults("repair", document(written(report))) == []
    steps = report.steps
    assert steps[0].action == "copy"

    def lost(what: str, *actions: str) -> int:
        return sum(step.lost.get(what, 0) for step in steps if step.action in actions)

    assert lost("bytes", "cut", "zero") == report.zeroed_bytes
    assert lost("messages", "cut", "zero", "remove", "bridge") == report.lost.messages + len(report.dropped)
    made = {(step.file, step.kept.get("entries", 0)) for step in steps if step.action == "rebuild_queue"}
    assert made >= {(queue.folder, queue.entries) for queue in report.queues}
    put = sorted((row.file, row.start, row.end) for row in report.bridges if row.kind != "filler")
    steps_that_put = [step for step in steps if step.action in ("bridge", "add_segment")]
    assert sorted((step.file, step.start, step.end) for step in steps_that_put) == put
    kept = sum(step.kept.get("positions", 0) for step in steps if step.action == "correct_offsets")
    assert kept == report.positions_set_back


OTHERWISE = {"g19-514-size-mid": (), "g37-533-crc-props": pytest.mark.soak, "g14-533-torn-old-seen": pytest.mark.soak}


@pytest.mark.parametrize("release", ["5.5.0", "5.5.1"])
def test_a_filler_whose_size_is_negative_hides_nothing_after_a_repair(release: str, tmp_path: Path) -> None:
    """5.5.1 ends recovery there, and older ones go on with the next file."""
    builder = StoreBuilder(release, Sizes(segment=1024))
    for number in range(20):
        builder.put(Message(body=b"%d" % number, uniq=f"u{number}"))
    store = builder.write(tmp_path / "store", clean=False)
    (store.root / "checkpoint").unlink()  # recovery reads all
    damage.filler_size(store.root / "commitlog" / f"{0:020d}", lambda size: -size)
    plan = plan_of(store.root, release, store.broker_conf)
    assert (plan.broker["lost"]["messages"] > 0) is (release == "5.5.1")
    assert repaired(store.root, tmp_path / "new", plan, "salvage").exit_code == 0
    after = product.audit(tmp_path / "new", release, store.broker_conf)
    assert after.outcome.exit_code == 0 and after.outcome.holds.messages == 20


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name, marks=OTHERWISE[c.name]) for c in CASES if c.name in OTHERWISE])
def test_a_dry_run_says_what_the_other_policy_keeps(case: Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    plan = plan_of(root, case.release, case.broker_conf)
    kept = {p: repaired(root, tmp_path / p, plan, p).report.messages_after for p in ("broker", "salvage")}
    for policy, other in (("broker", "salvage"), ("salvage", "broker")):
        told = previewed(root, tmp_path / "new", plan, policy).report.other_policy
        assert told == OtherPolicy(other, kept[other], kept[other] - kept[policy])
