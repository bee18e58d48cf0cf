"""Files of config/ that --fix-config writes, read again by the audit of the new store."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jobs.report.texts.repair_text import repair_text
from schemas.advice import Step
from schemas.finding_codes import CATALOGUE, Code, Part
from schemas.repair import EmptiedTable
from schemas.rows import NOTE
from store_io.answer.headline import verdict_text
from store_io.audit.audit_store import run_audit
from store_io.base.errors import StoreError
from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import ConfigRules, config_rules
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import StoreConfig
from store_io.kinds.config.rebuild import config_changes
from store_io.kinds.config.rebuild.written_tables import written_tables
from store_io.kinds.config.texts.salvage import LAYOUTS, entries_of, entry_name, salvaged
from store_io.kinds.config.texts.table_forms import Form
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.repair.repair_work import RepairOutcome
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import content, numbers, plan_of, plan_with_steps, previewed, repaired
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder
from tests.support.stores.config_texts import config_text
from tests.support.stores.rocksdb_stores import write_database

RELEASES = ("4.8.0", "5.4.0")
TORN = '{"topicConfigTable":{"T":{"perm":6'
SPARE = "config/consumerFilter.json"


def topics(*names: str, counter: int = 3, queues: int = 4) -> str:
    rows = {
        name: {"topicName": name, "perm": 6, "readQueueNums": queues, "writeQueueNums": queues, "order": True} for name in names
    }
    return json.dumps({"dataVersion": {"counter": counter, "timestamp": 1}, "topicConfigTable": rows})


OFFSETS = '{"offsetTable":{"T@g":{0:3,1:2},"%RETRY%g@g":{0:1}}}'
GROUPS = '{"dataVersion":{"counter":2,"timestamp":1},"subscriptionGroupTable":{"g":{"groupName":"g","retryMaxTimes":3}}}'
SOUND = {
    "topics.json": topics("T", "kept"),
    "consumerOffset.json": OFFSETS,
    "subscriptionGroup.json": GROUPS,
    "delayOffset.json": '{"offsetTable":{2:2}}',
}


def delayed(number: int) -> tuple[Message, Message]:
    """A message of level 2, and its delivered copy."""
    own = {"body": b"later", "uniq": f"U{number}", "born_time": 1_700_000_000_000 + number}
    real = (("REAL_TOPIC", "T"), ("REAL_QID", "1"))
    return Message("SCHEDULE_TOPIC_XXXX", 1, properties=(("DELAY", "2"), *real), **own), Message("T", 1, properties=real, **own)  # type: ignore[arg-type]


def store(root: Path, release: str, changes: dict[str, str | None]) -> Store:
    """Topic T in queues 0 to 2; of four delayed messages two are delivered."""
    builder = StoreBuilder(release, Sizes(segment=1 << 14))
    for number in range(9):
        builder.put(Message("T", number % 3, b"x", uniq=f"M{number}"))
    builder.put(Message("%RETRY%g", 0, b"again", uniq="R"))
    pairs = [delayed(number) for number in range(4)]
    for message, _ in pairs:
        builder.put(message)
    for _, copy in pairs[:2]:
        builder.put(copy)
    made = builder.write(root)
    (root / "config").mkdir()
    for name, text in {**SOUND, **changes}.items():
        if text is not None:
            (root / "config" / name).write_text(text)
    return made


def fixed(made: Store, target: Path, **more: Any) -> RepairOutcome:
    return repaired(made.root, target, plan_of(made.root, made.release, made.broker_conf), fix_config=True, **more)


def tables(root: Path, made: Store) -> StoreConfig:
    """What the release would hold, after an audit without a finding about config/ but that a table of offsets is empty."""
    audit = run_audit(AuditRequest("s", StoreLocation(str(root)), made.release, made.broker_conf))
    found = [f for f in audit.outcome().found.findings if CATALOGUE[f.code].about == Part.CONFIG and f.severity != NOTE]
    found = [f for f in found if f.code != Code.CONSUMER_OFFSETS_EMPTY]
    assert found == []
    return audit.copy[CONFIG].tables


DAMAGE: dict[str, dict[str, str | None]] = {
    "topics empty": {"topics.json": ""},
    "topics torn, both": {"topics.json": TORN, "topics.json.bak": TORN},
    "topics hide a good .bak": {"topics.json": "{}", "topics.json.bak": topics("kept")},
    "topics torn, .bak older": {"topics.json": TORN, "topics.json.bak": topics("kept", counter=1)},
    "topics older than .bak": {"topics.json": topics("older", counter=1), "topics.json.bak": topics("kept", counter=9)},
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_topics_come_from_the_better_file_and_the_log(release: str, damage: str, tmp_path: Path) -> None:
    made = store(tmp_path / "store", release, DAMAGE[damage])
    before = content(made.root)
    outcome = fixed(made, tmp_path / "new")
    assert outcome.exit_code == 0 and outcome.report.config_written and content(made.root) == before
    held = tables(tmp_path / "new", made).topics
    assert held is not None
    assert held["T"] == {"order": False, "readQueueNums": 3, "writeQueueNums": 3, "perm": 6, "topicSysFlag": 0}
    assert held["%RETRY%g"]["readQueueNums"] == 1
    assert set(held) == {"T", "%RETRY%g"} | ({"kept"} if "kept" in str(DAMAGE[damage]) else set())
    assert "kept" not in held or held["kept"]["order"]
    row = next(row for row in outcome.report.config if row.file == "config/topics.json")
    assert row.added == ("%RETRY%g", "T") and row.taken_from[-1] == "log" and row.unproven
    written = json.loads((tmp_path / "new" / "config" / "topics.json").read_text())
    counters = [int(number) for text in DAMAGE[damage].values() for number in re.findall(r'"counter": (\d+)', text or "")]
    assert written["dataVersion"]["counter"] > max(counters, default=0)
    if "both" in damage:
        assert json.loads((tmp_path / "new" / "config" / "topics.json.bak").read_text()) == written


def test_a_lost_table_gets_back_the_type_of_a_topic_whose_queues_stop_the_broker(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096), batch_topics={"B"})
    builder.put(Message("B", 0, b"x"))
    made = builder.write(tmp_path / "store")
    (made.root / "config" / "topics.json").write_bytes(b"")
    before = {file.name: file.read_bytes() for file in (made.root / "batchconsumequeue" / "B" / "0").iterdir()}
    assert fixed(made, tmp_path / "new").exit_code == 0
    assert (tables(tmp_path / "new", made).topics or {})["B"]["attributes"] == {"queue.type": "BatchCQ"}
    assert {file.name: file.read_bytes() for file in (tmp_path / "new" / "batchconsumequeue" / "B" / "0").iterdir()} == before
    plain = repaired(made.root, tmp_path / "plain", plan_of(made.root, "5.3.3", made.broker_conf))
    assert plain.exit_code == 0 and (tmp_path / "plain" / "consumequeue" / "B" / "0").is_dir()


def test_a_narrow_topic_of_an_older_table_gets_more_read_queues(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", {"topics.json": TORN, "topics.json.bak": topics("T", "%RETRY%g", queues=2)})
    assert fixed(made, tmp_path / "new").exit_code == 0
    topic = (tables(tmp_path / "new", made).topics or {})["T"]
    assert (topic["readQueueNums"], topic["writeQueueNums"]) == (3, 2)


@pytest.mark.parametrize("release", RELEASES)
def test_groups_offsets_and_spare_files(release: str, tmp_path: Path) -> None:
    torn: dict[str, str | None] = {
        name + end: '{"a' for name in ("subscriptionGroup.json", "consumerFilter.json") for end in ("", ".bak")
    }
    made = store(tmp_path / "store", release, torn)
    with pytest.raises(StoreError, match=r"config/consumerFilter\.json.* with --empty-config it begins empty$"):
        fixed(made, tmp_path / "new")
    outcome = fixed(made, tmp_path / "new", empty_config=True)
    config = tables(tmp_path / "new", made)
    assert outcome.exit_code == 0 and config.groups["g"]["retryMaxTimes"] == 16
    assert not (tmp_path / "new" / SPARE).exists() and not (tmp_path / "new" / f"{SPARE}.bak").exists()
    assert config.offsets == {("g", "T", 0): 3, ("g", "T", 1): 2, ("g", "%RETRY%g", 0): 1}


@pytest.mark.parametrize("release", RELEASES)
def test_consumer_offsets_come_from_the_bak_and_end_at_the_queues(release: str, tmp_path: Path) -> None:
    beyond = '{"offsetTable":{"T@g":{0:3,2:70}}}'
    made = store(tmp_path / "store", release, {"consumerOffset.json": "\0\0\0", "consumerOffset.json.bak": beyond})
    assert fixed(made, tmp_path / "new").exit_code == 0
    assert tables(tmp_path / "new", made).offsets == {("g", "T", 0): 3, ("g", "T", 2): 3}


@pytest.mark.parametrize("release", RELEASES)
def test_offsets_of_which_nothing_can_be_read_stay_as_they_are_unless_they_may_begin_empty(release: str, tmp_path: Path) -> None:
    made = store(tmp_path / "store", release, {"consumerOffset.json": '{"offsetTable":{"T@g":{0:1'})
    plan = plan_of(made.root, made.release, made.broker_conf)
    outcome = repaired(made.root, tmp_path / "new", plan, fix_config=True)
    (row,) = outcome.report.config
    assert outcome.exit_code == 0 and row.left_out and "no form of it in the copy can be read" in row.reason
    assert row.not_kept[0].entries == ("T@g, 0 (cannot be read)",) and "--empty-config" in row.unproven
    name = "config/consumerOffset.json"
    assert (tmp_path / "new" / name).read_bytes() == (made.root / name).read_bytes()
    emptied = repaired(made.root, tmp_path / "empty", plan, fix_config=True, empty_config=True)
    (row,) = emptied.report.config
    assert tables(tmp_path / "empty", made).offsets == {} and (row.emptied, row.lost, row.left_out) == (True, 1, False)
    assert emptied.report.emptied == (EmptiedTable(name, 1),)
    assert "what groups had consumed" in row.unproven


LATER = '{"dataVersion":{"counter":0,"timestamp":1700000000000},"offsetTable":{"T@g":{0:3,1:2},"%RETRY%g@g":{0:1}},"new":{1:{}}'
PULLED = ',"pullOffsetTable":{"T@g":{0:3},"T@h":{1:1}}}'
HELD = {("g", "T", 0): 3, ("g", "T", 1): 2, ("g", "%RETRY%g", 0): 1}


def test_what_an_older_release_refuses_is_carried_and_what_it_cannot_hold_is_listed(tmp_path: Path) -> None:
    texts: dict[str, str | None] = dict.fromkeys(("consumerOffset.json", "consumerOffset.json.bak"), LATER + PULLED)
    made = store(tmp_path / "store", "5.4.0", texts)
    outcome = fixed(made, tmp_path / "new")
    assert outcome.exit_code == 0 and tables(tmp_path / "new", made).offsets == HELD
    file, backup = outcome.report.config
    assert (file.taken_from, file.time_ms, file.time_from) == (("config/consumerOffset.json",), 1700000000000, "dataVersion")
    assert list(file.not_kept[0].entries) == [f"pullOffsetTable {name}" for name in ("T@g, 0: 3", "T@h, 1: 1")]
    assert backup.file.endswith(".bak") and not backup.emptied
    written = [(tmp_path / "new" / "config" / name).read_bytes() for name in texts]
    assert written[0] == written[1] and b"pullOffsetTable" not in written[0]


def test_a_release_that_writes_pull_offsets_gets_them(tmp_path: Path) -> None:
    rules = config_rules(broker_rules("5.5.0", {}))
    pulled = {"offsetTable": {"T@g": {0: 3}}, "pullOffsetTable": {"T@h": {1: 1}}}
    made = written_tables("config/consumerOffset.json", pulled, {"counter": 1, "stateVersion": 0, "timestamp": 5}, rules)
    assert made is not None and made.tables["offsetTable"] == {"T@g": {0: 3}}
    older = written_tables("config/consumerOffset.json", pulled, {"counter": 1, "timestamp": 5}, ConfigRules())
    assert older is not None and older.data == b'{\n\t"offsetTable":{\n\t\t"T@g":{0:3\n\t\t}\n\t}\n}'


@pytest.mark.parametrize(
    ("file", "backup", "taken"),
    [
        ('{"offsetTable":{"T@g":{0:3,1:2},"T@h":{0:1', '{"offsetTable":{"T@g":{0:1}}}', "config/consumerOffset.json"),
        ('{"offsetTable":{"T@g":{0:3,1', '{"offsetTable":{"T@g":{0:1,1:1}}}', "config/consumerOffset.json.bak"),
        ('{"offsetTable":{"T@g":{0:3,1', '{"offsetTable":{"T@g":{0:1,1:1},"T@h":', "config/consumerOffset.json.bak"),
        ("\0\0", '{"offsetTable":{"T@g":{0:1},\0\0', "config/consumerOffset.json.bak"),
    ],
)
@pytest.mark.parametrize("release", ["4.8.0", "5.4.0"])
def test_of_a_torn_file_and_its_bak_the_fuller_one_is_taken(
    release: str, file: str, backup: str, taken: str, tmp_path: Path
) -> None:
    made = store(tmp_path / "store", release, {"consumerOffset.json": file, "consumerOffset.json.bak": backup})
    outcome = fixed(made, tmp_path / "new")
    held = tables(tmp_path / "new", made).offsets
    row = outcome.report.config[0]
    assert outcome.exit_code == 0 and row.taken_from == (taken,) and len(held) == row.entries > 0
    assert all(offset in (1, 2, 3) for offset in held.values())


def test_with_light_queues_the_other_file_of_offsets_is_taken(tmp_path: Path) -> None:
    light = '{"offsetTable":{"T@g":{0:3,1:2},"%LMQ%x@%LMQ%g":{0:7}}}'
    made = store(tmp_path / "store", "5.3.3", {"consumerOffset.json": light})
    conf = made.broker_conf + "enableLmq=true\nenableMultiDispatch=true\n"
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.3.3", conf), fix_config=True)
    assert outcome.exit_code == 0 and outcome.report.config[0].taken_from == ("config/consumerOffset.json",)
    written = (tmp_path / "new" / "config" / "lmqConsumerOffset.json").read_text()
    assert '"%LMQ%x@%LMQ%g":7' in written and '"T@g":{0:3,1:2' in written


@pytest.mark.parametrize("folder", ["consumerOffsets", "metadata", "rdb"])
def test_a_database_of_other_settings_gives_what_no_file_has(folder: str, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    made = store(tmp_path / "store", "5.3.3", {"consumerOffset.json": "\0\0"})
    row, version = (b"T@g", b'{"offsetTable":{0:3,1:2}}'), (b"kvDataVersionKey", b'{"counter":7,"timestamp":1700000000001}')
    key = b"\1\0\1\2" + b"\0\1g\1" + b"\0\1T\1"
    families = {
        "consumerOffsets": {"default": [row], "kvDataVersion": [version]},
        "metadata": {"default": [], "consumerOffset": [row], "consumerOffsetVersion": [version]},
        "rdb": {"default": [(key + struct.pack(">i", queue), struct.pack(">q", 3 - queue)) for queue in (0, 1)]},
    }
    write_database(made.root / "config" / folder, families[folder])
    outcome = fixed(made, tmp_path / "new")
    assert outcome.exit_code == 0 and tables(tmp_path / "new", made).offsets == {("g", "T", 0): 3, ("g", "T", 1): 2}
    file = outcome.report.config[0]
    assert file.taken_from == (f"config/{folder}/",)
    assert (file.time_from, file.time_ms == 1700000000001) == (("file", False) if folder == "rdb" else ("dataVersion", True))


def test_entries_that_only_another_form_has_are_listed(tmp_path: Path) -> None:
    topic = json.loads(topics("T"))["topicConfigTable"]["T"]
    torn = json.dumps({"topicConfigTable": {"kept": topic, "wide": topic, "half": topic}})[:-30]
    older = topics("older", "kept", counter=1)
    made = store(tmp_path / "store", "5.4.0", {"topics.json": torn, "topics.json.bak": older})
    outcome = fixed(made, tmp_path / "new")
    (file,) = outcome.report.config
    assert file.taken_from == ("config/topics.json", "log")
    assert {row.file: row.entries for row in file.not_kept} == {
        "config/topics.json": ("half (cannot be read)",), "config/topics.json.bak": ("older",),
    }  # fmt: skip
    assert (tmp_path / "new" / "config" / "topics.json.bak").read_text() == older  # a start can take it
    said = repair_text(outcome.report, "/copy", "/new")
    assert "1 entry of config/topics.json.bak" in said and "older" in said


def test_fields_that_the_release_refuses_get_their_default(tmp_path: Path) -> None:
    row = '{"topicName":"T","perm":"x","readQueueNums":"y","writeQueueNums":4,"attributes":3,"later":5}'
    text = '{"topicConfigTable":{"T":' + row + '},"z":{1:{}}}'
    made = store(tmp_path / "store", "5.4.0", {"topics.json": text, "topics.json.bak": text})
    assert fixed(made, tmp_path / "new").exit_code == 0
    assert (tables(tmp_path / "new", made).topics or {})["T"]["perm"] == 6


@pytest.mark.parametrize("name", ["consumerFilter.json", "consumerOrderInfo.json", "timermetrics", "topicQueueMapping.json"])
def test_the_other_files_keep_what_is_whole(name: str, tmp_path: Path) -> None:
    text = config_text(f"config/{name}", Random(3), pretty=False)
    torn = text.data[: len(text.data) * 3 // 4].decode("utf-8", "ignore")
    made = store(tmp_path / "store", "5.3.3", {name: torn, f"{name}.bak": torn})
    outcome = fixed(made, tmp_path / "new")
    (row, _) = outcome.report.config
    assert outcome.exit_code == 0 and 0 < row.entries < len(text.entries) and row.not_kept
    tables(tmp_path / "new", made)


def test_files_beside_a_database_are_mended(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", {"delayOffset.json": "{", "delayOffset.json.bak": "{"})
    plan = plan_of(made.root, made.release, made.broker_conf + "configManagerVersion=v2\n")
    outcome = repaired(made.root, tmp_path / "new", plan, fix_config=True)
    assert outcome.exit_code == 0 and outcome.report.config[0].file == "config/delayOffset.json"


FEW = (0, 1, 3)


@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 60))])
def test_a_repair_of_damaged_tables_keeps_what_one_form_shows_and_lists_the_rest(seed: int, tmp_path: Path) -> None:
    """Every file of a real broker's config/ and its .bak damaged at random."""
    random = Random(seed)
    case = next(case for case in corpus_tools.cases() if case.name == "g5x-533-broker-live")
    root = case.unpack(tmp_path)
    before: dict[str, list[dict[tuple[Any, ...], Any]]] = {}
    for path, layouts in LAYOUTS.items():
        own = layouts[0]
        for name in (path, f"{path}.bak"):
            if (root / name).is_file():
                (root / name).write_bytes(_damaged((root / name).read_bytes(), random))
                found = salvaged((root / name).read_bytes(), layouts).tables.get(own.name, {})
                before.setdefault(path, []).append(dict(entries_of(found, own)))
    try:
        plan = plan_of(root, case.release, case.broker_conf)
    except StoreError as why:  # nobody knows what the release makes of such a text
        assert seed not in FEW and "incomplete" in str(why)
        return
    outcome = repaired(root, tmp_path / "new", plan, fix_config=True, empty_config=True)
    assert outcome.exit_code == 0, outcome.report.problems
    for path, forms in before.items():
        own = LAYOUTS[path][0]
        rows = [row for row in outcome.report.config if row.file == path]
        written = tmp_path / "new" / path
        after = salvaged(written.read_bytes(), LAYOUTS[path]).tables.get(own.name, {}) if written.is_file() else {}
        kept = {keys for keys, _ in entries_of(after, own)}
        assert any(form.keys() <= kept for form in forms), path
        listed = {name for row in rows for form in row.not_kept for name in form.entries}
        for form in forms if rows else ():
            for keys, value in form.items():
                text = entry_name(own, keys) + ("" if own.fields else f": {value}")
                assert keys in kept or text in listed, (path, keys)


