"""What keeps the release from starting is taken away, where nothing is lost by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.repair import DroppedMessage, EmptiedTable, GivenUp
from store_io.base.errors import StoreError
from store_io.repair import repair_start
from store_io.repair.repair_work import Work
from store_io.repair.unsaved import cut_messages
from tests.support.answers.repaired import Served, plan_of, plan_with_steps, repaired
from tests.support.stores import builders, dledger_stores
from tests.support.stores.dledger_stores import LedgerStore
from tests.support.stores.rocksdb_stores import TWICE, combined_store


@pytest.mark.parametrize("name", ["consumerFilter.json", "consumerOffset.json"])
def test_a_table_of_config_is_never_taken_away_unasked(tmp_path: Path, name: str) -> None:
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=4096, queue_file=400))
    builder.put(builders.Message("T", body=b"x"))
    store = builder.write(tmp_path / "store")
    (store.root / "config").mkdir(exist_ok=True)
    for ending in ("", ".bak"):
        (store.root / "config" / (name + ending)).write_text('{"torn":')
    plan = plan_of(store.root, store.release, store.broker_conf)
    with pytest.raises(StoreError, match=r"under policy broker nothing can be done.* Repair with --fix-config$"):
        repaired(store.root, tmp_path / "new", plan)
    with pytest.raises(StoreError, match=r"with --empty-config it begins empty$"):
        repaired(store.root, tmp_path / "new", plan, fix_config=True)
    salvage = repaired(store.root, tmp_path / "new", plan, "salvage", fix_config=True)
    assert salvage.exit_code == 20 and salvage.report.problems[-1].endswith("with --empty-config it begins empty")
    done = repaired(store.root, tmp_path / "new", plan, fix_config=True, empty_config=True)
    assert done.exit_code == 0 and done.report.emptied[0] == EmptiedTable(f"config/{name}", 0)


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_a_line_of_broker_conf_that_stops_the_release_is_to_be_corrected_first(policy: str, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    store = combined_store(tmp_path / "s").write()
    conf = store.plain.broker_conf + TWICE + "combineCQPreferCQType=other\n"
    plan = plan_of(store.root, "5.4.0", conf)
    with pytest.raises(
        StoreError, match=r"Correct this line of broker\.conf, the copy is not at fault: combineCQPreferCQType=other"
    ):
        repaired(store.root, tmp_path / "new", plan, policy)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def plain(root: Path) -> builders.Store:
    builder = builders.StoreBuilder("5.3.3", dledger_stores.SIZES)
    for n in range(40):
        builder.put(builders.Message(f"Topic{n % 2}", 0, b"body %d " % n * (n % 5 + 1), uniq=f"7F00{n:08X}"))
    return builder.write(root, clean=True, spare=False)


KINDS: dict[str, Callable[[Path], builders.Store | LedgerStore]] = {"segments": plain, "DLedger": dledger_stores.build}
FULL = dledger_stores.SIZES.segment


def files_of(root: Path) -> list[Path]:
    return sorted((root / "commitlog").glob("*")) or sorted((root / dledger_stores.FOLDER / "data").iterdir())


def spans_of(store: builders.Store | LedgerStore) -> list[tuple[int, int]]:
    """Where each record, with what goes before it, begins and ends."""
    records = store.entries if isinstance(store, LedgerStore) else store.records
    return [(each.at, each.at + each.size) for each in records]


@pytest.mark.parametrize("size", [FULL + 500, FULL - 700, 0])
@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_length_is_salvaged_in_both_kinds_of_log(kind: str, number: int, size: int, tmp_path: Path) -> None:
    store = KINDS[kind](tmp_path / "store")
    path = files_of(store.root)[number]
    base = int(path.name)
    path.write_bytes(path.read_bytes()[:size].ljust(size, b"\0"))
    kept = sum(not base <= start < base + FULL or end <= base + size for start, end in spans_of(store))
    plan = plan_with_steps(store.root, store.release, store.broker_conf, "salvage")
    done = repaired(store.root, tmp_path / "salvage", plan, "salvage")
    assert (done.exit_code, done.report.problems, done.report.messages_after) == (0, (), kept)
    resized = [(row.action, row.lost) for row in done.report.steps if row.action == "resize"]
    holds = any(base <= start and end <= base + min(size, FULL) for start, end in spans_of(store))
    assert resized == ([("resize", {"bytes": size - FULL} if size > FULL else {})] if holds else [])
    gap = kind == "DLedger" and number == 1 and not holds
    if gap:
        with pytest.raises(StoreError, match=rf"as DLedger demands\. Policy salvage would keep {kept} of {kept} messages$"):
            repaired(store.root, tmp_path / "broker", plan, "broker")
    else:
        assert repaired(store.root, tmp_path / "broker", plan, "broker").report.messages_after == kept


@pytest.mark.parametrize("next_file", ["gone", "there"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_beyond_the_configured_length_is_said(kind: str, next_file: str, tmp_path: Path) -> None:
    store = KINDS[kind](tmp_path / "store")
    path, after = files_of(store.root)[1:3]
    path.write_bytes(path.read_bytes() + after.read_bytes())
    beyond = sum(int(after.name) <= start < int(after.name) + FULL for start, _ in spans_of(store))
    if next_file == "gone":
        after.unlink()
    done = repaired(store.root, tmp_path / "new", plan_of(store.root, store.release, store.broker_conf), "salvage")
    lost = beyond if next_file == "gone" else 0
    assert done.exit_code == 0 and done.report.messages_after == 40 - lost
    given_up = done.report.given_up
    assert done.report.lost.messages == lost and replace(given_up, signs=()) == GivenUp(lost, 0, lost)
    assert done.unsaved is not None and len(list(cut_messages(done.unsaved))) == lost and not done.unsaved.missing


@pytest.mark.parametrize("kind", KINDS)
def test_where_no_file_has_the_configured_length_the_settings_are_in_doubt(kind: str, tmp_path: Path) -> None:
    store = KINDS[kind](tmp_path / "store")
    for path in files_of(store.root):
        path.write_bytes(path.read_bytes() + bytes(100))
    plan = plan_of(store.root, store.release, store.broker_conf)
    for policy in ("broker", "salvage"):
        with pytest.raises(StoreError, match=r"segments of this copy are 2,148 bytes long: this broker\.conf is probably not"):
            repaired(store.root, tmp_path / "new", plan, policy)


@pytest.mark.parametrize("size", [0, 4096, dledger_stores.INDEX_BYTES + dledger_stores.UNIT])
@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_an_index_file_of_dledger_of_another_length_is_made_anew(policy: str, size: int, tmp_path: Path) -> None:
    store = dledger_stores.build(tmp_path / "store")
    os.truncate(store.index, size)
    done = repaired(store.root, tmp_path / "new", plan_of(store.root, store.release, store.broker_conf), policy)
    assert (done.exit_code, done.report.messages_after) == (0, 40)
    assert (tmp_path / "new" / dledger_stores.FOLDER / "index" / f"{0:020d}").stat().st_size == dledger_stores.INDEX_BYTES


@pytest.mark.parametrize("cut", ["in a segment between others", "in the last segment"])
def test_a_record_that_only_the_zeros_beyond_a_short_file_completed_is_left_out(tmp_path: Path, cut: str) -> None:
    """Its properties would end with NUL bytes, which no checksum shows: its tag would be another one."""
    builder = builders.StoreBuilder("4.8.0", builders.Sizes(segment=1024, queue_file=400))
    placed = [builder.put(builders.Message("T", body=b"x" * 50, uniq=f"{n:032X}")) for n in range(30)]
    store = builder.write(tmp_path / "store")
    base = 0 if cut == "in a segment between others" else max(m.at for m in placed) // 1024 * 1024
    half = [m for m in placed if base <= m.at < base + 1024][-1]
    os.truncate(store.root / "commitlog" / f"{base:020d}", half.at + half.size - base - 1)
    plan = plan_of(store.root, store.release, store.broker_conf)
    kept = {}
    for policy in ("broker", "salvage"):
        done = repaired(store.root, tmp_path / policy, plan, policy)
        assert done.exit_code == 0, done.report.problems
        kept[policy] = done.report.messages_after
        report = done.report
        if policy == "broker":
            (message,) = report.dropped
            assert message == DroppedMessage(
                f"commitlog/{base:020d}", half.at - base, half.at + half.size - base, "T", 0, half.queue_offset, False, half.at,
                "its last 1 byte lay beyond the end of the file and would be zeros now",
            )  # fmt: skip
        assert (report.given_up.missing, report.given_up.cut, report.lost.messages) == (1, 0, 0)
        assert half.at not in {record.at for record in Served(tmp_path / policy, 1024).records() if record.topic == "T"}
    assert kept == {"broker": 29, "salvage": 29}


def queues_of(root: Path, count: int, per_queue: int = 1) -> builders.Store:
    """A store with so many queues, each in so many files of one entry, and a spare file's length for each."""
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=1 << 16, queue_file=20))
    for number in range(count * per_queue):
        builder.put(builders.Message(f"T{number % count:03d}", 0, b"body"))
    return builder.write(root, spare=False)


