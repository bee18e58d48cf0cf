"""Says how records lie one after the other in a segment: RocketMQ's own framing, and DLedger's (dledger.md 1).

A frame is a header of always the same length, if the framing has one, and a record of RocketMQ's own form. The record stores its
own physical offset; ConsumeQueues and the index name that, never the frame's. What may follow the last frame of a segment is a
filler. All that walks a segment asks the framing of its `RecordCheck`. DLedger's data files have 48 bytes before each record, and
a filler whose magic comes before its size.

Another framing is a module and a line in `FRAMINGS`, and more: CONTRIBUTING.md, "add a framing of the log".
Source: DLedgerCommitLog.checkMessageAndReturnSize (skips the header unread), DLedgerEntryCoder, MmapFileList.preAppend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.layouts import dledger_layout
from store_io.broker.releases import BrokerRules


@dataclass(frozen=True)
class HeaderPart:
    """One field of an entry header.

    at: the position of the field in the header.
    wanted: the value that the field must have; None if any value will do.
    """

    name: str
    at: int
    data: bytes
    value: int
    wanted: str | None = None
    right: bool = True


@dataclass(frozen=True)
class DLedgerFraming:
    """The framing of files below a group's folder; the older part of a mixed store, in commitlog/, has plain records."""

    header_bytes: int = dledger_layout.HEADER_BYTES
    filler_magic: bytes = dledger_layout.MAGIC_BLANK_BYTES
    filler_magic_position: int = 0
    broker_reads_header: bool = False

    def frames(self, path: str) -> bool:
        return not path or path.startswith(dledger_layout.FOLDER_PREFIX)

    def accepts(self, headers: np.ndarray, sizes: np.ndarray, phy_offsets: np.ndarray) -> np.ndarray:
        found = np.ascontiguousarray(headers).view(dledger_layout.HEADER_DTYPE)[:, 0]
        accepted: np.ndarray = (
            (found["magic"] == dledger_layout.MAGIC)
            & (found["size"] == sizes + dledger_layout.HEADER_BYTES)
            & (found["body_size"] == sizes)
            & (found["pos"] == phy_offsets - dledger_layout.HEADER_BYTES)
            & (found["index"] >= 0)
            & (found["term"] >= 0)
        )
        return accepted

    def fault(self, header: bytes, size: int, phy_offset: int) -> tuple[str, str]:
        wrong = next((p for p in self.parts(header, size, phy_offset) if not p.right), None)
        return ("", "") if wrong is None else (f"{wrong.name} {wrong.wanted}", f"{wrong.name} {wrong.value}")

    def parts(self, header: bytes, size: int, phy_offset: int) -> list[HeaderPart]:
        found = np.frombuffer(header, dledger_layout.HEADER_DTYPE)[0]
        exact = {
            "magic": dledger_layout.MAGIC,
            "size": size + dledger_layout.HEADER_BYTES,
            "pos": phy_offset - dledger_layout.HEADER_BYTES,
            "body_size": size,
        }
        parts = []
        for name in dledger_layout.HEADER_DTYPE.names or ():
            kind, at = dledger_layout.HEADER_DTYPE.fields[name][:2]  # type: ignore[index]
            value, data = int(found[name]), header[at : at + kind.itemsize]
            if name in exact:
                parts.append(HeaderPart(name, at, data, value, str(exact[name]), value == exact[name]))
            elif name in ("index", "term"):
                parts.append(HeaderPart(name, at, data, value, "of at least 0", value >= 0))
            else:
                parts.append(HeaderPart(name, at, data, value))
        return parts


class Framing(Protocol):
    """The facts about frames that a walk needs besides the record in them. Picklable."""

    @property
    def header_bytes(self) -> int:
        """Return bytes of a frame before its record."""

    @property
    def filler_magic(self) -> bytes:
        """Return four bytes of a filler's first eight."""

    @property
    def filler_magic_position(self) -> int:
        """Return the position of the filler's magic: 0 or 4. The filler's size has the other four bytes."""

    @property
    def broker_reads_header(self) -> bool:
        """Say whether a broker's check of the record looks at the header too, and does not only pass over it."""

    def frames(self, path: str) -> bool:
        """Say whether the log's file with this path is framed so. A store may hold an older part that is not. "": any file."""

    def accepts(self, headers: np.ndarray, sizes: np.ndarray, phy_offsets: np.ndarray) -> np.ndarray:
        """Say whether each header belongs to the record after it. Asked only if frames have headers.

        headers: uint8, a row of `header_bytes` per record.
        sizes, phy_offsets: int64, as the records store them.
        """

    def fault(self, header: bytes, size: int, phy_offset: int) -> tuple[str, str]:
        """Return (expected, actual) of a header that is not accepted. Asked only if frames have headers."""

    def parts(self, header: bytes, size: int, phy_offset: int) -> list[HeaderPart]:
        """Return the header's fields for people, in order; those that are checked say what they must be."""


@dataclass(frozen=True)
class PlainFraming:
    """The framing of a plain CommitLog: each record begins at the end of the one before.

    A filler is a frame that ends after its magic.
    """

    header_bytes: int = 0
    filler_magic: bytes = layout.MAGIC_BLANK_BYTES
    filler_magic_position: int = layout.MAGIC_POSITION
    broker_reads_header: bool = False

    def frames(self, path: str) -> bool:
        return True

    def accepts(self, headers: np.ndarray, sizes: np.ndarray, phy_offsets: np.ndarray) -> np.ndarray:
        return np.ones(len(sizes), bool)

    def fault(self, header: bytes, size: int, phy_offset: int) -> tuple[str, str]:
        return "", ""

    def parts(self, header: bytes, size: int, phy_offset: int) -> list[HeaderPart]:
        return []


PLAIN = PlainFraming()
FRAMINGS: dict[str, Framing] = {"enableDLegerCommitLog": DLedgerFraming()}  # setting -> framing; PLAIN if none of them is on


def framing_of(rules: BrokerRules, path: str = "") -> Framing:
    """Return how a broker with these settings frames the records of the log's file with this path."""
    return next((framing for setting, framing in FRAMINGS.items() if rules.value(setting) and framing.frames(path)), PLAIN)


def filler_size(framing: Framing, head: bytes) -> int | None:
    """Return the size that a filler with these first eight bytes declares; None: they are no filler's."""
    at = framing.filler_magic_position
    if head[at : at + 4] != framing.filler_magic:
        return None
    return int.from_bytes(head[4 - at : 8 - at], "big", signed=True)
