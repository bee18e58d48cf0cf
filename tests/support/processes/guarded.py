"""Decode damaged records in memory whose neighbours may not be touched. Run by a test in a process of its own."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
import struct

import numpy as np

from store_io.broker.releases import Setting, broker_rules
from store_io.log.records import commitlog_columns
from store_io.log.records.message_columns import Columns, RecordCheck, Stretch, TopicTable
from tests.support.stores import builders

PAGE = mmap.PAGESIZE
PAGES = 4


def guarded_pages() -> np.ndarray:
    """PAGES pages between two that may not be read."""
    whole = mmap.mmap(-1, (PAGES + 2) * PAGE)
    memory = np.frombuffer(whole, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    for page in (0, PAGES + 1):
        address = ctypes.c_void_p(memory.ctypes.data + page * PAGE)
        if libc.mprotect(address, ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory[PAGE : (PAGES + 1) * PAGE]


def record(rng: random.Random, at: int) -> bytes:
    names = ["TAGS", "KEYS", "UNIQ_KEY", "DELAY", "DUP_INFO", "INNER_NUM", "INNER_BASE", "INNER_MULTI_DISPATCH", "x"]
    pairs = tuple(
        (rng.choice(names), rng.choice(["1", "ab cd", "标签", "y" * rng.randrange(1, 90)])) for _ in range(rng.randrange(5))
    )
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=1 << 16))
    record = builder.put(
        builders.Message(
            rng.choice(["T", "TopicA", "T" * 127, "SCHEDULE_TOPIC_XXXX"]),
            body=rng.randbytes(rng.choice([0, 1, 15, 16, 17, 63, 64, 65, 200, 255, 256, 300, 1024, 1500])),
            properties=pairs,
            property_crc=rng.random() < 0.3,
            version=rng.choice([builders.V1, builders.V2]),
            phy_offset=at,
        )
    )
    return builders.encode(record)


def smallest() -> list[bytes]:
    """Records too small for what they claim: IPv6 bits, lengths, either version, at every size from 91 bytes to 120."""
    found = []
    for magic, sys_flag, body, total in itertools.product(
        (builders.V1, builders.V2), (0, 0x10, 0x20, 0x30), (0, -1, 1, 20, 0x7FFFFFFF), range(91, 121)
    ):
        for topic, props in ((0, 0), (1, 0), (0, 1), (-1, 0), (127, 0), (0, 32767), (0, -1)):
            data = bytearray(total)
            struct.pack_into(">iI", data, 0, total, magic)
            struct.pack_into(">i", data, 36, sys_flag)
            lengths_at = 84 + 12 * bin(sys_flag).count("1")
            wide = magic == builders.V2
            tail = struct.pack(">i", body) + struct.pack(">h" if wide else ">b", topic) + struct.pack(">h", props)
            data[lengths_at : lengths_at + len(tail)] = tail
            found.append(bytes(data[:total]))
    return found


def run(rounds: int = 1500) -> None:
    memory = guarded_pages()
    rng = random.Random(5)
    on = {"duplicationEnable": Setting(True, "broker.conf"), "forceVerifyPropCRC": Setting(True, "broker.conf")}
    checks = [
        RecordCheck.audit(0),
        RecordCheck.broker(broker_rules("4.8.0")),
        RecordCheck.broker(broker_rules("5.1.4", on)),
        RecordCheck.broker(broker_rules("5.4.0", on)),
        RecordCheck.reput(broker_rules("4.9.8")),
    ]
    for window in smallest():
        place = memory[len(memory) - len(window) :]
        place[:] = np.frombuffer(window, np.uint8)
        for check in checks[:2]:
            commitlog_columns.decode(Stretch(place, 0, 0, len(place), True), check, Columns(4, True), TopicTable())
    decoded = 0
    for _ in range(rounds):
        data = bytearray(record(rng, 0))
        if rng.random() < 0.5:
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, 0xE6])
        if rng.random() < 0.2:
            struct.pack_into(">h", data, len(data) - 2, rng.choice([-1, 32767, -32768]))
        data *= rng.choice([1, 1, 3])  # of equal records, the later ones are decoded by what is remembered of the first
        cut = rng.choice([0, 0, 0, 1, 7, rng.randrange(len(data))])
        window = bytes(data[: len(data) - cut])
        for start in (len(memory) - len(window), 0):  # flush with the page behind, and with the page before
            place = memory[start : start + len(window)]
            place[:] = np.frombuffer(window, np.uint8)
            for check in checks:
                columns = Columns(4, True)
                commitlog_columns.decode(Stretch(place, 0, 0, len(place), rng.random() < 0.5), check, columns, TopicTable())
                decoded += columns.count
    if decoded < rounds:
        raise AssertionError(f"only {decoded} messages were accepted: the windows were no test")
