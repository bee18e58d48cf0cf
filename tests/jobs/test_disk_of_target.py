"""How full the disk of a new store will be."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.repair.disk_of_target import on_its_disk
from schemas.first_day import StartMoment
from store_io.repair.repair_copy import SPARE_BYTES
from store_io.source.byte_source import StoreLocation

# 1000 blocks, of which 400 are used, and 100 are root's alone
DISK = SimpleNamespace(f_frsize=4096, f_blocks=1000, f_bfree=600, f_bavail=500)


def test_the_new_store_counts_as_df_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: DISK)
    assert on_its_disk(StartMoment(5), "/new/store", 0) == StartMoment(5, disk_used=44.44, disk_size=900 * 4096)
    assert on_its_disk(StartMoment(5), "/new/store", 365 * 4096) == StartMoment(5, disk_used=85.0, disk_size=900 * 4096)
    assert on_its_disk(StartMoment(5), "/new/store", 9999 * 4096).disk_used == 100.0


def test_a_copy_on_the_same_disk_takes_its_part_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_frsize=1 << 20, f_blocks=1000, f_bfree=600, f_bavail=600))
    devices = {str(tmp_path): 7, "/copy": 7, "/other": 8}
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_dev=devices[path]))
    monkeypatch.setattr(os.path, "exists", lambda path: path in devices)
    more, target = SPARE_BYTES + (300 << 20), str(tmp_path / "new")
    found = on_its_disk(StartMoment(5), target, more, StoreLocation("/copy"))
    assert (found.disk_used, found.copy_used) == (76.4, 30.0)
    for copy, named in (("/other", None), ("/none", None), ("/copy", 12.0)):
        assert on_its_disk(StartMoment(5, disk_used=named), target, more, StoreLocation(copy)).copy_used is None
    assert on_its_disk(StartMoment(5), target, more).copy_used is None
    for log, used in (("/other", None), ("/copy", 30.0)):  # its log may lie on another disk
        copy_of_parts = StoreLocation("/copy", (("commitlog", (log,)),))
        assert on_its_disk(StartMoment(5), target, more, copy_of_parts).copy_used == used


def test_what_is_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: DISK)
    named = StartMoment(5, disk_used=10.0)
    assert on_its_disk(named, "/new/store", 0) == StartMoment(5, disk_used=10.0, disk_size=900 * 4096)
    empty = SimpleNamespace(f_frsize=4096, f_blocks=0, f_bfree=0, f_bavail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: empty)
    assert on_its_disk(StartMoment(5), "/new/store", 0) == StartMoment(5)
