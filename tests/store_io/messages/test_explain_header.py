"""The entry header of a DLedger record, explained: its fields, each check by name, and its index unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.messages.explain.explain_place import Explanation, explain
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.damage import overwrite
from tests.support.stores.dledger_stores import HEADER, UNIT, Entry, LedgerStore, build


def explained(store: LedgerStore, entry: Entry) -> Explanation:
    request = AuditRequest("store", StoreLocation(str(store.root)), store.release, store.broker_conf)
    return explain(request, entry.at + HEADER)


def test_the_header_comes_before_the_record(tmp_path: Path) -> None:
    store = build(tmp_path)
    entry = store.entries[7]
    said = explained(store, entry)
    header = {f.name: f.value for f in said.fields if f.at < 0}
    assert [f.at for f in said.fields[:4]] == [-48, -44, -40, -32] and said.fields[9].at == 0
    assert (header["header index"], header["header term"]) == ("7", "0")
    assert (header["header pos"], header["header size"]) == (str(entry.at), str(entry.size))
    checks = [c.who for c in said.checks if c.who.startswith("entry header")]
    names = ["magic", "size", "index", "term", "pos", "body_size", "index unit 7"]
    assert checks == [f"entry header, {name}" for name in names] and all(c.passes for c in said.checks)


@pytest.mark.parametrize(("at", "name"), [(3, "magic"), (7, "size"), (31, "pos"), (47, "body_size"), (8, "index"), (16, "term")])
def test_a_wrong_field_is_named(at: int, name: str, tmp_path: Path) -> None:
    store = build(tmp_path)
    entry = store.entries[7]
    data = bytearray(store.data_of(entry).read_bytes())
    data[entry.at % len(data) + at] ^= 0x80
    store.data_of(entry).write_bytes(data)
    said = explained(store, entry)
    assert [f.name for f in said.fields if f.at < 0 and f.wrong] == [f"header {name}"]
    failed = [c.who for c in said.checks if not c.passes and not c.who.endswith("unit 7")]
    assert f"entry header, {name}" in failed and all(name in who or "entry header" not in who for who in failed)


def test_another_index_unit_is_said(tmp_path: Path) -> None:
    store = build(tmp_path)
    overwrite(store.index, 7 * UNIT + UNIT - 1, b"\x05")
    (wrong,) = [c for c in explained(store, store.entries[7]).checks if not c.passes]
    assert (wrong.who, wrong.expected, wrong.actual) == ("entry header, index unit 7", "term 0", "term 5")