def too_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:7])


def no_number(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.bak"))


@pytest.mark.parametrize("harm", [too_short, no_number])
@pytest.mark.parametrize(("count", "per_queue"), [(1, 1), (49, 1), (50, 1), (51, 1), (500, 1), (2, 60)])
def test_all_files_that_stop_the_start_are_taken_away_together(
    count: int, per_queue: int, harm: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their number: the copy is audited as often as for one."""
    store = queues_of(tmp_path / "store", count, per_queue)
    files = sorted((store.root / "consumequeue").glob("*/0/*"))
    assert len(files) == count * per_queue
    for path in files:
        harm(path)
    audits, real = list[str](), repair_start.audit_changed
    monkeypatch.setattr(repair_start, "audit_changed", lambda work, what: audits.append(what) or real(work, what))
    plan = plan_of(store.root, store.release, store.broker_conf)
    outcome = repaired(store.root, tmp_path / "new", plan)
    assert outcome.exit_code == 0, outcome.report.problems
    assert len(outcome.report.unblocked) == len(files) and len(audits) == 1
    assert len(Served(tmp_path / "new", store.sizes.segment).messages) == len(store.records)


@pytest.mark.parametrize("count", [1, 51])
def test_all_last_files_of_queues_without_an_entry_are_taken_away_together(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = queues_of(tmp_path / "store", count, 2)
    for path in (store.root / "consumequeue").glob("*/0/*20"):
        path.write_bytes(bytes(20))
    audits, real = list[str](), repair_start.audit_changed
    monkeypatch.setattr(repair_start, "audit_changed", lambda work, what: audits.append(what) or real(work, what))
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.1.4", store.broker_conf))
    assert outcome.exit_code == 0 and len(outcome.report.unblocked) == count and len(audits) == 1


@pytest.mark.parametrize("count", [1, 51, 120])
def test_all_folders_in_the_index_are_taken_away_together(count: int, tmp_path: Path) -> None:
    store = queues_of(tmp_path / "store", 2)
    for number in range(count):
        (store.root / "index" / f"2026112021{number:07d}").mkdir(parents=True)
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, store.release, store.broker_conf))
    assert outcome.exit_code == 0 and len(outcome.report.unblocked) == count


@pytest.mark.parametrize("kind", KINDS)
def test_all_files_of_a_log_that_are_too_long_get_the_length_together(kind: str, tmp_path: Path) -> None:
    store = KINDS[kind](tmp_path / "store")
    for path in files_of(store.root)[1:]:
        path.write_bytes(path.read_bytes().ljust(FULL + 500, b"\0"))
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, store.release, store.broker_conf))
    assert outcome.exit_code == 0, outcome.report.problems
    assert len(outcome.report.unblocked) == len(files_of(store.root)) - 1 and not outcome.report.lost.messages


def test_a_refusal_that_stays_ends_the_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = queues_of(tmp_path / "store", 1)
    too_short(next((store.root / "consumequeue").glob("*/0/*")))
    plan = plan_of(store.root, store.release, store.broker_conf)
    monkeypatch.setattr(Work, "remove", lambda *_: None)
    with pytest.raises(StoreError, match=r"under policy broker nothing can be done.*: length 7, where the broker expects"):
        repaired(store.root, tmp_path / "new", plan)
