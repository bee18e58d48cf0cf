"""The epoch file of controller mode, read as the broker reads it: which epochs it gives, or that start() fails over it.

Text: the number of entries; CRC-32 of the entry lines, 31 bits of it, 0 where it is not checked; then a line `epoch-start` each.
Source: CheckpointFile.read, EpochFileCache.initCacheFromFile and EpochEntrySerializer.fromLine, 5.0.0 to 5.3.3 (controller.md 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.store_names import EPOCH_FILE
from store_io.base.checksum import crc32
from store_io.base.errors import StoreError
from store_io.base.java_compat import parse_number, split_dropping_tail
from store_io.rules.controller.epochs import Epoch, as_cached
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

EPOCH_FILE_BYTES = 1 << 20  # of one of the two files; a broker's has some twenty bytes for each master that there ever was
CRC_MASK = 0x7FFFFFFF
_BUFFER_BYTES = 8192  # of the JDK's reader: text that is no UTF-8 fails when its buffer is decoded
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class BadEpochFile:
    """One of the two files that cannot be used. fatal: start() fails over it; else the other file is read."""

    path: str
    size: int
    reason: str
    fatal: bool


@dataclass(frozen=True)
class StoredEpochs:
    """What the broker holds after start(). epochs: by number.  path: the file that gives them, "" without one.

    refusal: the sentence with which start() fails, else empty.  problem: the files could not be read; all else is void.
    """

    epochs: tuple[Epoch, ...] = ()
    path: str = ""
    lines: tuple[Epoch, ...] = ()
    bad: tuple[BadEpochFile, ...] = ()
    refusal: str = ""
    problem: str = ""


class _Unusable(Exception):
    """An IOException: the .bak is read next."""


class _Fatal(Exception):
    """A NumberFormatException: nobody catches it."""


def read_epochs(source: ByteSource, listing: StoreListing) -> StoredEpochs:
    """The store's epochs. Any bytes give an answer; a file that cannot be opened gives `problem`."""
    bad: list[BadEpochFile] = []
    for path in (EPOCH_FILE, EPOCH_FILE + ".bak"):
        entry = listing.get(path)
        if entry is None:
            continue
        try:
            if entry.kind == "directory":
                raise _Unusable("a folder")
            lines = parse_epochs(source.read_small(path, EPOCH_FILE_BYTES))
        except _Unusable as why:
            bad.append(BadEpochFile(path, entry.size, str(why), fatal=False))
        except _Fatal as why:
            bad.append(BadEpochFile(path, entry.size, str(why), fatal=True))
            return StoredEpochs(bad=tuple(bad), refusal=f"{path}: {why}, over which start() throws a NumberFormatException")
        except StoreError as why:
            return StoredEpochs(problem=str(why))
        else:
            if lines:
                return StoredEpochs(as_cached(lines), path, tuple(lines), tuple(bad))
    return StoredEpochs(bad=tuple(bad))


def parse_epochs(data: bytes) -> list[Epoch]:
    """The entries of one file, in its order. Raises _Unusable where the broker turns to the .bak, _Fatal where it ends."""
    text, broken = _decoded(data)
    lines = _LINE_END.split(text)
    complete = lines[:-1] if broken or lines[-1] == "" else lines
    count = _number(complete, 0, 32, "number of entries", broken)
    checksum = _number(complete, 1, 32, "checksum", broken)
    entries = [entry for line in complete[2:] if (entry := _entry(line)) is not None]
    if broken:
        raise _Unusable("bytes that are no UTF-8")
    if len(entries) != count:
        raise _Unusable(f"{count} entries by its first line, {len(entries)} in it")
    found = crc32("".join(line + "\n" for line in complete[2:]).encode()) & CRC_MASK
    if checksum not in (0, found):
        raise _Unusable(f"its checksum is {checksum}, that of its entries {found}")
    return entries


def _decoded(data: bytes) -> tuple[str, bool]:
    """The text, up to the buffer in which it is no UTF-8; whether there is such a one."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError as error:
        good = data[: error.start // _BUFFER_BYTES * _BUFFER_BYTES]
        return good.decode("utf-8", "ignore"), True


def _number(lines: list[str], at: int, bits: int, what: str, broken: bool) -> int:
    if at >= len(lines) and broken:
        raise _Unusable("bytes that are no UTF-8")
    line = lines[at] if at < len(lines) else None
    number = parse_number(line, bits)
    if number is None:
        raise _Fatal("an empty file" if line is None and at == 0 else f"its line {at + 1} is no {what}")
    return number


def _entry(line: str) -> Epoch | None:
    """One line; None where it has not two parts: such a line only counts for the checksum."""
    parts = split_dropping_tail(line, "-")
    if len(parts) != 2:
        return None
    epoch, start = parse_number(parts[0], 32), parse_number(parts[1], 64)
    if epoch is None or start is None:
        raise _Fatal("a line of it holds no epoch and start")
    return Epoch(epoch, start)
