"""DLedger's data files: 48 bytes before each record, and a filler whose magic comes before its size (dledger.md 1).

Source: DLedgerCommitLog.checkMessageAndReturnSize (skips the header unread), DLedgerEntryCoder, MmapFileList.preAppend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas import dledger_layout as layout


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

    header_bytes: int = layout.HEADER_BYTES
    filler_magic: bytes = layout.MAGIC_BLANK_BYTES
    filler_magic_position: int = 0
    broker_reads_header: bool = False

    def frames(self, path: str) -> bool:
        return not path or path.startswith(layout.FOLDER_PREFIX)

    def accepts(self, headers: np.ndarray, sizes: np.ndarray, phy_offsets: np.ndarray) -> np.ndarray:
        found = np.ascontiguousarray(headers).view(layout.HEADER_DTYPE)[:, 0]
        accepted: np.ndarray = (
            (found["magic"] == layout.MAGIC)
            & (found["size"] == sizes + layout.HEADER_BYTES)
            & (found["body_size"] == sizes)
            & (found["pos"] == phy_offsets - layout.HEADER_BYTES)
            & (found["index"] >= 0)
            & (found["term"] >= 0)
        )
        return accepted

    def fault(self, header: bytes, size: int, phy_offset: int) -> tuple[str, str]:
        wrong = next((p for p in self.parts(header, size, phy_offset) if not p.right), None)
        return ("", "") if wrong is None else (f"{wrong.name} {wrong.wanted}", f"{wrong.name} {wrong.value}")

    def parts(self, header: bytes, size: int, phy_offset: int) -> list[HeaderPart]:
        found = np.frombuffer(header, layout.HEADER_DTYPE)[0]
        exact = {
            "magic": layout.MAGIC,
            "size": size + layout.HEADER_BYTES,
            "pos": phy_offset - layout.HEADER_BYTES,
            "body_size": size,
        }
        parts = []
        for name in layout.HEADER_DTYPE.names or ():
            kind, at = layout.HEADER_DTYPE.fields[name][:2]  # type: ignore[index]
            value, data = int(found[name]), header[at : at + kind.itemsize]
            if name in exact:
                parts.append(HeaderPart(name, at, data, value, str(exact[name]), value == exact[name]))
            elif name in ("index", "term"):
                parts.append(HeaderPart(name, at, data, value, "of at least 0", value >= 0))
            else:
                parts.append(HeaderPart(name, at, data, value))
        return parts
