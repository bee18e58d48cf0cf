"""Rounds of making anew what is derived."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.report.files.json_text import document
from jobs.report.texts.commands import repair_commands
from store_io.answer.headline import judge
from store_io.outcome.plan_writer import audit_plan
from tests.support.answers.differential import plan_differences
from tests.support.answers.product import audit
from tests.support.answers.repaired import Served, plan_of, plan_with_steps, repaired, written
from tests.support.damage import copy_under_wrong_name, remove
from tests.support.second_witness import broker as witness
from tests.support.stores.builders import V2, Message, Sizes, StoreBuilder
from tests.support.stores.rocksdb_stores import keyed_store
from tests.support.texts.json_schemas import faults

# topic -> whether a start of 4.9.8 and of 5.3.3 ends all writing of queues at its message; seen with real brokers of both.
BAD_TOPICS = {
    "": (False, False), ".": (False, False), "..": (False, False), "a/b": (False, False), "../x": (False, False),
    "a\0b": (True, True), "a,b": (True, True), "x,../y": (True, True), "y" * 255: (None, False), "y" * 256: (None, True),
    "y" * 32_000: (None, True), "消" * 42: (False, False), "消" * 86: (None, True), "a\nb": (False, False), " ": (False, False),
}  # fmt: skip
# By default those that differ in what a start or a repair makes of them.
ODD_KINDS = {"", "a/b", "a\0b", "a,b", "y" * 255, "y" * 256, "消" * 86, "a\nb"}
FOUND_AGAIN = {"y" * 255, "消" * 42, "a\nb", " ", "a,b"}


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(topic, id=f"{topic[:9]!a}-{len(topic)}", marks=() if topic in ODD_KINDS else pytest.mark.soak)
        for topic in BAD_TOPICS
    ],
)
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_one_bad_topic_keeps_no_other_queue_from_its_repair(topic: str, release: str, tmp_path: Path) -> None:
    """The audit says what a start does, and the repair makes every queue that a broker can find again."""
    stops = BAD_TOPICS[topic][release == "5.3.3"]
    if stops is None:
        return  # a release that has no V2 record holds no such topic
    builder = StoreBuilder(release, Sizes(segment=131072))
    version = V2 if len(topic.encode()) > 127 else None
    builder.put(Message("A", body=b"1"))
    at = builder.put(Message(topic, body=b"2", version=version)).at
    builder.put(Message("A", body=b"3"))
    builder.put(Message("B", body=b"4"))
    builder.write(tmp_path / "store", clean=False, undispatched=4)

    found = audit(tmp_path / "store", release, builder.broker_conf()).outcome
    ends = {(row["topic"], row["queue_id"]): row["max_offset"] for row in audit_plan(found)["broker"]["after_dispatch"]["queues"]}
    assert [ends["A", 0], ends[topic, 0], ends["B", 0]] == ([1, 0, 0] if stops else [2, 1, 1])
    assert found.loss.messages == (3 if stops else 0) and found.complete
    told, _ = witness.run(tmp_path / "store", release, builder.broker_conf())
    assert not [line for line in plan_differences(audit_plan(found)["broker"], told) if line.startswith("after_dispatch.queue")]
    skipped = [f.message for f in found.found.findings if f.code == "broker_skips_messages"]
    assert len(skipped) == (3 if stops else 0) and all(f"physical offset {at:,}, as" in message for message in skipped)

    for policy in ("broker", "salvage"):
        plan = plan_with_steps(tmp_path / "store", release, builder.broker_conf(), policy)
        outcome = repaired(tmp_path / "store", tmp_path / policy, plan, policy)
        assert outcome.exit_code == 0, outcome.report.problems
        assert not faults("repair", document(written(outcome.report)))
        assert outcome.report.steps_from == "plan"
        served = sorted(record.topic for record in Served(tmp_path / policy, 131072).records())
        assert len(served) == 4
        queues = {path.parent.parent.name for path in (tmp_path / policy / "consumequeue").rglob("0" * 20)}
        assert queues == {"A", "B"} | {topic} & FOUND_AGAIN
        left = [(row.topic, row.phy_offset) for row in outcome.report.unserved]
        assert left == ([] if topic in FOUND_AGAIN else [(topic, at)])
        ends = [row.reason for row in outcome.report.unserved]
        assert all((" puts nothing into queues from there on and refuses new messages" in reason) is stops for reason in ends)
        again = audit(tmp_path / policy, release, builder.broker_conf()).outcome
        assert again.loss.messages == len(left) and again.complete
        words = (str(tmp_path / policy), "--release", release)
        assert not repair_commands(again, words, "/plan.json")  # another one would change nothing
        head = "Neither a start nor a repair brings 1 message of this copy into a queue"
        assert not left or judge(again).headline == head
        said = [f.message for f in again.found.findings if f.code == "broker_skips_messages"]
        assert len(said) == len(left) and all(("refuses new messages" in message) is stops for message in said)


@pytest.mark.parametrize(("release", "at_once"), [("4.9.8", True), ("5.3.3", False)])
def test_a_repair_says_when_a_start_ends_all_writing_of_queues(release: str, at_once: bool, tmp_path: Path) -> None:
    """The last message is one of which no queue can be made: some releases come to it at each start, others after a crash."""
    builder = StoreBuilder(release, Sizes(segment=131072))
    builder.put(Message("A", body=b"1"))
    at = builder.put(Message("a\0b", body=b"2")).at
    builder.write(tmp_path / "store", clean=False, undispatched=2)
    plan = plan_with_steps(tmp_path / "store", release, builder.broker_conf(), "salvage")
    (row,) = repaired(tmp_path / "store", tmp_path / "new", plan, "salvage").report.unserved
    assert row.phy_offset == at and ("; the next start puts nothing into queues" in row.reason) is at_once
    assert at_once or "; a start that reads it again, as the first one after a crash may, puts nothing" in row.reason
    again = audit(tmp_path / "new", release, builder.broker_conf()).outcome
    (said,) = (f.message for f in again.found.findings if f.code == "broker_skips_messages")
    assert ("no file can be made for the queue" in said) is at_once and "refuses new messages" in said


def test_a_light_queue_whose_file_cannot_be_made_is_left_out_alone(tmp_path: Path) -> None:
    """Source: ConsumeQueue.doDispatchLmqQueue, which does not call makeLogicsQueueError."""
    builder = StoreBuilder("5.3.3", lmq=True)
    builder.put(Message("A", body=b"1", lmq=("%LMQ%" + "y" * 300, "%LMQ%b")))
    builder.put(Message("A", body=b"2"))
    builder.write(tmp_path / "store", clean=False, undispatched=2)
    found = audit(tmp_path / "store", "5.3.3", builder.broker_conf()).outcome
    ends = {row["topic"]: row["max_offset"] for row in audit_plan(found)["broker"]["after_dispatch"]["queues"]}
    assert ends == {"A": 2, "%LMQ%b": 1, "%LMQ%" + "y" * 300: 0} and not found.loss.messages
    assert not plan_differences(audit_plan(found)["broker"], witness.run(tmp_path / "store", "5.3.3", builder.broker_conf())[0])


@pytest.mark.parametrize("in_files", [True, False])
def test_a_file_under_the_name_of_the_last_segment_goes_and_what_is_made_anew_is_not_of_it(
    in_files: bool, tmp_path: Path
) -> None:
    """Its messages are those of another segment: it is removed without another audit, and the rebuild does not look for it."""
    keyed = keyed_store(tmp_path / "store", "5.5.0").write()
    root, names = keyed.root, sorted(path.name for path in (keyed.root / "commitlog").iterdir())
    copy_under_wrong_name(root / "commitlog" / names[0], names[-1])
    conf = keyed.plain.broker_conf if in_files else keyed.broker_conf
    remove(root / "consumequeue")
    outcome = repaired(root, tmp_path / "new", plan_of(root, "5.5.0", conf), "salvage")
    assert outcome.exit_code == 0, outcome.report.problems
    assert f"commitlog/{names[-1]}" in outcome.report.removed
    here = [record for record in keyed.records if record.at < int(names[-1])]
    assert sum(row.entries for row in outcome.report.queues) == len(here)
