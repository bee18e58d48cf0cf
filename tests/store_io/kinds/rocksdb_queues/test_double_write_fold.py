"""Stores that write their queues twice, whole: what the rules make of built ones. Real releases: tests/broker_truth."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.report.files.result_files import finding_row
from schemas.advice import RefusalKind
from store_io.wording.steps import next_text
from tests.support.answers import product
from tests.support.answers.promises import broken_promises
from tests.support.damage import overwrite
from tests.support.stores.replica import epoch_text
from tests.support.stores.rocksdb_stores import TWICE, KeyedStore, combined_store, light_store

READS = "combineCQPreferCQType=defaultRocksDB\n"
NUMBERS = "combineAssignOffsetCQType=defaultRocksDB\n"


@pytest.fixture(autouse=True)
def _reader() -> None:
    pytest.importorskip("rocksdict")


def audited(store: KeyedStore, more: str = "", release: str = "5.4.0") -> product.Audited:
    return product.audit(store.write().root, release, store.plain.broker_conf + TWICE + more)


def file_of_refusal(audit: product.Audited) -> str | None:
    """What findings.jsonl has."""
    (finding,) = (f for f in audit.findings if f.code == "broker_refuses")
    assert broken_promises(audit.root, audit.outcome) == []
    file: str | None = finding_row(finding)["file"]
    return file


@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
@pytest.mark.parametrize("more", ["", READS, f"{READS}{NUMBERS}"], ids=["files", "reads RocksDB", "RocksDB"])
def test_nothing_is_wrong_with_a_sound_store(release: str, more: str, tmp_path: Path) -> None:
    if release == "5.5.0" and NUMBERS in more:
        more += "combineCQUseRocksdbForLmq=false\n"
    audit = audited(combined_store(tmp_path / "s", release), more, release)
    broker = audit.broker
    assert broker is not None
    assert audit.findings == [] or not broker["starts"]
    assert broker["starts"] is not (release == "5.5.0" and NUMBERS in more)  # it ends after its recovery
    if broker["starts"]:
        state = broker["after_dispatch"]
        ends = [[(q["topic"], q["queue_id"], q["max_offset"]) for q in state[kind]] for kind in ("queues", "queues_files")]
        assert ends[0] == ends[1] == [("Topic0", 0, 15), ("Topic0", 1, 15), ("Topic1", 0, 15), ("Topic1", 1, 15)]


def test_the_store_further_behind_decides_where_recovery_begins(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "s", dispatched=20)
    audit = audited(store)
    assert audit.broker is not None
    at = int(audit.broker["start_segment"])
    assert at <= store.mark < at + store.plain.sizes.segment
    assert audit.broker["lost"]["messages"] == 0  # those that are served from have all


def test_a_store_too_far_behind_is_left_with_a_hole(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "s", dispatched=2)
    far = audited(store, "combineCQMaxExtraSearchCommitLogFiles=0\n")
    assert far.broker is not None and int(far.broker["start_segment"]) > store.mark
    (found,) = {f.code for f in far.above_note}
    assert found == "queue_twin_missing"
    twins = far.broker["after_dispatch"]["queues_files"]
    assert [q["max_offset"] for q in twins] == [15] * 4
    # What the other store lacks is lost for consumers once they are served from there.
    read = audited(store, f"{READS}{NUMBERS}combineCQMaxExtraSearchCommitLogFiles=0\ncommitLogRecoverMaxNum=1\n")
    assert read.broker is not None and read.broker["lost"]["messages"] > 10


def test_numbers_from_files_that_end_elsewhere_empty_a_queue_in_rocksdb(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "s")
    store.maxima["Topic0", 0] = store.maxima["Topic0", 0][0], 16
    audit = audited(store)
    assert audit.broker is not None
    first = audit.broker["after_dispatch"]["queues_files"][0]
    assert (first["min_offset"], first["max_offset"], first["max_phy_offset"]) == (15, 15, 0)
    refused = audited(store, READS)  # numbers from one, reads from the other: start() throws
    apart = refused.broker
    assert apart is not None and not apart["starts"] and "'Topic0'" in apart["refusal"]
    assert apart["refusal_kind"] == RefusalKind.DOUBLE_WRITE_ENDS_DIFFER
    assert file_of_refusal(refused) == "consumequeue/Topic0/0"  # not the sentence


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("combineCQPreferCQType=other\n", "combineCQPreferCQType=other"),
        ("combineCQLoadingCQTypes=;\n", "combineAssignOffsetCQType=default"),
        ("combineCQLoadingCQTypes=default\ncombineCQPreferCQType=defaultRocksDB\n", "combineCQPreferCQType=defaultRocksDB"),
    ],
)
def test_settings_that_stop_a_start(more: str, where: str, tmp_path: Path) -> None:
    audit = audited(combined_store(tmp_path / "s"), more)
    assert audit.broker is not None and not audit.broker["starts"] and where in audit.broker["refusal"]
    assert file_of_refusal(audit) is None  # not the setting


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("enableDLegerCommitLog=true\n", "not modelled"),
        ("duplicationEnable=true\nrecheckReputOffsetFromCq=true\n", "not modelled"),
        # Which queues are listed before a start looks at them.
        (f"{READS}recheckReputOffsetFromCq=true\n", "recheckReputOffsetFromCq=true"),
        (f"{READS}{NUMBERS}recheckReputOffsetFromCq=true\n", "recheckReputOffsetFromCq=true"),
    ],
)
def test_what_is_not_modelled(more: str, sentence: str, tmp_path: Path) -> None:
    audit = audited(combined_store(tmp_path / "s"), more)
    assert audit.broker is None and any(sentence in said for said in audit.incomplete)


def test_a_queue_of_the_brokers_services_that_a_start_may_make_anew_in_files(tmp_path: Path) -> None:
    """Another topic's queue is as it was: nobody asks for it before start()."""
    store = combined_store(tmp_path / "s")
    store.maxima["SCHEDULE_TOPIC_XXXX", 2] = store.maxima["Other", 0] = store.records[-1].at, 4
    notes = [f for f in audited(store, READS + NUMBERS).findings if "makes it again" in f.message]
    assert [(f.code, f.severity, f.topic, f.queue_id) for f in notes] == [
        ("queue_twin_differs", "note", "SCHEDULE_TOPIC_XXXX", 2)
    ]
    assert (notes[0].expected, notes[0].actual) == ("in files maximum 0", "in RocksDB maximum 5")
    assert not [f for f in audited(store).findings if "makes it again" in f.message]


