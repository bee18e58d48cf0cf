"""Databases as RocksDB itself writes them, with the keys and values of a ConsumeQueue packed here byte by byte."""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=4096, queue_file=1000, slots=50, index_max=400)
Pairs = Iterable[tuple[bytes, bytes]]


def write_database(folder: Path, families: Mapping[str, Pairs], flush: bool = True) -> None:
    """A database with these column families; `default` is always there. Not flushed: everything is in the WAL alone."""
    rocksdict = pytest.importorskip("rocksdict")
    folder.mkdir(parents=True, exist_ok=True)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_log_dir(str(folder.parent))
    options.set_compression_type(rocksdict.DBCompressionType.zstd())
    tables = rocksdict.BlockBasedOptions()
    tables.set_format_version(5)  # brokers read no later one
    options.set_block_based_table_factory(tables)
    names = dict.fromkeys(("default", *families), options)
    database = rocksdict.Rdict(str(folder), options, names)
    for name, pairs in families.items():
        family = database.get_column_family(name)
        for key, value in pairs:
            family[key] = value
        if flush:
            family.flush()
    database.close()
    for rest in (*folder.parent.glob("*LOG*"), folder / "rocksdict-config.json"):
        rest.unlink(missing_ok=True)


def entry_key(topic: str, queue_id: int, queue_offset: int) -> bytes:
    name = topic.encode()
    return b"\1".join((struct.pack(">i", len(name)), name, struct.pack(">i", queue_id), struct.pack(">q", queue_offset)))


def entry_value(phy_offset: int, size: int, tags_code: int, store_time: int) -> bytes:
    return struct.pack(">qiqq", phy_offset, size, tags_code, store_time)


def offset_key(topic: str, queue_id: int, which: bytes) -> bytes:
    """which: b"max" or b"min"."""
    name = topic.encode()
    return b"\1".join((struct.pack(">i", len(name)), name, which, struct.pack(">i", queue_id)))


def offset_value(phy_offset: int, queue_offset: int) -> bytes:
    return struct.pack(">qq", phy_offset, queue_offset)


@dataclass
class KeyedStore:
    """A store with ConsumeQueues in RocksDB; `write` makes it, after its parts were changed at will.

    entries: (topic, queue id, queue offset) -> (physical offset, size, tags code, store time).
    maxima, minima: (topic, queue id) -> (physical offset, queue offset).
    """

    plain: Store
    entries: dict[tuple[str, int, int], tuple[int, int, int, int]] = field(default_factory=dict)
    maxima: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    minima: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    mark: int = 0

    @property
    def root(self) -> Path:
        return self.plain.root

    @property
    def records(self) -> list[Record]:
        return [r for r in self.plain.records if r.transaction in (0, builders.COMMIT)]

    @property
    def broker_conf(self) -> str:
        return self.plain.broker_conf + "storeType=defaultRocksDB\n"

    def put(self, record: Record) -> None:
        """Store a record's entry."""
        tags = builders.tags_code(record, release=self.plain.release)
        self.entries[record.topic, record.queue_id, record.queue_offset] = record.at, record.size, tags, record.store_time
        self.maxima[record.topic, record.queue_id] = record.at, record.queue_offset
        self.mark = record.at + record.size

    def write(self, folder: str = "consumequeue") -> KeyedStore:
        offsets = [(offset_key(t, q, b"max"), offset_value(*end)) for (t, q), end in self.maxima.items()]
        offsets += [(offset_key(t, q, b"min"), offset_value(*end)) for (t, q), end in self.minima.items()]
        if self.mark:
            offsets.append((offset_key("CHECKPOINT_TOPIC", 0, b"max"), struct.pack(">q", self.mark)))
        pairs = [(entry_key(*key), entry_value(*value)) for key, value in self.entries.items()]
        write_database(self.root / folder, {"default": pairs, "offset": offsets})
        return self


def keyed_store(root: Path, release: str = "5.3.3", clean: bool = True, dispatched: int = 60) -> KeyedStore:
    """Sixty messages of two topics with two queues each; the first `dispatched` have entries."""
    return keyed_of(_sixty(release).write(root, clean=clean), clean, dispatched)


