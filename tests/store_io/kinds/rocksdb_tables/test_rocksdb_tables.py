"""Index and transactions in RocksDB: what is said of entries that may be right, and of what may never have been there."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.advice import Advice, Step
from schemas.finding_codes import BY_A_REPAIR, STARTS_DISPATCH
from schemas.rows import Finding
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores import builders, dledger_stores
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.rocksdb_tables import HALF, TableStore, half_pair, index_pairs, table_store

HOUR = 3_600_000
MIDNIGHT = 1_700_000_000_000 // HOUR * HOUR
Found = dict[tuple[str, str], int]


def of_tables(audit: Audited) -> Found:
    """(code, severity) -> how many."""
    found: Found = {}
    for finding in findings(audit):
        found[finding.code, finding.severity] = found.get((finding.code, finding.severity), 0) + finding.count
    return found


def findings(audit: Audited) -> list[Finding]:
    return [f for f in audit.findings if f.file == "rocksdbstore"]


def judged(audit: Audited) -> bool:
    return "rocksdbstore" not in audit.outcome.covered.not_judged


def audited(made: TableStore, release: str = "5.4.0", conf: str = "") -> Audited:
    return product.audit(made.root, release, made.conf + conf)


def segmented(root: Path, clean: bool = True) -> TableStore:
    """Messages and half messages in several segments."""
    builder = StoreBuilder("5.4.0", Sizes(segment=1 << 12))
    records, halves = [], []
    for n in range(60):
        records.append(builder.put(Message("T", 0, b"x" * 100, uniq=f"U{n:031d}", keys=f"k{n}")))
        if n % 6 == 0:
            halves.append(builder.put(half_message(n)))
    return with_tables(TableStore(builder.write(root, clean=clean), records), halves)


def half_message(number: int) -> Message:
    unique = f"H{number:031d}"
    more = (("REAL_TOPIC", "pay"), ("REAL_QID", "0"), ("__transactionId__", unique))
    return Message(HALF, body=b"half", uniq=unique, properties=more)


def with_tables(made: TableStore, halves: list[builders.Record]) -> TableStore:
    made.records += halves
    for record in made.records:
        made.index.update(index_pairs(record))
    made.halves.update(half_pair(record) for record in halves)
    made.index_mark = max(record.at for record in made.records)
    made.half_mark = halves[-1].at if halves else None
    return made


# ---- what the log lacks --------------------------------------------------------------------------------------------


def removed(segments: list[Path]) -> None:
    segments[1].unlink()


def zeroed(segments: list[Path]) -> None:
    segments[1].write_bytes(bytes(segments[1].stat().st_size))


@pytest.mark.parametrize("lose", [removed, zeroed])
def test_entries_of_a_lost_segment_are_right(lose: Callable[[list[Path]], None], tmp_path: Path) -> None:
    made = segmented(tmp_path / "store").write()
    lose(sorted((made.root / "commitlog").iterdir()))
    audit = audited(made)
    assert {severity for code, severity in of_tables(audit) if code.startswith(("index", "transaction"))} == {"note"}
    assert of_tables(audit)["index_entry_dangling", "note"] > 20 and of_tables(audit)["transaction_entry_wrong", "note"] > 1
    assert {f.next for f in findings(audit)} == {Advice(Step.SEEK_INDEXED_MESSAGES)}


@pytest.mark.parametrize("clean", [False, True])
def test_entries_behind_the_last_message_lead_beyond_the_end(clean: bool, tmp_path: Path) -> None:
    made = table_store(tmp_path / "store", clean=clean)
    last = max(made.records, key=lambda record: record.at)
    key, time = next(iter(index_pairs(last)))
    made.index[key[:-8] + struct.pack(">q", last.at + last.size)] = time
    assert of_tables(audited(made.write())) == {("index_entry_beyond_end", "rebuildable" if clean else "note"): 1}


# ---- where the index begins ----------------------------------------------------------------------------------------


def test_an_index_without_entries_up_to_its_mark_has_lost_them(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store")
    lost, made.index = len(made.index), {}
    audit = audited(made.write())
    assert of_tables(audit) == {("index_entry_missing", "rebuildable"): lost} and judged(audit)
    assert "no entry of the log" in findings(audit)[0].message


@pytest.mark.parametrize("release, clean, step", [("5.5.0", True, False), ("5.4.0", True, False), ("5.5.0", False, True)])
def test_an_index_without_entries_and_mark_may_have_been_switched_on(
    release: str, clean: bool, step: bool, tmp_path: Path
) -> None:
    made = table_store(tmp_path / "store", release, clean)
    lost, made.index, made.index_mark = len(made.index), {}, None
    audit = audited(made.write(), release)
    assert of_tables(audit) == {("index_entry_missing", "note"): lost} and judged(audit) is step
    assert (findings(audit)[0].next == STARTS_DISPATCH) is step


def test_a_start_that_reads_the_newest_segments_alone_does_not_put_all(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store", "5.4.0", clean=False)
    made.index, made.index_mark = {}, None
    made.write()
    for most, starts in ((10, "a start puts them"), (1, "no start puts all of them")):
        audit = product.audit(made.root, "5.4.0", f"{made.conf}commitLogRecoverMaxNum={most}\n")
        assert findings(audit)[0].message.endswith(starts) and judged(audit) is (most == 10)


def test_what_is_missing_within_the_hour_of_the_first_entry_is_not_judged(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store")
    keys = sorted(made.index, key=lambda key: key[-8:])
    for key in keys[:90]:
        del made.index[key]
    audit = audited(made.write())
    assert of_tables(audit) == {("index_entry_missing", "note"): 90} and not judged(audit)


def of_many_hours(root: Path, removed: Callable[[int], bool]) -> TableStore:
    """A message every five hours, for twelve days."""
    builder = StoreBuilder("5.5.0", Sizes(segment=1 << 14))
    records = [builder.put(Message("T", 0, b"x", uniq=f"U{n:031d}", store_time=MIDNIGHT + n * 5 * HOUR)) for n in range(60)]
    made = with_tables(TableStore(builder.write(root), records), [])
    made.index = {key: time for key, time in made.index.items() if not removed(int.from_bytes(key[:8], "big"))}
    return made.write()


def test_the_window_of_retention_on_a_restored_copy_raises_no_alarm(tmp_path: Path) -> None:
    end = MIDNIGHT + 58 * 5 * HOUR
    made = of_many_hours(tmp_path / "store", lambda hour: end - 168 * HOUR <= hour <= end)
    audit = audited(made, "5.5.0")
    assert of_tables(audit) == {("index_entry_missing", "note"): 34} and "retention" in findings(audit)[0].message


@pytest.mark.parametrize(
    "removed",
    [
        lambda hour: MIDNIGHT + 50 * HOUR <= hour <= MIDNIGHT + 100 * HOUR,  # a window is longer
        lambda hour: MIDNIGHT + 50 * HOUR <= hour <= MIDNIGHT + 250 * HOUR,  # and shorter
        lambda hour: hour > MIDNIGHT + 200 * HOUR,  # and no window ends with the log
    ],
)
def test_other_hours_are_lost(removed: Callable[[int], bool], tmp_path: Path) -> None:
    audit = audited(of_many_hours(tmp_path / "store", removed), "5.5.0")
    assert {severity for _, severity in of_tables(audit)} == {"rebuildable"}


@pytest.mark.parametrize("writer, severity, word", [("5.3.3", "note", "yet"), ("5.5.0", "rebuildable", "gone")])
def test_a_copy_without_the_folder_may_never_have_had_it(writer: str, severity: str, word: str, tmp_path: Path) -> None:
    builder = StoreBuilder(writer, Sizes(segment=1 << 14))
    for _ in range(2):
        builder.put(Message("T", 0, b"x", uniq="U" * 32))
    store = builder.write(tmp_path / "store")
    audit = audited(TableStore(store, []), "5.5.0")
    assert [(f.severity, f.count) for f in findings(audit)] == [(severity, 2)] and word in findings(audit)[0].message


# ---- transactions --------------------------------------------------------------------------------------------------


def spread(root: Path, release: str = "5.4.0", clean: bool = True, checked: int = 0, segment: int = 1 << 16) -> TableStore:
    """Half messages, one each ten seconds, 40 of them. checked: timercheck's time after the last, in ms."""
    builder = StoreBuilder(release, Sizes(segment=segment))
    halves = []
    for n in range(40):
        message = half_message(n)
        halves.append(builder.put(Message(**{**vars(message), "store_time": MIDNIGHT + 10_000 * n})))
    made = with_tables(TableStore(builder.write(root, clean=clean), []), halves)
    if checked:
        (root / "config").mkdir(exist_ok=True)
        check = struct.pack(">qqqq", halves[-1].store_time + checked, 0, 1, 1)
        (root / "config" / "timercheck").write_bytes(check.ljust(4096, b"\0"))
    return made


