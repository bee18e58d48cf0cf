"""The program that opens a database and writes its entries to a pipe. It runs by its own text (`python -c`), in a process whose
memory is limited and that may die: of the project it imports nothing.

It reads a line of JSON per request and answers each with frames. A frame: kind, number of entries, bytes of keys, bytes of
values (all little-endian), then the lengths of the keys, those of the values, the keys, the values. Kinds: E entries; D done;
and, with a JSON text in the place of the keys: O opened, B bad bytes, N not readable.
"""

from __future__ import annotations

import json
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # each import costs the process a part of its start
    from typing import Any

HEADER = struct.Struct("<cIQQ")
OUT = 1


def _limits(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for kind, value in (
        (resource.RLIMIT_AS, (memory_bytes, memory_bytes)),
        (resource.RLIMIT_CORE, (0, 0)),
        (resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        (resource.RLIMIT_NOFILE, (most, most)),
    ):
        try:
            resource.setrlimit(kind, value)
        except (ValueError, OSError):  # a lower limit holds already, or the system has no such one
            continue


def _send(kind: bytes, count: int, keys: bytes, *rest: bytes) -> None:
    size = len(rest[-1]) if rest else 0
    data = memoryview(b"".join([HEADER.pack(kind, count, len(keys), size), *rest[:-1], keys, *rest[-1:]]))
    while len(data):
        data = data[os.write(OUT, data) :]


def _say(kind: bytes, value: Any) -> None:
    _send(kind, 0, json.dumps(value).encode())


def _failed(error: BaseException) -> None:
    """Report an error: as bad bytes if RocksDB's words say so or a file is missing, else as other trouble."""
    text = str(error)
    bad = text.startswith(("Corruption", "Invalid argument", "Not implemented", "NotFound")) or "No such file" in text
    _say(b"B" if bad else b"N", text)


def _open(request: dict[str, Any]) -> Any:
    try:
        import rocksdict
    except ImportError as error:
        _say(
            b"N",
            "the package rocksdict, which reads it, is not installed" + ("" if error.name == "rocksdict" else f" ({error.name})"),
        )
        return None
    options = rocksdict.Options(raw_mode=True)
    options.set_paranoid_checks(True)
    options.set_keep_log_file_num(1)
    tables = rocksdict.BlockBasedOptions()
    tables.set_bloom_filter(16, False)  # as a broker: where a filter knows that a key is not there, bad bytes do not matter
    options.set_block_based_table_factory(tables)
    if request.get("skips_bad_log"):
        options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.skip_any_corrupted_record())
    try:
        names = rocksdict.Rdict.list_cf(request["path"], options)
        access = rocksdict.AccessType.read_only(False)
        database = rocksdict.Rdict(request["path"], options, dict.fromkeys(names, options), access)
        families = {name: database.get_column_family(name) for name in names}
        files = [
            {"name": os.path.basename(file["name"]), "level": file["level"], "first": (file["start_key"] or b"").hex()}
            for file in database.live_files()
        ]
    except BaseException as error:  # the library raises Exception itself, and has panics besides
        _failed(error)
        return None
    _say(b"O", {"families": names, "files": files})
    return rocksdict, families


def _scan(opened: Any, request: dict[str, Any]) -> None:
    rocksdict, families = opened
    options = rocksdict.ReadOptions()
    if request["end"] is not None:
        options.set_iterate_upper_bound(bytes.fromhex(request["end"]))
    options.set_verify_checksums(True)
    rows, most, largest = request["rows"], request["batch_bytes"], request["entry_bytes"]
    left = request["limit"]
    try:
        entries = families[request["family"]].iter(options)
        entries.seek(bytes.fromhex(request["first"]))
        while entries.valid() and left:
            keys, values, size = [], [], 0
            for _ in range(min(rows, left) if left > 0 else rows):
                if size >= most or not entries.valid():
                    break
                key, value = entries.key(), entries.value()
                if len(key) + len(value) > largest:
                    _say(b"N", f"an entry of {len(key) + len(value):,} bytes, more than the {largest:,} that are taken")
                    return
                keys.append(key)
                values.append(value)
                size += len(key) + len(value)
                entries.next()
            left -= len(keys) if left > 0 else 0
            lengths = struct.pack(f"<{2 * len(keys)}I", *map(len, keys), *map(len, values))
            _send(b"E", len(keys), b"".join(keys), lengths, b"".join(values))
        entries.status()  # raises what ended the iteration early
    except BaseException as error:
        _failed(error)
        return
    _say(b"D", None)


def _get(opened: Any, request: dict[str, Any]) -> None:
    """Send the value at one key. Unlike an iteration it reads no table that is older than the one with the value."""
    rocksdict, families = opened
    key = bytes.fromhex(request["get"])
    options = rocksdict.ReadOptions()
    options.set_verify_checksums(True)
    family = families[request["family"]]
    family.set_read_options(options)
    try:
        value = family.get(key)
    except BaseException as error:
        _failed(error)
        return
    if value is not None and len(key) + len(value) <= request["entry_bytes"]:
        _send(b"E", 1, key, struct.pack("<2I", len(key), len(value)), value)
    _say(b"D", None)


def main() -> None:
    first = json.loads(sys.stdin.readline())
    _limits(first["memory_bytes"])
    opened = _open(first)
    while opened is not None:
        line = sys.stdin.readline()
        if not line:
            break
        request = json.loads(line)
        (_get if "get" in request else _scan)(opened, request)
    os._exit(0)  # without the library's own clearing up, which would only cost time


if __name__ == "__main__":
    main()