def replica(root: Path, confirmed: int, clean: bool = True) -> KeyedStore:
    """confirmed: so many messages are."""
    store = combined_store(root, clean=clean)
    overwrite(root / "checkpoint", 32, (store.records[confirmed - 1].at + store.records[confirmed - 1].size).to_bytes(8, "big"))
    (root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0)))
    (root / "brokerIdentity").write_bytes(b"DefaultCluster#broker-a#1")
    return store


@pytest.mark.parametrize("more", ["", READS])
@pytest.mark.parametrize(("confirmed", "clean"), [(60, True), (60, False), (20, True)])
def test_a_sound_replica(confirmed: int, clean: bool, more: str, tmp_path: Path) -> None:
    audit = audited(replica(tmp_path / "s", confirmed, clean), "enableControllerMode=true\n" + more)
    assert audit.broker is not None and audit.broker["lost"]["messages"] == 0 and not audit.above_note
    for kind in ("queues", "queues_files"):
        assert {q["max_offset"] for q in audit.broker["after_election"][kind]} == {15}


def test_in_controller_mode_queues_in_rocksdb_go_back_and_start_sets_them(tmp_path: Path) -> None:
    store = replica(tmp_path / "s", 56, clean=False)
    audit = audited(store, "enableControllerMode=true\n")
    assert audit.broker is not None and audit.broker["starts"], audit.incomplete
    kept, set_anew = (audit.broker[moment]["queues_files"] for moment in ("after_load", "after_dispatch"))
    assert {q["max_offset"] for q in audit.broker["after_load"]["queues"]} == {15} and {q["max_offset"] for q in kept} == {14}
    assert {(q["min_offset"], q["max_offset"]) for q in set_anew} == {(15, 15)}
    apart = audited(store, "enableControllerMode=true\n" + READS).broker
    assert apart is not None and not apart["starts"] and "start() throws" in apart["refusal"]


