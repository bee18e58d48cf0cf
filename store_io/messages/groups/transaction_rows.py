"""Half messages as Arrow batches, each with what became of it. Columns: `schemas.sources.TRANSACTIONS`.

A task has a stretch of the log, and reads on after it until each of its half messages has ended: mostly a little, up to the log's
end where one is open. Stretches are few, so that at worst the log is read some times, and memory is bounded by MOST_HALVES: what
is more of a stretch is done after these. How a half message ended is not seen where the message that shows it is damaged or gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import arrow_schema
from schemas.rows import MappedFile
from schemas.sources import TRANSACTIONS
from store_io.base.java.java_compat import parse_number
from store_io.broker.releases import BrokerRules
from store_io.messages.groups import transaction_ends
from store_io.messages.groups.transaction_ends import CHECK_TIMES, STATES, HalfStates
from store_io.messages.message_filter import EVERY_MESSAGE, MessageFilter
from store_io.messages.message_rows import HALF_TOPICS, scan_messages
from store_io.messages.scans import COLUMNS as MESSAGE_COLUMNS
from store_io.messages.scans import MessageScan
from store_io.source.byte_source import StoreLocation

MOST_HALVES = 1 << 20  # whose states are held at once
STRETCHES = 16
_COLUMNS = {column.name: column for column in TRANSACTIONS}
_PROPERTIES = {"producer_group": "PGROUP", "transaction_id": "__transactionId__", "check_times": CHECK_TIMES}
_OF_STATES = {"state", "end_phy_offset", "end_time_ms"}


@dataclass(frozen=True)
class TransactionScan:
    """The transactions to read. Picklable.

    segments: those of the stretch, `own` of them, and all after it.
    wanted: of half messages.
    """

    location: StoreLocation
    rules: BrokerRules
    columns: tuple[str, ...] = tuple(_COLUMNS)
    wanted: MessageFilter = EVERY_MESSAGE
    segments: tuple[MappedFile, ...] = ()
    own: int = 0
    most: int = MOST_HALVES

    def of(self, segments: tuple[MappedFile, ...], own: int) -> TransactionScan:
        """Return the scan of this stretch."""
        return replace(self, segments=segments, own=own)


def stretches(segments: Sequence[MappedFile], most: int = STRETCHES) -> list[tuple[tuple[MappedFile, ...], int]]:
    """Return at most so many stretches of whole segments, about equally large.

    A stretch is (its segments and all after it, how many are its own).
    """
    files = sorted(segments, key=lambda f: (f.start, f.path))
    share = sum(f.size for f in files) / most
    found: list[tuple[tuple[MappedFile, ...], int]] = []
    first = size = 0
    for number, file in enumerate(files, 1):
        size += file.size
        if size >= share * (len(found) + 1) or number == len(files):
            found.append((tuple(files[first:]), number - first))
            first = number
    return found


def scan_transactions(scan: TransactionScan) -> Iterator[pa.RecordBatch]:
    """Yield the stretch's half messages in the order of the log. Raises as `scan_messages`."""
    wanted = scan.wanted.narrowed(MessageFilter(topics=HALF_TOPICS))
    start: int | None = None
    while True:
        states, after = (None, None) if not _OF_STATES & set(scan.columns) else _states(scan, start)
        part = replace(wanted, phy_offsets=wanted.narrowed(MessageFilter(phy_offsets=(start, after))).phy_offsets)
        for file in scan.segments[: scan.own]:
            if part.may_be_in(file.start, file.size):
                for batch in scan_messages(_messages(scan, _sources_of(scan.columns), part).of(file)):
                    yield _built(batch, scan.columns, states)
        if after is None:
            return
        start = after


def _states(scan: TransactionScan, start: int | None) -> tuple[HalfStates, int | None]:
    """Return (states of the stretch's half messages from `start` on, the first physical offset without room)."""
    own = scan.segments[: scan.own]
    low, high = scan.wanted.phy_offsets
    low = max(own[0].start, start or 0, low or 0)
    high = min(own[-1].start + own[-1].size, high if high is not None else 1 << 63)
    states, after = HalfStates(), None
    part = _messages(scan, transaction_ends.COLUMNS, MessageFilter(phy_offsets=(low, None), of_transactions=True))
    for number, file in enumerate(scan.segments):
        if not part.wanted.may_be_in(file.start, file.size):
            continue
        if (number >= scan.own or file.start >= high or after is not None) and states.all_ended:
            break
        for batch in scan_messages(part.of(file)):
            full = states.add(batch, (low, high), scan.most)
            if full is not None:
                high, after = full, full
        states.settle()
    return states, after


def _messages(scan: TransactionScan, columns: tuple[str, ...], wanted: MessageFilter) -> MessageScan:
    return MessageScan(scan.location, "", 0, 0, columns, wanted, rules=scan.rules)


def _sources_of(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of messages that these are made of."""
    names = ["phy_offset", *(name for name in columns if name in MESSAGE_COLUMNS)]
    if _PROPERTIES.keys() & set(columns):
        names.append("properties")
    if "transaction_id" in columns:
        names.append("unique_key")
    return tuple(dict.fromkeys(names))


def _built(batch: pa.RecordBatch, columns: Sequence[str], states: HalfStates | None) -> pa.RecordBatch:
    made = {name: batch.column(name) for name in batch.schema.names}
    for name in _PROPERTIES.keys() & set(columns):
        made[name] = pc.map_lookup(batch.column("properties"), _PROPERTIES[name], "last")
    if "transaction_id" in made:
        made["transaction_id"] = pc.coalesce(made["transaction_id"], made["unique_key"].cast(pa.string()))
    if "check_times" in made:
        texts = made["check_times"].to_pylist()
        made["check_times"] = pa.array([parse_number(text, 32) if text is not None else None for text in texts], pa.int32())
    if states is not None:
        at = np.searchsorted(states.phy_offset, batch.column("phy_offset").to_numpy())
        code, is_open = states.state[at], states.state[at] == transaction_ends.OPEN
        made["state"] = pa.array(STATES, pa.string()).take(pa.array(code))
        made["end_phy_offset"] = pa.array(states.end_phy_offset[at], mask=is_open)
        made["end_time_ms"] = pa.array(states.end_time_ms[at], mask=is_open)
    schema = arrow_schema(_COLUMNS[name] for name in columns)
    arrays = [made[f.name] if made[f.name].type == f.type else made[f.name].cast(f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
