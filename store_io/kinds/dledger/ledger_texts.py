"""DLedger's two texts, checkpoint and currterm, as a start reads them (dledger.md 1, 3).

Both are java.util.Properties of two lines; the `.bak` beside each is never read. Source: DLedgerMmapFileStore.loadCheckPoint and
recover, MemberState.loadTerm, IOUtils.file2String, string2Properties.
"""

from __future__ import annotations

import reprlib
from dataclasses import replace

from schemas import dledger_layout as layout
from schemas.advice import Refusal, RefusalKind
from schemas.rows import MappedFile
from store_io.base.errors import UsageError
from store_io.base.java_compat import parse_number
from store_io.kinds.dledger.ledger_walks import LedgerTexts
from store_io.kinds.dledger.unit_reader import unit_of
from store_io.log.records.properties import parse_properties
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

MAX_TEXT_BYTES = 1 << 16


def read_texts(source: ByteSource, listing: StoreListing, folder: str, index: tuple[MappedFile, ...]) -> LedgerTexts:
    """Read the group's checkpoint and currterm. Raises StoreError if a file cannot be read or is larger than MAX_TEXT_BYTES."""
    path = f"{folder}/{layout.CHECKPOINT}"
    checkpoint = _properties(source, listing, path)
    committed = checkpoint.get(layout.COMMITTED_INDEX, "").strip()
    number = parse_number(committed, 64)
    refusal = None
    if committed and number is None:
        refusal = Refusal(RefusalKind.LEDGER_COMMITTED_INDEX, path, actual=reprlib.repr(committed))
    term = parse_number(_properties(source, listing, f"{folder}/{layout.TERM}").get(layout.CURRENT_TERM, ""), 64)
    texts = LedgerTexts(number, parse_number(checkpoint.get(layout.END_INDEX, "").strip(), 64), term, refusal)
    unit = unit_of(source, index, number) if number is not None else None
    return texts if unit is None else replace(texts, committed_unit=(int(unit["pos"]), int(unit["size"])))


def _properties(source: ByteSource, listing: StoreListing, path: str) -> dict[str, str]:
    """Return the keys and values of a properties file; none without such a file, or if it holds no Properties."""
    if not listing.is_file(path):
        return {}
    try:
        return parse_properties(source.read_small(path, MAX_TEXT_BYTES).decode("latin-1"))
    except UsageError:  # an escape that java.util.Properties refuses
        return {}
