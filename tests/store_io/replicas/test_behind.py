"""A copy that lacks messages or newer tables of its group has a finding, and so its code; a clean earlier moment has none."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.report.texts.comparison_words import choice_words
from jobs.report.texts.next_steps import shown_steps
from schemas.finding_codes import Code
from schemas.replicas import Group, GroupCopy, Lacked, Pair, Rejoin, Rejoining, Relation, TableAhead
from store_io.answer.headline import judge, verdict_text
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.model.audit_request import AuditRequest
from store_io.outcome.safety import Safety, as_master
from store_io.replicas.behind import behind_findings
from store_io.replicas.replica_groups import ReplicaGroup
from store_io.source.byte_source import StoreLocation
from tests.support.stores.replica import epoch_text, replica


def group(
    *lacks: tuple[str, str, int],
    relation: Relation = Relation.BEHIND,
    config: tuple[tuple[str, str], ...] = (),
    rejoin: tuple[Rejoin, ...] | None = None,
) -> Group:
    """Two copies a and b. lacks: (store, holder, messages). config: (store, holder) of tables of which the holder has more."""
    return Group(
        copies=tuple(GroupCopy(name, start=0, lacks=sum(n for store, _, n in lacks if store == name)) for name in "ab"),
        lacks=tuple(Lacked(*each) for each in lacks),
        pairs=(Pair("a", "b", relation, rejoin=rejoin),),
        config=tuple(TableAhead(store, holder, "offsets", "f", "f", behind=2) for store, holder in config),
    )


def first_copy(found: Group, **changed: Any) -> Group:
    """The group with other facts about its first copy."""
    return replace(found, copies=(replace(found.copies[0], **changed), *found.copies[1:]))


REFUSED = Rejoin("b", "a", None, Rejoining.REFUSED)


@pytest.mark.parametrize(
    ("found", "of_a", "of_b"),
    [
        (group(relation=Relation.EQUAL), [], []),
        (group(("b", "a", 5)), [], []),  # b is an earlier moment of a
        (group(("b", "a", 5), config=(("b", "a"),)), [], []),
        (group(("b", "a", 5), config=(("a", "b"),)), [2], [5]),  # the newer tables are with the shorter log
        (group(("b", "a", 5), rejoin=(REFUSED,)), [], [5]),
        (group(("b", "a", 5), rejoin=(replace(REFUSED, outcome=Rejoining.COPIES),)), [], []),
        (group(("b", "a", 5), relation=Relation.DAMAGED), [], [5]),
        (group(("b", "a", 5), ("a", "b", 3), relation=Relation.DIVERGED), [3], [5]),
        (group(config=(("b", "a"),), relation=Relation.EQUAL), [], [2]),
        (group(config=(("b", "a"),), relation=Relation.UNKNOWN), [], []),
    ],
)
def test_what_lacks_something_is_blamed(found: Group, of_a: list[int], of_b: list[int]) -> None:
    assert [[f.count for f in behind_findings(found, name)] for name in "ab"] == [of_a, of_b]
    assert all(f.code == Code.COPY_IS_BEHIND for name in "ab" for f in behind_findings(found, name))


def test_a_copy_that_diverged_and_lacks_no_counted_message_is_no_fault_of_this_program() -> None:
    found = first_copy(group(relation=Relation.DIVERGED), undecided=1)
    told = as_master(found, "a")
    assert told is not None and told.diverged_from == "b" and told.holds == 0


def compared(root: Path, names: str) -> tuple[ReplicaGroup, list[StoreAudit]]:
    audits = []
    for number, name in enumerate(names):
        conf = (root / f"{name}.conf").read_text()
        request = AuditRequest(name, StoreLocation(str(root / name)), "5.3.3", conf, store=number, replica_group="g")
        audits.append(run_audit(replace(request)))
    made = ReplicaGroup("g", audits)
    made.finish([task.run() for task in made.tasks()])
    made.blame()
    return made, audits


@pytest.mark.parametrize("cut", [None, 0, 1], ids=["refuses", "keeps all", "cuts"])
def test_only_a_copy_that_a_start_keeps_whole_is_named_instead(cut: int | None) -> None:
    found = first_copy(group(("b", "a", 5)), cut=cut)
    told = as_master(found, "b")
    assert told is not None and told.earlier is (cut == 0)
    assert ("Start a" in told.headline()) is (cut == 0)
    assert [f.count for f in behind_findings(found, "b")] == ([] if cut == 0 else [5])


@pytest.mark.parametrize("named", ["other", "real"])
def test_a_copy_that_its_settings_keep_from_serving_is_not_named_instead(tmp_path: Path, named: str) -> None:
    for name, messages in (("b", 40), ("c", 25)):
        store = replica(tmp_path / name, messages=messages)
        (tmp_path / f"{name}.conf").write_text(f"{store.broker_conf}brokerClusterName=oracle\nbrokerName=real\n")
    for name, own in (("b", named), ("c", "real")):
        (tmp_path / name / "brokerIdentity").write_text(f"oracle#{own}#2")
    made, audits = compared(tmp_path, "bc")
    whole, part = (audit.outcome() for audit in audits)
    fit = named == "real"
    assert (whole.exit_code, part.exit_code) == ((0, 0) if fit else (20, 10))
    assert judge(part).headline.startswith("Start b") is fit
    assert (made.result.best == "b") is fit


@pytest.mark.parametrize("apart", [True, False])
def test_replicas_without_an_epoch_in_common_are_to_be_emptied_first(tmp_path: Path, apart: bool) -> None:
    for name, messages, epoch in (("b", 40, 2 if apart else 1), ("c", 25, 1)):
        store = replica(tmp_path / name, messages=messages)
        (tmp_path / name / "epochFileCheckpoint").write_bytes(epoch_text((epoch, 0)))
        (tmp_path / f"{name}.conf").write_text(store.broker_conf)
    made, audits = compared(tmp_path, "bc")
    whole, part = (audit.outcome() for audit in audits)
    assert (whole.exit_code, Code.COPY_IS_BEHIND in {f.code for f in part.found.findings}) == (0, apart)
    words = choice_words(made.result)
    assert words.startswith("start b as master")
    assert ("c can never join it as it is: empty it first (commitlog/" in words and "epochFileCheckpoint" in words) is apart
    steps = " ".join(step.text for step in shown_steps(part, ("c",), "plan.json"))
    assert ("this copy becomes a slave of" in steps and ", empty it" in steps) is apart
    assert ("Start this copy as master only if" in steps) is not apart
    told = as_master(made.result, "c")
    assert told is not None and (told.earlier, told.refused) == (not apart, apart)
    assert ("can never join b" in told.headline()) is apart


def test_what_only_another_copy_has_needs_no_rebuild_of_this_one(tmp_path: Path) -> None:
    for name, offset in (("b", 5), ("c", 2)):
        store = replica(tmp_path / name)
        (tmp_path / f"{name}.conf").write_text(store.broker_conf)
        topics = {topic: {"topicName": topic, "perm": 6} for topic in ("Topic0", "Topic1")}
        version = {"dataVersion": {"counter": 1, "timestamp": 1_900_000_000_000 + offset}}
        (tmp_path / name / "config").mkdir()
        for file, table in (
            ("topics", {"topicConfigTable": topics}),
            ("subscriptionGroup", {"subscriptionGroupTable": {"g": {"groupName": "g"}}}),
            ("consumerOffset", {"offsetTable": {"Topic0@g": {"0": offset}}}),
            ("delayOffset", {"offsetTable": {}}),
        ):
            (tmp_path / name / "config" / f"{file}.json").write_text(json.dumps({**version, **table}))
    _, audits = compared(tmp_path, "bc")
    outcome = audits[1].outcome()
    assert outcome.exit_code == 10
    said = verdict_text(outcome)
    assert "another copy, b, holds a newer config/consumerOffset.json" in said
    assert "rebuil" not in said and "do not agree" not in said and "consistent" not in said


def test_a_sound_copy_whose_group_holds_more_is_not_said_to_differ_from_its_log(tmp_path: Path) -> None:
    for name, messages in (("b", 40), ("c", 25)):
        store = replica(tmp_path / name, messages=messages)
        (tmp_path / f"{name}.conf").write_text(store.broker_conf)
    (tmp_path / "b" / "epochFileCheckpoint").write_bytes(b"no epochs")  # b does not start
    _, audits = compared(tmp_path, "bc")
    judged = judge(audits[1].outcome())
    assert judged.kind == Safety.LACKS and "Start b" not in judged.headline
    assert not any("rebuil" in why for why in judged.why)


def test_an_empty_copy_is_an_earlier_moment_of_any(tmp_path: Path) -> None:
    for name in "bc":
        store = replica(tmp_path / name)
        (tmp_path / f"{name}.conf").write_text(store.broker_conf)
    for folder in ("commitlog", "consumequeue", "index"):
        shutil.rmtree(tmp_path / "c" / folder)
    (tmp_path / "c" / "commitlog").mkdir()
    for name in ("checkpoint", "epochFileCheckpoint"):
        (tmp_path / "c" / name).unlink()
    made, _ = compared(tmp_path, "bc")
    told = as_master(made.result, "c")
    assert told is not None and told.earlier and list(behind_findings(made.result, "c")) == []
