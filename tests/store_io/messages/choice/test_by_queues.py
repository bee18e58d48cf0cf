"""What ConsumeQueue entries leave to be read holds what the whole log holds, or the whole log is read, with the reason."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store_io.messages.choice import by_queues
from store_io.messages.choice.by_queues import QueueChoice, choose_by_queues
from store_io.messages.message_filter import ALL, MessageFilter, Range
from store_io.messages.message_rows import scan_messages
from store_io.messages.open_store import OpenStore, open_store
from store_io.messages.scans import MessageScan
from store_io.source.byte_source import StoreLocation
from tests.support.damage import invert_byte, overwrite
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

SEGMENT, QUEUE_FILE = 2048, 200  # ten entries a file
COLUMNS = ("phy_offset", "topic", "queue_id", "queue_offset", "status")
ROWS = 120
FAR = f"consumequeue/TopicA/0/{(1 << 62) // QUEUE_FILE * QUEUE_FILE:020d}"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Queues 0 and 1 of TopicA alternate; queue 2 has a message in every fortieth place, and three near the end."""
    builder = StoreBuilder("5.3.3", Sizes(segment=SEGMENT, queue_file=QUEUE_FILE))
    for number in range(ROWS):
        rare = number % 40 == 0 or number in (100, 101, 102)
        builder.put(Message("TopicA", 2 if rare else number % 2, b"b" * (10 + number % 7), keys=f"k{number}"))
    return builder.write(tmp_path_factory.mktemp("queues") / "store")


@pytest.fixture(autouse=True)
def small_logs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_queues, "SMALL_LOG_BYTES", 0)
    monkeypatch.setattr(by_queues, "ENTRY_BYTES", 1)


def opened(root: Path) -> OpenStore:
    return open_store(StoreLocation(str(root)), "5.3.3", f"mappedFileSizeCommitLog={SEGMENT}")


def rows(store: OpenStore, wanted: MessageFilter, choice: QueueChoice) -> list[dict[str, Any]]:
    """What reading no more than the choice finds."""
    found = []
    for file in store.segments():
        if choice.ends is not None and file.path not in choice.ends:
            continue
        end = None if choice.ends is None else choice.ends[file.path]
        scan = MessageScan(store.location, "", 0, 0, COLUMNS, wanted, rules=store.rules).of(file)
        scan = replace(scan, wanted=wanted.narrowed(MessageFilter(phy_offsets=(None, end))))
        found += [row for batch in scan_messages(scan) for row in batch.to_pylist()]
    return found


def chosen(store: OpenStore, queue: int | tuple[int, ...], offsets: Range = ALL, most: int | None = None) -> QueueChoice:
    wanted = MessageFilter(frozenset({"TopicA"}), frozenset({queue} if isinstance(queue, int) else queue), offsets)
    choice = choose_by_queues(store, wanted, store.segments(), most)
    whole, found = rows(store, wanted, QueueChoice()), rows(store, wanted, choice)
    if most is not None and len(found) >= choice.enough:
        whole, found = whole[:most], found[:most]
    assert found == whole or len(found) < choice.enough
    return choice


def queue_file(root: Path, queue: int, number: int) -> Path:
    return root / "consumequeue" / "TopicA" / str(queue) / f"{number * QUEUE_FILE:020d}"


def put_entry(root: Path, queue: int, number: int, phy_offset: int, size: int, code: int = 0) -> None:
    path = queue_file(root, queue, number // 10)
    overwrite(path, number % 10 * 20, struct.pack(">qiq", phy_offset, size, code))


@pytest.fixture
def copy(base: Store, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base.root, tmp_path / "copy"))


def test_the_segments_of_the_entries_are_read_up_to_the_last_of_them(base: Store) -> None:
    store = opened(base.root)
    mine = [r for r in base.records if r.queue_id == 2]
    choice = chosen(store, 2, (3, 5))
    assert choice.ends == {f"commitlog/{mine[3].at // SEGMENT * SEGMENT:020d}": mine[4].at + 1}
    assert choice.narrows(store.segments()) and not choice.refused and not choice.enough
    assert len(chosen(store, 0, (7, 8)).ends or ()) == 1


def test_what_goes_beyond_the_queue_is_looked_for_in_the_rest_of_the_log(base: Store) -> None:
    store = opened(base.root)
    last = [r for r in base.records if r.queue_id == 2][-1].at
    after = [f.path for f in store.segments() if f.start + f.size > last]
    for low in (6, 1 << 40):
        assert chosen(store, 2, (low, None)).ends == dict.fromkeys(after)
    assert set(chosen(store, 2, (0, None)).ends or ()) > set(after)
    assert chosen(store, 0).narrows(store.segments()) is False  # a message in each segment


