"""Names, sizes and digests of all files of a copied store, as text. A copy is compared with such a text.

One line a file, in the order of names: SHA-256 in hexadecimal, the size in bytes, the path, with one space between. A path with
anything but printable ASCII in it is written as a JSON string.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from store_io.base.errors import UsageError
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.store_dir import list_store

HEAD = "# store-audit manifest 1"
WINDOW_BYTES = 4 << 20
_LINE = re.compile(r'([0-9a-f]{64}) ([0-9]{1,19}) (".*"|[^"].*)')


@dataclass(frozen=True)
class ManifestRow:
    """One file."""

    path: str
    size: int
    digest: str

    def line(self) -> str:
        plain = self.path.isascii() and self.path.isprintable() and not self.path.startswith('"')
        return f"{self.digest} {self.size} {self.path if plain else json.dumps(self.path)}"


def manifest_paths(location: StoreLocation) -> list[str]:
    """Return all regular files of the store, by name. Raises StoreError."""
    source = open_source(location)
    found = {e.path: e for e in list_store(location).files}
    for entry in list(found.values()):
        if entry.kind == "directory" and "/" not in entry.path:
            found.update((e.path, e) for e in source.list_tree(entry.path))
    return sorted(path for path, entry in found.items() if entry.kind == "file")


def manifest_row(source: ByteSource, path: str, check: Callable[[], None] = lambda: None) -> ManifestRow:
    """Read one file. Raises StoreError. check: called before each window is read; what it raises ends the reading."""
    digest = hashlib.sha256()
    buffer = bytearray(WINDOW_BYTES)
    with source.open(path) as file:
        at = 0
        while at < file.size:
            check()
            count = file.read_into(at, memoryview(buffer))
            digest.update(memoryview(buffer)[:count])
            at += count
        return ManifestRow(path, file.size, digest.hexdigest())


def read_manifest(text: str) -> dict[str, ManifestRow]:
    """Return the rows of a manifest by path. Raises UsageError."""
    lines = text.splitlines()
    if lines[:1] != [HEAD]:
        raise UsageError(f"no list that manifest wrote: its first line is not {HEAD!r}")
    found = {}
    for number, line in enumerate(lines[1:], 2):
        match = _LINE.fullmatch(line)
        try:
            path = json.loads(match[3]) if match and match[3].startswith('"') else match[3] if match else None
        except ValueError:
            path = None
        if match is None or not isinstance(path, str) or path in found:
            raise UsageError(f"line {number} of the manifest is none, or names a file twice")
        found[path] = ManifestRow(path, int(match[2]), match[1])
    return found


def manifest_differences(source: ByteSource, paths: list[str], known: dict[str, ManifestRow]) -> Iterator[str]:
    """Yield a sentence for each file that is not as the manifest says."""
    for path in sorted({*paths, *known}):
        then = known.get(path)
        if then is None:
            yield f"{path}: is not in the manifest"
        elif path not in paths:
            yield f"{path}: is in the manifest and not there"
        else:
            now = manifest_row(source, path)
            if now.size != then.size:
                yield f"{path}: {then.size} bytes in the manifest, {now.size} there"
            elif now.digest != then.digest:
                yield f"{path}: other bytes than those of the manifest"
