"""Bad bytes among the ends of queues, beside the end mark: what a start serves, cuts and refuses (rocksdb.md 3)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.answers import product
from tests.support.damage import invert_byte
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.rocksdb_stores import KeyedStore, keyed_of, offset_key, offset_value, write_database

QUEUES = 300  # three blocks of a table with their ends
FIRST, SECOND = range(106), range(106, 212)  # queues whose ends are in the first block, in the second one
IN_FIRST, IN_SECOND = 20, 900  # bytes of the table
USED = range(0, QUEUES, 10)  # queues with two messages each; the others end at 0
HIDDEN = -1, 0, -1


def many_queues(root: Path, dispatched: int = 2 * len(USED)) -> KeyedStore:
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 15, queue_file=1000, slots=50, index_max=4000))
    for n in [*USED, *USED]:
        builder.put(Message(f"Topic{n:03d}", 0, b"x" * 20))
    keyed = keyed_of(builder.write(root), dispatched=dispatched)
    keyed.maxima |= {(f"Topic{n:03d}", 0): (0, -1) for n in range(QUEUES) if n not in USED}
    return keyed


def flip(store: KeyedStore, at: int) -> None:
    (table,) = (p for p in (store.root / "consumequeue").glob("*.sst") if b"CHECKPOINT_TOPIC" in p.read_bytes())
    invert_byte(table, at, 1)


def ends(store: KeyedStore) -> dict[int, tuple[int, int, int]]:
    """After load(), by the topic's number."""
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    assert audit.broker is not None and audit.broker["starts"], audit.incomplete
    queues = audit.broker["after_load"]["queues"]
    return {int(q["topic"][5:]): (q["min_offset"], q["max_offset"], q["max_phy_offset"]) for q in queues}


def test_queues_in_the_bad_bytes_serve_nothing(tmp_path: Path) -> None:
    flip(store := many_queues(tmp_path / "s").write(), IN_FIRST)
    found = ends(store)
    assert [n for n in found if found[n] == HIDDEN] == [n for n in USED if n in FIRST]
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    assert Counter(f.code for f in audit.above_note) == {"queue_database_damaged": 1, "broker_skips_messages": 11}
    skipped = [f for f in audit.findings if f.code == "broker_skips_messages"]
    assert skipped[0].topic == "Topic000" and "each new message is refused" in skipped[0].message
    assert audit.outcome.exit_code == 20 and not audit.incomplete


def test_what_dispatch_puts_has_a_maximum_again(tmp_path: Path) -> None:
    store = many_queues(tmp_path / "s", dispatched=2 * len(USED) - 10)
    store.minima["Topic210", 0] = store.maxima["Topic210", 0]
    flip(store.write(), IN_SECOND)
    found = ends(store)
    assert found[100][:2] == (0, 2) and found[190] == HIDDEN and found[290][:2] == (0, 2)
    assert found[210][:2] == (-1, 2)  # the bad bytes hold its minimum, too


def test_truncation_comes_to_the_queues_before_the_bad_bytes_alone(tmp_path: Path) -> None:
    store = many_queues(tmp_path / "s").write()
    flip(store, IN_SECOND)
    cut = store.records[len(USED)].at
    for path in (store.root / "commitlog").iterdir():
        kept = min(max(0, cut - int(path.name)), path.stat().st_size)
        path.write_bytes(path.read_bytes()[:kept].ljust(path.stat().st_size, b"\0"))
    found = ends(store)
    assert {found[n][1] for n in USED if n in FIRST} == {1} and {found[n] for n in USED if n in SECOND} == {HIDDEN}
    assert {found[n][1] for n in USED if n >= 212} == {2}


def test_two_tables_of_ends_are_compacted_at_once(tmp_path: Path) -> None:
    store = many_queues(tmp_path / "s").write()
    offsets = [(offset_key(t, q, b"max"), offset_value(*end)) for (t, q), end in store.maxima.items()]
    write_database(store.root / "consumequeue", {"offset": offsets})
    flip(store, IN_FIRST)
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    assert audit.broker is None and any("RocksDB compacts" in sentence for sentence in audit.incomplete)