def halves_of(audit: Audited) -> Found:
    return {key: count for key, count in of_tables(audit).items() if key[0].startswith("transaction")}


def test_what_a_broker_had_no_time_to_give_up_is_lost(tmp_path: Path) -> None:
    made = spread(tmp_path / "store", checked=100_000)
    made.halves = {}
    audit = audited(made.write())  # given up after 15 times 30 s
    assert halves_of(audit) == {("transaction_entry_missing", "rebuildable"): 35, ("transaction_entry_missing", "note"): 5}
    few = audited(made, conf="transactionCheckMax=3\ntransactionCheckInterval=10000\n")
    assert halves_of(few) == {("transaction_entry_missing", "note"): 40} and judged(few)
    small = audited(made, conf="maxMessageSize=100\n")
    assert halves_of(small) == {("transaction_entry_missing", "note"): 40}
    (step,) = {f.next for f in findings(audit) if f.code == "transaction_entry_missing" and f.severity != "note"}
    assert step == Advice(Step.REBUILD_TABLES) and step in BY_A_REPAIR


def test_without_a_clock_nothing_tells_whether_they_were_given_up(tmp_path: Path) -> None:
    assert judged(audited(spread(tmp_path / "whole").write()))
    made = spread(tmp_path / "store")
    made.halves = {}
    audit = audited(made.write())
    assert halves_of(audit) == {("transaction_entry_missing", "note"): 40} and not judged(audit)


