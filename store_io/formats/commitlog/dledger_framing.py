"""DLedger's data files: 48 bytes before each record, and a filler whose magic comes before its size (dledger.md 1).

Source: DLedgerCommitLog.checkMessageAndReturnSize (skips the header unread), DLedgerEntryCoder, MmapFileList.preAppend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas import dledger_layout as layout


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
        found = np.frombuffer(header, layout.HEADER_DTYPE)[0]
        whole = size + layout.HEADER_BYTES
        pos = phy_offset - layout.HEADER_BYTES
        for name, wanted in (("magic", layout.MAGIC), ("size", whole), ("body_size", size), ("pos", pos)):
            if found[name] != wanted:
                return f"{name} {wanted}", f"{name} {found[name]}"
        return "index and term of at least 0", f"index {found['index']}, term {found['term']}"
