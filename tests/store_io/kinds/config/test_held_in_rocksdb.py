"""Tables of config/ that a broker keeps in RocksDB, against its queues."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.rows import Finding
from store_io.answer.headline import verdict_text
from store_io.outcome.plan_writer import audit_plan
from store_io.wording.steps import next_text
from tests.support.answers import product
from tests.support.stores.rocksdb_stores import keyed_store, write_database


def topics(*names: str) -> dict[str, list[tuple[bytes, bytes]]]:
    rows = [
        (name.encode(), json.dumps({"topicName": name, "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}).encode())
        for name in names
    ]
    return {"default": rows, "kvDataVersion": [(b"kvDataVersionKey", b'{"counter":7}')]}


def empty_databases(root: Path, *names: str) -> None:
    """A broker makes those of all tables at its first start."""
    for name in names:
        write_database(root / "config" / name, {"default": []})


@pytest.mark.parametrize(
    ("names", "codes"), [(("Topic0", "Topic1"), set()), (("Topic0",), set()), (("X",), {"topic_not_in_table"})]
)
def test_topics_that_the_database_lacks(names: tuple[str, ...], codes: set[str], tmp_path: Path) -> None:
    """One topic of two may have been deleted; a table that names none of those with messages is not theirs."""
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s").write()
    write_database(store.root / "config" / "topics", topics(*names))
    write_database(store.root / "config" / "consumerOffsets", {"default": [(b"Topic0@g", b'{"offsetTable":{0:99}}')]})
    empty_databases(store.root, "subscriptionGroups")
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    assert audit.incomplete == [] and {f.code for f in audit.above_note} == codes
    (beyond,) = (f for f in audit.findings if f.code == "consumer_offset_beyond_end")
    assert (beyond.file, beyond.start, beyond.actual) == ("config/consumerOffsets", None, "99")
    assert audit.broker is not None and audit.broker["config"]["offsets"] == 1
    assert audit.broker["config"]["read"]["topics.json"] is None


def test_what_every_broker_has_is_no_table_of_this_broker(tmp_path: Path) -> None:
    """Such a broker puts these into the database of any copy: they do not show that config/ was copied."""
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s").write()
    outcome = product.audit(store.root, "5.3.3", store.broker_conf).outcome
    assert (
        outcome.exit_code == 0
        and audit_plan(outcome)["broker"]["config"]["topics"] == len(list(outcome.holds.config.listed_topics)) > 0
    )
    assert verdict_text(outcome).endswith("a start knows no topics, groups and offsets.")
    assert not [*outcome.holds.config.own_topics, *outcome.holds.config.own_groups]
    empty_databases(store.root, "topics", "subscriptionGroups", "consumerOffsets")
    assert "is not in this copy" not in verdict_text(product.audit(store.root, "5.3.3", store.broker_conf).outcome)


def test_a_table_that_could_not_be_read_lacks_no_topic(tmp_path: Path) -> None:
    """Nobody knows what it names."""
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s").write()
    write_database(store.root / "config" / "topics", {"default": [(b"X", b"[" * 2000)]})
    empty_databases(store.root, "subscriptionGroups", "consumerOffsets")
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    assert audit.above_note == [] and audit.incomplete[0].startswith("config/topics/: the value of topic 'X': ")


def test_a_database_that_ends_the_broker(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s").write()
    write_database(store.root / "config" / "topics", {"default": [(b"Topic0", b"{")]})
    empty_databases(store.root, "subscriptionGroups", "consumerOffsets")
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    (finding,), broker = audit.above_note, audit.broker
    assert finding.actual == "key 54 6f 70 69 63 30" and next_text(finding.next).startswith(
        "Restore config/topics/ from a backup"
    )
    assert broker is not None and not broker["starts"] and broker["config"]["refused_by"] == "topics.json"
    assert "config/topics/" in broker["refusal"]


@pytest.mark.parametrize(
    ("name", "step"), [("", "set the counter"), (".bak", "copy config/{}.bak to config/{}, and set the counter")]
)
def test_a_file_that_no_start_takes_in(name: str, step: str, tmp_path: Path) -> None:
    """Raising the counter helps, and a backup of the file does not."""
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s").write()
    write_database(store.root / "config" / "topics", topics("Topic0", "Topic1"))
    empty_databases(store.root, "subscriptionGroups")
    json_name = "consumerOffset.json"
    file = store.root / "config" / f"{json_name}{name}"

    def lost(counter: int) -> list[Finding]:
        file.write_text(json.dumps({"dataVersion": {"counter": counter}, "offsetTable": {"Topic0@g": {"0": 3}}}))
        return [f for f in product.audit(store.root, "5.3.3", store.broker_conf).findings if f.code == "config_table_lost"]

    (finding,) = lost(0)
    assert finding.file == f"config/{file.name}" and "1 offset that" in finding.message
    assert next_text(finding.next).startswith(f"Before a start {step.replace('{}', json_name)}") and " to 1:" in next_text(
        finding.next
    )
    assert name or lost(1) == []
