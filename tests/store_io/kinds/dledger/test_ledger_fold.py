"""What a start makes of a DLedger log, release by release, on built stores."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from store_io.audit.compared.compared_audit import run_compared
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores.dledger_stores import FOLDER, HEADER, SIZES, LedgerStore, build, mixed


def audited(store: LedgerStore, release: str | None = None) -> Audited:
    return product.audit(store.root, release or store.release, store.broker_conf)


def broker(store: LedgerStore, release: str | None = None) -> dict[str, Any]:
    found = audited(store, release).broker
    assert found is not None
    return found


def ends(state: dict[str, Any]) -> dict[str, int]:
    return {q["topic"]: q["max_offset"] for q in state["queues"] if q["topic"].startswith("Topic")}


@pytest.mark.parametrize("release", ["4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.4.0", "5.5.0"])
def test_a_clean_store_starts_whole(tmp_path: Path, release: str) -> None:
    store = build(tmp_path, release)
    found, last = broker(store), store.entries[-1]
    assert (found["truncate_at"], found["lost"]["messages"]) == (store.end, 0)
    ledger = found["dledger"]
    assert (ledger["end_index"], ledger["committed_index"], ledger["committed_pos"]) == (last.index, last.index, store.end)
    assert (ledger["begin_index"], ledger["divided_offset"]) == (0, 0) and found["after_load"]["commitlog"] == []
    assert ledger["data"][-1]["wrote"] == store.end % SIZES.segment
    assert ledger["index"] == [{"file": f"{0:020d}", "wrote": 32 * len(store.entries)}]
    assert ends(found["after_load"]) == ends(found["after_dispatch"]) == {"Topic0": 20, "Topic1": 20}


@pytest.mark.parametrize(("release", "lost"), [("4.9.8", 0), ("5.1.4", 6), ("5.3.3", 0)])
def test_what_was_committed_and_not_dispatched(tmp_path: Path, release: str, lost: int) -> None:
    """4.x dispatches at start, 5.0.0 to 5.1.4 never, 5.2.0 and later in recovery."""
    store = build(tmp_path, release, clean=False, undispatched=6)
    found = broker(store)
    assert found["lost"]["messages"] == lost
    assert sum(ends(found["after_dispatch"]).values()) == 40 - lost


def test_without_the_groups_checkpoint_nothing_is_readable_after_load_and_all_later(tmp_path: Path) -> None:
    store = build(tmp_path, "5.1.4", clean=False, undispatched=6, committed=-1)
    found = broker(store)
    assert (found["truncate_at"], found["dledger"]["committed_pos"]) == (0, -1)
    assert sum(ends(found["after_load"]).values()) == 34 and sum(ends(found["after_dispatch"]).values()) == 40


def test_recovery_after_a_kill_counts_messages_without_their_headers(tmp_path: Path) -> None:
    store = build(tmp_path, "5.3.3", clean=False)
    audit = audited(store)
    in_last = [e for e in store.entries if e.at >= store.end - store.end % SIZES.segment]
    cut = store.end - HEADER * len(in_last)
    beyond = [e for e in store.entries if e.record.at >= cut]
    (finding,) = (f for f in audit.findings if f.code == "ledger_crash_cut")
    assert finding.file == "abort" and finding.count == len(beyond) == audit.broker["lost"]["messages"] > 0  # type: ignore[index]
    assert finding.phy_offset == cut
    (store.root / "abort").unlink()
    (store.root / FOLDER / "checkpoint").unlink()
    way_round = audited(store)
    assert way_round.outcome.exit_code == 0 and way_round.broker["lost"]["messages"] == 0  # type: ignore[index]
    assert "ledger_crash_cut" not in {f.code for f in audited(build(tmp_path / "b", "5.1.4", clean=False)).findings}


@pytest.mark.parametrize("release", ["5.1.4", "5.2.0", "5.3.0"])
def test_recovery_after_a_kill_demands_dup_info_in_5_2_0_alone(tmp_path: Path, release: str) -> None:
    """It is in no message, so the first one ends the scan, and the queues are cut to where that file begins."""
    store = build(tmp_path / "killed", release, clean=False)
    found = broker(store)
    kept = sum(ends(found["after_dispatch"]).values())
    assert (kept == 0) is (release == "5.2.0"), found["lost"]
    assert found["truncate_at"] == store.end  # no data are cut
    clean = build(tmp_path / "clean", release)
    assert broker(clean)["lost"]["messages"] == 0
    asked = AuditRequest("s", StoreLocation(str(store.root)), release, store.broker_conf, releases=("5.1.4", "5.2.0", "5.3.0"))
    lost = {
        row["release"]: row["lost_messages"] for row in audit_plan(run_compared(asked).outcome())["releases"]
    }  # by one scan for all
    assert lost[release] == found["lost"]["messages"] and lost["5.2.0"] > lost["5.3.0"]


def test_entries_after_a_broken_header_are_cut(tmp_path: Path) -> None:
    store = build(tmp_path)
    broken = store.entries[-4]
    store.flip(store.data_of(broken), broken.at % SIZES.segment + 9)  # its index
    found = broker(store)
    assert found["dledger"]["end_index"] == broken.index - 1 and found["lost"]["messages"] == 4
    assert found["stop_reason"] == "entry_chain"


def test_damage_to_a_body_is_not_met(tmp_path: Path) -> None:
    store = build(tmp_path)
    broken = store.entries[-2]
    store.flip(store.data_of(broken), broken.at % SIZES.segment + HEADER + 90)
    assert broker(store)["dledger"]["end_index"] == store.entries[-1].index


def test_a_file_of_another_length_ends_the_process(tmp_path: Path) -> None:
    for path, what in ((f"{FOLDER}/data", "1 bytes"), (f"{FOLDER}/index", "")):
        store = build(tmp_path / what.strip())
        (store.root / path / f"{10 * SIZES.segment:020d}").write_bytes(b"x")
        found = broker(store)
        assert not found["starts"] and found["refusal"].startswith(path) and "ends the process" in found["refusal"]


def test_a_missing_data_file_in_the_middle_refuses(tmp_path: Path) -> None:
    store = build(tmp_path)
    store.data(1).unlink()
    assert not broker(store)["starts"]


def test_a_checkpoint_that_is_no_number_refuses(tmp_path: Path) -> None:
    store = build(tmp_path)
    store.set_checkpoint("many")
    found = broker(store)
    assert not found["starts"] and found["refusal"].startswith(f"{FOLDER}/checkpoint")


def test_the_old_part_of_a_mixed_store(tmp_path: Path) -> None:
    _, store = mixed(tmp_path)
    audit = audited(store)
    assert audit.above_note == [] and audit.broker is not None
    assert audit.broker["dledger"]["divided_offset"] == SIZES.segment
    assert audit.broker["after_load"]["commitlog"] == [{"file": f"{0:020d}", "wrote": SIZES.segment}]
    assert audit.broker["min_phy_offset"] == 0 and audit.broker["lost"]["messages"] == 0


def test_the_first_start_with_dledger_divides_the_log(tmp_path: Path) -> None:
    _, store = mixed(tmp_path)
    shutil.rmtree(store.root / FOLDER)
    found = broker(store)
    assert found["dledger"]["divided_offset"] == SIZES.segment == found["truncate_at"]
    assert found["dledger"]["data"] == [{"file": f"{SIZES.segment:020d}", "wrote": 0}]
    assert found["after_load"]["commitlog"] == [{"file": f"{0:020d}", "wrote": SIZES.segment}]


def test_without_settings_the_folder_says_it(tmp_path: Path) -> None:
    store = build(tmp_path)
    audit = product.audit(store.root, store.release, None)
    assert audit.above_note == [] and audit.broker is not None and audit.broker["dledger"] is not None
    denied = product.audit(store.root, store.release, store.broker_conf + "enableDLegerCommitLog=false\n")
    assert denied.broker is not None and denied.broker["dledger"] is None and denied.outcome.exit_code == 20


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("release", "starts"), [("4.9.8", True), ("5.0.0", False), ("5.5.0", False)])
def test_duplication_refuses_a_log_with_entries_that_the_checkpoint_does_not_call_committed(
    tmp_path: Path, release: str, starts: bool, clean: bool
) -> None:
    """compensateForHA takes DLedger's header for a message; all entries before that place do no harm."""
    for committed, harmed in ((-1, True), (30, True), (None, False)):
        store = build(tmp_path / str(committed), release, clean=clean, committed=committed)
        found = product.audit(store.root, release, store.broker_conf + "\nduplicationEnable=true").broker
        assert found is not None and found["starts"] is (starts or not harmed)
        if not found["starts"]:
            assert "duplicationEnable=false" in found["refusal"]
            assert broker(store)["starts"]
