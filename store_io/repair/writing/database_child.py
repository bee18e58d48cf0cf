"""The program that writes a new database into a folder that is made for it. It runs by its own text (`python -c`), in a process
whose memory is limited: of the project it imports nothing.

It reads a line of JSON, with `families`: of each its kind of frame, its name and what is kept in it. Then frames as the program
that reads a database sends them (`database_reader_child`): entries of the family with that kind; X keys that are removed again
and K entries that take the place of those with the same key and the same last four bytes, both of the last family; F finish. It
answers with one line of JSON: how many entries of each family the database has, and a SHA-256 over them; or `error`, a text.

Options are those of the releases (RocksDBOptionsFactory, read at 5.3.3), and format version 5, which is all that their
library reads: it is older than this one.
"""

from __future__ import annotations

import array
import hashlib
import json
import os
import struct
import sys
from itertools import accumulate
from typing import Any

HEADER = struct.Struct("<cIQQ")
DEFAULT = "default"  # the family that every database has
BLOCK_BYTES = {"queues": 32 << 10, "ends": 32 << 10}  # of others:
TABLE_BLOCK_BYTES = 128 << 10
REMOVED, KEPT, FINISH = b"X", b"K", b"F"
BUFFER_BYTES = 32 << 20  # of entries in memory, before a table is written


def _limits(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for kind, value in (
        (resource.RLIMIT_AS, (memory_bytes, memory_bytes)),
        (resource.RLIMIT_CORE, (0, 0)),
        (resource.RLIMIT_NOFILE, (most, most)),
    ):
        try:
            resource.setrlimit(kind, value)
        except (ValueError, OSError):  # a lower limit holds already, or the system has no such one
            continue


def _options(rocksdict: Any, use: str) -> Any:
    table = rocksdict.BlockBasedOptions()
    table.set_format_version(5)
    table.set_block_size(BLOCK_BYTES.get(use, TABLE_BLOCK_BYTES))
    table.set_bloom_filter(16, False)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_error_if_exists(True)
    options.set_atomic_flush(True)
    options.set_keep_log_file_num(1)
    options.set_write_buffer_size(BUFFER_BYTES)
    options.set_num_levels(7)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    if use != "ends":
        table.set_data_block_index_type(rocksdict.DataBlockIndexType.binary_and_hash())
        table.set_data_block_hash_ratio(0.75)
        options.set_target_file_size_base(256 << 20)
    if use not in ("ends", "timers"):
        options.set_compaction_style(rocksdict.DBCompactionStyle.universal())
    if use == "queues":
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_bottommost_compression_type(rocksdict.DBCompressionType.zstd())
    options.set_block_based_table_factory(table)
    return options


def _bytes(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        raise EOFError("the entries end early")
    return data


def _take(rocksdict: Any, database: Any, handles: dict[bytes, Any], last: Any) -> bool:
    """Return one frame; whether another one follows. last: the last family."""
    kind, count, key_bytes, value_bytes = HEADER.unpack(_bytes(HEADER.size))
    if kind == FINISH:
        return False
    lengths = array.array("I", _bytes(8 * count))
    keys, values = _bytes(key_bytes), _bytes(value_bytes)
    batch, handle, k, v = rocksdict.WriteBatch(raw_mode=True), handles[kind], 0, 0
    for key_end, value_end in zip(accumulate(lengths[:count]), accumulate(lengths[count:]), strict=True):
        key, value = keys[k:key_end], values[v:value_end]
        if kind == REMOVED:
            batch.delete(key, handle)
        elif kind != KEPT or (last.get(key) or b"")[-4:] == value[-4:]:
            batch.put(key, value, handle)
        k, v = key_end, value_end
    database.write(batch)
    return True


def _counted(database: Any, families: list[str]) -> dict[str, Any]:
    """Return the whole, read back: for each entry its key's length, key, value's length and value, family after family."""
    digest, found = hashlib.sha256(), {}
    for name in families:
        count, entries = 0, database.get_column_family(name).iter()
        entries.seek_to_first()
        while entries.valid():
            key, value = entries.key(), entries.value()
            digest.update(b"".join((len(key).to_bytes(4, "big"), key, len(value).to_bytes(4, "big"), value)))
            count += 1
            entries.next()
        entries.status()
        found[name] = count
    return found | {"sha256": digest.hexdigest()}


def _write(request: dict[str, Any]) -> dict[str, Any]:
    try:
        import rocksdict
    except ImportError:
        return {"error": "the package rocksdict, which writes it, is not installed"}
    families = [name for _, name, _ in request["families"]]
    options = {name: _options(rocksdict, use) for _, name, use in request["families"]}
    database = rocksdict.Rdict(request["path"], options[DEFAULT], options)
    without_log: Any = rocksdict.WriteOptions()
    without_log.disable_wal = True
    database.set_write_options(without_log)
    handles = {kind.encode(): database.get_column_family_handle(name) for kind, name, _ in request["families"]}
    handles[REMOVED] = handles[KEPT] = database.get_column_family_handle(families[-1])
    while _take(rocksdict, database, handles, database.get_column_family(families[-1])):
        pass
    for name in families:
        family = database.get_column_family(name)
        family.flush(True)
        family.compact_range(None, None)
    found = _counted(database, families)
    database.close()
    return found


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    _limits(request["memory_bytes"])
    try:
        answer = _write(request)
    except BaseException as error:  # the library raises Exception itself, and has panics besides
        answer = {"error": str(error)[:1000] or type(error).__name__}
    os.write(1, json.dumps(answer).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
