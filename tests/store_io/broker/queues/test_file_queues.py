"""Queues that lie packed are the queues that were put in, whoever changes them."""

from __future__ import annotations

import pytest

from store_io.base import packed
from store_io.broker.queues.file_queues import FileQueues
from store_io.broker.queues.queue_state import NOTHING_SCANNED, QueueFile, QueueState
from store_io.broker.releases import broker_rules
from tests.support.handmade.queue_states import Disk, run

RULES, DISK = broker_rules(), Disk({})


def queue(number: int) -> QueueState:
    return QueueState(("T", number), False, f"consumequeue/T/{number}", RULES, DISK, [QueueFile("f", 0, 1000, 80)])


def made(many: bool) -> FileQueues:
    found = FileQueues(RULES, DISK, [])
    found.load(((("T", n), queue(n)) for n in range(0, 20, 2)), many, NOTHING_SCANNED)
    return found


def said(queues: FileQueues) -> list[object]:
    return sorted((q.key, q.max_phy, q.max_offset, [p.first_phy for p in q.pieces]) for q in queues)


@pytest.mark.parametrize("many", [False, True])
def test_a_change_is_kept_and_a_snapshot_is_not_touched(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_PART", 3)
    monkeypatch.setattr(packed, "_OPEN", 1)
    queues = made(many)
    for one in queues.changing():
        one.max_phy = one.key[1]
        queues.look(("T", (one.key[1] + 12) % 20))  # another part is opened meanwhile
    before = queues.snapshot({})
    found = queues.find(("T", 4))
    assert found is not None and queues.find(("T", 5)) is None and queues.look(("T", 5)) is None
    found.put_run("scan", 0, run(4, 1, 500))
    queues.add(queue(5))
    assert len(queues) == 11 and queues["T", 4].max_phy == 510
    with pytest.raises(KeyError):
        queues["T", 7]
    after = queues.snapshot(before)
    assert {key: one.max_phy for key, one in before.items()} == {("T", n): n for n in range(0, 20, 2)}
    assert {key: one.max_phy for key, one in after.items()} == {
        ("T", n): {4: 510, 5: -1}.get(n, n) for n in (*range(0, 20, 2), 5)
    }
    assert [piece.first_phy for piece in queues["T", 4].pieces] == [500] and list(before["T", 4].pieces) == []


def test_a_pass_that_ends_early_keeps_what_it_changed() -> None:
    queues = made(True)
    for one in queues.changing():
        one.max_phy = 77
        if one.key[1] == 6:
            break
    assert [one.max_phy for one in queues] == [77] * 4 + [-1] * 6


def test_queues_that_dispatch_makes_are_packed_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FEW", 5)
    queues, plain = made(False), made(False)
    wanted = said(plain)
    assert said(queues) == wanted and queues.snapshot({}).packs and len(queues) == 10


@pytest.mark.parametrize("few", [1, 4, 100])
def test_queues_that_are_asked_for_and_made_one_after_the_other(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are packed before the last one is changed."""
    monkeypatch.setattr(packed, "FEW", few)
    monkeypatch.setattr(packed, "_PART", 3)
    monkeypatch.setattr(packed, "_OPEN", 1)
    queues = made(few < 100)
    for at in range(3):
        for number in range(25) if at else range(24, -1, -1):
            found = queues.find(("T", number))
            if found is None:
                assert at == 0 and number % 2 or number >= 20
                found = queue(number)
                queues.add(found)
            found.put_run("scan", at, run(4 + at, 1, 500 + 100 * at))
        before = queues.snapshot({})
    assert len(queues) == len(before) == 25
    wanted = [(first, (4 + at, first, first)) for at, first in enumerate((500, 600, 700))]
    assert all([(piece.first_phy, piece.of_run) for piece in one.pieces] == wanted for one in queues)
    assert all(said_of(one) == said_of(queues[key]) for key, one in before.items())


def said_of(one: QueueState) -> object:
    return one.key, one.max_phy, one.max_offset, one.files, [(p.start, p.count, p.first_phy, p.of_run) for p in one.pieces]


def test_few_queues_that_hold_much_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FEW_INSIDE", 11)
    queues = made(False)
    queues.close()
    assert not queues.are_many()  # ten files
    for number in range(20):
        queues["T", 4].put_run("scan", number, run(4 + number, 1, 500 + 100 * number))
    queues.close()
    assert queues.are_many() and len(queues["T", 4].pieces) == 20
