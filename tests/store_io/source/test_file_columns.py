"""Files as columns: what is looked at is what was put in, whatever its name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.rows import StoreFile
from store_io.source import file_columns as subject
from store_io.source.file_columns import Chosen, FileColumns, FilesByPath

_MOST = (1 << 63) - 1
_NAMES = st.text(st.sampled_from("ab/.0é\U00010000\ud800-["), min_size=1, max_size=6)
_FILES = st.lists(
    st.builds(StoreFile, _NAMES, st.sampled_from(["file", "directory"]), st.integers(0, _MOST), st.integers(-_MOST, _MOST)),
    max_size=20,
)


@given(_FILES, st.lists(_NAMES, max_size=10), st.integers(0, 30), st.integers(2, 5))
def test_files_are_found_by_place_and_path_in_any_order(files: list[StoreFile], asked: list[str], few: int, step: int) -> None:
    before = subject.FEW, subject._STEP
    subject.FEW, subject._STEP = few, step  # a fixture would be of all examples
    try:
        wanted = {file.path: file for file in files}  # the later of two counts
        made = FileColumns(iter(files))
        ordered = [wanted[path] for path in sorted(wanted)]
        assert list(made) == ordered == [made[place] for place in range(len(made))] and made[-1:] == ordered[-1:]
        for path in [*asked, *sorted(wanted, reverse=True), *sorted(wanted)]:
            assert made.find(path) == wanted.get(path)
            assert made.place(path) == sum(other < path for other in wanted)
        assert FilesByPath(made) == wanted
        assert made == FileColumns(reversed(ordered)) and (made != FileColumns(ordered[1:]) or not ordered)
    finally:
        subject.FEW, subject._STEP = before


def test_some_of_the_files() -> None:
    files = FileColumns(StoreFile(name, "file", size) for size, name in enumerate("abc"))
    some = Chosen(files, [2])
    some.append(0)
    assert [file.path for file in some] == ["c", "a"] and some[1] == files[0] and len(some[1:]) == 1