def _sixty(release: str) -> StoreBuilder:
    builder = StoreBuilder(release, SIZES)
    for n in range(60):
        body = b"body %d " % n * (n % 5 + 1)
        builder.put(Message(f"Topic{n % 2}", n // 2 % 2, body, tags="TagA" if n % 3 else None, uniq=f"7F0000010{n:08X}"))
    return builder


def combined_store(root: Path, release: str = "5.4.0", clean: bool = True, dispatched: int = 60) -> KeyedStore:
    """The same messages with entries in files, too; in RocksDB the first `dispatched` have one."""
    keyed = keyed_store(root, release, clean, dispatched)
    folder = root / "consumequeue"
    plain = _sixty(release).write(root.parent / f"{root.name}-files", clean=clean)
    shutil.rmtree(folder)
    shutil.copytree(plain.root / "consumequeue", folder)
    shutil.copy(plain.root / "checkpoint", root / "checkpoint")
    shutil.rmtree(plain.root)
    return keyed


def light_store(root: Path, release: str = "5.4.0", dispatched: int = 60) -> KeyedStore:
    """The same messages, of which each third enters two light queues, too."""
    builder = StoreBuilder(release, SIZES, lmq=True)
    for n in range(60):
        light = ("%LMQ%a", "%LMQ%b") if n % 3 == 0 else ()
        builder.put(Message(f"Topic{n % 2}", n // 2 % 2, b"body %d " % n * 3, uniq=f"7F0000010{n:08X}", lmq=light))
    plain = builder.write(root)
    files = root.parent / f"{root.name}-queues"
    shutil.copytree(root / "consumequeue", files)
    shutil.copy(root / "checkpoint", files / "checkpoint")
    keyed = keyed_of(plain, True, dispatched)
    for number, record in enumerate(r for r in keyed.records[:dispatched] if "INNER_MULTI_DISPATCH" in r.properties):
        value = record.at, record.size, builders.tags_code(record, release=release), record.store_time
        for name in record.properties["INNER_MULTI_DISPATCH"].split(","):
            keyed.entries[name, 0, number] = value
            keyed.maxima[name, 0] = record.at, number
    shutil.copy(files / "checkpoint", root / "checkpoint")
    (files / "checkpoint").unlink()
    shutil.copytree(files, root / "consumequeue", dirs_exist_ok=True)
    shutil.rmtree(files)
    return keyed


TWICE = "rocksdbCQDoubleWriteEnable=true\ncombineCQUseRocksdbForLmq=true\n"


def keyed_batches(root: Path, offsets: Iterable[tuple[int, int]], release: str = "5.4.0") -> KeyedStore:
    """Inner batches of one queue: (queue offset, messages). One entry each, INNER_NUM alone."""
    builder = StoreBuilder(release, SIZES)
    for offset, count in offsets:
        flags = builders.NEED_UNWRAP | builders.INNER_BATCH
        properties = [("INNER_NUM", str(count))]
        builder.put(Message("Batch", 0, b"x" * 40, sys_flag=flags, properties=properties, queue_offset=offset))
    return keyed_of(builder.write(root))


def keyed_of(store: Store, clean: bool = True, dispatched: int = 1 << 30) -> KeyedStore:
    """The store with its queues in RocksDB; the first `dispatched` messages have entries. `write` makes the database."""
    root = store.root
    shutil.rmtree(root / "consumequeue")
    (root / "consumequeue").mkdir()
    checkpoint = root / "checkpoint"
    times = struct.unpack(">6q", checkpoint.read_bytes()[:48])
    checkpoint.write_bytes(struct.pack(">6q", times[0], 0, *times[2:5], 0).ljust(4096, b"\0"))
    keyed = KeyedStore(replace(store, clean=clean))
    for record in keyed.records[:dispatched]:
        keyed.put(record)
    return keyed


def read_database(folder: Path) -> dict[str, dict[bytes, bytes]]:
    """All entries of each family, read by RocksDB from a copy of the folder: the library leaves a file where it opens."""
    rocksdict = pytest.importorskip("rocksdict")
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        options = rocksdict.Options(raw_mode=True)
        names = rocksdict.Rdict.list_cf(copy, options)
        database = rocksdict.Rdict(copy, options, dict.fromkeys(names, options), rocksdict.AccessType.read_only(False))
        found = {name: dict(database.get_column_family(name).items()) for name in names}
        database.close()
        return found
