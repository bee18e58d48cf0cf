"""The files of one segment's export: whole or not there, and nothing hidden in them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.messages.export_files import export_segment
from store_io.base.errors import StoreChanged, StoreError
from store_io.messages.redaction import Redaction
from tests.store_io.messages.test_message_rows import odd_store, rows_of
from tests.support.answers.exports import EVERYTHING, files_of
from tests.support.stores import builders
from tests.support.stores.builders import Message, StoreBuilder


def test_parquet_holds_what_the_scan_gives(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store", 1 << 15)
    files, parts = files_of(store, tmp_path / "out", "parquet")
    notes = [export_segment(files, part) for part in parts]
    rows: list[dict[str, Any]] = []
    for note in notes:
        path = tmp_path / "out" / note["file"]
        assert (note["bytes"], note["sha256"]) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        table = pq.read_table(path)
        assert table.num_rows == note["rows"]
        assert table.schema.field("phy_offset").metadata[b"comment"].startswith(b"Key: physical offset")
        rows += table.to_pylist()
    assert rows == rows_of(store.root, columns=EVERYTHING) and len(rows) == len(store.records)


def test_jsonl_holds_the_same_as_text(tmp_path: Path) -> None:
    b = StoreBuilder(sizes=builders.Sizes(segment=1 << 14))
    b.put(Message("主题", body="Körper\x1b[2J".encode(), keys="k\u2028", store_time=1_700_000_000_001))
    b.put(Message(body=b"\xff\xfe", store_time=1 << 60))
    b.put(Message(body=b""))
    files, (part,) = files_of(b.write(tmp_path / "store"), tmp_path / "out", "jsonl")
    note = export_segment(files, part)
    text = (tmp_path / "out" / note["file"]).read_bytes()
    assert text.isascii() and b"\x1b" not in text and text.count(b"\n") == note["rows"] == 3
    first, second, third = (json.loads(line) for line in text.splitlines())
    assert (first["body"], first["keys"], first["properties"]) == ("Körper\x1b[2J", "k\u2028", {"KEYS": "k\u2028"})
    assert (first["store_time"], first["store_time_ms"]) == ("2023-11-14T22:13:20.001Z", 1_700_000_000_001)
    assert (second["body_base64"], second["store_time"], "body" in second) == ("//4=", None, False)
    assert third["body"] == "" and list(first) == list(EVERYTHING)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_nothing_that_is_hidden_is_in_the_file(tmp_path: Path, form: str) -> None:
    b = StoreBuilder(sizes=builders.Sizes(segment=1 << 14))
    b.put(Message(body=b"TOPSECRET", keys="TOPSECRET", uniq="TOPSECRET", tags="TOPSECRET", properties=(("x", "TOPSECRET"),)))
    store = b.write(tmp_path / "store")
    for mode in ("none", "hide", "hash"):
        files, (part,) = files_of(store, tmp_path / mode, form, redaction=Redaction(mode, b"salt"))
        data = (tmp_path / mode / export_segment(files, part)["file"]).read_bytes()
        assert (b"TOPSECRET" in data) == (mode == "none")


def test_a_segment_without_messages_has_a_note_and_no_file(tmp_path: Path) -> None:
    store = StoreBuilder(sizes=builders.Sizes(segment=512)).write(tmp_path / "store")
    (store.root / "commitlog" / f"{0:020d}").write_bytes(bytes(512))
    files, (part,) = files_of(store, tmp_path / "out", "parquet")
    note = export_segment(files, part)
    assert (note["file"], note["rows"]) == (None, 0)
    assert sorted(os.listdir(tmp_path / "out")) == ["state"] and os.listdir(tmp_path / "out/state") == [f"{0:020d}.json"]


def test_what_cannot_be_read_or_written_leaves_nothing(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store", 1 << 15)
    files, parts = files_of(store, tmp_path / "out", "parquet")
    os.truncate(store.root / parts[0].scan.path, 100)
    with pytest.raises(StoreChanged):
        export_segment(files, parts[0])
    (tmp_path / "out" / f"{parts[1].name}.parquet").mkdir()  # stands where the file should go
    with pytest.raises(StoreError, match="cannot write"):
        export_segment(files, parts[1])
    assert [name for name in os.listdir(tmp_path / "out") if name.startswith(".")] == []
    assert os.listdir(tmp_path / "out/state") == []
