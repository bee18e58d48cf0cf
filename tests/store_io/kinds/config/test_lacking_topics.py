"""Topics with messages that a sound table lacks: what shows that they were lost, and what a deletion leaves as well."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from schemas.rows import LOSS, NOTE, Finding
from store_io.answer.headline import judge, verdict_text
from store_io.outcome.safety import Start, start_of
from store_io.wording.steps import next_text
from tests.support.answers import product
from tests.support.answers.repaired import plan_of, repaired
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

BEGIN = 1_700_000_000_000
LATER = BEGIN + 1_000_000  # than all messages
BUILT_IN = "SELF_TEST_TOPIC"
CODE = "topic_not_in_table"
SLAVE = "brokerRole=SLAVE\nbrokerId=1\n"
RETRY = "%RETRY%g"


def topics(*names: str, time: int = LATER, counter: int = 9) -> dict[str, Any]:
    rows = {name: {"topicName": name, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6} for name in names}
    return {"dataVersion": {"counter": counter, "timestamp": time}, "topicConfigTable": rows}


def offsets(*keys: str, time: int = LATER) -> dict[str, Any]:
    version = {"dataVersion": {"counter": 1, "timestamp": time}} if time else {}
    return {"offsetTable": {key: {"0": 1} for key in keys}, **version}


def groups(*names: str) -> dict[str, Any]:
    rows = {name: {"groupName": name} for name in names}
    return {"dataVersion": {"counter": 1, "timestamp": 1}, "subscriptionGroupTable": rows}


SOUND = {
    "topics.json": topics("kept", BUILT_IN),
    "consumerOffset.json": offsets("kept@g"),
    "subscriptionGroup.json": groups("g"),
    "delayOffset.json": {"offsetTable": {}},
}


def store(root: Path, files: dict[str, Any], release: str = "5.3.3", sent: tuple[str, ...] = (), clean: bool = True) -> Store:
    """Three messages of the topic that the table has, two in each of two queues of `gone`, one of each topic in `sent`."""
    builder = StoreBuilder(release, Sizes(segment=1 << 14), start_time=BEGIN)
    for number in range(3):
        builder.put(Message("kept", 0, b"x", uniq=f"K{number}"))
    for number in range(4):
        builder.put(Message("gone", number % 2, b"x", uniq=f"G{number}"))
    for topic in sent:
        builder.put(Message(topic, 0, b"x", uniq=topic))
    made = builder.write(root, clean=clean)
    config = root / "config"
    config.mkdir(exist_ok=True)
    for name, held in {**SOUND, **files}.items():
        (config / name).write_text(json.dumps(held))
    return made


def audited(made: Store, release: str = "5.3.3", conf: str = "") -> product.Audited:
    return product.audit(made.root, release, made.broker_conf + conf)


def about_topics(audit: product.Audited) -> dict[str | None, Finding]:
    return {f.topic: f for f in audit.findings if f.code == CODE}


def newest(made: Store) -> int:
    return max(record.store_time for record in made.records if record.topic == "gone")


@pytest.mark.parametrize(("after", "lost"), [(-1, True), (0, False), (1, False)], ids=["later", "equal", "earlier"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
@pytest.mark.parametrize("conf", ["", SLAVE], ids=["master", "slave"])
def test_a_message_later_than_the_table(after: int, lost: bool, clean: bool, release: str, conf: str, tmp_path: Path) -> None:
    """after: the table's time less that of the topic's newest message, in ms."""
    made = store(tmp_path / "s", {}, release, clean=clean)
    table = topics("kept", BUILT_IN, time=newest(made) + after)
    (made.root / "config" / "topics.json").write_text(json.dumps(table))
    audit = audited(made, release, conf)
    (found,) = about_topics(audit).values()
    assert (found.topic, found.count, found.severity) == ("gone", 4, LOSS if lost else NOTE)
    assert audit.outcome.exit_code == (20 if lost else 0)
    if lost:
        assert start_of(audit.outcome) == Start.LOSES_CONFIG
        assert "begin without 1 topic (config/topics.json). Clients cannot find gone, although 4 messages" in verdict_text(
            audit.outcome
        )


@pytest.mark.parametrize(
    ("release", "conf", "held", "names", "lost"),
    [
        ("5.0.0", "", offsets("gone@g"), (BUILT_IN,), True),
        ("4.9.8", "", offsets("gone@g"), (BUILT_IN,), False),  # its deletion leaves the offsets
        ("5.0.0", "", offsets("gone@g", time=0), (BUILT_IN,), False),  # 4.x wrote the file
        ("5.0.0", "", offsets("kept@g", "gone2@g"), (BUILT_IN,), False),
        ("5.0.0", SLAVE, offsets("gone@g"), (BUILT_IN,), False),  # a slave only adds its master's offsets
        ("5.0.0", SLAVE, offsets("gone@g"), (), True),  # no broker's own topic is in a table that was just emptied
    ],
)
def test_offsets_on_the_topic(
    release: str, conf: str, held: dict[str, Any], names: tuple[str, ...], lost: bool, tmp_path: Path
) -> None:
    made = store(tmp_path / "s", {"topics.json": topics("kept", *names), "consumerOffset.json": held}, release)
    found = about_topics(audited(made, release, conf))["gone"]
    assert found.severity == (LOSS if lost else NOTE)
    assert ("groups have offsets on it" in found.message) == lost


def test_offsets_of_an_older_bak_are_no_sign(tmp_path: Path) -> None:
    made = store(tmp_path / "s", {"consumerOffset.json.bak": offsets("gone@g")})
    (made.root / "config" / "consumerOffset.json").unlink()
    assert about_topics(audited(made))["gone"].severity == NOTE


@pytest.mark.parametrize(("time", "severity"), [(LATER + 1, LOSS), (LATER, NOTE), (LATER - 1, NOTE)])
@pytest.mark.parametrize("conf", ["", SLAVE], ids=["master", "slave"])
def test_a_newer_form_names_it(time: int, severity: str, conf: str, tmp_path: Path) -> None:
    made = store(tmp_path / "s", {"topics.json.tmp": topics("kept", "gone", BUILT_IN, time=time)})
    audit = audited(made, conf=conf)
    lost = [f for f in audit.findings if f.severity == LOSS]
    assert [f.code for f in lost] == ([] if severity == NOTE else [CODE if conf else "config_table_lost"]), audit.findings
    assert audit.outcome.exit_code == (20 if lost else 0)
    assert not lost or "without 1 topic (" in verdict_text(audit.outcome)  # counted once


@pytest.mark.parametrize("conf", ["", SLAVE], ids=["master", "slave"])
def test_an_older_bak_is_no_sign(conf: str, tmp_path: Path) -> None:
    made = store(tmp_path / "s", {"topics.json.bak": topics("kept", "gone", BUILT_IN, time=LATER - 1, counter=8)})
    assert about_topics(audited(made, conf=conf))["gone"].severity == NOTE


@pytest.mark.parametrize(
    ("topic", "reported"),
    [
        ("RMQ_SYS_TRANS_HALF_TOPIC", False), ("TBW102", False), ("OTHER_REPLY_TOPIC", False), ("%LMQ%light", False),
        (RETRY, False), ("%DLQ%g", False), ("%RETRY%g_kept", False), ("%RETRY%g+kept", False),
        ("%RETRY%other", True), ("%DLQ%other", True), ("%RETRY%gone", True),
    ],
)  # fmt: skip
def test_what_a_broker_makes_by_itself_is_never_lost(topic: str, reported: bool, tmp_path: Path) -> None:
    made = store(tmp_path / "s", {"topics.json": topics("kept", "gone", BUILT_IN, time=1)}, sent=(topic,))
    audit = audited(made)
    assert about_topics(audit).keys() == ({topic} if reported else set())
    assert bool(audit.above_note) == reported


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_repair_adds_lost_topics_alone(release: str, tmp_path: Path) -> None:
    made = store(tmp_path / "s", {}, release, sent=("late",))
    before = next(r.store_time for r in made.records if r.topic == "late") - 1
    (made.root / "config" / "topics.json").write_text(json.dumps(topics("kept", BUILT_IN, time=before)))
    audit = audited(made, release)
    assert {topic: f.severity for topic, f in about_topics(audit).items()} == {"late": LOSS, "gone": NOTE}
    done = repaired(made.root, tmp_path / "new", plan_of(made.root, release, made.broker_conf), fix_config=True)
    table = json.loads((tmp_path / "new" / "config" / "topics.json").read_text())["topicConfigTable"]
    assert table.keys() == {"kept", BUILT_IN, "late"} and table["kept"]["readQueueNums"] == 4
    (row,) = done.report.config
    assert row.added == ("late",) and "guessed" in row.unproven
    after = product.audit(tmp_path / "new", release, made.broker_conf)
    assert not after.above_note and about_topics(after).keys() == {"gone"}


def test_a_repair_of_a_sound_table_leaves_it(tmp_path: Path) -> None:
    made = store(tmp_path / "s", {})
    done = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.3.3", made.broker_conf), fix_config=True)
    assert done.report.config == ()


def test_groups_that_only_offsets_name_are_a_note(tmp_path: Path) -> None:
    made = store(
        tmp_path / "s", {"consumerOffset.json": offsets("kept@g", "kept@left", "kept@CID_RMQ_SYS_X", "kept@TOOLS_CONSUMER")}
    )
    (found,) = (f for f in audited(made).findings if f.code == "group_not_in_table")
    assert (found.severity, found.count) == (NOTE, 1) and "left" in found.message
    assert not any(f.code == found.code for f in audited(store(tmp_path / "twin", {})).findings)


@pytest.mark.parametrize("conf", ["", SLAVE], ids=["master", "slave"])
@pytest.mark.parametrize(
    ("held", "sent", "found"),
    [
        (offsets(), (RETRY,), True),
        (offsets(), ("%RETRY%g_kept",), True),
        (offsets(), (), False),  # nothing shows that a group consumed
        (offsets(), ("%RETRY%deleted",), False),
        (offsets("kept@g"), (RETRY,), False),
    ],
)
def test_no_group_has_an_offset(held: dict[str, Any], sent: tuple[str, ...], found: bool, conf: str, tmp_path: Path) -> None:
    files = {"consumerOffset.json": held, "topics.json": topics("kept", "gone", BUILT_IN)}
    audit = audited(made := store(tmp_path / "s", files, sent=sent), conf=conf)
    assert [f.code for f in audit.above_note] == (["consumer_offsets_empty"] if found else []), (made, audit.findings)
    if found:
        assert "no group has an offset" in verdict_text(audit.outcome) and "Set the offsets" in next_text(
            audit.above_note[0].next
        )


def test_a_slave_s_copy_says_what_makes_it_a_master(tmp_path: Path) -> None:
    made = store(tmp_path / "s", {"topics.json": topics("kept", "gone", BUILT_IN)})
    audit = audited(made, conf=SLAVE)
    (note,) = (f for f in audit.findings if f.code == "copy_of_slave")
    assert note.severity == NOTE and "brokerRole=SLAVE and brokerId=1" in verdict_text(audit.outcome)
    assert "brokerRole=ASYNC_MASTER" in next_text(note.next) and "brokerId=0" in next_text(note.next)
    assert not any(f.code == "copy_of_slave" for f in audited(made).findings)


def test_a_sound_copy_without_config_is_said_to_lack_that_alone(tmp_path: Path) -> None:
    made = store(tmp_path, {}, sent=(RETRY,))
    shutil.rmtree(made.root / "config")
    outcome = audited(made).outcome
    told, said = judge(outcome), verdict_text(outcome)
    assert told.headline.startswith("Copy again: config/") and outcome.exit_code == 10
    assert said.count("a start knows no topics, groups and offsets: config/ is not in this copy") == 1
    assert "rebuil" not in said and "do not agree" not in said
