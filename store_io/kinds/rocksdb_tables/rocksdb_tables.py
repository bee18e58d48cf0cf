"""Checks index and transactions in RocksDB against the CommitLog (rocksdb.md 10).

`file` is the database's folder; the message names an entry by the text of its key, `phy_offset` says where it leads. Also
checked: table files in rocksdbstore/ that the database does not name, as a MANIFEST that was cut opens as an older state without
an error; and entries of transactions that a broker writes and passes over itself, as a producer put an "@" into its unique key.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schemas.advice import Advice, Step
from schemas.finding_codes import STARTS_DISPATCH, Code
from schemas.layouts.rocksdb_layout import DONE_TOPIC, HALF_TOPIC, TABLES_FOLDER
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.fingerprints import among
from store_io.base.times import iso_time
from store_io.base.wording import count_text
from store_io.broker.releases import parse_known
from store_io.kinds.rocksdb_tables.hour_spans import AbsentHours
from store_io.kinds.rocksdb_tables.index_table import IndexTable
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.rocksdb_tables.table_tasks import IndexLook, LogTable, NamedEntry
from store_io.kinds.rocksdb_tables.table_view import IndexDifference, TablesInUse
from store_io.kinds.rocksdb_tables.transaction_table import TransactionTable
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.model import log_map as lm
from store_io.model.evidence import Evidence

LATE_MS = 60_000  # before the end of the log: transactions are stopped before the last messages are dispatched
STEP = Advice(Step.REBUILD_TABLES)
LOG_LACKS = Advice(Step.SEEK_INDEXED_MESSAGES)
SWITCHED_ON = Advice(Step.SWITCHED_ON_LATER)
ENDED_BY_PRODUCERS = Advice(Step.ENDED_BY_PRODUCERS)
_UNWRITTEN = severity_in(Code.INDEX_ENTRY_MISSING, Case.NOT_WRITTEN_YET)
_NOT_ASKED = severity_in(Code.TRANSACTION_ENTRY_MISSING, Case.NOT_ASKED)
FIRST_WITH_TABLES = parse_known("5.4.0")


def rocksdb_tables(evidence: Evidence) -> list[Finding]:
    """Return the findings on index and transactions in RocksDB. None if neither is in use, or they were not read."""
    used, results = evidence[TABLES].used, evidence[TABLES].results
    if used is None or not results.read or evidence.broken:
        return []
    assert results.log is not None
    found: list[Finding] = []
    for table in (results.index, results.transactions):
        if table is not None and table.damaged is not None and not any(f.file == table.damaged[0] for f in found):
            found.append(Finding(Code.ROCKSDBSTORE_DAMAGED, table.damaged[0], actual=table.damaged[1]))
    if results.index is not None and results.index.damaged is None:
        found += _index(evidence, used, results.index)
    if results.transactions is not None and results.transactions.damaged is None:
        found += _transactions(evidence, used, results.log, results.transactions)
    return found


def tables_not_judged(evidence: Evidence, names: list[str]) -> list[str]:
    """Return the names without rocksdbstore/, if every table in it that is in use was held against the log."""
    timers, keyed = evidence[TIMERS].in_use, evidence.copy.rules.timers_in_rocksdb
    judged = timers is not None and timers.judged
    if (keyed or evidence[TABLES].used is not None) and (judged or not keyed) and _tables_judged(evidence):
        return [name for name in names if name != TABLES_FOLDER]
    return names


def _tables_judged(evidence: Evidence) -> bool:
    """Say whether every table in use was held against the log."""
    results, used = evidence[TABLES].results, evidence[TABLES].used
    if used is None:
        return True
    if not results.read or results.log is None or results.log.dropped:
        return False
    index, transactions = results.index, results.transactions
    if used.index and (index is None or index.damaged is not None or _unsure(evidence)):
        return False
    if not used.transactions:
        return True
    return (
        transactions is not None and transactions.damaged is None and transactions.rows is not None and not _open_halves(evidence)
    )


def _unsure(evidence: Evidence) -> bool:
    """Say whether the index may be wrong in ways that no finding shows.

    That is so if stretches differ that were not looked at while the others show nothing, or if entries are missing of which
    nothing shows that they ever existed.
    """
    results, differs = evidence[TABLES].results, evidence[TABLES].difference
    if results.index is None or differs is None:
        return True
    look = results.look or IndexLook()
    if look.before_same_hour + differs.before_same_hour:
        return True
    if differs.after_mark and _empty(results.index) and not _puts(evidence, results.index.mark):
        return True
    return bool(differs.missing + differs.strange) and not look.missing + look.strange


def _puts(evidence: Evidence, mark: int) -> bool:
    """Say whether a start puts all that comes after this mark of a table."""
    begins = _put_from(evidence, mark)
    return begins is not None and begins <= max(mark, evidence.log.start)


def _put_from(evidence: Evidence, mark: int) -> int | None:
    """Return the physical offset from which on a start puts what comes after this mark of a table. None: it puts nothing."""
    prediction, ledger = evidence.prediction, evidence.copy.loaded.ledger
    starts = prediction is not None and prediction.starts
    if ledger is not None and ledger.data:  # where its recovery begins no mark is asked
        return prediction.ledger_from if prediction is not None and starts else None
    if evidence.copy.unclean:  # all that recovery reads, which begins at most commitLogRecoverMaxNum segments from the end
        return int(prediction.start_segment or 0) if prediction is not None and starts else 0
    return mark if evidence.copy.rules.dispatches_from_marks and mark > 0 else None


def _ran_until(evidence: Evidence) -> int:
    """Return the last time, ms, at which the broker surely still ran."""
    return max(_clock(evidence) or 0, _last_stored(evidence))


def _last_stored(evidence: Evidence) -> int:
    return max((s.last_store_time for s in evidence.segments), default=0)


def _clock(evidence: Evidence) -> int | None:
    """Return the time at which the broker ran last, by the timer's checkpoint, which a broker keeps up to date.

    None if that says nothing.
    """
    parts = evidence.copy[TIMERS].in_use
    if parts is None or parts.check.empty or parts.check.odd or parts.check.read_time < _last_stored(evidence) - LATE_MS:
        return None
    return max(parts.check.read_time, _last_stored(evidence))


def _none_yet(evidence: Evidence, log: LogTable) -> bool:
    """Say whether rocksdbstore/ may never have been there: every broker from 5.4.0 on makes the folder."""
    since = evidence.written_by().surely_since
    newer = bool(since) and parse_known(since) >= FIRST_WITH_TABLES
    return evidence.copy.listing.get(TABLES_FOLDER) is None and not newer and not len(log.halves)


# ---- index ---------------------------------------------------------------------------------------------------------


def _index(evidence: Evidence, used: TablesInUse, index: IndexTable) -> Iterator[Finding]:
    look, unclean = evidence[TABLES].results.look or IndexLook(), evidence.copy.unclean
    differs = evidence[TABLES].difference
    assert differs is not None
    sure = bool(look.missing + look.strange)
    missing, strange = (
        (look.missing, look.strange) if not sure else (look.missing + differs.missing, look.strange + differs.strange)
    )
    step = STEP
    yield from _odd(Code.INDEX_ENTRY_WRONG, index.odd, index.first_odd, "the index", step)
    yield from _named(Code.INDEX_ENTRY_MISSING, missing, look.first_missing, "is missing in the index in RocksDB", step)
    what = "is in the index in RocksDB, and no message has it"
    yield from _named(Code.INDEX_ENTRY_WRONG, strange, look.first_strange, what, step)
    unheld = look.unheld + differs.unheld
    if unheld:
        text = f"{_entries(unheld)} of the index in RocksDB name messages that the log lacks"
        yield Finding(
            Code.INDEX_ENTRY_DANGLING,
            TABLES_FOLDER,
            severity=severity_in(Code.INDEX_ENTRY_DANGLING, Case.LOG_LACKS),
            message=text,
            next=LOG_LACKS,
            count=unheld,
        )
    if look.other_time:
        text = f"{_entries(look.other_time)} of the index in RocksDB are right but for the header of their message: it has"
        text += " another store time, or says that it was rolled back; no checksum covers it, so it is damaged"
        yield Finding(
            Code.INDEX_ENTRY_WRONG,
            TABLES_FOLDER,
            severity=severity_in(Code.INDEX_ENTRY_WRONG, Case.HEADER_CHANGED),
            message=text,
            next=Advice(Step.SEEK_HEADERS),
            count=look.other_time,
        )
    yield from _index_ends(evidence, used, index, look, differs, step)
    hours = look.hours + differs.hours
    if hours.count:
        yield _hours_finding(hours, index, _ran_until(evidence), step)
    if index.beyond:
        text = f"{_entries(index.beyond)} of the index in RocksDB lead beyond the end of the log"
        severity = severity_in(Code.INDEX_ENTRY_BEYOND_END, Case.AFTER_CRASH, unclean)
        step = step if not unclean else Advice(Step.INDEX_AHEAD)
        yield _table_finding(Code.INDEX_ENTRY_BEYOND_END, text, index.beyond, step, severity, index.first_beyond)
    what = "messages that are sent get no entry in the index in RocksDB"
    yield from _stands_still(evidence, index.mark, Code.INDEX_ENTRY_BEYOND_END, what, step)


def _index_ends(
    evidence: Evidence, used: TablesInUse, index: IndexTable, look: IndexLook, differs: IndexDifference, step: Advice
) -> Iterator[Finding]:
    """Yield findings on entries that are missing before the first entry and after the mark."""
    before, after_mark = look.before + differs.before, look.after_mark + differs.after_mark
    same_hour = look.before_same_hour + differs.before_same_hour
    code, put = Code.INDEX_ENTRY_MISSING, _puts(evidence, index.mark)
    log = evidence[TABLES].results.log
    assert log is not None
    if before:
        text = f"the index in RocksDB lacks {_entries(before)} of messages before its first one: it was switched on later, or"
        text += " retention removed them"
        yield _table_finding(code, text, before, SWITCHED_ON, _UNWRITTEN)
    if same_hour:
        text = f"the index in RocksDB lacks {_entries(same_hour)} of messages before its first one, of hours that have entries:"
        text += " it was switched on within the hour, or lost them, as retention removes whole hours"
        yield _table_finding(code, text, same_hour, SWITCHED_ON, _UNWRITTEN)
    if not after_mark:
        return
    starts = "a start puts them" if put else "no start puts all of them" if evidence.copy.unclean else "no start puts them"
    if used.database.absent and _none_yet(evidence, log):
        text = f"there is no {TABLES_FOLDER}/, which every broker from 5.4.0 on makes, and so no index in RocksDB yet, to which"
        text += f" {_entries(after_mark)} would belong; {starts}"
        yield _table_finding(code, text, after_mark, STARTS_DISPATCH if put else SWITCHED_ON, _UNWRITTEN)
    elif used.database.absent:
        yield _table_finding(code, f"the index in RocksDB is gone, with {_entries(after_mark)}", after_mark, step)
    elif _empty(index):
        text = f"the index in RocksDB has neither entries nor a mark, and lacks {_entries(after_mark)}; {starts}"
        yield _table_finding(code, text, after_mark, STARTS_DISPATCH if put else SWITCHED_ON, _UNWRITTEN)
    else:
        text = f"the index in RocksDB ends at physical offset {index.mark}, and lacks {_entries(after_mark)} of later messages"
        severity = severity_in(code, Case.START_MENDS, put)
        yield _table_finding(code, f"{text}; {starts}", after_mark, STARTS_DISPATCH if put else step, severity)


def _empty(index: IndexTable) -> bool:
    return index.first < 0 and index.mark <= 0


def _hours_finding(hours: AbsentHours, index: IndexTable, ran_until: int, step: Advice) -> Finding:
    """Return entries up to the mark, of hours of which none is there."""
    text = (
        f"the index in RocksDB lacks {_entries(hours.count)}, all of the hours from {_hour(hours.first)} to {_hour(hours.last)}"
    )
    if hours.by_retention(index.hours, ran_until):
        text += ": as retention leaves it where the CommitLog's first file is younger than its messages"
        return _table_finding(Code.INDEX_ENTRY_MISSING, text, hours.count, SWITCHED_ON, _UNWRITTEN)
    if index.first < 0:
        text = f"the index in RocksDB has no entry of the log, and by its mark all up to physical offset {index.mark}:"
        text += f" {_entries(hours.count)} are missing; no start puts them"
    return _table_finding(Code.INDEX_ENTRY_MISSING, text, hours.count, step)


def _hour(time: int) -> str:
    return iso_time(time) or str(time)


def _entries(count: int) -> str:
    return count_text(count, "entry", "entries")


def _named(code: Code, count: int, first: list[NamedEntry], what: str, step: Advice) -> Iterator[Finding]:
    for number, entry in enumerate(first):
        more = count - len(first) if number == len(first) - 1 else 0
        text = f"the entry {entry.text[:200]!r} {what}"
        yield _table_finding(code, text, 1 + more, step, phy_offset=entry.phy_offset)


# ---- transactions --------------------------------------------------------------------------------------------------


def _transactions(evidence: Evidence, used: TablesInUse, log: LogTable, table: TransactionTable) -> Iterator[Finding]:
    yield from _odd(Code.TRANSACTION_ENTRY_WRONG, table.odd, table.first_odd, "transactions", STEP)
    if log.dropped or table.rows is None:
        return
    rows, halves, done = table.rows, log.halves[~log.halves["done"]], log.halves[log.halves["done"]]
    places, unclean = evidence.log, evidence.copy.unclean
    beyond = rows["phy_offset"] >= places.data_end
    if beyond.any():
        text = f"{count_text(int(beyond.sum()), 'entry', 'entries')} of transactions in RocksDB lead beyond the end of the log"
        severity = severity_in(Code.TRANSACTION_ENTRY_WRONG, Case.AFTER_CRASH, unclean)
        step = STEP if not unclean else Advice(Step.TRANSACTIONS_AHEAD)
        yield _table_finding(
            Code.TRANSACTION_ENTRY_WRONG, text, int(beyond.sum()), step, severity, int(rows["phy_offset"][beyond][0])
        )
    inside = rows[~beyond & (rows["phy_offset"] >= places.start)]
    halves = halves[np.argsort(halves["phy_offset"], kind="stable")]
    place = np.minimum(np.searchsorted(halves["phy_offset"], inside["phy_offset"]), max(0, len(halves) - 1))
    own = halves[place] if len(halves) else np.full(len(inside), -1, halves.dtype)
    there = own["phy_offset"] == inside["phy_offset"]
    wrong = there & ((own["key"] != inside["key"]) | (own["size"] != inside["size"]))
    held = places.kind_at(inside["phy_offset"]) == lm.MESSAGE
    wrong |= ~there & held
    if wrong.any():
        text = (
            f"{count_text(int(wrong.sum()), 'entry', 'entries')} of transactions in RocksDB: not that of the half message there"
        )
        yield _half_finding(Code.TRANSACTION_ENTRY_WRONG, text, inside["phy_offset"][wrong], STEP)
    unheld = ~there & ~held
    if unheld.any():
        text = f"{_entries(int(unheld.sum()))} of transactions in RocksDB name half messages that the log lacks"
        yield _half_finding(
            Code.TRANSACTION_ENTRY_WRONG,
            text,
            inside["phy_offset"][unheld],
            LOG_LACKS,
            severity_in(Code.TRANSACTION_ENTRY_WRONG, Case.LOG_LACKS),
        )
    kept = among(inside["phy_offset"], done["of"][(done["phy_offset"] < table.mark) | (not unclean)])
    if kept.any():
        severity = severity_in(Code.TRANSACTION_ENTRY_WRONG, Case.DONE_ALREADY)
        text = f"{count_text(int(kept.sum()), 'transaction')} in RocksDB done already: the broker asks their producers again"
        yield _half_finding(
            Code.TRANSACTION_ENTRY_WRONG, text, inside["phy_offset"][kept], Advice(Step.ASKED_AGAIN), severity, DONE_TOPIC
        )
    yield from _halves_without(evidence, used, table, halves[~among(halves["phy_offset"], done["of"])])
    what = "half messages that are sent get no entry in RocksDB, and no producer is asked about them"
    yield from _stands_still(evidence, table.mark, Code.TRANSACTION_ENTRY_WRONG, what, STEP)


def _halves_without(evidence: Evidence, used: TablesInUse, table: TransactionTable, halves: np.ndarray) -> Iterator[Finding]:
    """Yield findings on half messages without an entry that nothing marks as done."""
    assert table.rows is not None
    without = halves[~among(halves["phy_offset"], table.rows["phy_offset"])]
    large = without["size"] > int(evidence.copy.rules.value("maxMessageSize"))
    if large.any():
        text = f"{_halves(large)} not in RocksDB: larger than maxMessageSize, so the broker never asks about them"
        yield _half_finding(Code.TRANSACTION_ENTRY_MISSING, text, without["phy_offset"][large], ENDED_BY_PRODUCERS, _NOT_ASKED)
        without = without[~large]
    put, begins = without["phy_offset"] <= table.mark, _put_from(evidence, table.mark)
    starts = without["phy_offset"] >= begins if begins is not None else np.zeros(len(put), bool)
    late = without["store_time"] > _last_stored(evidence) - LATE_MS
    clock = _clock(evidence)
    gone = put & (without["store_time"] > clock - _given_up_after(evidence)) if clock is not None else np.zeros(len(put), bool)
    gone = np.ones(len(put), bool) if used.database.absent else gone | ~put & ~late & ~starts
    if gone.any():
        text = f"{_halves(gone)} not in RocksDB: the broker never asks the producer about them"
        yield _half_finding(Code.TRANSACTION_ENTRY_MISSING, text, without["phy_offset"][gone], STEP)
    old, later = put & ~gone, ~put & ~gone
    if old.any():
        text = f"{_halves(old)} not in RocksDB: given up after all questions to the producer, or lost"
        text += "" if clock is not None else "; this copy does not show how long the broker ran on"
        yield _half_finding(Code.TRANSACTION_ENTRY_MISSING, text, without["phy_offset"][old], ENDED_BY_PRODUCERS, _NOT_ASKED)
    for chosen, why, step, case in (
        (later & starts, "a start puts them", STARTS_DISPATCH, Case.START_MENDS),
        (
            later & ~starts,
            "of the last minute, which a stop may leave out; no start puts them",
            ENDED_BY_PRODUCERS,
            Case.NOT_ASKED,
        ),
    ):
        if chosen.any():
            text = f"{_halves(chosen)} not in RocksDB: {why}"
            yield _half_finding(
                Code.TRANSACTION_ENTRY_MISSING,
                text,
                without["phy_offset"][chosen],
                step,
                severity_in(Code.TRANSACTION_ENTRY_MISSING, case),
            )


def given_up_halves(evidence: Evidence) -> np.ndarray:
    """Return the physical offsets, ascending, of half messages that this copy shows as given up.

    Nothing marks these messages as done. They lie below the mark of a database that was read whole and is no older state, and
    have no entry there. They are so old that the broker had asked all its questions when it ran last.
    """
    none, tables = np.zeros(0, np.int64), evidence[TABLES]
    used, results = tables.used, tables.results
    table, log, clock = results.transactions, results.log, _clock(evidence)
    if used is None or used.database.absent or not results.read or clock is None or log is None or log.dropped:
        return none
    if table is None or table.rows is None or table.damaged is not None or table.unnamed or tables.unnamed:
        return none
    halves, done = log.halves[~log.halves["done"]], log.halves[log.halves["done"]]
    open_ones = halves[~among(halves["phy_offset"], np.concatenate([done["of"], table.rows["phy_offset"]]))]
    old = (open_ones["phy_offset"] <= table.mark) & (open_ones["store_time"] <= clock - _given_up_after(evidence))
    found: np.ndarray = np.sort(open_ones["phy_offset"][old])
    return found


def _halves(chosen: np.ndarray) -> str:
    return count_text(int(chosen.sum()), "half message")


def _given_up_after(evidence: Evidence) -> int:
    """Return the age in ms below which no transaction is given up.

    It is asked about at most once in an interval, and removed with the question after the last. Source:
    TransactionalMessageRocksDBService.checkTransRecordsStatus (5.4.0, 5.5.0).
    """
    value = evidence.copy.rules.value
    return max(0, int(value("transactionCheckMax"))) * max(0, int(value("transactionCheckInterval")))


def _half_finding(
    code: Code, message: str, places: np.ndarray, step: Advice, severity: str = "", topic: str = HALF_TOPIC
) -> Finding:
    first = int(places[0])
    return Finding(
        code, TABLES_FOLDER, severity=severity, phy_offset=first, topic=topic, message=message, next=step, count=len(places)
    )


def _open_halves(evidence: Evidence) -> bool:
    """Say whether half messages up to the mark have no entry, and nothing shows whether they were given up."""
    table, log = evidence[TABLES].results.transactions, evidence[TABLES].results.log
    if table is None or table.rows is None or log is None or _clock(evidence) is not None:
        return False
    halves, done = log.halves[~log.halves["done"]], log.halves[log.halves["done"]]
    halves = halves[(halves["phy_offset"] <= table.mark) & (halves["size"] <= int(evidence.copy.rules.value("maxMessageSize")))]
    return not among(halves["phy_offset"], np.concatenate([done["of"], table.rows["phy_offset"]])).all()


# ---- both ----------------------------------------------------------------------------------------------------------


def _stands_still(evidence: Evidence, mark: int, code: Code, what: str, step: Advice) -> Iterator[Finding]:
    """Yield a finding on a mark beyond the end of the log after a start.

    The broker passes over all that is stored before the mark.
    """
    prediction = evidence.prediction
    if prediction is not None and prediction.starts and mark > max(0, prediction.end):
        text = f"rocksdbstore/ says that it holds messages up to physical offset {mark}, and a start ends the log at"
        yield _table_finding(code, f"{text} {prediction.end}: until it is as long again, {what}", 1, step, phy_offset=mark)


def _odd(code: Code, count: int, first: str, what: str, step: Advice) -> Iterator[Finding]:
    if count:
        text = f"a key or a value among {what} in RocksDB that no broker writes: {first}"
        yield _table_finding(code, text, count, step)


def _table_finding(
    code: Code, message: str, count: int, step: Advice, severity: str = "", phy_offset: int | None = None
) -> Finding:
    return Finding(code, TABLES_FOLDER, severity=severity, phy_offset=phy_offset, message=message, next=step, count=count)


def unnamed_tables(evidence: Evidence) -> list[Finding]:
    """Return findings on table files that the database in rocksdbstore/ does not know. A table in it must be in use.

    After an unclean exit a file may be there that was written, or taken out of use, as the broker died.
    """
    copy, tables, timers = evidence.copy, evidence[TABLES], evidence.copy[TIMERS].in_use
    transactions = tables.results.transactions
    in_use = tables.used is not None or timers is not None and timers.table is not None
    paths = tables.unnamed or (transactions.unnamed if transactions is not None else ())
    if not in_use:
        return []
    step = None if tables.used is not None else Advice(Step.REBUILD_TIMERS)
    if copy.unclean:
        step = Advice(Step.UNUSED_TABLE)
    return [
        Finding(
            Code.ROCKSDBSTORE_DAMAGED,
            path,
            severity=severity_in(Code.ROCKSDBSTORE_DAMAGED, Case.AFTER_CRASH, copy.unclean),
            actual="not in the MANIFEST",
            message="the database in rocksdbstore/ knows nothing of this table file: it may be an older state of it",
            next=step,
        )
        for path in sorted(paths)
    ]


def passed_over(evidence: Evidence) -> list[Finding]:
    """Return a note on entries of transactions that every broker leaves unread."""
    table = evidence[TABLES].results.transactions
    if table is None or not table.passed_over:
        return []
    text = f'{count_text(table.passed_over, "entry", "entries")} of transactions in RocksDB with another "@" in the unique key'
    return [
        Finding(
            Code.TRANSACTION_ENTRY_MISSING,
            TABLES_FOLDER,
            severity=severity_in(Code.TRANSACTION_ENTRY_MISSING, Case.NOT_ASKED),
            phy_offset=table.first_passed_over,
            topic=HALF_TOPIC,
            message=f"{text}: 5.5.0 passes over such, and never asks the producer",
            count=table.passed_over,
        )
    ]