def test_no_more_entries_are_looked_at_than_are_wanted(base: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(base.root)
    choice = chosen(store, 0, (5, None), most=3)
    assert choice.enough == 3 and len(choice.ends or ()) == 1
    monkeypatch.setattr(by_queues, "MOST_ENTRIES", 3)
    assert chosen(store, 0, (5, None), most=4) == QueueChoice()
    assert chosen(store, 0, (5, 8)).ends and chosen(store, 0, (5, 9)) == QueueChoice()
    monkeypatch.setattr(by_queues, "MOST_ENTRIES", 100)
    monkeypatch.setattr(by_queues, "ENTRY_BYTES", 1 << 20)  # so short a log is sooner read
    assert chosen(store, 0, (5, 8)) == QueueChoice()
    monkeypatch.setattr(by_queues, "ENTRY_BYTES", 1)
    monkeypatch.setattr(by_queues, "MOST_BYTES", 100)
    assert chosen(store, 0, (5, None), most=3) == QueueChoice()
    monkeypatch.setattr(by_queues, "SMALL_LOG_BYTES", 1 << 20)
    assert chosen(store, 0, (5, 8)) == QueueChoice()


def emptied(root: Path) -> None:
    put_entry(root, 0, 21, 0, 0)


def negative(root: Path) -> None:
    put_entry(root, 0, 21, 300, -1)


def elsewhere(root: Path) -> None:
    put_entry(root, 0, 21, 1 << 40, 100)


def stale(root: Path) -> None:
    """Entry 21 leads where entry 22 does."""
    path = queue_file(root, 0, 2)
    overwrite(path, 20, path.read_bytes()[40:60])


def other_size(root: Path) -> None:
    path = queue_file(root, 0, 2)
    invert_byte(path, 31, 1)


def no_file(root: Path) -> None:
    queue_file(root, 0, 2).unlink()


def no_queue(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "TopicA" / "0")


def nothing_in_it(root: Path) -> None:
    for path in (root / "consumequeue" / "TopicA" / "0").iterdir():
        path.write_bytes(bytes(QUEUE_FILE))


def far_file(root: Path) -> None:
    """A name that a walk of all entries up to it would not end at."""
    (root / FAR).write_bytes(bytes(QUEUE_FILE))


def no_number(root: Path) -> None:
    """The largest physical offset lies inside of the file."""
    folder = root / "consumequeue" / "TopicA" / "0"
    for path in folder.iterdir():
        path.unlink()
    (folder / f"{(1 << 63) - 8:020d}").write_bytes(bytes(QUEUE_FILE))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (emptied, "entry 21 of topic TopicA, queue 0 is empty, and entry 22 is not"),
        (negative, "entry 21 of topic TopicA, queue 0 is not valid"),
        (elsewhere, "entry 22 of topic TopicA, queue 0 leads no further than entry 21"),
        (stale, "entry 22 of topic TopicA, queue 0 leads no further than entry 21"),
        (other_size, "entry 21 of topic TopicA, queue 0 leads to no such message"),
        (
            no_file,
            "consumequeue/TopicA/0/00000000000000000600 does not begin where consumequeue/TopicA/0/00000000000000000200 ends",
        ),
        (no_queue, "there is none of topic TopicA, queue 0"),
        (nothing_in_it, "that of topic TopicA, queue 0 holds no entry before 20"),
        (far_file, f"{FAR} does not begin where consumequeue/TopicA/0/00000000000000001000 ends"),
        (no_number, "no broker gives a file the name of consumequeue/TopicA/0/09223372036854775800"),
    ],
)
def test_entries_that_are_not_sound_have_the_whole_log_read(copy: Path, harm: Callable[[Path], None], sentence: str) -> None:
    harm(copy)
    assert chosen(opened(copy), 0, (20, 24)) == QueueChoice(refused=sentence)


def test_a_damaged_message_has_the_whole_log_read(base: Store, copy: Path) -> None:
    record = [r for r in base.records if r.queue_id == 2][3]
    path = copy / "commitlog" / f"{record.at // SEGMENT * SEGMENT:020d}"
    invert_byte(path, record.at % SEGMENT + 90, 4)
    assert chosen(opened(copy), 2, (3, 4)).refused == "entry 3 of topic TopicA, queue 2 leads to no such message"
    assert chosen(opened(copy), 2, (4, 5)).ends  # behind the damage, and so plausible: `chosen` has compared its status


