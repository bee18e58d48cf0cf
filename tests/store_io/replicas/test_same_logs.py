"""Copies of one log that nobody has named as such are found by their bytes, whatever is damaged in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from store_io.audit.audit_store import StoreAudit
from store_io.model.audit_request import AuditRequest
from store_io.replicas.same_logs import same_logs
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder


def written(root: Path, count: int, clock: int = 0) -> Store:
    """clock: milliseconds by which another broker's times differ."""
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
    builder.clock += clock
    for number in range(count):
        builder.clock += 10
        builder.put(Message("T", 0, bytes(200), uniq=f"U{number:03}"))
    return builder.write(root)


def found(*roots: Path) -> list[list[int]]:
    audits = [StoreAudit(AuditRequest(str(n), StoreLocation(str(root)), "5.3.3")) for n, root in enumerate(roots)]
    for audit in audits:
        audit.first_tasks()
    return same_logs(audits)


def test_a_copy_that_is_behind_or_damaged_or_begins_later_is_found(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole", 90)
    written(tmp_path / "short", 20)
    damaged = written(tmp_path / "damaged", 20)
    damage.zero_range(damaged.segment_of(damaged.records[0]), 0, 300)
    shutil.copytree(whole.root, tmp_path / "later")
    first = min((tmp_path / "later" / "commitlog").iterdir())
    first.unlink()
    names = [tmp_path / name for name in ("whole", "short", "damaged", "later")]
    assert found(*names) == [[0, 1, 2, 3]]


def test_stores_of_other_brokers_and_a_store_named_twice_are_no_copies(tmp_path: Path) -> None:
    written(tmp_path / "a", 30)
    written(tmp_path / "b", 30, clock=7)
    (tmp_path / "empty" / "commitlog").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "commitlog").symlink_to(tmp_path / "a" / "commitlog")
    names = ("a", "b", "empty", "a", "link", "linked")
    assert found(*(tmp_path / name for name in names)) == []
