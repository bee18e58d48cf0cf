"""Names, sizes and digests of a copy: written, read back, and compared with what is there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from store_io.base.errors import UsageError
from store_io.messages.copy_manifest import HEAD, ManifestRow, manifest_differences, manifest_paths, manifest_row, read_manifest
from store_io.source.byte_source import StoreLocation, open_source


@pytest.fixture
def store(tmp_path: Path) -> StoreLocation:
    for name, data in (("commitlog/00000000000000000000", b"log"), ("config/a b\n.json", b"{}"), ("other/x", b"")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return StoreLocation(str(tmp_path))


def written(store: StoreLocation) -> str:
    source = open_source(store)
    return "\n".join([HEAD, *(manifest_row(source, path).line() for path in manifest_paths(store))])


def test_a_copy_that_stayed_the_same_differs_in_nothing(store: StoreLocation) -> None:
    known = read_manifest(written(store))
    assert set(known) == {"commitlog/00000000000000000000", "config/a b\n.json", "other/x"}
    row = known["commitlog/00000000000000000000"]
    assert (row.size, row.digest) == (3, hashlib.sha256(b"log").hexdigest())
    assert list(manifest_differences(open_source(store), manifest_paths(store), known)) == []


def test_each_difference_is_a_sentence(store: StoreLocation) -> None:
    known, root = read_manifest(written(store)), Path(store.root)
    (root / "commitlog" / f"{0:020d}").write_bytes(b"LOG")
    (root / "other/x").write_bytes(b"1")
    (root / "config/a b\n.json").unlink()
    (root / "config/new").write_bytes(b"")
    found = list(manifest_differences(open_source(store), manifest_paths(store), known))
    assert [sentence.rpartition(": ")[2] for sentence in found] == [
        "other bytes than those of the manifest",
        "is in the manifest and not there",
        "is not in the manifest",
        "0 bytes in the manifest, 1 there",
    ]


@pytest.mark.parametrize("path", ["plain", "with space", "with\nline", '"quoted"', "é", "\udcff"])
def test_a_line_holds_any_name(path: str) -> None:
    row = ManifestRow(path, 5, "0" * 64)
    assert row.line().isascii() and "\n" not in row.line()
    assert read_manifest(f"{HEAD}\n{row.line()}") == {path: row}


@pytest.mark.parametrize("lines", ["", "0" * 64 + " 5 a", f"{HEAD}\nnothing", f"{HEAD}\n{'0' * 64} 5 a\n{'0' * 64} 5 a"])
def test_what_is_no_manifest_is_refused(lines: str) -> None:
    with pytest.raises(UsageError):
        read_manifest(lines)


def test_who_asks_between_two_windows_may_end_the_reading(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with open(tmp_path / "commitlog" / f"{0:020d}", "wb") as file:
        file.truncate(1 << 40)  # more than could be read
    asked = []

    def check() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        manifest_row(open_source(StoreLocation(str(tmp_path))), f"commitlog/{0:020d}", check)