def test_a_log_without_its_begin_and_a_queue_without_its_own(base: Store, copy: Path) -> None:
    """Entries that lead below the log are passed over; messages before a queue's first entry are looked for."""
    for path in sorted((copy / "commitlog").iterdir())[:2]:
        path.unlink()
    store = opened(copy)
    assert chosen(store, 0, (0, 9)).ends is not None
    queue_file(copy, 0, 0).unlink()
    queue_file(copy, 0, 1).unlink()
    first = next(r.at for r in base.records if r.queue_id == 0 and r.queue_offset == 20)
    ends = chosen(opened(copy), 0, (0, 3)).ends
    assert ends is not None and max(end or 0 for end in ends.values()) == first + 1
    assert set(ends) == {f.path for f in store.segments() if f.start <= first}


@pytest.fixture
def expired(copy: Path) -> Path:
    """A log whose first three segments are gone, as retention leaves it: its queues begin further back."""
    for path in sorted((copy / "commitlog").iterdir())[:3]:
        path.unlink()
    return copy


def test_messages_that_are_gone_are_not_among_the_first_few(base: Store, expired: Path) -> None:
    store = opened(expired)
    first = next(r.queue_offset for r in base.records if r.queue_id == 0 and r.at >= 3 * SEGMENT)
    for queues in ((0,), (0, 2)):
        for offsets in (ALL, (1, None), (first - 1, None)):
            choice = chosen(store, queues, offsets, most=3)
            assert choice.enough == 3 and choice.narrows(store.segments()) and min(choice.named) >= 3 * SEGMENT
            assert len(rows(store, MessageFilter(frozenset({"TopicA"}), frozenset(queues), offsets), choice)) >= 3
    for at in range(first):
        put_entry(expired, 0, at, at * 100, 0)  # what was never valid is not passed over
    assert chosen(opened(expired), 0, most=3).refused


def test_an_entry_that_leads_below_the_log_hides_no_message(base: Store, expired: Path) -> None:
    """Damage to any one entry, the first that leads into the log and the last one too."""
    mine = [r for r in base.records if r.queue_id == 0]
    first = next(r.queue_offset for r in mine if r.at >= 3 * SEGMENT)
    for number in (first, first + 1, first + 4, len(mine) - 1):
        root = Path(shutil.copytree(expired, expired.parent / str(number)))
        put_entry(root, 0, number, 3 * SEGMENT - 1, mine[number].size)
        for offsets in (
            (number, number + 1),
            (number, number + 2),
            (number - 1, number + 1),
            (number, None),
            (number + 1, None),
            ALL,
        ):
            for most in (None, 1, 3):
                chosen(opened(root), 0, offsets, most)


def test_whatever_is_wrong_nothing_is_missed(base: Store, tmp_path: Path) -> None:
    """Random damage to queues and log, random questions; `chosen` compares each with the whole log."""
    chance = random.Random(7)
    narrowed = refused = 0
    for turn in range(12):
        root = Path(shutil.copytree(base.root, tmp_path / str(turn)))
        files = sorted(root.glob("consumequeue/TopicA/*/*"))
        logs = sorted(root.glob("commitlog/*"))
        for _ in range(turn % 6):
            path = chance.choice(files if chance.random() < 0.7 else logs)
            if not path.exists() or chance.random() < 0.15:
                path.unlink(missing_ok=True)
                continue
            data = bytearray(path.read_bytes())
            at, size = chance.randrange(len(data)), chance.choice([1, 8, 20, 60])
            data[at : at + size] = (
                bytes(min(size, len(data) - at)) if chance.random() < 0.5 else chance.randbytes(min(size, len(data) - at))
            )
            path.write_bytes(data[: chance.choice([len(data), len(data), len(data) // 2])] if path in files else data)
        store = opened(root)
        for _ in range(12):
            low, size = chance.choice([None, chance.randrange(70)]), chance.choice([None, 1, 5, 30])
            offsets = (low, None if size is None else (low or 0) + size)
            choice = chosen(store, chance.randrange(3), offsets, chance.choice([None, 1, 4, 11]))
            narrowed += choice.narrows(store.segments())
            refused += bool(choice.refused)
    assert narrowed > 40 and refused > 15