def test_in_controller_mode_numbers_from_rocksdb_compare_nothing(tmp_path: Path) -> None:
    """The fenced broker's queues in RocksDB go back, those in files stay, and start() changes neither."""
    audit = audited(replica(tmp_path / "s", 56, clean=False), "enableControllerMode=true\n" + READS + NUMBERS)
    assert audit.broker is not None and audit.broker["starts"], audit.incomplete
    for moment, in_rocksdb in (("after_load", 14), ("after_dispatch", 14), ("after_election", 15)):
        assert {q["max_offset"] for q in audit.broker[moment]["queues"]} == {in_rocksdb}
        assert {q["max_offset"] for q in audit.broker[moment]["queues_files"]} == {15}


def test_light_queues_of_a_replica_go_back_as_others_do(tmp_path: Path) -> None:
    store = light_store(tmp_path / "s")
    store.plain = replace(store.plain, clean=False)
    (store.root / "abort").touch()
    overwrite(store.root / "checkpoint", 32, (store.records[29].at + store.records[29].size).to_bytes(8, "big"))
    (store.root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0)))
    conf = "enableControllerMode=true\nenableLmq=true\nenableMultiDispatch=true\n"
    broker = audited(store, conf).broker
    assert broker is not None
    found = {
        (moment, kind): {q["max_offset"] for q in broker[moment][kind] if q["topic"].startswith("%LMQ%")}
        for moment in ("after_load", "after_election")
        for kind in ("queues", "queues_files")
    }
    assert found["after_load", "queues"] == {20} and found["after_load", "queues_files"] == {10}
    assert found["after_election", "queues"] == {20}


def no_database(store: KeyedStore) -> None:
    store.entries.clear()
    store.maxima.clear()
    store.mark = 0


def test_a_kind_that_was_never_written_is_a_note(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "s")
    no_database(store)
    (found,) = audited(store).findings
    assert (found.code, found.severity, found.file, found.count) == ("queue_twin_missing", "note", "consumequeue", 60)


@pytest.mark.parametrize(
    ("release", "clean", "more"),
    [("5.4.0", True, ""), ("5.5.0", False, "commitLogRecoverMaxNum=100\ncombineCQMaxExtraSearchCommitLogFiles=100\n")],
)
def test_entries_from_before_double_write_was_switched_on_are_a_note(
    release: str, clean: bool, more: str, tmp_path: Path
) -> None:
    """The first start with it puts what its recovery reads, into queues whose numbers agree then: no minimum says so."""
    store = combined_store(tmp_path / "s", release, clean)
    first = list(store.entries)
    for key in first[:20]:
        del store.entries[key]
    found = audited(store, more, release).findings
    assert {(f.code, f.severity) for f in found} == {("queue_twin_missing", "note")} and sum(f.count for f in found) == 20


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_of_a_queue_that_was_not_opened_nobody_knows_what_it_lacks(kind: str, tmp_path: Path) -> None:
    root = combined_store(tmp_path / "s").write().root
    queue = root / "consumequeue" / "Topic0" / "0"
    if kind == "link":
        queue.rename(tmp_path / "elsewhere")
        queue.symlink_to(tmp_path / "elsewhere")
    else:
        (file,) = queue.iterdir()
        file.unlink()
        os.mkfifo(file)
    conf = combined_store(tmp_path / "t").plain.broker_conf + TWICE + READS
    audit = product.audit(root, "5.4.0", conf)
    assert {gap.path.startswith("consumequeue/Topic0/0") for gap in audit.outcome.gaps} == {True}
    assert "queue_twin_missing" not in {finding.code for finding in audit.findings}


def test_a_hole_that_a_kill_left_and_no_start_fills(tmp_path: Path) -> None:
    """Whoever is served from RocksDB later gets none of these messages."""
    store = combined_store(tmp_path / "s")
    first = list(store.entries)
    for key in [*first[:8], *first[20:40]]:
        del store.entries[key]
    found = [f for f in audited(store).findings if f.code == "queue_twin_missing"]
    assert {f.severity for f in found} == {"note", "rebuildable"}
    assert sum(f.count for f in found if f.severity == "note") == 8
    assert all("a start does not put" in f.message for f in found if f.severity != "note")


# ---- light queues --------------------------------------------------------------------------------------------------------

LIGHT = "enableLmq=true\nenableMultiDispatch=true\n"
A, B = ("%LMQ%a", 0), ("%LMQ%b", 0)
Ends = dict[tuple[str, int], int]


