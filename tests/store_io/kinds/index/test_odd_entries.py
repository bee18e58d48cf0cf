"""Entries without a place: counted beyond a bound, told by what they lead to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, EXTENT_UNWRITTEN, NOTE, Extent
from store_io.audit.audit_store import StoreAudit
from store_io.base.findings import Findings
from store_io.broker.message_verdict import VALID
from store_io.kinds.index import odd_entries
from store_io.kinds.index.odd_entries import NEAR_BYTES, MessageKeys, OddEntries
from store_io.log.entries.index_entries import IndexFileRef
from store_io.log.records.message_columns import Columns
from store_io.log.scan.followers import SegmentPlace
from store_io.log.scan.segment_scan import SegmentTask, _Scan
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES

FILE = IndexFileRef("index/f", 4096, 0, 900, 1, 60, 3, 100)
PLACE = SegmentPlace("commitlog/0", 1000, 500, 2000)
EXTENTS = [Extent(EXTENT_DAMAGED, 0, 300), Extent(EXTENT_UNWRITTEN, 300, 500)]


def no_message(_: int) -> Any:
    return SimpleNamespace(kind="damaged", message=None, size=0)


def no_columns(_: int) -> Columns:
    return Columns(1, True)


def told(entries: list[tuple[int, int, int, int]]) -> list[tuple[str, int]]:
    odd, findings = OddEntries([FILE], PLACE, MessageKeys(PLACE, no_message, no_columns)), Findings()
    odd.add(entries, findings)
    odd.judge(EXTENTS, findings)
    return [(f.code, f.count) for f in findings.ordered()]


def test_neighbours_of_one_kind_are_one_finding() -> None:
    entries = [(0, 1, 1010, 5), (0, 2, 1020, 5), (0, 4, 1030, 5), (0, 5, 1400, 5), (0, 6, 3000, 5), (0, 7, 10, 5)]
    found = [
        (Code.INDEX_ENTRY_DANGLING, 2),
        (Code.INDEX_ENTRY_DANGLING, 1),
        (Code.INDEX_ENTRY_BEYOND_END, 2),
        (Code.INDEX_ENTRY_DANGLING, 1),
    ]
    assert told(entries) == found


@pytest.mark.parametrize("number", [9, 10, 11, 100])
def test_what_is_too_much_is_not_compared_and_no_fault(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odd_entries, "MAX_ODD", 10)
    odd, findings = OddEntries([FILE], PLACE, MessageKeys(PLACE, no_message, no_columns)), Findings()
    odd.add([(0, n, 1010, 5) for n in range(1, number + 1)], findings)
    odd.judge(EXTENTS, findings)
    faults, passed = findings.found[:1], findings.found[1:]
    assert odd.gave_up == (number >= 10) and [(f.code, f.count, f.more) for f in faults] == [
        (Code.INDEX_ENTRY_DANGLING, min(number, 10), 0)
    ]
    said = f"{number - 10} {'entry' if number == 11 else 'entries'} and 0 keys of messages in commitlog/0 were not compared"
    assert [(f.weight, f.message.startswith(said)) for f in passed] == [(NOTE, True)] * (number > 10)


def test_any_number_of_repeated_keys_leaves_room_for_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odd_entries, "MAX_ODD", 10)
    keys = MessageKeys(PLACE, no_message, no_columns)
    monkeypatch.setattr(keys, "look_at", lambda phy: (frozenset([7]), 90))
    odd, findings = OddEntries([FILE], PLACE, keys), Findings()
    odd.add([(0, n, 1010, 7) for n in range(1, 101)], findings)
    odd.add([(0, 101, 3000, 5)], findings)
    odd.judge(EXTENTS, findings)
    assert not odd.gave_up and sum(f.count for f in findings.found if f.code == Code.INDEX_ENTRY_DUPLICATE) == 100
    assert [f.count for f in findings.found if f.code == Code.INDEX_ENTRY_BEYOND_END] == [1]


def test_the_keys_of_a_message_are_looked_up_once_and_of_this_segment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def verdict(position: int) -> Any:
        seen.append(position)
        return SimpleNamespace(kind=VALID, size=90, message=SimpleNamespace(topic="T", properties={}))

    monkeypatch.setattr(odd_entries, "index_keys", lambda _: ["k"])
    keys = MessageKeys(PLACE, verdict, no_columns)
    first = keys.at(1010)
    assert len(first) == 1 and keys.at(1010) == first and keys.at(999) == keys.at(1500) == odd_entries.NONE
    assert seen == [10]


def test_messages_that_are_decoded_together_have_the_same_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of an index whose order is lost lead to sound messages: each is judged as if it were the only one."""
    builder = StoreBuilder("5.4.0", replace(SIZES, segment=1 << 17))
    for number in range(300):
        keys, tags = (None, "a", "a b a", " x ")[number % 4], (None, "T")[number % 2]
        rolled_back = commitlog_layout.SYS_ROLLBACK if number % 7 == 0 else 0
        builder.put(Message("TopicA", 0, b"x" * 40, uniq=f"{number:032X}", keys=keys, tags=tags, sys_flag=rolled_back))
    store = builder.write(tmp_path / "store")
    request = AuditRequest("store", StoreLocation(str(store.root)), store.release, store.broker_conf)
    task = next(task for task in StoreAudit(request).first_tasks() if isinstance(task, SegmentTask))
    with open_source(task.location).open(task.path) as file:
        scan = _Scan(task, open_source(task.location), file, None)
        place = SegmentPlace(task.path, 0, task.size, task.log_end)
        keys = MessageKeys(place, scan._verdict_at, lambda at: scan._messages_from(at, NEAR_BYTES))
        around = keys.look_around(0)
        assert len(around) > 200 and around == {at: keys.look_at(at) for at in around}
        entries, number = [], 0
        for at, (hashes, _) in list(around.items())[5:]:
            for entry in ((at, hash_) for hash_ in (*hashes, 7)):
                entries.append((0, number := number + 1, *entry))
            entries.append((0, number := number + 1, at + 9, 7))  # into the middle of a message
        findings = []
        looks: list[int] = []
        real = MessageKeys.look_at
        monkeypatch.setattr(MessageKeys, "look_at", lambda self, at: (looks.append(at), real(self, at))[1])
        for near in (len(entries), 4):
            monkeypatch.setattr(odd_entries, "NEAR_ENTRIES", near)
            odd, found = OddEntries([FILE], place, keys), Findings()
            odd.add(entries, found)
            odd.judge([Extent(EXTENT_MESSAGE, 0, task.size)], found)
            findings.append((found.ordered(), len(looks)))
            looks.clear()
    (one, many), (other, few) = findings
    assert one == other and {f.code for f in one} >= {Code.INDEX_ENTRY_WRONG, Code.INDEX_ENTRY_DUPLICATE}
    assert many > 200 and few < many / 4, "only those rolled back are looked at one by one"
