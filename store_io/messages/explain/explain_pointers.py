"""The ConsumeQueue and index entries that lead to a record, and those of its own that are not where they belong.

Every search has a limit: SEARCH_BYTES of queue files; of index files the key's chain and the entries near in their order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from schemas.layouts import consumequeue_layout, index_layout
from schemas.layouts.entries import INDEX_DTYPE, STORED_INDEX_DTYPE
from schemas.rows import MappedFile, QueueKey
from store_io.base.java.java_compat import is_blank
from store_io.base.wording import seen
from store_io.broker.index_keys import index_keys, key_hash, key_text, tag_key
from store_io.broker.index_state import IndexHeader
from store_io.broker.message_verdict import Message, tags_code_of
from store_io.broker.queues.multi_dispatch import multi_dispatch
from store_io.broker.releases import BrokerRules
from store_io.kinds.index.index_kind import INDEX
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.log.entries.file_entries import entries_of, read_entries, unit_bytes
from store_io.log.entries.index_entries import entry_position
from store_io.log.entries.queue_table import QueueTable
from store_io.log.entries.stored_entries import EntryReader, plain_entries
from store_io.messages.redaction import Redaction
from store_io.messages.stored_entry_rows import data_windows
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_file import ByteFile

SEARCH_BYTES = 64 << 20  # of queue files that are looked through for entries
SEARCH_FILES = 4096
MAX_POINTERS = 50  # of one queue file's chunk
CHAIN_STEPS = 10_000  # of one key's chain in an index file
NEAR_ENTRIES = 256  # of an index file, on both sides of where the order of its entries leads


@dataclass(frozen=True)
class Pointer:
    """An entry that leads to the record, or the place at which one is expected.

    kind: "queue", "batch", "lmq", "other queue", "index".
    number: the entry's, in its queue or index file.
    position: the entry's byte in the file; None in a database, in which it has a key instead.
    state: "equal"; "differs"; "into the middle" (of the record); "absent" (another entry, or none, is in the place of the
    record's).
    values: the entry's fields.
    differences: sentences.
    """

    kind: str
    name: str
    file: str
    position: int | None
    number: int
    state: str
    values: dict[str, int]
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Target:
    """The physical range to which entries may lead.

    message: that of the record there, None if it cannot be read.
    known: a record begins at `start`.
    """

    start: int
    end: int
    message: Message | None
    known: bool


def queues_of(message: Message, rules: BrokerRules) -> list[tuple[str, QueueKey, int]]:
    """Return (kind, queue, queue offset) of every ordinary entry that dispatch gives the message: its own queue's, then
    multi-dispatch ones. Source: CommitLogDispatcherBuildConsumeQueue."""
    if not message.in_queue:
        return []
    key = message.topic, message.queue_id
    found = [("queue", key, message.queue_offset)]
    if not is_blank(message.properties.get("INNER_MULTI_DISPATCH", "")):
        pairs = (f"{name}\x01{value}\x02" for name, value in message.properties.items())
        properties = "".join(pairs).encode("utf-8", "surrogatepass")
        found += [("lmq", name, offset) for name, offset in multi_dispatch(rules, key, properties).entries]
    return found


class QueueSearch:
    """Entries of ConsumeQueues that lead into the target, and those in the place of the message's own.

    searched: after `run`, a sentence on what was read.
    """

    def __init__(self, copy: OpenedCopy, target: Target):
        self.copy, self.target, self.searched = copy, target, ""
        self.served = copy.queues_in_files.served
        self.left, self.files_left = SEARCH_BYTES, SEARCH_FILES
        m = self.message = target.message
        self.expected = queues_of(m, copy.rules) if m is not None else []
        self.codes: set[int] = set()
        if m is not None:
            tables = (copy.rules.delays, copy.rules.delays_in_recovery)
            codes = (tags_code_of(m.topic, m.properties, m.store_time, table) for table in tables)
            self.codes = {code for code in codes if code is not None}

    def run(self) -> Iterator[Pointer]:
        """Yield pointers of the queues that the message names, then of all others by name."""
        table = self.copy[ROCKS_QUEUES].served_table
        if table is not None:
            yield from self._keyed(table)
            return
        named = dict.fromkeys(key for _, key, _ in self.expected)
        others = [key for key in sorted(self.served.files) if key not in named]
        looked = skipped = 0
        for key in [*named, *others]:
            met = set()
            for file in self.served.files.get(key, ()):
                if self.left <= 0 or self.files_left <= 0:
                    skipped += 1
                    continue
                looked += 1
                for pointer in self._file(key, file):
                    met.add(pointer.number)
                    yield pointer
            for kind, wanted, offset in self.expected:
                if wanted == key and not self._batch(key) and offset not in met and self.target.known:
                    yield self._absent(kind, key, offset)
        limit = f", {skipped} were not: the search has a limit" if skipped else ""
        self.searched = f"{looked} ConsumeQueue files were searched{limit}"

    def _keyed(self, table: QueueTable) -> Iterator[Pointer]:
        """Yield the entries at the message's own keys, of queues in RocksDB.

        Others are not searched: a key is looked up, not found.
        """
        reader, unit = EntryReader(self.copy.source, table.database), unit_bytes(False)
        try:
            for kind, key, offset in self.expected:
                rows = [plain_entries(rows) for _, rows in reader.windows(key, offset, offset + 1) if len(rows)]
                row = rows[0][0] if rows else None
                if row is not None and self.target.start <= row["phy_offset"] < self.target.end:
                    found = self._pointer(key, MappedFile(table.database.folder, offset * unit, unit), 0, row)
                    yield replace(found, position=None)
                elif self.target.known:
                    what = "the database has no entry at this key" if row is None else f"it leads to {int(row['phy_offset'])}"
                    values = _values(row) if row is not None else {}
                    yield Pointer(kind, _queue_name(key), table.database.folder, None, offset, "absent", values, [what])
        finally:
            reader.close()
        self.searched = f"{len(self.expected)} keys of the ConsumeQueues' database were looked up, no others"

    def _batch(self, key: QueueKey) -> bool:
        return self.served.folders.get(key, "").startswith("batch")

    def _file(self, key: QueueKey, file: MappedFile) -> Iterator[Pointer]:
        batch, start = self._batch(key), self.target.start
        unit = unit_bytes(batch)
        self.files_left -= 1
        for at, data in data_windows(self.copy.source, file, unit):
            if self.left <= 0:
                return
            rows = entries_of(data, batch)
            self.left -= len(data)
            hits = np.flatnonzero((rows["phy_offset"] >= start) & (rows["phy_offset"] < self.target.end) & (rows["size"] > 0))
            for hit in hits[:MAX_POINTERS].tolist():
                if start or batch or int(rows["size"][hit]) != consumequeue_layout.PRE_BLANK_SIZE:
                    yield self._pointer(key, file, at + hit * unit, rows[hit])

    def _pointer(self, key: QueueKey, file: MappedFile, position: int, row: np.void) -> Pointer:
        batch = self._batch(key)
        unit = unit_bytes(batch)
        number = file.start // unit + position // unit
        own = {name: (kind, offset) for kind, name, offset in self.expected}.get(key)
        kind = "batch" if batch else own[0] if own else "other queue"
        values = _values(row)
        differences: list[str] = []
        if values["phy_offset"] != self.target.start:
            state = "into the middle"
        elif self.message is None:
            state = "no message to compare with"
        else:
            differences = list(self._differences(values, number, own[1] if own else None, batch))
            state = "differs" if differences else "equal"
        return Pointer(kind, _queue_name(key), file.path, position, number, state, values, differences)

    def _differences(self, values: dict[str, int], number: int, offset: int | None, batch: bool) -> Iterator[str]:
        """Yield each difference between an entry and the message to which it leads.

        offset: the message's own in this queue; None: the message does not belong to the queue.
        """
        m = self.message
        assert m is not None
        if offset is None:
            yield "the message belongs to another queue"
        if values["size"] != m.total_size:
            yield f"its size is {values['size']}, the message's {m.total_size}"
        code = values["tags_code"]
        ext = code <= consumequeue_layout.EXT_ADDRESS_MAX and bool(self.copy.rules.value("enableConsumeQueueExt"))
        if code not in self.codes and not ext:
            yield f"its tags code is {code}, the message's {' or '.join(map(str, sorted(self.codes)))}"
        if batch:
            if (values["base"], values["count"]) != (m.batch_base, m.batch_count):
                held = f"it holds {values['count']} messages from {values['base']} on"
                yield f"{held}, the message {m.batch_count} from {m.batch_base}"
        elif offset is not None and number != offset:
            yield f"it is entry {number}, the message says {offset}"

    def _absent(self, kind: str, key: QueueKey, offset: int) -> Pointer:
        """Return the pointer for the place of the message's missing entry."""
        files = self.served.files.get(key, ())
        unit = unit_bytes(False)
        for file in files:
            place = offset * unit - file.start
            if 0 <= place and place + unit <= file.size:
                values = _values(read_entries(self.copy.source, files, offset, offset + 1)[0])
                what = f"it leads to {values['phy_offset']}" if values["size"] else "nothing is written there"
                if values["size"] == consumequeue_layout.PRE_BLANK_SIZE:
                    what = "it is an empty entry before the queue's first one"
                return Pointer(kind, _queue_name(key), file.path, place, offset, "absent", values, [what])
        what = "no file of the queue holds this entry" if files else "the copy holds no file of this queue"
        return Pointer(kind, _queue_name(key), self.served.folders.get(key, ""), 0, offset, "absent", {}, [what])


class IndexSearch:
    """Entries of index files that lead into the target, and how many of the message's keys have none.

    searched: after `run`, a sentence on what was read.
    """

    def __init__(self, copy: OpenedCopy, target: Target, redaction: Redaction):
        self.copy, self.target, self.redaction, self.searched = copy, target, redaction, ""
        self.slots = copy.rules.index_slots
        self.keys: dict[str, int] = {}
        self.optional: set[str] = set()
        m = target.message
        if m is not None:
            texts = [key_text(m.topic, key) for key in index_keys(m)]
            tag = tag_key(m)
            if tag is not None:
                texts.append(key_text(m.topic, tag))
                if not copy.rules.tag_index:
                    self.optional.add(texts[-1])
            self.keys = {text: key_hash(text) for text in texts}

    def run(self) -> list[Pointer]:
        found: list[Pointer] = []
        covering = 0
        for file in reversed([*self.copy[INDEX]]):
            header = self.copy.headers.get(file.path, IndexHeader())
            low, high = header.begin_phy_offset, header.end_phy_offset
            if low <= self.target.start <= high or high < low:
                covering += 1
                found += self._file(file, header.index_count)
        hashes = {p.values["key_hash"] for p in found if p.state == "equal"}
        lacking = [text for text, value in self.keys.items() if value not in hashes and text not in self.optional]
        wanted = len(self.keys) - len(self.optional)
        self.searched = f"{covering} of {len(self.copy[INDEX])} index files cover this physical offset" + (
            f"; {len(lacking)} of the message's {wanted} keys lead nowhere" if lacking else ""
        )
        return found

    def _file(self, file: MappedFile, count: int) -> Iterator[Pointer]:
        last = max(0, min(count - 1, (file.size - entry_position(self.slots, 0)) // index_layout.ENTRY_BYTES - 1))
        if last < 1:
            return
        with self.copy.source.open(file.path) as opened:
            numbers = set(self._by_order(opened, last))
            for value in self.keys.values():
                numbers.update(self._by_chain(opened, value, last))
            for number in sorted(numbers):
                values = _values(self._entries(opened, number, number + 1)[0])
                names = [text for text, value in self.keys.items() if value == values["key_hash"]]
                differences: list[str] = []
                if values["phy_offset"] != self.target.start:
                    state = "into the middle"
                elif not self.keys:
                    state = "no message to compare with"
                else:
                    state = "equal" if names else "differs"
                    differences = [] if names else ["no key of the message has this hash"]
                position = entry_position(self.slots, number)
                yield Pointer("index", self._name(names), file.path, position, number, state, values, differences)

    def _entries(self, file: ByteFile, first: int, last: int) -> np.ndarray:
        data = file.read(entry_position(self.slots, first), (last - first) * index_layout.ENTRY_BYTES)
        return np.frombuffer(data, STORED_INDEX_DTYPE, count=len(data) // index_layout.ENTRY_BYTES).astype(INDEX_DTYPE)

    def _name(self, texts: list[str]) -> str:
        """Return the key as a lookup asks for it: topic, #, key."""
        if not texts:
            return ""
        topic, _, key = texts[0].partition("#")
        return f"{topic}#{self.redaction.text(key)}"

    def _by_order(self, file: ByteFile, last: int) -> Iterator[int]:
        """Yield entries near a bisection's end: they are put in the order of the log. Damage may mislead it."""
        numbers = range(1, last + 1)
        low = 1 + bisect_left(numbers, self.target.start, key=lambda n: int(self._entries(file, n, n + 1)["phy_offset"][0]))
        first = max(1, low - NEAR_ENTRIES)
        rows = self._entries(file, first, min(last + 1, low + NEAR_ENTRIES))
        hits = (rows["phy_offset"] >= self.target.start) & (rows["phy_offset"] < self.target.end)
        yield from (first + int(hit) for hit in np.flatnonzero(hits))

    def _by_chain(self, file: ByteFile, value: int, last: int) -> Iterator[int]:
        """Yield entries of this hash for this physical offset, as a lookup meets them."""
        slot = entry_position(0, 0) + (value % self.slots) * index_layout.SLOT_BYTES
        number = int.from_bytes(file.read(slot, index_layout.SLOT_BYTES), "big", signed=True)
        for _ in range(CHAIN_STEPS):
            if not 0 < number <= last:
                return
            row = self._entries(file, number, number + 1)[0]
            if int(row["key_hash"]) == value and int(row["phy_offset"]) == self.target.start:
                yield number
            previous = int(row["previous"])
            if previous >= number:
                return
            number = previous


def _values(row: np.void) -> dict[str, int]:
    return {name: int(row[name]) for name in row.dtype.names or ()}


def _queue_name(key: QueueKey) -> str:
    return f"{seen(key[0])}, queue {key[1]}"