def ends(audit: product.Audited, kind: str) -> Ends:
    """The maxima of light queues after a start."""
    assert audit.broker is not None, audit.incomplete
    found = {(q["topic"], q["queue_id"]): q["max_offset"] for q in audit.broker["after_dispatch"][kind]}
    return {key: found[key] for key in (A, B) if key in found}


ALONE = LIGHT + "enableMultiDispatch=false\n"  # files get none


@pytest.mark.parametrize(("release", "more"), [("5.4.0", LIGHT), ("5.5.0", LIGHT), ("5.4.0", ALONE)])
def test_light_queues_of_a_sound_store(release: str, more: str, tmp_path: Path) -> None:
    audit = audited(light_store(tmp_path / "s", release), more, release)
    assert audit.findings == []
    assert ends(audit, "queues") == ends(audit, "queues_files") == {A: 20, B: 20}


@pytest.mark.parametrize(("release", "code"), [("5.4.0", "queue_twin_missing"), ("5.5.0", "queue_entry_missing")])
def test_a_light_queue_that_lacks_an_entry_in_rocksdb(release: str, code: str, tmp_path: Path) -> None:
    store = light_store(tmp_path / "s", release)
    del store.entries[(*A, 7)]
    (found,) = audited(store, LIGHT, release).findings
    assert (found.code, found.topic, found.queue_offset, found.severity) == (code, A[0], 7, "rebuildable")
    assert found.file == "consumequeue"


def test_a_light_queue_that_lacks_entries_which_a_start_puts_after_a_kill(tmp_path: Path) -> None:
    store = light_store(tmp_path / "s", "5.5.0", dispatched=40)
    (store.root / "abort").touch()
    audit = audited(store, LIGHT + "commitLogRecoverMaxNum=100\n", "5.5.0")
    assert {f.code for f in audit.findings} >= {"queue_entry_missing"}
    assert {f.severity for f in audit.findings} == {"note"}
    assert ends(audit, "queues") == {A: 20, B: 20}


def test_light_queues_that_rocksdb_has_since_a_later_day(tmp_path: Path) -> None:
    store = light_store(tmp_path / "s", "5.5.0")
    for key in (A, B):
        for number in range(12):
            del store.entries[(*key, number)]
        store.minima[key] = 0, 12
    assert {(f.code, f.severity) for f in audited(store, LIGHT, "5.5.0").findings} == {("queue_entry_missing", "note")}
    no_database(store)
    assert {f.severity for f in audited(store, LIGHT, "5.5.0").findings} == {"note"}


def test_dispatch_of_light_queues_throws_where_rocksdb_is_read(tmp_path: Path) -> None:
    store = light_store(tmp_path / "s", dispatched=40)
    (store.root / "abort").touch()
    reads = audited(store, LIGHT + READS)
    assert reads.broker is not None and not reads.broker["starts"] and "light queues" in reads.broker["refusal"]
    (finding,) = (f for f in reads.findings if f.code == "broker_refuses")
    assert finding.file.startswith("commitlog/") and "combineCQPreferCQType=defaultRocksDB" in next_text(finding.next)
    alone = audited(store, ALONE + READS)
    assert alone.broker is not None and alone.broker["starts"]


# ---- one kind alone, and other settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["default", "defaultRocksDB"])
def test_one_kind_alone(kind: str, tmp_path: Path) -> None:
    store = combined_store(tmp_path / "s")
    more = f"combineCQLoadingCQTypes={kind}\ncombineCQPreferCQType={kind}\ncombineAssignOffsetCQType={kind}\n"
    alone = audited(store, more)
    assert alone.findings == [] and alone.broker is not None
    assert "queues_files" not in alone.broker["after_dispatch"] and len(alone.broker["after_dispatch"]["queues"]) == 4
    later = audited(store, more, "5.5.0").broker
    assert later is not None and not later["starts"] and "combineCQUseRocksdbForLmq" in later["refusal"]


def test_a_start_that_looks_at_queues_in_files_dispatches_from_their_end(tmp_path: Path) -> None:
    audit = audited(combined_store(tmp_path / "s"), "recheckReputOffsetFromCq=true\n")
    assert audit.findings == [] and audit.broker is not None and audit.broker["starts"]
