"""The index files in the broker's memory, run by run (recovery.md 8)."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.rows import INDEX_RUN_DTYPE
from store_io.broker.index_state import IndexFileState, IndexPiece, IndexState, NeedMarks
from store_io.broker.releases import Setting, broker_rules

MOST = 5  # maxIndexNum: four entries a file


def index(*files: IndexFileState) -> IndexState:
    state = IndexState(broker_rules("5.3.3", {"maxIndexNum": Setting(MOST, "broker.conf")}))
    state.files = list(files)
    return state


def run(keys: int, first: int, last: int) -> np.void:
    """A run whose keys belong to messages at physical offsets from first to last; times are ten times the offsets."""
    row = np.zeros(1, INDEX_RUN_DTYPE)[0]
    row["keys"], row["first_phy_offset"], row["last_phy_offset"] = keys, first, last
    row["first_key_phy_offset"], row["last_key_phy_offset"] = first, last
    row["first_key_store_time"], row["last_key_store_time"] = first * 10, last * 10
    return row


def header(file: IndexFileState) -> tuple[int, int, int, int, int]:
    return file.begin_phy, file.end_phy, file.begin_time, file.end_time, file.stored_count


def test_a_run_fills_the_header_of_a_new_file() -> None:
    state = index()
    state.put_run("s", 0, run(3, 100, 300), {})
    (file,) = state.files
    assert header(file) == (100, 300, 1000, 3000, 4) and not file.full
    assert file.pieces == [IndexPiece("s", 0, 1, 3, 100, 300)]
    state.put_run("s", 1, run(1, 400, 400), {})
    assert header(file) == (100, 400, 1000, 4000, 5) and file.full


def test_a_file_that_becomes_full_inside_a_run_asks_for_the_messages_there() -> None:
    state = index()
    with pytest.raises(NeedMarks) as asked:
        state.put_run("s", 7, run(6, 100, 600), {})
    assert asked.value.marks == (4, 5)
    assert not state.files[0].pieces, "nothing is put before all is known"
    state.put_run("s", 7, run(6, 100, 600), {(7, 4): (400, 4000), (7, 5): (500, 5000)})
    assert [header(f) for f in state.files] == [(100, 400, 1000, 4000, 5), (500, 600, 5000, 6000, 3)]
    assert [f.pieces for f in state.files] == [[IndexPiece("s", 7, 1, 4, 100, 400)], [IndexPiece("s", 7, 5, 6, 500, 600)]]


def test_the_next_file_begins_with_the_full_ones_end() -> None:
    full = IndexFileState("index/1", MOST, 10, 90, 1, 9, MOST)
    state = index(full)
    assert state.threshold() == 9
    assert header(state.files[1]) == (9, 9, 90, 90, 0) and state.files[1].path is None
    assert state.current() is state.files[1]


def test_records_below_the_newest_files_end_are_skipped_from_there() -> None:
    state = index(IndexFileState("index/1", MOST, 10, 90, 1, 9, 2))
    assert (state.threshold(), len(state.files)) == (9, 1)
    state.put_run("s", 0, run(0, 5, 6), {})
    assert header(state.files[0]) == (1, 9, 10, 90, 2), "a run without keys puts nothing"
