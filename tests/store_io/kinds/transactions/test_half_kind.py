"""The rows of half messages: known, or None where some of them are not, or are too many to be held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.first_day import StartMoment
from store_io.audit.audit_store import run_audit
from store_io.kinds.transactions import half_kind
from store_io.kinds.transactions.half_kind import TRANSACTIONS, HalfQueues
from store_io.kinds.transactions.half_rows import NO_IMMUNITY
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.answers.earlier_run import earlier
from tests.support.stores.builders import HALF_TOPIC, OP_TOPIC, Message, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=2048)


def made(root: Path, release: str = "5.3.3", between: int = 0) -> Store:
    """Six half messages and two operation messages, the others of `between` segments between them."""
    builder = StoreBuilder(release, SIZES)
    for number in range(6):
        more = (("TRANSACTION_CHECK_TIMES", "3"), ("CHECK_IMMUNITY_TIME_IN_SECONDS", "60")) if number == 2 else ()
        builder.put(Message(HALF_TOPIC, born_time=1000 + number, uniq=f"U{number}", properties=more))
    for _ in range(between):
        builder.put(Message("orders", body=b"x" * 1800))
    builder.put(Message(OP_TOPIC, body=b"1,4,99,y,", tags="d", born_time=7))
    builder.put(Message(OP_TOPIC, body=b"2,", tags="x", born_time=8))
    return builder.write(root)


def rows_of(store: Store, level: str = "full") -> HalfQueues | None:
    return run_audit(asked(store, level=level)).evidence[TRANSACTIONS]


def asked(store: Store, **more: Any) -> AuditRequest:
    start = StartMoment(1_800_000_000_000)
    return AuditRequest("s", StoreLocation(str(store.root)), store.release, store.broker_conf, start=start, **more)


def test_rows_have_what_a_check_asks_for(tmp_path: Path) -> None:
    found = rows_of(made(tmp_path))
    assert found is not None
    plain = [(number, 1000 + number, -1, NO_IMMUNITY) for number in range(6)]
    assert found.rows.halves.tolist() == [*plain[:2], (2, 1002, 3, 60), *plain[3:]]
    assert found.rows.operations.tolist() == [(0, 1, 7), (0, 4, 7), (1, -1, 8)]  # there are six: 99 is none
    assert found.operations_bounds == (0, 2)


def test_before_5_1_0_an_operation_message_holds_one_number(tmp_path: Path) -> None:
    found = rows_of(made(tmp_path, "5.0.0"))
    assert found is not None and found.rows.operations.tolist() == [(0, -1, 7), (1, -1, 8)]


@pytest.mark.parametrize(("most", "known"), [(5, False), (6, True)])
def test_more_than_can_be_held_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, known: bool) -> None:
    monkeypatch.setattr(half_kind, "MOST_ROWS", most)
    assert (rows_of(made(tmp_path)) is not None) is known


def test_numbers_beyond_the_bound_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    builder.put(Message(HALF_TOPIC))
    builder.put(Message(OP_TOPIC, body=b"0," * 5, tags="d"))
    store = builder.write(tmp_path)
    assert rows_of(store) is not None
    monkeypatch.setattr(half_kind, "MOST_ROWS", 4)
    assert rows_of(store) is None


@pytest.mark.parametrize(("between", "known"), [(0, True), (9, False)])
def test_a_quick_audit_knows_what_it_has_read(tmp_path: Path, between: int, known: bool) -> None:
    assert (rows_of(made(tmp_path, between=between), "quick") is not None) is known


def test_a_start_that_is_refused_checks_nothing(tmp_path: Path) -> None:
    store = made(tmp_path)
    (store.root / "commitlog" / f"{SIZES.segment:020d}").write_bytes(b"short")
    assert rows_of(store) is None


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_what_an_earlier_run_has_verified_is_read_for_them(tmp_path: Path, release: str) -> None:
    store = made(tmp_path, release, between=9)
    whole = run_audit(asked(store))
    again = run_audit(asked(store, earlier=earlier(whole), reuse=True))
    assert again.evidence.unread
    ours, before = again.evidence[TRANSACTIONS], whole.evidence[TRANSACTIONS]
    assert ours is not None and before is not None
    assert ours.rows.halves.tolist() == before.rows.halves.tolist()
    assert ours.rows.operations.tolist() == before.rows.operations.tolist()
