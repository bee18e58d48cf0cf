"""Columns of a batch: codes by SYSFLAG, ids in hexadecimal, hosts written once."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from schemas.arrow import arrow_schema
from store_io.log.records.message_columns import ROW_DTYPE
from store_io.messages.message_batch import COMPRESSIONS, TRANSACTIONS, MessageBatch, compression_code, transaction_code
from store_io.messages.scans import COLUMNS
from store_io.source.segment_window import SegmentWindow


def test_codes_of_a_sys_flag() -> None:
    flags = np.array([0, 1, 0x101, 0x201, 0x301, 0x401, 0x100])
    names = [COMPRESSIONS[code] for code in compression_code(flags)]
    assert names == ["none", "zlib", "lz4", "zstd", "zlib", "unknown", "none"]
    assert [TRANSACTIONS[transaction_code(flag)] for flag in (0, 4, 8, 12)] == ["none", "prepared", "commit", "rollback"]


def test_hosts_and_ids_are_built_from_the_bytes() -> None:
    class File:
        size = 400

        def read_into(self, position: int, data: np.ndarray) -> int:
            data[:] = np.frombuffer(DATA, np.uint8)[position : position + len(data)]
            return len(data)

    window = SegmentWindow(File(), 400, 400)  # type: ignore[arg-type]
    window.hold(0)
    rows = np.zeros(2, ROW_DTYPE)
    rows["position"], rows["total_size"] = [0, 200], 200
    rows["sys_flag"] = [0, 0x30]
    batch = MessageBatch(rows, window, "commitlog/x", [("T", 3)], True)
    built = batch.build(arrow_schema(COLUMNS[name] for name in ("topic", "born_host", "store_host", "offset_msg_id", "status")))
    assert built.column("offset_msg_id").to_pylist() == [V4.hex().upper() + "00" * 7 + "07", V6.hex().upper() + "00" * 7 + "09"]
    assert built.column("store_host").to_pylist() == ["10.0.0.1:10911", "[2001:db8::1]:10911"]
    assert built.column("born_host").to_pylist() == built.column("store_host").to_pylist()
    assert built.column("topic").to_pylist() == ["T", "T"] and built.column("status").to_pylist() == ["plausible"] * 2
    assert isinstance(built, pa.RecordBatch)


V4 = bytes([10, 0, 0, 1]) + struct.pack(">i", 10911)
V6 = bytes.fromhex("20010db8000000000000000000000001") + struct.pack(">i", 10911)


def _head(host: bytes, phy_offset: int) -> bytes:
    return (bytes(28) + struct.pack(">q", phy_offset) + bytes(12) + host + bytes(8) + host).ljust(200, b"\0")


DATA = _head(V4, 7) + _head(V6, 9)