def _damaged(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data))
    end = min(len(data), start + random.choice([1, 8, 100, 1000]))
    noise = bytes(random.choice(b"\0\xff\1#") for _ in range(end - start))
    return random.choice([data, data[:start], data[:start] + noise + data[end:], data[:start] + bytes(len(data) - start)])


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("damage", [{"delayOffset.json": "{"}, {"delayOffset.json": "{", "delayOffset.json.bak": "{"}], ids=str)
def test_levels_begin_after_the_last_delivered_copy(release: str, damage: dict[str, str | None], tmp_path: Path) -> None:
    made = store(tmp_path / "store", release, damage)
    outcome = fixed(made, tmp_path / "new")
    assert outcome.exit_code == 0 and tables(tmp_path / "new", made).delay_offsets == {2: 2}
    assert outcome.report.config[0].added == ("level 2: 2",)


def test_a_sound_store_is_left_alone(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", {})
    outcome = fixed(made, tmp_path / "new")
    assert outcome.report.config == () and content(tmp_path / "new" / "config") == content(made.root / "config")


def test_a_useless_bak_gets_the_content_of_the_file(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.4.0", {"topics.json.bak": TORN})
    assert fixed(made, tmp_path / "new").exit_code == 0
    config = tmp_path / "new" / "config"
    assert (config / "topics.json.bak").read_bytes() == (config / "topics.json").read_bytes() == topics("T", "kept").encode()


def test_without_the_option_nothing_is_written_and_the_report_says_what_would_be(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", {"topics.json": ""})
    plan = plan_with_steps(made.root, made.release, made.broker_conf, "broker")
    plain, with_it = repaired(made.root, tmp_path / "a", plan), repaired(made.root, tmp_path / "b", plan, fix_config=True)
    assert (tmp_path / "a" / "config" / "topics.json").read_bytes() == b""
    assert plain.report.config == with_it.report.config != ()
    assert (plain.report.config_written, plain.report.steps_from) == (False, "plan")
    assert (with_it.report.config_written, with_it.report.steps_from) == (True, "copy")
    steps = [step for step in with_it.report.steps if step.action == "write_config"]
    assert [step.file for step in steps] == ["config/topics.json"] and "not proven" in steps[0].reason
    assert numbers(previewed(made.root, tmp_path / "c", plan, fix_config=True)) == with_it.report


def test_what_keeps_the_release_from_starting_names_the_option(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "4.8.0", {"topics.json": TORN, "topics.json.bak": TORN})
    with pytest.raises(StoreError, match=r"Repair with --fix-config$"):
        repaired(made.root, tmp_path / "new", plan_of(made.root, made.release, made.broker_conf))


def test_tables_in_a_database_are_refused(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", {})
    conf = made.broker_conf + "configManagerVersion=v2\n"
    with pytest.raises(StoreError, match="config/rdb/, a database"):
        repaired(made.root, tmp_path / "new", plan_of(made.root, made.release, conf), fix_config=True)


def test_a_copy_without_config_gets_its_topics(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", dict.fromkeys(SOUND))
    outcome = fixed(made, tmp_path / "new")
    assert outcome.exit_code == 0 and not (tmp_path / "new" / "config" / "consumerOffset.json").exists()
    assert [row.code for row in outcome.report.kept] == ["config_table_lost"]
    emptied = fixed(made, tmp_path / "empty", empty_config=True)
    assert emptied.exit_code == 0 and set(tables(tmp_path / "empty", made).topics or {}) == {"T", "%RETRY%g"}


def test_a_copy_without_a_message_names_refusal_and_lost_tables(tmp_path: Path) -> None:
    made = store(tmp_path / "store", "5.3.3", {"topics.json": ""})
    for segment in (made.root / "commitlog").iterdir():
        segment.unlink()
    lost = run_audit(AuditRequest("s", StoreLocation(str(made.root)), made.release, made.broker_conf)).outcome()
    assert "Nothing to lose is left here" in verdict_text(lost) and "without what was in config/topics.json" in verdict_text(lost)
    for end in ("", ".bak"):
        (made.root / "config" / f"topics.json{end}").write_text(TORN)
    refused = run_audit(AuditRequest("s", StoreLocation(str(made.root)), made.release, made.broker_conf)).outcome()
    assert "does not start on this copy: config/topics.json" in verdict_text(refused)


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({}, ""),
        (dict.fromkeys(SOUND), "topics, groups and offsets: config/"),
        ({**dict.fromkeys(SOUND), "delayOffset.json": SOUND["delayOffset.json"]}, "topics."),
        ({**dict.fromkeys(SOUND), "consumerOffset.json": SOUND["consumerOffset.json"]}, "topics."),
        ({"subscriptionGroup.json": None}, ""),
    ],
    ids=["config", "none", "delays", "offsets", "topics"],
)
def test_a_verdict_says_that_config_is_not_there(changes: dict[str, str | None], unknown: str, tmp_path: Path) -> None:
    made = store(tmp_path / "store", "4.9.8", changes)
    outcome = run_audit(AuditRequest("s", StoreLocation(str(made.root)), made.release, made.broker_conf)).outcome()
    assert ("start knows no" in verdict_text(outcome)) is bool(unknown)
    assert unknown in verdict_text(outcome)
    assert not unknown or outcome.exit_code == (0 if any(changes.values()) else 10)  # 10: the log has messages for retry


def test_a_torn_file_with_entries_of_an_unknown_table_does_not_beat_a_sound_bak(tmp_path: Path) -> None:
    def text(count: int) -> str:
        offsets, pulled = (",".join(f'"T{n}@g":{{0:{first + n}}}' for n in range(count)) for first in (100, 5000))
        return f'{{"dataVersion":{{"counter":1}},"offsetTable":{{{offsets}}},"pullOffsetTable":{{{pulled}}}}}'

    whole = text(200)
    start = whole.index('"pullOffsetTable"') - 1200
    torn = whole[:start] + "\0" * 2048 + whole[start + 2048 :]
    for name, backup in (("sound", text(199)), ("none", None)):
        made = store(tmp_path / name, "5.5.0", {"consumerOffset.json": torn, "consumerOffset.json.bak": backup})
        row = fixed(made, tmp_path / f"{name}-new").report.config[0]
        assert row.taken_from == ("config/consumerOffset.json" + (".bak" if backup else ""),)
        held = salvaged((tmp_path / f"{name}-new" / "config" / "consumerOffset.json").read_bytes(), LAYOUTS[row.file])
        assert all(queues[0] < 300 for queues in held.tables["offsetTable"].values())
    assert any("(an offset of an unknown table)" in entry for entry in row.not_kept[0].entries)


@pytest.mark.parametrize("release", ["4.8.0", "5.3.3"])
def test_delay_offsets_for_which_the_log_has_no_level_are_left_out(release: str, tmp_path: Path) -> None:
    builder = StoreBuilder(release, Sizes(segment=1 << 14))
    builder.put(Message("T", 0, b"x", uniq="M"))
    made = builder.write(tmp_path / "store")
    (made.root / "config").mkdir()
    torn = '{"off\x01\x02garbage'
    for name, text in {**SOUND, "topics.json": topics("T"), "delayOffset.json": torn}.items():
        (made.root / "config" / name).write_text(text)
    for options, emptied in (({}, False), ({"empty_config": True}, True)):
        outcome = fixed(made, tmp_path / f"new{emptied}", **options)
        row = next(row for row in outcome.report.config if row.file == "config/delayOffset.json")
        assert (row.left_out, row.emptied) == (not emptied, emptied)
        assert ((tmp_path / f"new{emptied}" / "config" / "delayOffset.json").read_text() == torn) is not emptied


def test_a_damaged_bak_with_more_entries_than_the_file_stays(tmp_path: Path) -> None:
    many = topics(*(f"T{n}" for n in range(50)))[:-40]
    made = store(tmp_path / "store", "5.3.3", {"topics.json": topics("T", "kept"), "topics.json.bak": many})
    outcome = fixed(made, tmp_path / "new")
    assert "config/topics.json.bak" not in [row.file for row in outcome.report.config]
    assert (tmp_path / "new" / "config" / "topics.json.bak").read_text() == many


@pytest.mark.parametrize("fix_config", [False, True])
@pytest.mark.parametrize("file", ['{"offsetTable":{"T@g":{0:3,1:2', "\0\0"])
def test_a_database_that_no_setting_uses_and_that_is_too_large_to_read_stops_no_repair(
    file: str, fix_config: bool, tmp_path: Path
) -> None:
    pytest.importorskip("rocksdict")
    made = store(tmp_path / "store", "5.3.3", {"consumerOffset.json": file})
    rows = [(b"T@g", b'{"offsetTable":{0:3}}'), (b"x@g", b"y" * (17 << 20))]
    write_database(made.root / "config" / "consumerOffsets", {"default": rows})
    plan = plan_of(made.root, made.release, made.broker_conf)
    outcome = repaired(made.root, tmp_path / "new", plan, fix_config=fix_config)
    row = next(row for row in outcome.report.config if row.file == "config/consumerOffset.json")
    assert outcome.exit_code == 0 and row.left_out is (file == "\0\0")
    unread = [str(each.entries) for each in row.not_kept if each.file == "config/consumerOffsets/"]
    assert unread and "17,825,795 bytes" in unread[0]


def test_without_the_option_no_database_is_read_that_no_setting_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rocksdict")
    made = store(tmp_path / "store", "5.3.3", {"consumerOffset.json": "\0\0"})
    write_database(made.root / "config" / "consumerOffsets", {"default": [(b"T@g", b'{"offsetTable":{0:3}}')]})
    plan = plan_of(made.root, made.release, made.broker_conf)
    told = repaired(made.root, tmp_path / "with", plan, fix_config=True).report.config

    def read(copy: object, path: str) -> list[Form]:
        raise AssertionError("a database is read that nothing needs")

    monkeypatch.setattr(config_changes, "database_forms", read)
    plain = repaired(made.root, tmp_path / "plain", plan).report.config
    assert plain == told and plain[0].taken_from == ("config/consumerOffsets/",)
    with pytest.raises(AssertionError):
        repaired(made.root, tmp_path / "again", plan, fix_config=True)


@pytest.mark.parametrize("own", ["", "{", None], ids=["empty", "torn", "gone"])
def test_counters_of_timers_that_cannot_be_read_are_removed(own: str | None, tmp_path: Path) -> None:
    """They hold nothing that a broker needs, so this needs no --empty-config."""
    made = store(tmp_path / "store", "5.3.3", {"timermetrics": own, "timermetrics.bak": "{"})
    before = run_audit(AuditRequest("s", StoreLocation(str(made.root)), "5.3.3", made.broker_conf)).outcome()
    assert audit_plan(before)["broker"]["starts"] is False and before.refusal is not None
    steps = {f.next.step for f in before.found.findings if f.file.startswith("config/timermetrics") and f.next is not None}
    assert Step.RESTORE_OR_FIX not in steps and Step.REMOVE_COUNTERS in steps
    outcome = fixed(made, tmp_path / "new")
    assert outcome.exit_code == 0 and not list((tmp_path / "new" / "config").glob("timermetrics*"))
    assert all(row.removed and not row.emptied for row in outcome.report.config if "timermetrics" in row.file)
    tables(tmp_path / "new", made)
