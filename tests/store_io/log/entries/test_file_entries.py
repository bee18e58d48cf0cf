"""Files of one queue, asked for by position: the same answer as by looking at all, in few steps."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemas.rows import MappedFile
from store_io.log.entries.file_entries import FilesAt


@given(st.lists(st.tuples(st.integers(-50, 200), st.integers(0, 90)), max_size=12), st.integers(-60, 300), st.integers(0, 60))
def test_the_files_that_hold_a_place_in_the_order_given(files: list[tuple[int, int]], start: int, size: int) -> None:
    mapped = [MappedFile(f"{n}", begin, length) for n, (begin, length) in enumerate(files)]
    end = start + size
    expected = [f for f in mapped if f.start < end and start < f.start + f.size]
    assert FilesAt(mapped).holding(start, end) == expected
    assert FilesAt(mapped).at(start) == next((f for f in mapped if f.start <= start < f.start + f.size), None)


def test_no_answer_looks_at_all_files() -> None:
    looked = [0]

    class Seen:
        def __init__(self, start: int):
            self._start, self.size, self.path = start, 100, str(start)

        @property
        def start(self) -> int:
            looked[0] += 1
            return self._start

    files: Any = [Seen(100 * n) for n in range(8000)]
    at = FilesAt(files)
    looked[0] = 0
    for n in range(8000):
        assert at.holding(100 * n + 50, 100 * n + 150)[:1] == [files[n]]
    assert looked[0] <= 8000 * 6
