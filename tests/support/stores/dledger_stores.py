"""Stores with a DLedger log, written byte by byte as a broker of one node leaves them. Imports nothing of the product."""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support import damage
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder, encode, write_derived, write_sparse

HEADER, UNIT = 48, 32
INDEX_BYTES = 167_772_160
FOLDER = "dledger-n0"
SIZES = Sizes(segment=2048, queue_file=200, slots=10, index_max=30)
CONF = "enableDLegerCommitLog=true\ndLegerGroup=g\ndLegerPeers=n0-127.0.0.1:20911\ndLegerSelfId=n0\n"


def header(size: int, index: int, term: int, pos: int) -> bytes:
    """Before a message of that size."""
    return struct.pack(">iiqqqiiii", 1, HEADER + size, index, term, pos, 0, 0, 0, size)


def unit(pos: int, size: int, index: int, term: int) -> bytes:
    """Of an entry with that size, header and all."""
    return struct.pack(">iqiqq", 1, pos, size, index, term)


@dataclass(frozen=True)
class Entry:
    """One entry. at: its own position in the log, not its message's."""

    at: int
    index: int
    term: int
    record: Record

    @property
    def size(self) -> int:
        return HEADER + self.record.size

    @property
    def data(self) -> bytes:
        return header(self.record.size, self.index, self.term, self.at) + encode(self.record)


@dataclass
class LedgerStore:
    """A written store. damage is done to its files by the tests."""

    root: Path
    release: str
    broker_conf: str
    entries: list[Entry]
    end: int

    def data(self, number: int = -1) -> Path:
        """One of its data files."""
        return sorted((self.root / FOLDER / "data").iterdir())[number]

    def data_of(self, entry: Entry) -> Path:
        return self.root / FOLDER / "data" / f"{entry.at - entry.at % SIZES.segment:020d}"

    @property
    def index(self) -> Path:
        return self.root / FOLDER / "index" / f"{0:020d}"

    def set_checkpoint(self, committed: int | str) -> None:
        path = self.root / FOLDER / "checkpoint"
        path.write_text(f"committedIndex={committed}\nendIndex={self.entries[-1].index}\n")

    def flip(self, path: Path, at: int) -> None:
        damage.invert_byte(path, at, 0x55)


@dataclass
class LedgerBuilder:
    """Appends entries as DLedger does. first: position of the first data file.  term: of what is appended next."""

    release: str = "5.3.3"
    first: int = 0
    term: int = 0
    entries: list[Entry] = field(default_factory=list)
    files: dict[int, bytearray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.end = self.first
        self.plain = StoreBuilder(self.release, SIZES)

    def put(self, message: Message) -> Entry:
        """Append one message, after a filler where it does not fit."""
        record = self.plain._fill_in(replace(message, phy_offset=0), 0)
        size = HEADER + record.size
        left = -self.end % SIZES.segment
        if left and size + 8 > left:
            self._write(struct.pack(">ii", -1, left))
            self.end += left - 8
        record = replace(record, at=self.end + HEADER, phy_offset=self.end + HEADER)
        entry = Entry(self.end, len(self.entries), self.term, record)
        self._write(entry.data)
        self.entries.append(entry)
        self.plain._advance(message, record)
        return entry

    def _write(self, data: bytes) -> None:
        base = self.end - self.end % SIZES.segment
        file = self.files.setdefault(base, bytearray(SIZES.segment))
        file[self.end - base : self.end - base + len(data)] = data
        self.end += len(data)

    def write(self, root: Path, *, clean: bool = True, undispatched: int = 0, committed: int | None = None) -> LedgerStore:
        """Write the store. committed: what the group's checkpoint says (default: all; below 0: there is none)."""
        dispatched = self.plain.dispatcher()
        for entry in self.entries[: len(self.entries) - undispatched]:
            dispatched.put(entry.record)
        write_derived(root, dispatched)
        self.plain.records = [entry.record for entry in self.entries]
        self.plain._write_checkpoint(root, dispatched, clean, {})
        for base, data in self.files.items():
            write_sparse(root / FOLDER / "data" / f"{base:020d}", bytes(data), SIZES.segment)
        units = b"".join(unit(e.at, e.size, e.index, e.term) for e in self.entries)
        write_sparse(root / FOLDER / "index" / f"{0:020d}", units, INDEX_BYTES)
        if not clean:
            (root / "abort").write_bytes(b"4711")
        store = LedgerStore(root, self.release, self.plain.broker_conf() + CONF, list(self.entries), self.end)
        last = self.entries[-1].index if self.entries else -1
        if committed is None or committed >= 0:
            store.set_checkpoint(last if committed is None else committed)
        (root / FOLDER / "currterm").write_text(f"voteLeader=n0\ncurrTerm={self.term}\n")
        return store


def build(root: Path, release: str = "5.3.3", messages: int = 40, first: int = 0, **how: object) -> LedgerStore:
    """Some messages of two queues, in several data files."""
    builder = LedgerBuilder(release, first)
    for n in range(messages):
        builder.put(Message(f"Topic{n % 2}", 0, b"body %d " % n * (n % 5 + 1), tags="TagA", keys=f"k{n}", uniq=f"7F00{n:08X}"))
    return builder.write(root, **how)  # type: ignore[arg-type]


def mixed(root: Path, release: str = "5.4.0") -> tuple[Store, LedgerStore]:
    """An ordinary log of one segment, full by its filler, then DLedger's part."""
    old = StoreBuilder(release, SIZES)
    while old.end < SIZES.segment - 400:
        old.put(Message("Topic0", 0, b"old" * 20, uniq=f"7F01{old.end:08X}"))
    old.roll()
    builder = LedgerBuilder(release, SIZES.segment)
    builder.plain.next_offsets, builder.plain.clock = dict(old.next_offsets), old.clock
    for n in range(20):
        builder.put(Message("Topic0", 0, b"new %d " % n * 9, uniq=f"7F02{n:08X}"))
    store = old.write(root, clean=True, spare=False)
    ledger = builder.write(root)
    for folder in ("consumequeue", "index"):
        shutil.rmtree(root / folder)
    both = old.dispatcher()
    for record in [*old.records, *(entry.record for entry in builder.entries)]:
        both.put(record)
    write_derived(root, both)
    return store, ledger
