"""The effect of a start with a DLedger log on the place that is explained.

Its recovery follows entry headers and checks no message, so where a message fails a check says nothing of the log's end
(dledger.md 3, 6). The last data files are read for that; where recovery begins before them, only an audit knows the end.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.finding_codes import STOP_REASONS
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.broker.prediction import Refused
from store_io.kinds.dledger.entry_walk import DataTask, walk_data
from store_io.kinds.dledger.ledger_recovery import recovered_end
from store_io.kinds.dledger.ledger_walks import DataWalk
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
        walk = walk_data(DataTask(0, location, each, copy.ledger_index), copy.source)
        if walk.problem:
            raise StoreError(gap_text(walk.problem))
        return walk

    scans = copy.unclean and copy.rules.ledger_crash_dispatch
    finds = f"{release} finds the log's end by the headers of entries alone"
    refusal, end = files.refusal, None
    if files.data and not refusal:
        try:
            end = recovered_end(files, walk_of)
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
