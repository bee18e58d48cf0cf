"""Header values that no release writes, and whether consumers still get the message as it was sent."""

from __future__ import annotations

import zlib

import pytest

from schemas.layouts import commitlog_layout as layout
from store_io.broker import header_faults as hf
from store_io.broker.header_faults import compressed_as, header_faults

ZLIB = zlib.compress(b"body")[:4]
HEADS = {0: ZLIB, 1: hf.LZ4_HEAD, 2: hf.ZSTD_HEAD, 3: ZLIB}


def faults(
    sys_flag: int = 0,
    body: int = 9,
    properties: int = 0,
    crc: int = 0,
    head: bytes = b"text",
    inner: bool = False,
    ports: tuple[int, int] = (50_000, 10_911),
):
    return [(f.field, f.unreadable) for f in header_faults(sys_flag, body, properties, crc, head, inner, ports)]


@pytest.mark.parametrize("port", [-1, 1 << 16, 1 << 31 - 1])
def test_a_port_that_no_address_has_ends_the_decoding_of_what_is_pulled(port: int) -> None:
    assert faults(ports=(port, 10_911)) == [(hf.BORN_HOST, True)] and faults(ports=(0, port)) == [(hf.STORE_HOST, True)]
    assert faults(ports=(0, hf.MAX_PORT)) == []


@pytest.mark.parametrize("kind", HEADS)
def test_a_compressed_body_begins_as_its_type_does(kind: int) -> None:
    flag = layout.SYS_COMPRESSED | kind << layout.SYS_COMPRESSION_SHIFT
    assert faults(flag, head=HEADS[kind]) == []
    assert faults(flag, head=b"text") == [(hf.SYS_FLAG, True)]
    assert faults(flag, body=0, head=b"") == [(hf.SYS_FLAG, False)]


def test_which_bytes_can_be_of_which_type() -> None:
    assert [kind for kind in range(6) if compressed_as(ZLIB, kind)] == [0, 3]
    assert not compressed_as(b"x", 0) and not compressed_as(b"", 1)


def test_a_type_without_the_flag_leaves_consumers_with_compressed_bytes() -> None:
    flag = 2 << layout.SYS_COMPRESSION_SHIFT
    assert faults(flag, head=hf.ZSTD_HEAD) == [(hf.SYS_FLAG, True)]
    assert faults(flag, head=b"text") == [(hf.SYS_FLAG, False)]


def test_lengths_below_zero_and_a_checksum_of_nothing() -> None:
    assert faults(body=-1) == [(hf.BODY_LENGTH, False)]
    assert faults(properties=-5) == [(hf.PROPERTIES_LENGTH, False)]
    assert faults(body=0, crc=77) == [(hf.BODY_CRC, False)]
    assert faults(body=1, crc=77) == []


def test_flags_that_no_release_sets() -> None:
    assert faults(1 << 30) == [(hf.SYS_FLAG, False)]
    assert faults(layout.SYS_ROLLBACK | layout.SYS_BORN_HOST_V6 | layout.SYS_MULTI_TAGS) == []


@pytest.mark.parametrize(
    ("flag", "inner", "expected"),
    [
        (hf.BATCH_FLAGS, True, []),
        (hf.BATCH_FLAGS, False, [(hf.SYS_FLAG, True)]),
        (layout.SYS_NEED_UNWRAP, True, [(hf.SYS_FLAG, True)]),
        (layout.SYS_NEED_UNWRAP, False, [(hf.SYS_FLAG, False)]),
        (layout.SYS_INNER_BATCH, True, []),
        (layout.SYS_INNER_BATCH, False, [(hf.SYS_FLAG, False)]),
    ],
)
def test_batches_in_one_record(flag: int, inner: bool, expected: list[tuple[str, bool]]) -> None:
    assert faults(flag, inner=inner) == expected
