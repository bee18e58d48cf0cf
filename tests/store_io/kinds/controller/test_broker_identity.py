"""Who a replica says that it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.kinds.controller.controller_files import IDENTITY_BYTES, BrokerIdentity, read_identity
from store_io.source import store_dir
from store_io.source.byte_source import StoreLocation, open_source


def identity(root: Path, **files: bytes) -> BrokerIdentity | None:
    (root / "commitlog").mkdir()
    for name, data in files.items():
        (root / name.replace("_", "-")).write_bytes(data)
    location = StoreLocation(str(root))
    return read_identity(open_source(location), store_dir.list_folder(location))


def test_the_confirmed_one_counts(tmp_path: Path) -> None:
    found = identity(tmp_path, brokerIdentity=b"oracle#broker-a#2", brokerIdentity_temp=b"oracle#broker-a#3#127.0.0.1:10911;17")
    assert found == BrokerIdentity("oracle", "broker-a", 2, False)


def test_one_that_was_asked_for_is_temporary(tmp_path: Path) -> None:
    assert identity(tmp_path, brokerIdentity_temp=b"c#b#3#127.0.0.1:10911;17") == BrokerIdentity("c", "b", 3, True)


@pytest.mark.parametrize("data", [b"", b"#", b"a#b", b"a#b#x", b"\xff\xfe#\x00#99999999999999999999", bytes(IDENTITY_BYTES + 1)])
def test_anything_else_is_none(data: bytes, tmp_path: Path) -> None:
    assert identity(tmp_path, brokerIdentity=data) is None
