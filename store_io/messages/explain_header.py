"""The header before a record, field by field, and each check of it by its field's name; DLedger's against its index unit too.

Source: DLedgerEntryCoder, DLedgerMmapFileStore.recover (dledger.md 1, 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas import commitlog_layout
from schemas import dledger_layout as layout
from schemas.rows import MappedFile
from store_io.broker.message_verdict import Frames
from store_io.kinds.dledger.unit_reader import unit_of
from store_io.log.records.dledger_framing import HeaderPart
from store_io.log.records.framing import Framing
from store_io.messages.explain_record import Field
from store_io.source.byte_source import ByteSource


@dataclass(frozen=True)
class HeaderCheck:
    """The result of one check of the header.

    expected, actual: the two values, if it fails.
    """

    name: str
    passes: bool
    expected: str = ""
    actual: str = ""


class HeaderReader:
    """Reads entry headers.

    index: the group's own index files; none if the log is no DLedger's.
    """

    def __init__(self, source: ByteSource, index: Sequence[MappedFile]):
        self.source, self.index = source, tuple(index)

    def read(self, framing: Framing, frames: Frames, position: int, phy_offset: int) -> tuple[list[Field], list[HeaderCheck]]:
        """Fields and checks of the header at that position of a segment. phy_offset: of the record after it."""
        size, record = framing.header_bytes, position + framing.header_bytes
        header = bytes(frames.read(position, record))
        total = bytes(frames.read(record, record + commitlog_layout.MAGIC_POSITION))
        if not size or len(header) < size or len(total) < commitlog_layout.MAGIC_POSITION:
            return [], []
        parts = framing.parts(header, int.from_bytes(total, "big", signed=True), phy_offset)
        fields = [
            Field(f"header {p.name}", p.at - size, len(p.data), p.data, str(p.value), "" if p.right else f"expected {p.wanted}")
            for p in parts
        ]
        checks = [_check(p) for p in parts if p.wanted is not None]
        return fields, [*checks, *self._unit(parts)]

    def _unit(self, parts: Sequence[HeaderPart]) -> list[HeaderCheck]:
        values = {part.name: part.value for part in parts}
        unit = unit_of(self.source, self.index, values.get("index", -1)) if self.index else None
        if unit is None:
            return []
        wanted = {"magic": layout.MAGIC, **{name: values[name] for name in ("pos", "size", "index", "term")}}
        found = {name: int(unit[name]) for name in wanted}
        name = f"index unit {values['index']}"
        if found == wanted:
            return [HeaderCheck(name, True)]
        wrong = [key for key in wanted if found[key] != wanted[key]]
        return [HeaderCheck(name, False, *(", ".join(f"{key} {of[key]}" for key in wrong) for of in (wanted, found)))]


def _check(part: HeaderPart) -> HeaderCheck:
    if part.right:
        return HeaderCheck(part.name, True)
    return HeaderCheck(part.name, False, part.wanted or "", str(part.value))
