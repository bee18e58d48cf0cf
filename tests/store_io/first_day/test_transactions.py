"""Half messages that the first check gives up, and those that it leaves open, for each of its rules from both sides."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from schemas.first_day import StartMoment, TransactionsOfDay
from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.builders import HALF_TOPIC, OP_TOPIC, Message, Store, StoreBuilder

BORN = 1_700_000_000_000
HOUR = 3_600_000
OLD = BORN + 100 * HOUR  # a start at which all are older than fileReservedTime
SOON = BORN + HOUR
GROUP = "CID_RMQ_SYS_TRANS"


def half(*properties: tuple[str, str], born: int = BORN) -> Message:
    return Message(HALF_TOPIC, uniq="U", born_time=born, properties=(("REAL_TOPIC", "orders"), *properties))


def ended(*offsets: int, tag: str = "d", born: int = BORN) -> Message:
    return Message(OP_TOPIC, body="".join(f"{n}," for n in offsets).encode(), tags=tag, born_time=born)


def of_4x(offset: int) -> Message:
    return Message(OP_TOPIC, body=str(offset).encode(), tags="d", born_time=BORN)


def checked(
    root: Path,
    messages: Iterable[Message],
    at: int = OLD,
    release: str = "5.3.3",
    conf: str = "",
    offsets: tuple[int, int] | None = None,
) -> TransactionsOfDay | None:
    builder = StoreBuilder(release)
    for message in messages:
        builder.put(message)
    config = {}
    if offsets is not None:
        table = {f"{topic}@{GROUP}": {"0": number} for topic, number in zip((HALF_TOPIC, OP_TOPIC), offsets, strict=True)}
        config["consumerOffset.json"] = json.dumps({"offsetTable": table})
    store = builder.write(root, config=config)
    return said(store, at, conf)


def said(store: Store, at: int = OLD, conf: str = "") -> TransactionsOfDay | None:
    found = product.audit(store.root, store.release, f"{store.broker_conf}\n{conf}\n", start=StartMoment(at))
    return found.outcome.first_day.transactions if found.outcome.first_day is not None else None


def test_half_messages_that_are_too_old_are_moved_and_others_stay_open(tmp_path: Path) -> None:
    three = [half(), half(), half(born=BORN + 99 * HOUR)]
    assert checked(tmp_path / "a", three) == TransactionsOfDay(2, 1)
    assert checked(tmp_path / "b", three, SOON) == TransactionsOfDay(0, 3)
    assert checked(tmp_path / "c", three, conf="fileReservedTime=200") == TransactionsOfDay(0, 3)
    assert checked(tmp_path / "d", three, conf="fileReservedTime=0") == TransactionsOfDay(3, 0)


@pytest.mark.parametrize(("later", "moved"), [(0, 0), (1, 1)])
@pytest.mark.parametrize(("release", "interval"), [("5.1.0", 60_000), ("5.1.1", 30_000)])
def test_the_age_is_that_at_the_first_check(tmp_path: Path, release: str, interval: int, later: int, moved: int) -> None:
    start = BORN + 72 * HOUR - interval + later
    assert checked(tmp_path, [half()], start, release) == TransactionsOfDay(moved, 1 - moved)


def test_an_interval_that_broker_conf_names_counts_for_each_release(tmp_path: Path) -> None:
    start = BORN + 72 * HOUR - 4000
    conf = "transactionCheckInterval=4000"
    assert checked(tmp_path / "a", [half()], start, "4.9.8", conf) == TransactionsOfDay(0, 1)
    assert checked(tmp_path / "b", [half()], start + 1, "4.9.8", conf) == TransactionsOfDay(1, 0)


def test_a_half_message_that_was_asked_for_too_often_is_moved(tmp_path: Path) -> None:
    times = [half(("TRANSACTION_CHECK_TIMES", text)) for text in ("14", "15", "16", "many")]
    assert checked(tmp_path / "a", times, SOON) == TransactionsOfDay(2, 2)
    assert checked(tmp_path / "b", times, SOON, conf="transactionCheckMax=3") == TransactionsOfDay(3, 1)


@pytest.mark.parametrize(("release", "end"), [("4.9.8", of_4x), ("5.3.3", ended)])
def test_decided_ones_are_moved_if_the_32_first_operation_messages_do_not_say_so(tmp_path: Path, release: str, end) -> None:  # type: ignore[no-untyped-def]
    messages = [*(half() for _ in range(40)), *(end(n) for n in range(40))]
    assert checked(tmp_path / "a", messages, OLD, release) == TransactionsOfDay(8, 0)
    # Younger ones: the 33rd asks for more operation messages, and is decided.
    assert checked(tmp_path / "b", messages, SOON, release) == TransactionsOfDay(0, 0)


def test_an_open_one_that_is_young_enough_has_all_operation_messages_read(tmp_path: Path) -> None:
    young = half(born=BORN + 99 * HOUR)
    messages = [young, *(half() for _ in range(40)), *(ended(n) for n in range(1, 41))]
    assert checked(tmp_path / "a", messages) == TransactionsOfDay(0, 1)
    assert checked(tmp_path / "b", [*messages[1:-1], half(born=BORN + 99 * HOUR)]) == TransactionsOfDay(8, 1)


def test_one_operation_message_may_decide_many(tmp_path: Path) -> None:
    messages = [*(half() for _ in range(40)), ended(*range(40))]
    assert checked(tmp_path / "a", messages) == TransactionsOfDay(0, 0)
    assert checked(tmp_path / "b", messages, release="4.9.8") == TransactionsOfDay(40, 0)  # it takes "0,1,2," for no number


def test_another_tag_decides_nothing(tmp_path: Path) -> None:
    assert checked(tmp_path, [half(), half(), ended(0, tag="x"), ended(1)]) == TransactionsOfDay(1, 0)


def test_the_queue_waits_for_one_that_is_too_young_to_be_asked_for(tmp_path: Path) -> None:
    at = OLD - 30_000
    for name, born, immunity, moved in (
        ("a", OLD - 5999, (), 1),
        ("b", OLD - 6000, (), 2),
        ("c", OLD - 5999, (("CHECK_IMMUNITY_TIME_IN_SECONDS", "60"),), 2),  # it is written again
    ):
        messages = [half(), half(*immunity, born=born), half()]
        assert checked(tmp_path / name, messages, at) == TransactionsOfDay(moved, 3 - moved)
    messages = [half(), half(born=OLD - 5999), half()]
    assert checked(tmp_path / "d", messages, at, conf="transactionTimeOut=5999") == TransactionsOfDay(2, 1)


def test_both_queues_are_read_from_the_offsets_of_the_checking_group(tmp_path: Path) -> None:
    messages = [*(half() for _ in range(40)), *(ended(n) for n in range(40))]
    assert checked(tmp_path / "a", messages, offsets=(10, 0)) == TransactionsOfDay(8, 0)
    assert checked(tmp_path / "b", messages, offsets=(10, 10)) == TransactionsOfDay(0, 0)
    assert checked(tmp_path / "c", messages, offsets=(0, 10)) == TransactionsOfDay(10, 0)
    assert checked(tmp_path / "d", messages, offsets=(40, 40)) == TransactionsOfDay(0, 0)


def test_an_offset_beyond_the_operation_messages_has_none_read(tmp_path: Path) -> None:
    messages = [half(), half(born=BORN + 99 * HOUR), half(), ended(0, 1, 2)]
    assert checked(tmp_path / "a", messages, offsets=(0, 9)) == TransactionsOfDay(2, 1)
    assert checked(tmp_path / "b", messages, offsets=(9, 0)) == TransactionsOfDay(0, 0)
    assert checked(tmp_path / "c", messages, release="4.9.8", offsets=(9, 0)) is None  # some of 4.x begin at 0 again


@pytest.mark.parametrize(("conf", "moved"), [("brokerRole=SLAVE\nbrokerId=1", 0), ("brokerRole=SYNC_MASTER", 2)])
def test_a_slave_checks_nothing(tmp_path: Path, conf: str, moved: int) -> None:
    assert checked(tmp_path, [half(), half()], conf=conf) == TransactionsOfDay(moved, 2 - moved)


def test_transactions_in_rocksdb_are_not_known(tmp_path: Path) -> None:
    assert checked(tmp_path / "a", [half()], release="5.4.0") == TransactionsOfDay(1, 0)
    assert checked(tmp_path / "b", [], release="5.4.0") == TransactionsOfDay(0, 0)
    conf = "transRocksDBEnable=true"
    builder = StoreBuilder("5.4.0")
    builder.put(half())
    store = builder.write(tmp_path / "c")
    assert said(store, conf=conf) is None


def test_what_a_start_cuts_is_not_there(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3")
    records = [builder.put(half()) for _ in range(4)]
    store = builder.write(tmp_path)
    overwrite(store.root / "commitlog" / f"{0:020d}", records[2].at, b"\0\0\0\0\0\0\0\0")
    assert said(store) == TransactionsOfDay(2, 0)
