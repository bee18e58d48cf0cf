"""Damaged bytes that are too few for a bridge: the record before takes them in, or the one after is named to be sent again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.report.files.json_text import document
from store_io.base.errors import StoreError
from store_io.broker.message_verdict import parse_properties, properties_fault
from store_io.repair import repair_report, unsaved
from store_io.repair.log import log_plan
from store_io.repair.log.lengthen import crc_property, lengthened
from store_io.repair.repair_plan import POLICIES, RepairPlan
from store_io.repair.unsaved import cut_messages
from tests.support.answers.repaired import Served, plan_of, previewed, repaired, written
from tests.support.damage import invert_byte
from tests.support.stores.builders import INNER_BATCH, NEED_UNWRAP, Message, Record, Sizes, Store, StoreBuilder, inner_body
from tests.support.texts.json_schemas import faults

SMALL, LARGE = 2048, 8192
ENDS = {"ended": b"a\x01b\x02KEYS\x01k\x02", "open": b"a\x01b\x02KEYS\x01k", "none": b""}
PREFIX = 40  # bytes of a record before its properties' length, here


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("crc", [False, True])
def test_no_parser_sees_the_bytes_that_a_record_takes_in(ends: str, crc: bool) -> None:
    own = ENDS[ends]
    size = PREFIX + 2 + len(own) + 20 * crc
    record = size.to_bytes(4, "big") + bytes(PREFIX - 4) + (len(own) + 20 * crc).to_bytes(2, "big") + own
    record += crc_property(record) if crc else b""
    lead = ends == "open"
    for count in range(1, 300):
        longer = lengthened(record, PREFIX + 2, count)
        if count - lead in (1, 2) or count == 0:
            assert longer is None
            continue
        assert longer is not None and len(longer) == size + count == int.from_bytes(longer[:4], "big")
        properties = longer[PREFIX + 2 :]
        assert len(properties) == int.from_bytes(longer[PREFIX : PREFIX + 2], "big")
        assert longer[4:PREFIX] == record[4:PREFIX] and properties_fault(properties) == ""
        for old in (False, True):
            before = parse_properties(own.decode(), old)
            found = parse_properties(properties.decode(), old)
            assert (found.pop("__CRC32#", None) is not None) == crc and found == before
        assert not crc or longer.endswith(crc_property(longer[:-20]))


def test_a_record_that_cannot_take_them_in_stays_as_it_is() -> None:
    own = b"a\x01b\x02"
    whole = (4 + 2 + len(own) + 20).to_bytes(4, "big") + (len(own) + 20).to_bytes(2, "big") + own
    assert lengthened(whole + crc_property(whole), 6, 50) is not None
    assert lengthened(whole + crc_property(whole + b"x"), 6, 50) is None, "its checksum is wrong already"
    for room in (-1, 0, 1):  # a short says how long the properties are
        full = b"k\x01" + b"v" * ((1 << 15) - 1 - 50 - 3 - room) + b"\x02"
        record = (6 + len(full)).to_bytes(4, "big") + len(full).to_bytes(2, "big") + full
        assert (lengthened(record, 6, 50) is None) == (room < 0)


def joined(root: Path, release: str = "5.3.3", **more: Any) -> tuple[Store, list[Record], str]:
    """A log written in small segments and put together into large ones, as a slave of other settings has it: fillers inside."""
    builder = StoreBuilder(release, Sizes(segment=SMALL))
    records = [
        builder.put(Message(f"T{n % 3}", n % 2, bytes([n]) * (n % 90 + 30), tags="t", uniq=f"{n:032X}", **more))
        for n in range(90)
    ]
    store = builder.write(root, clean=False, spare=False)
    files = sorted((store.root / "commitlog").iterdir())
    for first in range(0, len(files), LARGE // SMALL):
        part = files[first : first + LARGE // SMALL]
        data = b"".join(path.read_bytes() for path in part).ljust(LARGE, b"\0")
        for path in part:
            path.unlink()
        part[0].write_bytes(data)
    for path in sorted((store.root / "consumequeue").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return store, records, store.broker_conf.replace(f"mappedFileSizeCommitLog={SMALL}", f"mappedFileSizeCommitLog={LARGE}")


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record], RepairPlan]:
    store, records, conf = joined(tmp_path_factory.mktemp("parted") / "store")
    return store.root, records, plan_of(store.root, "5.3.3", conf)


def test_salvage_keeps_every_message_behind_a_small_gap(parted: tuple[Path, list[Record], RepairPlan], tmp_path: Path) -> None:
    root, records, plan = parted
    done = repaired(root, tmp_path / "new", plan, "salvage")
    report = done.report
    assert done.exit_code == 0 and report.messages_after == len(records) and not report.dropped and not report.answered
    kinds = Counter(row.kind for row in report.bridges)
    assert kinds["property"] >= 3 and report.given_up.messages == 0
    assert faults("repair", document(written(done.report))) == []
    served = Served(tmp_path / "new", LARGE).messages
    assert sorted(at for _, at, _ in served.values()) == sorted(record.at for record in records), "each at its own place"
    assert {key: crc for key, (_, _, crc) in served.items()} == {
        (r.topic, r.queue_id, r.queue_offset): r.body_crc for r in records
    }
    assert previewed(root, tmp_path / "dry", plan, "salvage").report.bridges == report.bridges


def test_what_no_record_takes_in_costs_a_message_that_is_named_and_can_be_sent(
    parted: tuple[Path, list[Record], RepairPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, records, plan = parted
    monkeypatch.setattr(log_plan, "lengthened", lambda *_: None)
    done = repaired(root, tmp_path / "new", plan, "salvage")
    dropped, given_up = done.report.dropped, done.report.given_up
    assert done.exit_code == 0 and len(dropped) >= 3 and all(row.valid for row in dropped)
    assert (given_up.missing, given_up.cut, given_up.messages) == (0, len(dropped), len(dropped))
    assert done.report.lost.messages == len(dropped) == done.report.messages_before - done.report.messages_after
    assert done.unsaved is not None and done.unsaved.missing == () and done.unsaved.messages == len(dropped)
    rows = list(cut_messages(done.unsaved))
    by_place = {record.at: record for record in records}
    assert [row.phy_offset for row in rows] == [row.phy_offset for row in dropped]
    for row in rows:
        record = by_place[row.phy_offset]
        assert (row.stored_topic, row.stored_queue_id, row.queue_offset) == (record.topic, record.queue_id, record.queue_offset)
        assert row.why_not is None and row.key_hashes and json.dumps(vars(row))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_message_that_is_neither_kept_nor_listed_ends_the_repair(
    policy: str, parted: tuple[Path, list[Record], RepairPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _, plan = parted
    monkeypatch.setattr(log_plan, "lengthened", lambda *_: None)
    real = repair_report.left_out
    with monkeypatch.context() as patched, pytest.raises(StoreError, match="neither in it nor listed: a fault of this program"):
        patched.setattr(repair_report, "left_out", lambda begun: unsaved.LeftOut(real(begun).end + (1 << 40), set(), []))
        repaired(root, tmp_path / "new", plan, policy)
    assert not list(tmp_path.iterdir())


def test_a_list_that_lacks_a_message_ends_the_repair(
    parted: tuple[Path, list[Record], RepairPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _, plan = parted
    done = repaired(root, tmp_path / "new", plan, "broker")
    assert done.unsaved is not None and done.unsaved.cut == len({row.phy_offset for row in cut_messages(done.unsaved)})
    monkeypatch.setattr(unsaved, "scan_messages", lambda scan, source: iter(()))
    with pytest.raises(StoreError, match=r"only 0 of .* valid records that the new store does not hold can be listed"):
        list(cut_messages(done.unsaved))


def test_a_dropped_message_of_a_file_that_gets_another_name_is_listed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, conf = joined(tmp_path / "store")
    for path in sorted((store.root / "commitlog").iterdir()):
        path.rename(path.with_name(str(int(path.name))))
    monkeypatch.setattr(log_plan, "lengthened", lambda *_: None)
    done = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.3.3", conf), "salvage")
    dropped = done.report.dropped
    assert done.exit_code == 0 and len(dropped) >= 3 and done.unsaved is not None
    assert [row.phy_offset for row in cut_messages(done.unsaved)] == [row.phy_offset for row in dropped]


@pytest.mark.parametrize("number", [3, 1, 0, -1, -5])
def test_an_inner_batch_that_is_left_out_is_listed_whatever_number_it_says(number: int, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=LARGE), batch_topics=["Batches"])
    damaged = [builder.put(Message("T", 0, b"x" * 50, uniq=f"{n:032X}")) for n in range(6)][-1]
    left = [
        builder.put(
            Message(
                "Batches", 0, inner_body([b"a", b"b", b"c"]), sys_flag=NEED_UNWRAP | INNER_BATCH,
                properties=(("INNER_NUM", str(said)), ("INNER_BASE", str(3 * n))),
            )
        )
        for n, said in enumerate([number, number, -2 * number])
    ]  # fmt: skip
    store = builder.write(tmp_path / "store", clean=False, spare=False)
    log = store.root / "commitlog" / f"{0:020d}"
    invert_byte(log, damaged.at + 100, 0xFF)
    done = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.3.3", store.broker_conf), "broker")
    assert done.exit_code == 0 and done.unsaved is not None and done.report.given_up.cut >= len(left)
    assert {row.phy_offset for row in cut_messages(done.unsaved)} == {record.at for record in left}
