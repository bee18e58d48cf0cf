"""What no checksum covers and no broker looks at, and a cross-check sees all the same: odd values in a message's header."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.rows import LOSS, NOTE, Finding
from tests.support.answers import product
from tests.support.stores import builders
from tests.support.stores.builders import (
    COMPRESSED,
    INNER_BATCH,
    NEED_UNWRAP,
    Message,
    Sizes,
    StoreBuilder,
    compress,
    field_position,
)

SIZES = Sizes(segment=8192, queue_file=400, slots=20, index_max=100)
PLAIN = Message("T", body=b"x" * 60, tags="a", uniq="u")
ELSEWHERE = b"\x0a\x00\x00\x05\x00\x00\x2a\x9f"


def told(
    root: Path, messages: list[Message], decoder: str = "fast", change: tuple[int, str, bytes] | None = None
) -> list[Finding]:
    """The findings on a store of these messages. change: the number of a message, a field of it, and what it holds then."""
    builder = StoreBuilder("5.3.3", SIZES)
    records = [builder.put(message) for message in messages]
    store = builder.write(root)
    if change is not None:
        number, name, data = change
        path = store.segment_of(records[number])
        at, size = field_position(records[number], name)
        assert size == len(data)
        start = store.position_of(records[number]) + at
        path.write_bytes(path.read_bytes()[:start] + data + path.read_bytes()[start + size :])
    return product.audit(root, store.release, store.broker_conf, decoder).findings


V6 = bytes(range(16)) + b"\0\0\x2a\x9f"


@pytest.mark.parametrize("decoder", ["fast", "reference"])
@pytest.mark.parametrize(
    ("message", "name", "data", "severity"),
    [
        (replace(PLAIN, body=b""), "bodyLength", struct.pack(">i", -1), NOTE),
        (replace(PLAIN, tags=None, uniq=None), "propsLength", struct.pack(">h", -1), NOTE),
        (replace(PLAIN, body=b""), "bodyCRC", struct.pack(">i", 1), NOTE),
        (PLAIN, "sysFlag", struct.pack(">i", 0x800), NOTE),
        (PLAIN, "sysFlag", struct.pack(">i", 0x1), LOSS),
        (PLAIN, "sysFlag", struct.pack(">i", 0x100), NOTE),
        (PLAIN, "sysFlag", struct.pack(">i", NEED_UNWRAP | INNER_BATCH), LOSS),
        (replace(PLAIN, body=compress(b"y" * 500, "lz4"), sys_flag=0x101), "sysFlag", struct.pack(">i", 0x100), LOSS),
        (replace(PLAIN, body=b""), "sysFlag", struct.pack(">i", 0x1), NOTE),
        (PLAIN, "bornHost", struct.pack(">4si", bytes(4), 1 << 16), LOSS),
        (PLAIN, "storeHost", PLAIN.store_host[:4] + struct.pack(">i", -1), LOSS),
        (replace(PLAIN, born_host=V6), "bornHost", struct.pack(">16si", bytes(16), 70_000), LOSS),
        (replace(PLAIN, born_host=V6), "storeHost", PLAIN.store_host[:4] + struct.pack(">i", 70_000), LOSS),
        (replace(PLAIN, born_host=V6, store_host=V6), "storeHost", V6[:16] + struct.pack(">i", 70_000), LOSS),
    ],
)  # fmt: skip
def test_a_field_that_no_release_writes(
    tmp_path: Path, message: Message, name: str, data: bytes, severity: str, decoder: str
) -> None:
    messages = [PLAIN, message, PLAIN]
    assert not [f for f in told(tmp_path / "clean", messages, decoder) if f.code == "message_header_odd"]
    found = told(tmp_path / "store", messages, decoder, (1, name, data))
    (odd,) = (f for f in found if f.severity != NOTE or f.code == "message_header_odd")
    assert (odd.code, odd.severity) == ("message_header_odd", severity)
    assert odd.start is not None and odd.end is not None and odd.end - odd.start == len(data)
    assert odd.actual == f"0x{data.hex()}"


def test_every_kind_of_message_that_releases_write_is_in_order(tmp_path: Path) -> None:
    messages = [replace(PLAIN, body=compress(b"z" * 900, kind), sys_flag=flag) for kind, flag in COMPRESSED.items()]
    messages += [replace(PLAIN, body=b""), Message("T"), replace(PLAIN, sys_flag=0x2), replace(PLAIN, born_host=bytes(20))]
    messages += [replace(PLAIN, sys_flag=flag) for flag in (builders.PREPARED, builders.COMMIT, builders.ROLLBACK)]
    messages += [Message("T", body=builders.inner_body([b"m"] * 3), inner_count=3)]
    assert not [f for f in told(tmp_path / "store", messages) if f.code in ("message_header_odd", "store_host_odd")]


def test_copies_of_a_message_with_a_wrong_flag_are_one_damage(tmp_path: Path) -> None:
    half = replace(PLAIN, topic=builders.HALF_TOPIC, born_time=1_699_999_999_000, sys_flag=0x1)
    committed = replace(half, topic="Pay", sys_flag=0x1 | builders.COMMIT)
    found = [f for f in told(tmp_path / "store", [half, PLAIN, half, committed]) if f.code == "message_header_odd"]
    assert sorted((f.phy_offset, f.severity) for f in found)[0][1] == LOSS
    assert sorted(f.severity for f in found) == [LOSS, NOTE, NOTE]


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("batch", [1, 50])
def test_a_single_store_host_of_its_own_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, v6: bool, batch: int) -> None:
    monkeypatch.setattr("store_io.log.scan.segment_scan.capacity_for", lambda window_bytes: batch)
    host = bytes(range(16)) + b"\0\0\x2a\x9f" if v6 else PLAIN.store_host
    messages = [replace(PLAIN, store_host=host)] * 12
    odd = host[:3] + bytes([host[3] ^ 1]) + host[4:]
    assert not told(tmp_path / "clean", messages)
    (finding,) = told(tmp_path / "store", messages, change=(5, "storeHost", odd))
    assert (finding.code, finding.severity, (finding.end or 0) - (finding.start or 0)) == ("store_host_odd", NOTE, len(host))


@pytest.mark.parametrize(
    "hosts",
    [
        "aaaaabbbbb",  # the broker's address changed at a start
        "aaaaabbbbabb",  # and an older message was delivered after it
        "abababab",
        "aaabbaaa",
        "aaabaabaaa",
        "baaaaaaa",
        "aaaaaaab",
    ],
)
def test_store_hosts_as_brokers_leave_them(tmp_path: Path, hosts: str) -> None:
    messages = [replace(PLAIN, store_host=ELSEWHERE if host == "b" else PLAIN.store_host) for host in hosts]
    assert not told(tmp_path / "store", messages)
