"""DLedger's two texts as a start reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.advice import RefusalKind
from schemas.rows import MappedFile
from store_io.base.errors import NotAFile
from store_io.kinds.dledger.ledger_walks import LedgerTexts
from store_io.kinds.dledger.unit_reader import MAX_TEXT_BYTES, read_texts
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests.support.stores.dledger_stores import FOLDER, build


def texts(root: Path) -> LedgerTexts:
    location = StoreLocation(str(root))
    index = (MappedFile(f"{FOLDER}/index/{0:020d}", 0, 167_772_160),)
    return read_texts(open_source(location), list_store(location), FOLDER, index)


def test_committed_index_its_unit_and_term(tmp_path: Path) -> None:
    store = build(tmp_path, committed=7)
    found = texts(tmp_path)
    assert (found.committed, found.end, found.term, found.refusal) == (7, 39, 0, None)
    assert found.committed_unit == (store.entries[7].at, store.entries[7].size)


def test_missing_texts_say_nothing(tmp_path: Path) -> None:
    build(tmp_path, committed=-1)
    (tmp_path / FOLDER / "currterm").unlink()
    assert texts(tmp_path) == LedgerTexts()


@pytest.mark.parametrize("text", ["committedIndex=x", "committedIndex=9999999999999999999999"])
def test_what_is_no_number_makes_recovery_throw(tmp_path: Path, text: str) -> None:
    build(tmp_path)
    (tmp_path / FOLDER / "checkpoint").write_text(text)
    refusal = texts(tmp_path).refusal
    assert refusal is not None and refusal.kind == RefusalKind.LEDGER_COMMITTED_INDEX


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\0", b"committedIndex=\\u12", b"committedIndex=-1"])
def test_other_texts_commit_nothing(tmp_path: Path, data: bytes) -> None:
    build(tmp_path)
    (tmp_path / FOLDER / "checkpoint").write_bytes(data)
    found = texts(tmp_path)
    assert found.refusal is None and found.committed in (None, -1) and found.committed_unit is None


def test_a_text_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    build(tmp_path)
    (tmp_path / FOLDER / "checkpoint").write_bytes(b" " * (MAX_TEXT_BYTES + 1))
    with pytest.raises(NotAFile):
        texts(tmp_path)
