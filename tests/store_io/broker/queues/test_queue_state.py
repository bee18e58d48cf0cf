"""One queue in the broker's memory, put by put (recovery.md 7.2, 7.3; pitfalls P2, P4, P6)."""

from __future__ import annotations

import pytest

from store_io.broker.queues import queue_state
from store_io.broker.queues.queue_minimum import correct_minimum
from store_io.broker.queues.queue_state import NeedCut
from tests.support.handmade.queue_states import FILE_BYTES, queue, run


def test_a_run_at_the_cursor_is_appended_across_files() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10), (200, 10)], wrote=3, max_phy=210)
    state.put_run(None, 0, run(3, 4, 300))
    assert (state.max_offset, state.max_phy) == (7, 610)
    assert [(f.start, f.wrote) for f in state.files] == [(0, FILE_BYTES), (FILE_BYTES, 40)]


def test_a_maximum_inside_a_run_asks_for_a_cut_there() -> None:
    state = queue("5.3.3", [(0, 10), (100, 10)], wrote=2, max_phy=110)
    with pytest.raises(NeedCut) as asked:
        state.put_run(None, 0, run(0, 4, 0))
    assert asked.value.phy_offset == 110


@pytest.mark.parametrize(
    ("entries", "put", "end"),
    [
        (2, (0, 2, 0), (2, 110)),  # it ends at the maximum: ignored
        (1, (3, 2, 100), (3, 210)),  # ahead of the cursor: entries 1 and 2, for queue offsets 3 and 4
        (3, (1, 4, 400), (5, 710)),  # behind the cursor: queue offsets 1 and 2 ignored, 3 and 4 appended
        (3, (0, 1, 400), (4, 410)),  # queue offset 0 is appended wherever the queue ends
    ],
)
def test_a_run_elsewhere_than_at_the_end(entries: int, put: tuple[int, int, int], end: tuple[int, int]) -> None:
    state = queue("5.3.3", [(0, 10), (100, 10), (200, 10)][:entries], wrote=entries, max_phy=100 * entries - 90)
    state.put_run(None, 0, run(*put))
    assert (state.max_offset, state.max_phy) == end


def test_a_new_queue_is_filled_with_blanks_below_its_first_offset() -> None:
    state = queue("5.3.3")
    state.put_run(None, 0, run(8, 1, 400))
    assert [(f.start, f.wrote) for f in state.files] == [(FILE_BYTES, 80)]
    assert (state.min_offset, state.max_offset) == (8, 9)
    correct_minimum(state, 0)
    assert state.min_offset == 8


def test_truncation_keeps_slot_zero_of_the_last_file_untested() -> None:
    state = queue("5.3.3", [(i * 100, 10) for i in range(5)], [], wrote=5, max_phy=410)
    state.truncate_logic(1000)
    assert (state.max_offset, state.max_phy) == (6, 0)  # P6: a phantom entry


def test_truncation_deletes_files_that_begin_at_or_beyond_the_end() -> None:
    state = queue("5.3.3", [(i * 100, 10) for i in range(5)], [(500, 10), (600, 10)], wrote=7, max_phy=610)
    state.truncate_logic(350)
    assert (state.max_offset, state.max_phy) == (4, 310)
    assert state.deleted == [f"q/{FILE_BYTES:020d}"]


@pytest.mark.parametrize("together", [1, 256])
def test_stale_entries_behind_the_appended_ones_come_back_with_truncation(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_state, "CHUNK_ENTRIES", together)  # the number of entries read at first
    state = queue("5.3.3", [(0, 10), (0, 0), (0, 0), (150, 10), (170, 10)], wrote=1, max_phy=10)
    state.put_run(None, 0, run(1, 2, 100))
    state.truncate_logic(1000)
    assert (state.max_offset, state.max_phy) == (5, 180)  # P5
