"""One queue in the broker's memory, put by put (recovery.md 7.2 to 7.4; pitfalls P2, P4, P6, P11)."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.rows import RUN_DTYPE, MappedFile
from store_io.formats.consumequeue_reader import ENTRY_DTYPE
from store_io.rules.queue_state import NeedCut, QueueRefusal, QueueState
from store_io.rules.releases import Setting, broker_rules

FILE_ENTRIES = 5
FILE_BYTES = FILE_ENTRIES * 20


class Disk:
    """Queue files as lists of (phy_offset, size)."""

    def __init__(self, files: dict[str, list[tuple[int, int]]]):
        self.files = files

    def __call__(self, path: str, first: int, count: int) -> np.ndarray:
        rows = np.zeros(FILE_ENTRIES, ENTRY_DTYPE)
        for i, (phy, size) in enumerate(self.files[path]):
            rows[i]["phy_offset"], rows[i]["size"] = phy, size
        return rows[first : first + count]


def queue(release: str = "5.3.3", *files: list[tuple[int, int]], wrote: int = 0, max_phy: int = -1) -> QueueState:
    """A queue whose files hold these entries, after recover() found `wrote` entries in all."""
    rules = broker_rules(release, {"mappedFileSizeConsumeQueue": Setting(FILE_BYTES, "broker.conf")})
    names = {f"q/{i * FILE_BYTES:020d}": entries for i, entries in enumerate(files)}
    state = QueueState(("T", 0), False, "q", rules, Disk(names))
    state.set_recovered([MappedFile(name, i * FILE_BYTES, FILE_BYTES) for i, name in enumerate(names)], wrote * 20, max_phy)
    return state


def run(queue_offset: int, records: int, first_phy: int, size: int = 10) -> np.void:
    row = np.zeros(1, RUN_DTYPE)[0]
    row["queue_offset"], row["records"], row["messages"] = queue_offset, records, records
    row["first_phy_offset"], row["last_phy_offset"] = first_phy, first_phy + (records - 1) * 100
    row["first_size"] = row["last_size"] = size
    return row


def test_a_run_at_the_cursor_is_appended_across_files() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10), (200, 10)], wrote=3, max_phy=210)
    state.put_run(None, 0, run(3, 4, 300))
    assert (state.max_offset, state.max_phy) == (7, 610)
    assert [(f.start, f.wrote) for f in state.files] == [(0, FILE_BYTES), (FILE_BYTES, 40)]


def test_what_ends_at_or_below_the_maximum_is_ignored() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10)], wrote=2, max_phy=110)
    state.put_run(None, 0, run(0, 2, 0))
    assert (state.max_offset, state.max_phy) == (2, 110)


def test_a_maximum_inside_a_run_asks_for_a_cut_there() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10)], wrote=2, max_phy=110)
    with pytest.raises(NeedCut) as asked:
        state.put_run(None, 0, run(0, 4, 0))
    assert asked.value.phy_offset == 110


def test_a_run_ahead_of_the_cursor_is_appended_shifted() -> None:
    state = queue("5.3.3", [(0, 10)], wrote=1, max_phy=10)
    state.put_run(None, 0, run(3, 2, 100))
    assert state.max_offset == 3  # entries 1 and 2, for queue offsets 3 and 4


def test_a_run_behind_the_cursor_is_ignored_up_to_it() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10), (200, 10)], wrote=3, max_phy=210)
    state.put_run(None, 0, run(1, 4, 400))
    assert (state.max_offset, state.max_phy) == (5, 710)  # queue offsets 1 and 2 ignored, 3 and 4 appended


def test_queue_offset_zero_is_appended_wherever_the_queue_ends() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10), (200, 10)], wrote=3, max_phy=210)
    state.put_run(None, 0, run(0, 1, 400))
    assert (state.max_offset, state.max_phy) == (4, 410)


def test_a_new_queue_is_filled_with_blanks_below_its_first_offset() -> None:
    state = queue("5.3.3")
    state.put_run(None, 0, run(8, 1, 400))
    assert [(f.start, f.wrote) for f in state.files] == [(FILE_BYTES, 80)]
    assert (state.min_offset, state.max_offset) == (8, 9)
    state.correct_min(0)
    assert state.min_offset == 8


def test_an_old_broker_may_offer_blank_slots_when_the_log_begins_at_zero() -> None:
    state = queue("4.9.8")
    state.put_run(None, 0, run(8, 1, 400))
    state.correct_min(0)
    assert state.min_offset == 5  # P11: slot 0 of the file passes, its physical offset is 0


def test_truncation_keeps_slot_zero_of_the_last_file_untested() -> None:
    state = queue("5.3.3", [(i * 100, 10) for i in range(5)], [], wrote=5, max_phy=410)
    state.truncate_logic(1000)
    assert (state.max_offset, state.max_phy) == (6, 0)  # P6: a phantom entry


def test_truncation_deletes_files_that_begin_at_or_beyond_the_end() -> None:
    state = queue("5.3.3", [(i * 100, 10) for i in range(5)], [(500, 10), (600, 10)], wrote=7, max_phy=610)
    state.truncate_logic(350)
    assert (state.max_offset, state.max_phy) == (4, 310)
    assert state.deleted == [f"q/{FILE_BYTES:020d}"]


def test_stale_entries_behind_the_appended_ones_come_back_with_truncation() -> None:
    state = queue("5.3.3", [(0, 10), (0, 0), (0, 0), (150, 10)], wrote=1, max_phy=10)
    state.put_run(None, 0, run(1, 2, 100))
    state.truncate_logic(1000)
    assert (state.max_offset, state.max_phy) == (4, 160)  # P5


@pytest.mark.parametrize(("release", "throws"), [("5.1.4", True), ("5.4.0", True), ("5.5.0", False), ("4.9.8", False)])
def test_an_empty_last_file_stops_5_0_to_5_4(release: str, throws: bool) -> None:
    state = queue(release, [(i * 100, 10) for i in range(5)], [], wrote=5, max_phy=410)
    if throws:
        with pytest.raises(QueueRefusal, match="holds no entry"):
            state.correct_min(0)
    else:
        state.correct_min(0)
        assert state.min_offset == 0


@pytest.mark.parametrize("release", ["4.8.0", "5.3.3"])
@pytest.mark.parametrize("min_phy", [0, 100, 150, 400])
def test_the_minimum_is_the_first_entry_at_or_above_the_logs(release: str, min_phy: int) -> None:
    state = queue(release, [(i * 100, 10) for i in range(5)], wrote=5, max_phy=410)
    state.correct_min(min_phy)
    assert state.min_offset == -(-min_phy // 100)


def test_a_queue_of_expired_entries_only() -> None:
    new, old = (queue(release, [(i * 100, 10) for i in range(5)], wrote=5, max_phy=410) for release in ("5.3.3", "4.9.8"))
    for state in (new, old):
        state.correct_min(1000)
    assert (new.min_offset, old.min_offset) == (5, 0)  # P17
