"""Messages of delay levels that come at once, later, or not at all, for each rule from both sides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from schemas.first_day import DelaysOfDay, StartMoment
from store_io.broker.releases import Setting, broker_rules
from store_io.first_day.delays import delays_of_day, delays_of_level
from store_io.kinds.delays import delay_kind, delay_runs
from store_io.model.evidence import Evidence
from tests.support import damage
from tests.support.answers import product
from tests.support.stores import corpus_tools
from tests.support.stores.builders import SCHEDULE_TOPIC, Message, Sizes, StoreBuilder

BEGIN = 1_700_000_000_000  # a whole second
LEVEL_3 = 10_000  # ms
SMALL = Sizes(segment=4096, queue_file=400)


def delayed(at: int = BEGIN, level: int = 3, body: bytes = b"later") -> Message:
    properties = (("DELAY", str(level)), ("REAL_TOPIC", "orders"), ("REAL_QID", "0"))
    return Message(SCHEDULE_TOPIC, level - 1, body, properties=properties, store_time=at)


def audited(root: Path, release: str, conf: str, now: int) -> Evidence:
    return product.audit(root, release, conf, start=StartMoment(now)).audit.evidence


def found(
    root: Path,
    messages: Sequence[Message],
    now: int,
    release: str = "5.3.3",
    *,
    conf: str = "",
    offsets: Mapping[int, int] | None = None,
    clean: bool = True,
    undispatched: int = 0,
    lost: str = "",
) -> DelaysOfDay | None:
    """lost: a file or folder that the copy lacks."""
    builder = StoreBuilder(release, SMALL)
    for message in messages:
        builder.put(message)
    table = {str(level): offset for level, offset in (offsets or {}).items()}
    config = {"delayOffset.json": json.dumps({"offsetTable": table})} if table else {}
    store = builder.write(root, config=config, clean=clean, undispatched=undispatched)
    if lost:
        shutil.rmtree(store.root / lost)
    evidence = audited(store.root, release, f"{store.broker_conf}\n{conf}\n", now)
    return delays_of_day(evidence, StartMoment(now))


def three(step: int = 1000) -> list[Message]:
    return [delayed(BEGIN + step * number) for number in range(3)]


def test_what_is_due_comes_at_once_and_the_first_that_is_not_stops_its_level(tmp_path: Path) -> None:
    assert found(tmp_path / "a", three(), BEGIN + LEVEL_3 - 1) == DelaysOfDay(later=3)
    assert found(tmp_path / "b", three(), BEGIN + LEVEL_3) == DelaysOfDay(at_once=1, later=2)
    assert found(tmp_path / "c", three(), BEGIN + LEVEL_3 + 2000) == DelaysOfDay(at_once=3)
    back = [delayed(BEGIN + 5000), delayed(BEGIN)]  # the second one is due, and waits behind the first
    assert found(tmp_path / "d", back, BEGIN + LEVEL_3 + 1000) == DelaysOfDay(later=2)
    levels = [delayed(level=3), delayed(level=18), delayed(level=1)]
    assert found(tmp_path / "e", levels, BEGIN + LEVEL_3) == DelaysOfDay(at_once=2, later=1)


def test_years_later_all_come(tmp_path: Path) -> None:
    assert found(tmp_path / "a", three(), BEGIN + 1000 * 86_400_000) == DelaysOfDay(at_once=3)


def test_a_time_further_off_than_the_delay_counts_as_now(tmp_path: Path) -> None:
    assert found(tmp_path / "a", three(), BEGIN - 1000) == DelaysOfDay(at_once=3)  # the clock was set back
    assert found(tmp_path / "b", three(), BEGIN) == DelaysOfDay(later=3)


def test_delivery_goes_on_from_the_offset_of_its_level(tmp_path: Path) -> None:
    late = BEGIN + 60_000
    assert found(tmp_path / "a", three(), late, offsets={3: 2}) == DelaysOfDay(at_once=1)
    assert found(tmp_path / "b", three(), late, offsets={2: 2}) == DelaysOfDay(at_once=3)
    assert found(tmp_path / "c", three(), late, offsets={3: 9}) == DelaysOfDay()
    assert found(tmp_path / "d", three(), late, "4.8.0", offsets={3: 9}) == DelaysOfDay()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("release", ["4.8.0", "4.9.8", "5.1.4", "5.5.0"])
def test_messages_without_entries_get_them_at_the_start(tmp_path: Path, release: str, clean: bool) -> None:
    now = BEGIN + LEVEL_3 + 1000
    hashed = release == "4.9.8" and not clean  # when load() of these releases dispatches, it knows no delay
    wanted = DelaysOfDay(at_once=3) if hashed else DelaysOfDay(at_once=2, later=1)
    if release == "5.1.4" and clean:
        wanted = DelaysOfDay()  # its start dispatches nothing after a clean exit
    assert found(tmp_path / "a", three(), now, release, lost="consumequeue", clean=clean) == wanted
    if not clean:
        assert found(tmp_path / "b", three(), now, release, undispatched=2, clean=False) == wanted


def test_a_message_without_a_body_by_release(tmp_path: Path) -> None:
    late = BEGIN + 60_000
    messages = [delayed(), delayed(body=b""), delayed(), delayed(level=5)]
    assert found(tmp_path / "a", messages, late, "4.9.8") == DelaysOfDay(at_once=4)
    assert found(tmp_path / "b", messages, late, "5.0.0") == DelaysOfDay(at_once=3, left_out=1)
    assert found(tmp_path / "c", messages, late, "5.3.2") == DelaysOfDay(at_once=3, left_out=1)
    assert found(tmp_path / "d", messages, late, "5.3.3") == DelaysOfDay(at_once=2, later=2, stuck_levels=(3,))
    assert found(tmp_path / "e", messages, BEGIN, "5.3.3") == DelaysOfDay(later=4)


def test_an_entry_without_its_record_is_left_out(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SMALL)
    records = [builder.put(message) for message in [delayed(), *[Message(body=b"x" * 900)] * 6, delayed()]]
    store = builder.write(tmp_path / "s")
    assert store.segment_of(records[0]) != store.segment_of(records[-1])
    damage.remove(store.segment_of(records[0]))
    late = BEGIN + 60_000
    day = delays_of_day(audited(store.root, "5.3.3", store.broker_conf, late), StartMoment(late))
    assert day in (DelaysOfDay(at_once=1, left_out=1), DelaysOfDay(at_once=1))  # its queue may begin behind it


def test_a_slave_delivers_nothing(tmp_path: Path) -> None:
    late = BEGIN + 60_000
    assert found(tmp_path / "a", three(), late, conf="brokerRole=SLAVE\nbrokerId=1") == DelaysOfDay(later=3)
    assert found(tmp_path / "b", three(), late, conf="brokerRole=SYNC_MASTER") == DelaysOfDay(at_once=3)


def test_the_table_of_delays_decides_by_the_entries_that_are_stored(tmp_path: Path) -> None:
    """Entries keep the times of their day; a level that the table lacks is read by nobody."""
    now = BEGIN + LEVEL_3 + 2000
    assert found(tmp_path / "a", three(), now, conf="messageDelayLevel=1s 5s 1h") == DelaysOfDay(at_once=3)
    assert found(tmp_path / "b", three(), now, conf="messageDelayLevel=1s 5s") == DelaysOfDay()


def test_times_in_an_extension_file_are_the_messages(tmp_path: Path) -> None:
    builder = StoreBuilder("4.9.8", SMALL, ext_bit_map=64)
    for message in three():
        builder.put(message)
    store = builder.write(tmp_path / "s")
    now = BEGIN + LEVEL_3 + 1000
    day = delays_of_day(audited(store.root, "4.9.8", store.broker_conf, now), StartMoment(now))
    assert day == DelaysOfDay(at_once=2, later=1)


def test_an_end_that_no_queue_reaches_is_not_read_up_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_kind, "MOST_ENTRIES", 3)
    late = BEGIN + 60_000
    assert found(tmp_path / "a", three(), late) == DelaysOfDay(at_once=3)
    assert found(tmp_path / "b", [*three(), delayed(level=1)], late) is None
    assert found(tmp_path / "c", [*three(), delayed(level=1)], late, offsets={3: 1}) == DelaysOfDay(at_once=3)


@pytest.mark.parametrize("name", ["MOST_RUNS", "LEAST_RUNS"])
def test_too_many_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    messages, late = three(5000), BEGIN + 60_000
    assert found(tmp_path / "a", messages, late) == DelaysOfDay(at_once=3)
    monkeypatch.setattr(delay_kind, "MOST_RUNS", 2)
    monkeypatch.setattr(delay_kind, "LEAST_RUNS", 2 if name == "LEAST_RUNS" else 9)
    assert found(tmp_path / "b", messages, late) is None


def test_few_entries_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_runs, "FETCHED", 7)
    many = [delayed(BEGIN + 100 * number) for number in range(50)]
    assert found(tmp_path / "a", many, BEGIN + LEVEL_3 + 2900) == DelaysOfDay(at_once=30, later=20)


def test_nothing_is_read_if_no_start_is_named(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SMALL)
    builder.put(delayed())
    store = builder.write(tmp_path / "s")
    evidence = product.audit(store.root, "5.3.3", store.broker_conf).audit.evidence
    assert evidence[delay_kind.DELAYS] is None and all(segment.delayed is None for segment in evidence.segments)


@pytest.mark.parametrize(("release", "stands"), [("5.3.2", False), ("5.3.3", True), ("5.5.0", True), ("5.5.1", False)])
def test_a_level_in_rocksdb_stands_at_an_offset_without_an_entry(release: str, stands: bool) -> None:
    rules = broker_rules(release, {"storeType": Setting("defaultRocksDB", "broker.conf", "defaultRocksDB")})
    assert delay_kind.stops_at_gaps(rules) == stands
    runs = np.array([(2, 1, 2, BEGIN, delay_runs.HAS_BODY)], delay_runs.DELAY_RUN)
    all_of_it = delay_kind.LevelQueue(3, 0, 3)
    found = delays_of_level(all_of_it, delay_kind.Delays((all_of_it,), runs, runs), rules, BEGIN)
    assert found == (DelaysOfDay(later=2, stuck_levels=(3,)) if stands else DelaysOfDay(at_once=2))
    behind = delay_kind.LevelQueue(3, 1, 3)
    assert delays_of_level(behind, delay_kind.Delays((behind,), runs, runs), rules, BEGIN) == DelaysOfDay(at_once=2)


def test_a_real_store_that_was_copied_while_its_broker_ran(tmp_path: Path) -> None:
    (case,) = (c for c in corpus_tools.cases() if c.name == "g5x-533-broker-live")
    now = 1_795_880_188_000
    evidence = product.audit(case.unpack(tmp_path), "5.3.3", case.broker_conf, start=StartMoment(now)).audit.evidence
    assert delays_of_day(evidence, StartMoment(now)) == DelaysOfDay(at_once=540)  # that many its broker delivered
