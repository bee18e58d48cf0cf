"""Explains a place of a DLedger log: the header before its record, and a start's effect (dledger.md 1, 3, 6).

Each field of the header is checked by its name, against its index unit too. DLedger's recovery follows entry headers and checks
no message, so a message that fails a check says nothing of the log's end. The last data files are read for that; if recovery
begins before them, only an audit knows the end.
Source: DLedgerEntryCoder, DLedgerMmapFileStore.recover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from schemas.finding_codes import STOP_REASONS
from schemas.layouts import commitlog_layout
from schemas.layouts import dledger_layout as layout
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.broker.message_verdict import Frames
from store_io.broker.prediction import Refused
from store_io.kinds.dledger.entry_walk import DataTask, walk_data
from store_io.kinds.dledger.ledger_kind import LEDGER
from store_io.kinds.dledger.ledger_recovery import recovered_end
from store_io.kinds.dledger.ledger_walks import DataWalk
from store_io.kinds.dledger.unit_reader import unit_of
from store_io.log.records.framing import Framing, HeaderPart
from store_io.messages.explain.explain_record import Field
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_sentence


class LedgerStart(NamedTuple):
    """The work of a broker's start at one place of a DLedger log.

    sentence: what a start does here.
    end: the log's end as a physical offset, and its reason; None: not known here.
    scans: whether a walk that checks messages follows recovery.
    in_log: whether the file is one of DLedger's own.
    """

    sentence: str
    end: tuple[int, str] | None
    scans: bool
    in_log: bool


def ledger_start(copy: OpenedCopy, location: StoreLocation, file: MappedFile, phy_offset: int) -> LedgerStart | None:
    """Return the effect of a start on this file; None if recovery is that of an ordinary log. Raises StoreError."""
    files = copy.loaded.ledger
    if files is None or not copy.ledger_data:
        return None
    release = f"RocketMQ {copy.rules.release}"
    if not file.path.startswith(files.folder + "/"):
        older = f"{release} reads nothing of this file when it starts: the log continues in {files.folder}/"
        return LedgerStart(older, None, False, False)

    def walk_of(each: MappedFile) -> DataWalk:
        walk = walk_data(DataTask(0, location, each, copy[LEDGER].index), copy.source)
        if walk.problem:
            raise StoreError(gap_text(walk.problem))
        return walk

    scans = copy.unclean and copy.rules.ledger_crash_dispatch
    finds = f"{release} finds the log's end by the headers of entries alone"
    refusal, end = files.refusal, None
    if files.data and not refusal:
        try:
            end = recovered_end(files, walk_of, copy.rules)
        except Refused as refused:
            refusal = refused.refusal
    if refusal:
        return LedgerStart(f"{release} does not start with this log: {refusal_sentence(refusal)}", None, scans, True)
    if end is None:
        return LedgerStart(f"{finds}; the audit says where that is", None, scans, True)
    before = ", before this place" if end.phy_offset < phy_offset else ""
    why = STOP_REASONS.get(end.reason, end.reason).rstrip(".")
    up_to = f"from {end.first_file} up to {end.phy_offset:,}{before}: {why[:1].lower() + why[1:]}"
    return LedgerStart(f"{finds}, which it reads {up_to}", (end.phy_offset, end.reason), scans, True)


@dataclass(frozen=True)
class HeaderCheck:
    """The result of one check of the header.

    expected, actual: the two values, if it fails.
    """

    name: str
    passes: bool
    expected: str = ""
    actual: str = ""


def read_header(
    copy: OpenedCopy, framing: Framing, frames: Frames, position: int, phy_offset: int
) -> tuple[list[Field], list[HeaderCheck]]:
    """Return fields and checks of the header at that position of a segment. phy_offset: of the record after it."""
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
    return fields, [*(_check(p) for p in parts if p.wanted is not None), *_unit(copy, parts)]


def _unit(copy: OpenedCopy, parts: Sequence[HeaderPart]) -> list[HeaderCheck]:
    values, index = {part.name: part.value for part in parts}, copy[LEDGER].index
    unit = unit_of(copy.source, index, values.get("index", -1)) if index else None
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
