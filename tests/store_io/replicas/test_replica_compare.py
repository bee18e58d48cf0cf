"""One segment against the same place of another copy: expected values come from the records as they were made."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.layouts import commitlog_layout as layout
from schemas.rows import MappedFile
from store_io.broker.releases import broker_rules
from store_io.model import log_map as lm
from store_io.replicas.replica_compare import OtherCopy, ReplicaTask, compare_segment
from store_io.replicas.replica_parts import ReplicaPart, State
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text
from tests.support.damage import invert_byte
from tests.support.stores.builders import Message, Record, Sizes, StoreBuilder

SEGMENT = 4096
NAME = f"commitlog/{0:020d}"

Copies = tuple[Path, list[Record]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """A copy of one segment, and its messages, two queues in turn."""
    builder = StoreBuilder("5.3.3", Sizes(segment=SEGMENT))
    records = []
    for number in range(6):
        builder.clock += 10
        records.append(builder.put(Message("T", number % 2, bytes(100))))
    root = tmp_path_factory.mktemp("copies") / "one"
    builder.write(root)
    return root, records


def other_of(made: Copies, root: Path, **facts: object) -> OtherCopy:
    """Another copy with the same segment, all of it messages."""
    data = (made[0] / NAME).read_bytes()
    (root / NAME).parent.mkdir(parents=True)
    (root / NAME).write_bytes(data)
    log = lm.LogMap(lm.np.array([0, SEGMENT]), lm.np.array([lm.MESSAGE, lm.BEYOND]), 0, SEGMENT, SEGMENT, SEGMENT)
    known = {"equal": False, "files": (MappedFile(NAME, 0, SEGMENT),), "start": 0, "end": SEGMENT}
    return OtherCopy(1, StoreLocation(str(root)), starts=log.starts, kinds=log.kinds, **{**known, **facts})  # type: ignore[arg-type]


def compared(made: Copies, other: OtherCopy, **facts: object) -> ReplicaPart:
    root, records = made
    messages = ((0, records[-1].at + records[-1].size),)
    task = ReplicaTask(0, 0, NAME, 0, SEGMENT, StoreLocation(str(root)), messages, broker_rules(), (other,))
    return compare_segment(ReplicaTask(**{**vars(task), **facts}))  # type: ignore[arg-type]


def states(part: ReplicaPart) -> list[tuple[int, int, int]]:
    return [(piece.start, piece.messages, piece.states[1]) for piece in part.pieces]


def test_bounds_of_the_other_log_part_the_messages(made: Copies, tmp_path: Path) -> None:
    records = made[1]
    part = compared(made, other_of(made, tmp_path, start=records[1].at, end=records[4].at))
    assert states(part) == [(0, 1, State.EXPIRED), (records[4].at, 2, State.BEYOND)]
    piece = part.pieces[1]
    assert (piece.end, piece.topic, piece.queue_id, piece.queue_offset) == (records[5].at + records[5].size, "T", 0, 2)
    assert (piece.first_store_time, piece.last_store_time) == (records[4].store_time, records[5].store_time)
    beyond = {key: total for (found, key), total in part.totals.items() if found == (State.EQUAL, State.BEYOND)}
    assert {key: total.messages for key, total in beyond.items()} == {("T", 0): 1, ("T", 1): 1}


def test_what_cannot_be_read_there_is_not_known(made: Copies, tmp_path: Path) -> None:
    at = made[1][2].at
    assert states(compared(made, other_of(made, tmp_path, unreadable=((at + 5, at + 6),)))) == [(at, 1, State.UNKNOWN)]


def test_a_byte_that_differs_is_told_with_its_field(made: Copies, tmp_path: Path) -> None:
    at = made[1][3].at
    other = other_of(made, tmp_path)
    invert_byte((tmp_path / NAME), at + layout.STORE_TIMESTAMP_POSITION + 7, 1)
    (piece,) = compared(made, other).pieces
    where = at + layout.STORE_TIMESTAMP_POSITION + 7
    difference = piece.differences[1]
    assert (piece.start, difference.start, difference.end, difference.field) == (at, where, where + 1, "STORETIMESTAMP")


@pytest.mark.parametrize("window", [512, 1 << 16])
def test_the_window_changes_nothing(made: Copies, tmp_path: Path, window: int) -> None:
    other = other_of(made, tmp_path, end=made[1][2].at)
    assert states(compared(made, other, window_bytes=window)) == [(made[1][2].at, 4, State.BEYOND)]
    assert states(compared(made, other, decoder="reference")) == [(made[1][2].at, 4, State.BEYOND)]


def test_a_file_of_another_length_is_a_problem_of_the_copy_that_it_belongs_to(made: Copies, tmp_path: Path) -> None:
    other = other_of(made, tmp_path)
    (tmp_path / NAME).write_bytes(bytes(100))
    part = compared(made, other)
    assert (part.problem_copy, gap_text(part.problem)) == (1, f"{NAME}: 100 bytes, {SEGMENT:,} when the copy was listed")
    assert compared(made, other, size=77).problem_copy == 0
