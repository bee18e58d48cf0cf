"""What a start reads and no check judges: a verdict names it, never says "everything", and is none where it is visibly broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schemas.advice import Advice, Overwritten, Refusal, RefusalKind, Step
from schemas.outcome import Outcome
from store_io.answer.headline import judge, verdict_text
from store_io.broker.releases import Setting, broker_rules
from store_io.kinds.config.config_reader import read_config
from store_io.kinds.config.start_files import refusal_step, start_files
from store_io.outcome.plan_writer import audit_plan
from store_io.source import byte_source
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from store_io.wording.refusals import refusal_sentence
from tests.support.answers.product import audit
from tests.support.handmade.outcome_fields import varied
from tests.support.stores.builders import Message, StoreBuilder

GROUPS = b'{"dataVersion":{"counter":4},"subscriptionGroupTable":{"G":{"groupName":"G"}}}'
TORN = GROUPS[:40]
TOPICS = b'{"dataVersion":{"counter":4},"topicConfigTable":{"T":{"topicName":"T"}}}'
OWN_TOPICS = TOPICS.replace(b'"T"', b'"TopicA"')  # of the message that the store holds
ODD = b'{"subscriptionGroupTable":{"G":{"groupName":"G",},}}'  # which the releases' parsers take, though no broker writes it


def outcome_of(tmp_path: Path, files: dict[str, bytes], release: str = "5.3.3", conf: str = "") -> Outcome:
    builder = StoreBuilder(release)
    builder.put(Message(body=b"x"))
    store = builder.write(tmp_path / "store")
    for name, content in files.items():
        path = store.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return audit(store.root, release, store.broker_conf + conf).outcome


@pytest.mark.parametrize("name", ["subscriptionGroup.json", "consumerFilter.json", "topics.json", "consumerOffset.json"])
@pytest.mark.parametrize("content", [bytes(99), TORN + bytes(60)], ids=["zeros", "torn"])
@pytest.mark.parametrize("release", ["4.8.0", "5.5.0"])
def test_a_broker_ends_over_a_file_and_a_bak_that_cannot_be_parsed(
    tmp_path: Path, name: str, content: bytes, release: str
) -> None:
    path = f"config/{name}"
    outcome = outcome_of(tmp_path, {path: content, path + ".bak": TORN}, release)
    assert outcome.exit_code == 20 and not audit_plan(outcome)["broker"]["starts"]
    assert audit_plan(outcome)["broker"]["refusal"].startswith(f"{path}: ")
    (refused,) = (f for f in outcome.found.findings if f.code == "broker_refuses")
    assert refused.file == path and refused.next is not None and refused.next.step == Step.RESTORE_REFUSED


@pytest.mark.parametrize(
    "files",
    [
        {"": TORN},
        {"": TORN, ".bak": GROUPS},
        {"": b"", ".bak": GROUPS},
        {"": GROUPS, ".bak": TORN},
        {"": ODD},
        {"": TORN, ".bak": b""},
    ],
    ids=["no bak", "good bak", "empty", "nobody looks at the bak", "odd", "empty bak"],
)
def test_a_broker_starts_where_one_of_both_will_do(tmp_path: Path, files: dict[str, bytes]) -> None:
    outcome = outcome_of(tmp_path, {"config/subscriptionGroup.json" + suffix: data for suffix, data in files.items()})
    assert outcome.complete and audit_plan(outcome)["broker"]["starts"]


def test_what_nobody_knows_of_an_odd_file_makes_the_audit_incomplete(tmp_path: Path) -> None:
    path = "config/subscriptionGroup.json"
    nested = b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}"
    outcome = outcome_of(tmp_path, {path: nested, path + ".bak": TORN})
    assert outcome.exit_code == 3 and audit_plan(outcome)["broker"] is None and path in outcome.incomplete[0]


def test_a_sound_file_is_read_whatever_its_size_as_far_as_any_of_config_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_source, "SMALL_BYTES", len(GROUPS) - 1)
    outcome = outcome_of(tmp_path, {"config/subscriptionGroup.json": GROUPS, "config/topics.json": b'{"topicConfigTable":{}}'})
    assert outcome.complete and audit_plan(outcome)["broker"]["starts"]


def test_a_folder_where_a_file_belongs_makes_the_audit_incomplete(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, {"config/subscriptionGroup.json/x": b""})
    assert outcome.exit_code == 3 and outcome.incomplete[0].startswith("config/subscriptionGroup.json: a directory")


def test_files_of_later_releases_stop_no_earlier_one(tmp_path: Path) -> None:
    files = {f"config/{name}{suffix}": TORN for name in ("consumerOrderInfo.json", "timermetrics") for suffix in ("", ".bak")}
    assert audit_plan(outcome_of(tmp_path / "4", files, "4.9.8"))["broker"]["starts"]
    assert not audit_plan(outcome_of(tmp_path / "5", files))["broker"]["starts"]
    metrics = {name: data for name, data in files.items() if "timermetrics" in name}
    assert not audit_plan(outcome_of(tmp_path / "m", metrics))["broker"]["starts"]
    assert audit_plan(outcome_of(tmp_path / "off", metrics, conf="timerWheelEnable=false\n"))["broker"]["starts"]


@pytest.mark.parametrize(
    ("backup", "step"),
    [(TOPICS, Step.COPY_REFUSED_BACKUP), (TORN, Step.RESTORE_REFUSED_ALONE), (None, Step.RESTORE_REFUSED_ALONE)],
)
def test_with_tables_in_a_database_the_file_itself_must_be_sound(tmp_path: Path, backup: bytes | None, step: Step) -> None:
    for folder in ("commitlog", "config"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config" / "topics.json").write_bytes(TORN)
    if backup is not None:
        (tmp_path / "config" / "topics.json.bak").write_bytes(backup)
    rules, location = broker_rules("5.3.3", {"storeType": Setting("defaultRocksDB", "broker.conf")}), StoreLocation(str(tmp_path))
    config = read_config(open_source(location), list_store(location), rules)
    found = start_files(open_source(location), list_store(location), config, rules)
    assert found.refused_by == "config/topics.json"
    assert found.refusal is not None and found.refusal.kind == RefusalKind.CONFIG_VERSION
    assert refusal_step(config.loads[found.refused_by], rules, False).step == step


@pytest.mark.parametrize(("release", "all_tables"), [("5.3.3", False), ("5.3.4", True), ("5.4.0", True)])
def test_which_tables_a_refused_start_writes_over(tmp_path: Path, release: str, all_tables: bool) -> None:
    files = {f"config/subscriptionGroup.json{suffix}": TORN for suffix in ("", ".bak")}
    (refused,) = (f for f in outcome_of(tmp_path / "s", files, release).found.findings if f.code == "broker_refuses")
    assert refused.next == Advice(Step.RESTORE_REFUSED, (Overwritten.ALL_TABLES if all_tables else Overwritten.FILTERS,))


def test_a_batch_queue_whose_topics_file_is_lost_stops_the_broker(tmp_path: Path) -> None:
    queue = {"batchconsumequeue/B/0/00000000000000000000": bytes(46)}
    conf = "mapperFileSizeBatchConsumeQueue=46\n"
    lost = outcome_of(tmp_path / "lost", {**queue, "config/topics.json": b""}, conf=conf)
    assert audit_plan(lost)["broker"]["refusal"] == str(
        refusal_sentence(Refusal(RefusalKind.TOPIC_NOT_NAMED, "batchconsumequeue/B"))
    )
    (refused,) = (f for f in lost.found.findings if f.code == "broker_refuses")
    assert refused.next == Advice(Step.RESTORE_TOPICS)
    plain = b'{"topicConfigTable":{"B":{"topicName":"B"}}}'
    other = outcome_of(tmp_path / "plain", {**queue, "config/topics.json": plain}, conf=conf)
    assert audit_plan(other)["broker"]["refusal"] == "batchconsumequeue/B: the topic is of type ConsumeQueue (config/topics.json)"
    assert audit_plan(outcome_of(tmp_path / "none", queue, conf=conf))["broker"]["starts"]  # config/ was not copied
    topics = b'{"topicConfigTable":{"B":{"topicName":"B","attributes":{"queue.type":"BatchCQ"}}}}'
    assert audit_plan(outcome_of(tmp_path / "there", {**queue, "config/topics.json": topics}, conf=conf))["broker"]["starts"]


def test_a_verdict_names_what_was_not_judged(tmp_path: Path) -> None:
    files = {"config/subscriptionGroup.json": GROUPS, "config/consumerFilter.json": b"{}", "config/metadata/1.sst": b"x"}
    outcome = outcome_of(tmp_path, files)
    names = ["config/consumerFilter.json", "config/metadata"]
    assert outcome.exit_code == 0 and audit_plan(outcome)["not_judged"] == outcome.covered.not_judged == names
    told = " ".join(judge(outcome).why)
    assert f"Not judged, although a start reads it: {', '.join(names)}." in told
    for text in (verdict_text(outcome), judge(outcome).headline, told):
        assert "everything" not in text and "all parts" not in text
    assert "offsets in config/" not in told  # of which this copy has none
    assert outcome.effect is not None and outcome.effect.config is not None
    loads = outcome.effect.config
    read = replace(loads, read={**loads.read, "consumerOffset.json": "consumerOffset.json"})
    with_offsets = replace(outcome, effect=replace(outcome.effect, config=read))
    assert "offsets in config/" in " ".join(judge(with_offsets).why)
    unsure = varied(outcome, not_judged=[*names, "timers"])
    assert judge(outcome).headline == "Safe to start once config/topics.json is there"
    assert judge(unsure).headline == f"{judge(outcome).headline}, but its timers were not judged"
    assert outcome_of(tmp_path / "4", files, "4.9.8").covered.not_judged == names  # which knows no timers


EMPTY = {"rocksdbstore/CURRENT": b"MANIFEST-000005\n", "rocksdbstore/000004.log": b""}


@pytest.mark.parametrize(
    "files, conf, named",
    [
        (EMPTY, "", False),
        ({**EMPTY, "rocksdbstore/000009.sst": b"x"}, "", True),
        ({**EMPTY, "rocksdbstore/000004.log": b"x"}, "", True),
        (EMPTY, "indexRocksDBEnable=true\n", True),  # and what is there is no database
    ],
)
def test_a_database_that_a_broker_makes_and_does_not_use_is_no_doubt(
    tmp_path: Path, files: dict[str, bytes], conf: str, named: bool
) -> None:
    assert ("rocksdbstore" in outcome_of(tmp_path, files, "5.4.0", conf).covered.not_judged) is named


def test_a_store_of_judged_files_alone_is_called_consistent_as_a_whole(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, {"config/topics.json": OWN_TOPICS, "timerwheel": b""})
    assert judge(outcome).why == (
        "Every byte was checked, and all parts agree with each other.",
    ) and "not_judged" not in audit_plan(outcome)
