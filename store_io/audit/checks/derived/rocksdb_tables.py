"""Index and transactions in RocksDB against the CommitLog (rocksdb.md 10).

`file` is the database's folder; the message names an entry by the text of its key, `phy_offset` says where it leads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schemas import finding_codes as codes
from schemas.finding_codes import NO_TABLE_REPAIR
from schemas.rocksdb_layout import DONE_TOPIC, HALF_TOPIC, TABLES_FOLDER
from schemas.rows import NOTE, REBUILDABLE, Finding
from store_io.audit import log_map as lm
from store_io.audit.evidence import Evidence
from store_io.audit.tables.table_tasks import IndexLook, LogTable, NamedEntry
from store_io.audit.tables.table_view import TablesInUse, index_difference, stretches_of
from store_io.base.members import among
from store_io.base.wording import count_text
from store_io.formats.rocksdb.index_table import IndexTable
from store_io.formats.rocksdb.transaction_table import TransactionTable

YOUNG_MS = 60_000  # a transaction that began so short a time before the broker's end was not given up (15 times asked, each 30 s)


def rocksdb_tables(evidence: Evidence) -> list[Finding]:
    """None where neither is in use, or they were not read."""
    used, results = evidence.copy.tables, evidence.table_results
    if used is None or not results.read or evidence.broken:
        return []
    assert results.log is not None
    found: list[Finding] = []
    for table in (results.index, results.transactions):
        if table is not None and table.damaged is not None and not any(f.file == table.damaged[0] for f in found):
            found.append(Finding(codes.TABLES_DAMAGED, table.damaged[0], actual=table.damaged[1]))
    if results.index is not None and results.index.damaged is None:
        found += _index(evidence, used, results.log, results.index)
    if results.transactions is not None and results.transactions.damaged is None:
        found += _transactions(evidence, used, results.log, results.transactions)
    return found


def tables_judged(evidence: Evidence) -> bool:
    """Whether every table in use was held against the log."""
    results, used = evidence.table_results, evidence.copy.tables
    if used is None:
        return True
    if not results.read or results.log is None or results.log.dropped:
        return False
    index, transactions = results.index, results.transactions
    if used.index and (index is None or index.damaged is not None or _unsure(evidence)):
        return False
    return not used.transactions or transactions is not None and transactions.damaged is None and transactions.rows is not None


def _unsure(evidence: Evidence) -> bool:
    """Whether stretches differ beyond those that were looked at, where nothing was found."""
    results = evidence.table_results
    if results.index is None or results.log is None:
        return True
    differs = index_difference(results.log, results.index, stretches_of(evidence.segments))
    look = results.look or IndexLook()
    return bool(differs.missing + differs.strange) and not look.missing + look.strange


# ---- index ---------------------------------------------------------------------------------------------------------


def _index(evidence: Evidence, used: TablesInUse, log: LogTable, index: IndexTable) -> Iterator[Finding]:
    look, unclean = evidence.table_results.look or IndexLook(), evidence.copy.unclean
    differs = index_difference(log, index, stretches_of(evidence.segments))
    sure = bool(look.missing + look.strange)
    missing, strange = (
        (look.missing, look.strange) if not sure else (look.missing + differs.missing, look.strange + differs.strange)
    )
    yield from _odd(codes.INDEX_WRONG, index.odd, index.first_odd, "the index")
    yield from _named(codes.INDEX_MISSING, missing, look.first_missing, "is missing in the index in RocksDB")
    yield from _named(codes.INDEX_WRONG, strange, look.first_strange, "is in the index in RocksDB, and no message has it")
    before, after_mark = look.before + differs.before, look.after_mark + differs.after_mark
    if before and used.database.absent:
        yield _table_finding(
            codes.INDEX_MISSING, f"the index in RocksDB is gone, with {count_text(before, 'entry', 'entries')}", before
        )
    elif before:
        text = f"the index in RocksDB lacks {count_text(before, 'entry', 'entries')} of messages before its first one"
        yield _table_finding(codes.INDEX_MISSING, text, before, NOTE)
    if after_mark:
        put = unclean or evidence.copy.rules.dispatches_from_marks
        text = f"the index in RocksDB ends at physical offset {index.mark}"
        text += f", and lacks {count_text(after_mark, 'entry', 'entries')} of later messages"
        text += "; a start puts them" if put else "; no start puts them"
        yield _table_finding(codes.INDEX_MISSING, text, after_mark, NOTE if put else REBUILDABLE)
    if index.beyond:
        text = f"{count_text(index.beyond, 'entry', 'entries')} of the index in RocksDB lead beyond the end of the log"
        yield _table_finding(codes.INDEX_BEYOND, text, index.beyond, NOTE if unclean else REBUILDABLE, index.first_beyond)
    yield from _stands_still(
        evidence, index.mark, codes.INDEX_BEYOND, "messages that are sent get no entry in the index in RocksDB"
    )


def _named(code: str, count: int, first: list[NamedEntry], what: str) -> Iterator[Finding]:
    for number, entry in enumerate(first):
        more = count - len(first) if number == len(first) - 1 else 0
        text = f"the entry {entry.text[:200]!r} {what}"
        yield _table_finding(code, text, 1 + more, REBUILDABLE, entry.phy_offset)


# ---- transactions --------------------------------------------------------------------------------------------------


def _transactions(evidence: Evidence, used: TablesInUse, log: LogTable, table: TransactionTable) -> Iterator[Finding]:
    yield from _odd(codes.HALF_WRONG, table.odd, table.first_odd, "transactions")
    if log.dropped or table.rows is None:
        return
    rows, halves, done = table.rows, log.halves[~log.halves["done"]], log.halves[log.halves["done"]]
    places, unclean = evidence.log, evidence.copy.unclean
    beyond = rows["phy_offset"] >= places.data_end
    if beyond.any():
        text = f"{count_text(int(beyond.sum()), 'entry', 'entries')} of transactions in RocksDB lead beyond the end of the log"
        severity = NOTE if unclean else REBUILDABLE
        yield _table_finding(codes.HALF_WRONG, text, int(beyond.sum()), severity, int(rows["phy_offset"][beyond][0]))
    inside = rows[~beyond & (rows["phy_offset"] >= places.start)]
    halves = halves[np.argsort(halves["phy_offset"], kind="stable")]
    place = np.minimum(np.searchsorted(halves["phy_offset"], inside["phy_offset"]), max(0, len(halves) - 1))
    own = halves[place] if len(halves) else np.full(len(inside), -1, halves.dtype)
    there = own["phy_offset"] == inside["phy_offset"]
    wrong = there & ((own["key"] != inside["key"]) | (own["size"] != inside["size"]))
    wrong |= ~there & (places.kind_at(inside["phy_offset"]) != lm.DAMAGED)
    if wrong.any():
        text = (
            f"{count_text(int(wrong.sum()), 'entry', 'entries')} of transactions in RocksDB: not that of the half message there"
        )
        yield _table_finding(
            codes.HALF_WRONG, text, int(wrong.sum()), REBUILDABLE, int(inside["phy_offset"][wrong][0]), HALF_TOPIC
        )
    kept = among(inside["phy_offset"], done["of"][(done["phy_offset"] < table.mark) | (not unclean)])
    if kept.any():
        text = f"{count_text(int(kept.sum()), 'transaction')} in RocksDB done already: the broker asks their producers again"
        yield _table_finding(codes.HALF_WRONG, text, int(kept.sum()), NOTE, int(inside["phy_offset"][kept][0]), DONE_TOPIC)
    yield from _halves_without(evidence, used, table, halves[~among(halves["phy_offset"], done["of"])])
    what = "half messages that are sent get no entry in RocksDB, and no producer is asked about them"
    yield from _stands_still(evidence, table.mark, codes.HALF_WRONG, what)


def _halves_without(evidence: Evidence, used: TablesInUse, table: TransactionTable, halves: np.ndarray) -> Iterator[Finding]:
    """Of the half messages that nothing marks as done."""
    assert table.rows is not None
    without = halves[~among(halves["phy_offset"], table.rows["phy_offset"])]
    put = without["phy_offset"] <= table.mark
    ended = _ended(evidence)
    young = put & (without["store_time"] > ended - YOUNG_MS)
    gone = without if used.database.absent else without[young]
    if len(gone):
        text = f"{count_text(len(gone), 'half message')} not in RocksDB: the broker never asks the producer about them"
        yield _table_finding(codes.HALF_MISSING, text, len(gone), REBUILDABLE, int(gone["phy_offset"][0]), HALF_TOPIC)
    if used.database.absent:
        return
    old, later = without[put & ~young], without[~put]
    if len(old):
        text = f"{count_text(len(old), 'half message')} not in RocksDB: given up after all questions to the producer, or lost"
        yield _table_finding(codes.HALF_MISSING, text, len(old), NOTE, int(old["phy_offset"][0]), HALF_TOPIC)
    if len(later):
        starts = evidence.copy.unclean or evidence.copy.rules.dispatches_from_marks
        text = f"{count_text(len(later), 'half message')} not in RocksDB yet; " + (
            "a start puts them" if starts else "no start puts them"
        )
        yield _table_finding(codes.HALF_MISSING, text, len(later), NOTE, int(later["phy_offset"][0]), HALF_TOPIC)


def _ended(evidence: Evidence) -> int:
    """When the broker ran last by the timer's checkpoint; without one as if much later."""
    parts = evidence.copy.timers
    if parts is None or parts.check.empty or parts.check.odd:
        return 1 << 62
    return max(parts.check.read_time, *(s.last_store_time for s in evidence.segments), 0)


# ---- both ----------------------------------------------------------------------------------------------------------


def _stands_still(evidence: Evidence, mark: int, code: str, what: str) -> Iterator[Finding]:
    """A mark beyond the end of the log as a start has it: the broker passes over all that is stored before it."""
    prediction = evidence.prediction
    if prediction is not None and prediction.starts and mark > max(0, prediction.end):
        text = f"rocksdbstore/ says that it holds messages up to physical offset {mark}, and a start ends the log at"
        yield _table_finding(code, f"{text} {prediction.end}: until it is as long again, {what}", 1, REBUILDABLE, mark)


def _odd(code: str, count: int, first: str, what: str) -> Iterator[Finding]:
    if count:
        text = f"a key or a value among {what} in RocksDB that no broker writes: {first}"
        yield _table_finding(code, text, count)


def _table_finding(
    code: str, message: str, count: int, severity: str = REBUILDABLE, phy_offset: int | None = None, topic: str | None = None
) -> Finding:
    step = NO_TABLE_REPAIR if severity != NOTE else ""
    return Finding(
        code, TABLES_FOLDER, severity=severity, phy_offset=phy_offset, topic=topic, message=message, next=step, count=count
    )
