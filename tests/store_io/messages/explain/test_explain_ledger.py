"""Of a DLedger log explain says what its recovery does, never what that of an ordinary log would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.messages.explain.explain_place import Explanation, explain
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.damage import overwrite
from tests.support.stores import corpus_tools
from tests.support.stores.builders import field_position
from tests.support.stores.dledger_stores import CONF, HEADER, LedgerStore, build, mixed


def explained(store: LedgerStore, phy_offset: int) -> Explanation:
    request = AuditRequest("store", StoreLocation(str(store.root)), store.release, store.broker_conf)
    return explain(request, phy_offset)


@pytest.mark.parametrize(("release", "clean"), [("5.3.3", True), ("5.3.3", False), ("5.1.4", False)])
def test_a_wrong_body_does_not_end_the_log(release: str, clean: bool, tmp_path: Path) -> None:
    store = build(tmp_path, release, clean=clean)
    entry = store.entries[-3]
    at, _ = field_position(entry.record, "body")
    store.flip(store.data_of(entry), (entry.at + HEADER + at) % store.data_of(entry).stat().st_size)
    said = explained(store, entry.at + HEADER)
    assert said.kind == "damage" and said.stop is not None and said.stop.phy_offset == store.end
    first = sorted(store.data_of(entry).parent.iterdir())[-3].name
    assert f"by the headers of entries alone, which it reads from dledger-n0/data/{first} up to {store.end:,}: " in said.start
    scans = release == "5.3.3" and not clean
    names = [c.who for c in said.checks if not c.passes]
    assert names == ["audit", f"RocketMQ {release}, scan after recovery"][: 1 + scans]


def test_a_wrong_header_ends_it_before_later_places(tmp_path: Path) -> None:
    store = build(tmp_path)
    entry = store.entries[-3]
    store.flip(store.data_of(entry), entry.at % store.data_of(entry).stat().st_size)
    for later in (store.entries[-3], store.entries[-1]):
        said = explained(store, later.at + HEADER)
        assert said.stop is not None and said.stop.phy_offset == entry.at
        assert f"up to {entry.at:,}, before this place: " in said.start
    assert ", before this place" not in explained(store, store.entries[-4].at + HEADER).start


def test_only_an_audit_knows_an_end_that_the_last_files_do_not_show(tmp_path: Path) -> None:
    store = build(tmp_path, messages=120)
    files = sorted((tmp_path / "dledger-n0" / "data").iterdir())
    assert len(files) > 3
    first = next(e for e in store.entries if e.at == int(files[-3].name))
    overwrite(store.index, 32 * first.index + 31, b"\x05")
    said = explained(store, store.entries[-1].at + HEADER)
    assert said.stop is None and said.start.endswith("by the headers of entries alone; the audit says where that is")


def test_a_log_that_stops_the_start_has_no_end(tmp_path: Path) -> None:
    store = build(tmp_path)
    files = sorted((tmp_path / "dledger-n0" / "data").iterdir())
    with open(files[-1], "r+b") as data:
        data.truncate(files[-1].stat().st_size - 8)
    said = explained(store, HEADER)
    assert said.stop is None and "does not start with this log: dledger-n0/data/" in said.start


def test_the_older_part_of_a_mixed_store_is_not_read(tmp_path: Path) -> None:
    old, _ = mixed(tmp_path)
    request = AuditRequest("store", StoreLocation(str(tmp_path)), "5.4.0", old.broker_conf + CONF)
    said = explain(request, old.records[3].at)
    assert said.stop is None and "reads nothing of this file" in said.start
    assert [c.who for c in said.checks] == ["audit"]


def test_the_end_is_that_of_a_real_broker(tmp_path: Path) -> None:
    (case,) = corpus_tools.cases("g103")
    root = case.unpack(tmp_path)
    conf = (tmp_path / "broker.conf").read_text()
    said = explain(AuditRequest("store", StoreLocation(str(root)), case.release, conf), 132403 + HEADER)
    ledger = case.expected["converged"]["dledger"]
    assert said.stop is not None and said.stop.phy_offset == ledger["committedPos"]
