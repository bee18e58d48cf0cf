"""Result files are whole or not there, and never leave the folder of --out."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.audit import results
from jobs.runtime import output
from jobs.runtime.faults import is_no_room
from jobs.runtime.output import OutputFailed, OutputFolder, Unwritten, said_once
from jobs.runtime.remote_files import ArrowFiles


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_a_run_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path / "a" / "b"))
    out.begin(["s", "t"])
    for name in ("s/plan.json", "s/findings.jsonl", "s/report.html", "result.json", "index.html", "t/plan.json"):
        out.write(name, name)
    (tmp_path / "a/b/s/.plan.json.1234abcd.writing").write_text("left by a run that was killed")
    out.begin(["s"])
    assert names(tmp_path / "a/b") == ["s", "t", "t/plan.json"]
    out.write("s/plan.json", ["new", " ", "text é"])
    assert out.read("s/plan.json") == "new text é".encode()
    assert out.read("result.json") is None


def test_a_full_disk_leaves_the_earlier_file_and_no_part_of_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = OutputFolder(str(tmp_path))
    out.begin(["s"])
    out.write("s/plan.json", "old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(output.os, "fsync", full)
    with pytest.raises(OutputFailed, match=r"s/plan\.json: cannot write: No space left on device") as failure:
        out.write("s/plan.json", "new" * 1000)
    assert failure.value.exit_code == 3
    assert names(tmp_path) == ["s", "s/plan.json"]
    assert (tmp_path / "s/plan.json").read_text() == "old"


def test_what_stops_a_writer_leaves_no_part(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path))
    out.begin([])

    def rows() -> Iterator[str]:
        yield "first\n"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        out.write("result.json", rows())
    assert names(tmp_path) == []


def test_what_cannot_be_written_is_met_before_earlier_results_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = OutputFolder(str(tmp_path))
    out.write("result.json", "{}")

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patched:
        patched.setattr(output, "write_local", read_only)
        with pytest.raises(OutputFailed, match=f"^{tmp_path}: cannot write there: Read-only file system"):
            results.remove_result(str(tmp_path))
    assert names(tmp_path) == ["result.json"]
    results.remove_result(str(tmp_path))
    assert names(tmp_path) == []


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_ends_no_run_and_no_earlier_result_is_taken_for_its_own(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path))
    out.write("result.json", "{}")
    with files_of_at_most(1_000):
        with pytest.raises(OutputFailed, match=f"^{tmp_path}: cannot write there: File too large") as met:
            out.try_to_write()
        assert is_no_room(met.value)
        results.remove_result(str(tmp_path))
    assert names(tmp_path) == []


def test_a_write_that_the_system_cuts_short_leaves_no_part(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path))
    out.begin([])
    with files_of_at_most(100_000), pytest.raises(OutputFailed, match="File too large"):
        out.write("result.json", ("x" * 1000 for _ in range(1000)))
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["../x", "s/../../x", "/etc/x", "s//x", "a/b/c", "", ".", "..", "s/..", "a\0b"])
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    out = OutputFolder(str(tmp_path / "out"))
    out.begin([])
    with pytest.raises(ValueError, match="no name of a result"):
        out.write(name, "x")
    assert names(tmp_path) == ["out"]


def test_a_link_in_the_place_of_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere/plan.json").write_text("mine")
    (tmp_path / "out/s").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputFailed, match="a link or no folder"):
        OutputFolder(str(tmp_path / "out")).begin(["s"])
    (tmp_path / "out/f").write_text("a file")
    with pytest.raises(OutputFailed, match="a link or no folder"):
        OutputFolder(str(tmp_path / "out")).begin(["f"])
    assert names(tmp_path / "elsewhere") == ["plan.json"]


def test_a_link_in_the_place_of_a_result_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    out = OutputFolder(str(tmp_path / "out"))
    out.begin(["s"])
    (tmp_path / "out/s/plan.json").symlink_to(tmp_path / "victim")
    out.write("s/plan.json", "plan")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "out/s/plan.json").is_symlink()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputFailed, match=r"cannot make the folder: (Not a directory|File exists)"):
        OutputFolder(str(tmp_path / "file" / "out")).begin(["s"])
    with pytest.raises(OutputFailed, match=r"cannot make the folder: (Not a directory|File exists)"):
        OutputFolder(str(tmp_path / "file")).begin([])


def test_text_that_is_no_unicode_is_written_escaped(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path))
    out.begin([])
    out.write("result.json", "a\udcff")
    assert out.read("result.json") == b"a\\udcff"


def test_a_remote_folder_is_written_the_same_way(tmp_path: Path) -> None:
    """pyarrow's own local file system stands in for one that has no other client here."""
    out = OutputFolder(str(tmp_path / "out"))
    out._remote = ArrowFiles((tmp_path / "out").as_uri())
    out.begin(["s"])
    out.write("s/plan.json", ["a", "b"])
    out.write("s/plan.json", ["c"])
    assert out.read("s/plan.json") == b"c"
    assert out.read("result.json") is None
    assert names(tmp_path / "out") == ["s", "s/plan.json"]
    out.begin(["s"])
    assert names(tmp_path / "out") == ["s"]


def test_an_address_that_nobody_knows_is_told() -> None:
    with pytest.raises(OutputFailed, match="nowhere"):
        OutputFolder("nowhere://bucket/x")


def test_a_full_disk_is_said_once_and_other_problems_each() -> None:
    full = [Unwritten(f"/o/{name}: cannot write", no_room=True) for name in "abc"]
    other = Unwritten(f"/o/d: cannot write: {os.strerror(errno.ENOSPC)}")  # what a text says decides nothing
    more = f"{full[0].sentence} (and 1 more result, for the same reason)"
    assert said_once([full[0], other, full[1]]) == [more, other.sentence]
    assert said_once([other, *full]) == [other.sentence, more.replace("1 more result", "2 more results")]
    assert said_once([full[0]]) == [full[0].sentence] and said_once([]) == []
