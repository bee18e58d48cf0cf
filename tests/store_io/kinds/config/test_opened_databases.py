"""Databases that a start opens besides queues and tables: damaged they end the broker, and gone they are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jobs.report.texts.next_steps import shown_steps
from schemas.advice import Step
from schemas.outcome import Outcome
from store_io.answer.headline import judge, verdict_text
from store_io.outcome.plan_writer import audit_plan
from tests.support.answers.product import audit
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.rocksdb_stores import write_database

_AUTH = "{0}MetadataProvider=org.apache.rocketmq.auth.{0}.provider.Local{1}MetadataProvider\n"
PROVIDERS = {
    "config/users": _AUTH.format("authentication", "Authentication"),
    "config/acls": _AUTH.format("authorization", "Authorization"),
}
POP = "popConsumerKVServiceInit=true\n"
ALL_ON = "".join(PROVIDERS.values()) + POP
FOLDERS = (*PROVIDERS, "kvStore")
ENTRIES = {"config/users": "default", "config/acls": "default", "kvStore": "popState"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sound store with all three databases, each with two entries."""
    builder = StoreBuilder("5.3.3")
    builder.put(Message(body=b"x"))
    store = builder.write(tmp_path / "store")
    (tmp_path / "conf").write_text(store.broker_conf)
    for folder, family in ENTRIES.items():
        (store.root / folder).parent.mkdir(exist_ok=True)
        write_database(store.root / folder, {family: [(b"a", b"1"), (b"b", b"2")]})
    return store.root


def outcome_of(root: Path, conf: str, release: str = "5.3.3") -> Outcome:
    return audit(root, release, (root.parent / "conf").read_text() + conf).outcome


def damage_manifest(folder: Path) -> None:
    (manifest,) = folder.glob("MANIFEST-*")
    manifest.write_bytes(manifest.read_bytes()[:20])


@pytest.mark.parametrize("conf", [ALL_ON, ""], ids=["on", "off"])
@pytest.mark.parametrize("release", ["5.3.1", "5.5.0"])
def test_sound_databases_are_no_reason_against_a_start(root: Path, conf: str, release: str) -> None:
    outcome = outcome_of(root, conf, release)
    assert audit_plan(outcome)["broker"]["starts"]
    assert not {"opened_database_damaged", "opened_database_gone"} & {f.code for f in outcome.found.findings}
    assert not {"file_unrecognised"} & {f.code for f in outcome.found.findings}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_database_that_does_not_open_ends_the_broker_that_opens_it(root: Path, folder: str) -> None:
    damage_manifest(root / folder)
    refused = outcome_of(root, ALL_ON)
    assert refused.exit_code == 20 and not audit_plan(refused)["broker"]["starts"]
    assert audit_plan(refused)["broker"]["refusal"].startswith(f"{folder}/MANIFEST-")
    (finding,) = (f for f in refused.found.findings if f.code == "broker_refuses")
    assert (
        finding.next is not None
        and finding.next[0] == Step.NO_DATABASE_REPAIR
        and finding.next[1][0] == folder
        and refused.no_repair == finding.next
    )
    unused = outcome_of(root, "".join(line for line in ALL_ON.splitlines(True) if not line.startswith(_key(folder))))
    assert audit_plan(unused)["broker"]["starts"] and unused.exit_code == 0
    assert [f.severity for f in unused.found.findings if f.code == "opened_database_damaged"] == ["note"]


def _key(folder: str) -> str:
    return {**PROVIDERS, "kvStore": POP}[folder].partition("=")[0]


@pytest.mark.parametrize(
    ("folder", "release", "starts"),
    [("config/users", "5.2.0", True), ("config/users", "5.3.0", False), ("kvStore", "5.3.1", True), ("kvStore", "5.3.2", False)],
)
def test_a_release_that_does_not_know_the_database_does_not_end_over_it(
    root: Path, folder: str, release: str, starts: bool
) -> None:
    damage_manifest(root / folder)
    assert audit_plan(outcome_of(root, ALL_ON, release))["broker"]["starts"] is starts


def test_bad_bytes_among_the_entries_are_found_and_stop_no_start(root: Path) -> None:
    (table,) = (root / "kvStore").glob("*.sst")
    table.write_bytes(bytes([table.read_bytes()[0] ^ 0xFF]) + table.read_bytes()[1:])
    outcome = outcome_of(root, ALL_ON)
    assert outcome.exit_code == 10 and audit_plan(outcome)["broker"]["starts"]
    (finding,) = (f for f in outcome.found.findings if f.code == "opened_database_damaged")
    assert finding.file == f"kvStore/{table.name}" and "0 could be read" in finding.message


def test_a_file_in_place_of_the_folder_ends_the_broker(root: Path) -> None:
    shutil.rmtree(root / "kvStore")
    (root / "kvStore").write_bytes(b"x")
    assert audit_plan(outcome_of(root, ALL_ON))["broker"]["refusal"].startswith("kvStore: a file where RocksDB needs a folder")


@pytest.mark.parametrize("folder", FOLDERS)
def test_one_that_is_gone_is_named_by_the_verdict(root: Path, folder: str) -> None:
    shutil.rmtree(root / folder)
    outcome = outcome_of(root, ALL_ON)
    assert outcome.exit_code == 0 and f"{folder}/: missing" in verdict_text(outcome)
    assert any(f"{folder}/: missing" in why for why in judge(outcome).why)
    assert any("Look for the folder where the copy was made" in step.text for step in shown_steps(outcome, ["/s"], "/p"))
    assert f"{folder}/: missing" not in verdict_text(outcome_of(root, ""))


def test_entries_that_the_settings_do_not_use_are_counted(root: Path) -> None:
    outcome = outcome_of(root, "")
    unused = {f.file: f.message for f in outcome.found.findings if f.code == "opened_database_unused"}
    assert outcome.exit_code == 0 and unused.keys() == set(FOLDERS)
    assert "holds 2 messages that consumers popped" in unused["kvStore"] and POP.strip() in unused["kvStore"]


def test_without_a_broker_conf_the_folders_show_the_settings(root: Path) -> None:
    damage_manifest(root / "kvStore")
    outcome = audit(root, "5.3.3", None).outcome
    assert not audit_plan(outcome)["broker"]["starts"]
    assert audit_plan(outcome)["settings"]["popConsumerKVServiceInit"] == {"value": True, "from": "inferred"}