@pytest.mark.parametrize("release, clean, lost", [("5.4.0", True, 32), ("5.4.0", False, 0), ("5.5.0", True, 0)])
def test_what_no_start_puts_is_lost_but_for_the_last_minute(release: str, clean: bool, lost: int, tmp_path: Path) -> None:
    made = spread(tmp_path / "store", release, clean)
    made.half_mark = made.records[1].at
    made.halves = {key: value for key, value in made.halves.items() if int.from_bytes(key[:8], "big") <= made.half_mark}
    found = halves_of(audited(made.write(), release))
    assert found.get(("transaction_entry_missing", "rebuildable"), 0) == lost
    assert found["transaction_entry_missing", "note"] == 38 - lost


def test_a_start_puts_half_messages_from_where_it_reads_on(tmp_path: Path) -> None:
    made = spread(tmp_path / "store", "5.4.0", clean=False, segment=1 << 12)
    made.half_mark = made.records[1].at
    made.halves = {key: value for key, value in made.halves.items() if int.from_bytes(key[:8], "big") <= made.half_mark}
    audit = product.audit(made.write().root, "5.4.0", f"{made.conf}commitLogRecoverMaxNum=2\n")
    assert audit.broker is not None
    read = sum(record.at >= int(audit.broker["start_segment"]) for record in made.records)
    steps = {f.next: f.count for f in findings(audit) if f.code == "transaction_entry_missing" and f.severity == "note"}
    assert 0 < read < 38 and steps[STARTS_DISPATCH] == read


# ---- steps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "clean", "last", "severity"),
    [
        ("5.4.0", True, 36, "rebuildable"),
        ("5.4.0", False, 5, "note"),  # goes by store times, and the log is a second long
        ("5.5.0", True, 36, "rebuildable"),
        ("5.5.0", False, 36, "note"),
        ("5.5.0", False, 5, "rebuildable"),
    ],
)
def test_beside_a_dledger_log_a_start_puts_what_its_scan_reads(
    release: str, clean: bool, last: int, severity: str, tmp_path: Path
) -> None:
    """And that begins where it begins without tables, however early these end. last: the message at which the index ends."""
    store = dledger_stores.build(tmp_path / "store", release, clean=clean)
    records = [entry.record for entry in store.entries]
    made = with_tables(TableStore(store, records[: last + 1]), [])  # type: ignore[arg-type]
    audit = audited(made.write(), release)
    lacked = sum(len([*index_pairs(record)]) for record in records[last + 1 :])
    assert of_tables(audit) == {("index_entry_missing", severity): lacked} and judged(audit)
    assert (findings(audit)[0].next == STARTS_DISPATCH) == (severity == "note")


def test_steps_name_what_helps(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store", "5.5.0")
    del made.index[sorted(made.index)[5]]
    made.write()
    assert {f.next for f in findings(audited(made, "5.5.0"))} == {Advice(Step.REBUILD_TABLES)}


def test_a_note_on_what_a_start_puts_says_so(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store", "5.5.0")
    made.index_mark = made.records[20].at
    made.index = {key: time for key, time in made.index.items() if int.from_bytes(key[-8:], "big") <= made.index_mark}
    audit = audited(made.write(), "5.5.0")
    assert [(f.severity, f.next) for f in findings(audit)] == [("note", STARTS_DISPATCH)]


@pytest.mark.parametrize("time", [0, 1_700_000_000_000 - 9 * HOUR])
def test_of_a_message_whose_header_was_changed_the_entries_are_right(time: int, tmp_path: Path) -> None:
    made = table_store(tmp_path / "store").write()
    record = next(r for r in made.records if r.properties.get("KEYS") and r.properties.get("UNIQ_KEY"))
    path = made.root / "commitlog" / f"{0:020d}"
    data = path.read_bytes()
    path.write_bytes(data[: record.at + 56] + struct.pack(">q", time) + data[record.at + 64 :])
    told = of_tables(audited(made))
    assert told == {("index_entry_wrong", "note"): len(list(index_pairs(record)))}
