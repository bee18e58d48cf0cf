"""Half messages and their ends: each state by the message that shows it, and the same answer however the log is divided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.layouts import rocksdb_layout
from store_io.messages.groups import transaction_ends
from store_io.messages.groups.transaction_rows import STRETCHES, TransactionScan, scan_transactions, stretches
from store_io.messages.message_filter import MessageFilter
from store_io.messages.open_store import open_store
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import HALF_TOPIC, OP_TOPIC, Message, Record, Sizes, Store, StoreBuilder

COMMIT = 0x8
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
Row = dict[str, Any]


def half(uniq: str | None, *properties: tuple[str, str], topic: str = HALF_TOPIC) -> Message:
    return Message(topic, uniq=uniq, properties=(("REAL_TOPIC", "orders"), ("REAL_QID", "3"), ("PGROUP", "P"), *properties))


def committed(of: Record, uniq: str | None = None) -> Message:
    return Message("orders", 3, sys_flag=COMMIT, prepared_offset=of.at, uniq=uniq)


def ended(*offsets: int, tag: str = "d", commas: bool = True) -> Message:
    text = "".join(f"{n}," for n in offsets) if commas else str(offsets[0])
    return Message(OP_TOPIC, body=text.encode(), tags=tag)


def rows_of(store: Store, parts: int = STRETCHES, **more: Any) -> list[Row]:
    opened = open_store(StoreLocation(str(store.root)), store.release, store.broker_conf)
    scan = TransactionScan(opened.location, opened.rules, **more)
    found: list[Row] = []
    for files, own in stretches(opened.segments(), parts):
        for batch in scan_transactions(scan.of(files, own)):
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    b = StoreBuilder("5.3.3", Sizes(segment=2048))
    first, second, *_ = [b.put(half(f"U{n}")) for n in range(4)]
    b.put(committed(first, "U0"))
    b.put(ended(0, 2))  # what was committed is ended as well; 2 is rolled back
    b.put(half("U1", ("TRANSACTION_CHECK_TIMES", "1")))  # queue offset 4, in the place of 1
    b.put(committed(second, "U1"))  # late: the producer's answer for the half message that was put back
    b.put(ended(3, tag="x"))  # no broker takes this one
    b.put(Message(GIVEN_UP, uniq="U3"))
    b.put(half(None))  # queue offset 5: open
    b.put(Message("orders", 3, sys_flag=COMMIT, uniq="other", prepared_offset=0))
    b.put(half("U6"))
    for n in range(12):
        b.put(Message("plain", body=b"x" * 600, uniq=f"U{n}"))
    b.put(ended(6, commas=False))  # in a later segment
    return b.write(tmp_path_factory.mktemp("transactions") / "store")


def states(rows: list[Row]) -> list[str]:
    return [row["state"] for row in rows]


def test_the_first_message_that_shows_an_end_is_it(store: Store) -> None:
    rows = rows_of(store)
    at = {number: record.at for number, record in enumerate(store.records)}
    assert states(rows) == ["committed", "put_back", "rolled_back", "given_up", "committed", "open", "rolled_back"]
    assert [row["end_phy_offset"] for row in rows] == [at[4], at[6], at[5], at[9], at[7], None, at[25]]
    assert [row["queue_offset"] for row in rows] == list(range(7))
    one = rows[4]
    assert (one["real_topic"], one["real_queue_id"], one["producer_group"], one["check_times"]) == ("orders", 3, "P", 1)
    assert (one["transaction_id"], one["unique_key"], one["status"], one["topic"]) == ("U1", "U1", "valid", HALF_TOPIC)
    assert rows[5]["transaction_id"] is None and rows[0]["end_time_ms"] == store.records[4].store_time


def test_the_answer_is_the_same_however_the_log_is_divided(store: Store) -> None:
    whole = rows_of(store, 1)
    assert len(list(store.root.glob("commitlog/*"))) > 4
    for parts in (2, 3, 16):
        for most in (1, 2, 5):
            assert rows_of(store, parts, most=most) == whole


def test_columns_and_conditions_leave_the_rest_as_it_is(store: Store) -> None:
    whole = rows_of(store)
    names = ("state", "queue_offset")
    assert rows_of(store, columns=names) == [{name: row[name] for name in names} for row in whole]
    assert rows_of(store, columns=("check_times",)) == [{"check_times": row["check_times"]} for row in whole]
    place = whole[4]["phy_offset"]
    for wanted in (MessageFilter(phy_offsets=(place, place + 1)), MessageFilter(queue_offsets=(4, 5))):
        assert rows_of(store, wanted=wanted) == [whole[4]]
    assert rows_of(store, wanted=MessageFilter(topics=frozenset({"orders"}))) == []


def test_transactions_in_rocksdb_are_named_by_their_physical_offset(tmp_path: Path) -> None:
    b = StoreBuilder("5.4.0", Sizes(segment=4096))
    topic, done = rocksdb_layout.HALF_TOPIC, rocksdb_layout.DONE_TOPIC
    first, second, _ = (b.put(half(f"U{n}", ("__transactionId__", f"T{n}"), topic=topic)) for n in range(3))
    b.put(committed(first))
    b.put(Message(done, properties=(("TRANS_OFFSET", str(first.at)),)))
    b.put(Message(done, properties=(("TRANS_OFFSET", str(second.at)),)))
    b.put(Message(done, properties=(("TRANS_OFFSET", "x" * 30),)))
    rows = rows_of(b.write(tmp_path / "store"))
    assert states(rows) == ["committed", "rolled_back", "open"]
    assert [row["transaction_id"] for row in rows] == ["T0", "T1", "T2"]


def test_an_end_counts_for_the_last_half_message_before_it(tmp_path: Path) -> None:
    """A queue that was made anew has its queue offsets twice."""
    b = StoreBuilder("5.3.3", Sizes(segment=4096))
    for n in (0, 0):
        b.put(Message(HALF_TOPIC, queue_offset=n))
        b.put(ended(0))
    b.put(Message(HALF_TOPIC, queue_offset=0))
    rows = rows_of(b.write(tmp_path / "store"))
    assert states(rows) == ["rolled_back", "rolled_back", "open"]
    assert rows[0]["end_phy_offset"] < rows[1]["phy_offset"] < rows[1]["end_phy_offset"]


def test_the_numbers_of_one_message_are_matched_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One body may name millions, or one number millions of times."""
    held = []
    settle = transaction_ends.HalfStates.settle
    for name, most in (("MOST_PENDING", 16), ("PIECE_BYTES", 10)):
        monkeypatch.setattr(transaction_ends, name, most)
    monkeypatch.setattr(
        transaction_ends.HalfStates, "settle", lambda self: (held.append(max(map(len, self._ends))), settle(self))
    )
    b = StoreBuilder("5.3.3", Sizes(segment=8192))
    for n in range(4):
        b.put(half(f"U{n}"))
    b.put(ended(*[0] * 200, *range(100, 300), 3))
    b.put(Message(OP_TOPIC, body=b"," * 30 + b"9" * 40 + b",x,-1,,2", tags="d"))
    assert states(rows_of(b.write(tmp_path / "store"))) == ["rolled_back", "open", "rolled_back", "rolled_back"]
    assert max(held) == 16 and 12 < len(held) < 20


def test_a_number_that_comes_again_is_taken_once() -> None:
    assert list(transaction_ends._numbers(b"1," * 10_000)) == [1]
    assert len(list(transaction_ends._numbers(b"1," * transaction_ends.PIECE_BYTES))) < 4
