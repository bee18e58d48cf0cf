"""Reads the epoch file and the broker's identity of controller mode, as the broker reads them (controller.md 1, 2).

The epoch file gives epochs, or start() fails over it. It is text: the number of entries; CRC-32 of the entry lines, 31 bits of
it, not checked if it is 0; then a line `epoch-start` each. `brokerIdentity` says by which name and id the controller knows the
broker: `cluster#broker#id` once the id is the broker's own; before that `brokerIdentity-temp`, with the id that it asks for and a
code.
Source: CheckpointFile.read, EpochFileCache.initCacheFromFile and EpochEntrySerializer.fromLine, 5.0.0 to 5.3.3; BrokerMetadata,
TempBrokerMetadata, ReplicasManager.register.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.advice import Gap, Refusal, RefusalKind
from schemas.layouts.store_names import EPOCH_FILE, IDENTITY_FILE
from schemas.start_effect import BrokerIdentity as BrokerIdentity
from store_io.base.crc.checksum import crc32
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import decode_utf8, parse_number, split_dropping_tail
from store_io.broker.epochs import Epoch, as_cached
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

EPOCH_FILE_BYTES = 1 << 20  # of one of the two files; a broker's has some twenty bytes for each master that there ever was
FILES = (EPOCH_FILE, EPOCH_FILE + ".bak")
CRC_MASK = 0x7FFFFFFF
_BUFFER_BYTES = 8192  # of the JDK's reader: text that is no UTF-8 fails when its buffer is decoded
_LINE_END = re.compile(r"\r\n|\r|\n")
IDENTITY_BYTES = 4 << 10  # names of clusters and brokers have at most 255 characters


@dataclass(frozen=True)
class EpochLine:
    """An entry and its bytes in the file, [start, end), without the line's end."""

    epoch: Epoch
    start: int
    end: int


@dataclass(frozen=True)
class BadEpochFile:
    """One of the two files that cannot be used. fatal: start() fails over it; else the other file is read."""

    path: str
    size: int
    reason: str
    fatal: bool


@dataclass(frozen=True)
class StoredEpochs:
    """The epochs that the broker holds after start().

    epochs: by number.
    path: the file that gives them, "" without one.
    lines: as that file has them.
    refusal: why start() fails over the file, if it does.
    problem: a file could not be read; all else is void.
    """

    epochs: tuple[Epoch, ...] = ()
    path: str = ""
    lines: tuple[EpochLine, ...] = ()
    bad: tuple[BadEpochFile, ...] = ()
    refusal: Refusal | None = None
    problem: Gap | None = None


class Unusable(Exception):
    """The broker turns to the .bak: its IOException."""


class Fatal(Exception):
    """start() fails: a NumberFormatException, which nobody catches."""


@dataclass(frozen=True)
class _Line:
    text: str
    start: int
    end: int


def read_epochs(source: ByteSource, listing: StoreListing) -> StoredEpochs:
    """Return the store's epochs. Any bytes give an answer; a file that cannot be opened gives `problem`."""
    bad: list[BadEpochFile] = []
    for path in FILES:
        entry = listing.get(path)
        if entry is None:
            continue
        try:
            if entry.kind == "directory":
                raise Unusable("a folder")
            lines = parse_epochs(source.read_small(path, EPOCH_FILE_BYTES))
        except Unusable as why:
            bad.append(BadEpochFile(path, entry.size, str(why), fatal=False))
        except Fatal as why:
            bad.append(BadEpochFile(path, entry.size, str(why), fatal=True))
            return StoredEpochs(bad=tuple(bad), refusal=Refusal(RefusalKind.EPOCH_FILE, path, actual=str(why)))
        except StoreError as why:
            return StoredEpochs(problem=why.gap())
        else:
            if lines:
                return StoredEpochs(as_cached([line.epoch for line in lines]), path, tuple(lines), tuple(bad))
    return StoredEpochs(bad=tuple(bad))


def parse_epochs(data: bytes) -> list[EpochLine]:
    """Return the entries of one file, in its order. Raises Unusable if the broker turns to the .bak, Fatal if it ends."""
    text, broken = _decoded(data)
    lines = list(_lines(text, whole=not broken))
    count = _number(lines, 0, "number of entries", broken)
    checksum = _number(lines, 1, "checksum", broken)
    entries = [entry for line in lines[2:] if (entry := _entry(line)) is not None]
    if broken:
        raise Unusable("it is no UTF-8")
    if len(entries) != count:
        raise Unusable(f"its first line says {count} entries, and it has {len(entries)}")
    found = entries_crc([line.text for line in lines[2:]])
    if checksum not in (0, found):
        raise Unusable(f"its checksum is {checksum}, that of its entries {found}")
    return entries


def entries_crc(lines: Sequence[str]) -> int:
    """Return the checksum of these entry lines."""
    return crc32("".join(line + "\n" for line in lines).encode()) & CRC_MASK


def epoch_text(epochs: Sequence[Epoch]) -> bytes:
    """Return the file as a broker writes it. epochs: at least one; a broker never writes none."""
    lines = [f"{epoch.epoch}-{epoch.start}" for epoch in epochs]
    return "".join(f"{line}\n" for line in (len(lines), entries_crc(lines), *lines)).encode()


def _decoded(data: bytes) -> tuple[str, bool]:
    """Return the text, up to the buffer in which it is no UTF-8; whether there is such a one."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError as error:
        return data[: error.start // _BUFFER_BYTES * _BUFFER_BYTES].decode("utf-8", "ignore"), True


def _lines(text: str, whole: bool) -> Iterator[_Line]:
    """Yield lines as BufferedReader.readLine gives them. whole: what follows the last line's end counts, too."""
    at = place = 0
    for match in _LINE_END.finditer(text):
        line = text[at : match.start()]
        yield _Line(line, place, place + len(line.encode()))
        place += len(text[at : match.end()].encode())
        at = match.end()
    if whole and at < len(text):
        yield _Line(text[at:], place, place + len(text[at:].encode()))


def _number(lines: Sequence[_Line], at: int, what: str, broken: bool) -> int:
    if at >= len(lines) and broken:
        raise Unusable("it is no UTF-8")
    number = parse_number(lines[at].text, 32) if at < len(lines) else None
    if number is None:
        raise Fatal(f"line {at + 1} is no {what}" if lines else "it is empty")
    return number


def _entry(line: _Line) -> EpochLine | None:
    """Return the entry of one line, or None. A line that has not two parts counts for the checksum alone."""
    parts = split_dropping_tail(line.text, "-")
    if len(parts) != 2:
        return None
    epoch, start = parse_number(parts[0], 32), parse_number(parts[1], 64)
    if epoch is None or start is None:
        raise Fatal("a line of it has no number of an epoch, or no start")
    return EpochLine(Epoch(epoch, start), line.start, line.end)


def read_identity(source: ByteSource, listing: StoreListing) -> BrokerIdentity | None:
    """Read the broker's identity; None if no file holds it. A start without one registers as a new replica. Never raises."""
    for path, parts in ((IDENTITY_FILE, 3), (IDENTITY_FILE + "-temp", 4)):
        if not listing.is_file(path):
            continue
        try:
            text = decode_utf8(source.read_small(path, IDENTITY_BYTES))
        except StoreError:
            continue
        found = split_dropping_tail(text, "#")
        number = parse_number(found[2], 64) if len(found) >= parts else None
        if number is not None:
            return BrokerIdentity(found[0], found[1], number, parts == 4)
    return None
