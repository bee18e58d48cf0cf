"""No miss, no false alarm: a table of damage and the finding that must meet it.

First the mutations of real stores, each traced to the file and the range that it changed; then the same kinds and others on
built stores. A finding counts when it is above `note`, names the damaged file, touches the damage, and is no larger than the
damaged record, entry or header. Exempt is what leaves a state that a healthy broker can leave, or bytes that no checksum and
no cross-check covers: each with its reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schemas.rows import LOSS, NOTE, REBUILDABLE, Finding
from store_io.answer.headline import verdict_text
from tests.support import damage
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.damage import Done
from tests.support.stores import builders, compacted, corpus_tools, replica, timers
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder
from tests.support.stores.corpus_tools import Case
from tests.support.stores.keyed_timers import KeyedTimers, keyed_timers
from tests.support.stores.rocksdb_stores import TWICE, KeyedStore, combined_store, keyed_store
from tests.support.stores.rocksdb_tables import TableStore, table_store
from tests.support.stores.test_builders import sizes_of

MUTATED = [case for case in corpus_tools.cases() if case.case["mutations"]]
UNDAMAGED = [case for case in corpus_tools.cases() if not case.case["mutations"]]


# ---- real stores ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trace:
    """What a mutation changed: a file (or a folder, then any file in it), bytes [start, end) of it (None: the whole file),
    and the largest range that a finding on it may have. exempt: why no finding is asked for."""

    file: str
    start: int | None = None
    end: int | None = None
    low: int | None = None
    high: int | None = None
    exempt: str = ""


WITHIN_MARGIN = "ahead by no more than the 3 s that releases subtract: no start reads less for it"
HEALTHY_CHECKPOINT = "a checkpoint that lags, or was never written, is what a healthy broker leaves"
RETENTION = "segments gone at the beginning are what retention leaves"
NO_SPARE = "a store without a preallocated segment is what a clean stop leaves"
KILLED_IN_RECOVERY = "no abort beside lagging queues is what a kill during a recovery leaves"
PROPERTIES = "no checksum covers the properties, and the message's derived data were not written yet"
JUST_CREATED = "a file of length 0 is what a kill leaves between creating and sizing it"
EMPTY_FOLDER = "an empty queue folder is what deleting a queue's files leaves"
UNWRITTEN_BEFORE = "it was unwritten already"


class Golden:
    """The traces of one case's mutations."""

    def __init__(self, case: Case, root: Path):
        self.case, self.root = case, root
        self.segment_size = sizes_of(case).segment
        self.slots = sizes_of(case)

    def segment(self, phy_offset: int) -> str:
        return f"commitlog/{phy_offset - phy_offset % self.segment_size:020d}"

    def undone(self, segment: str) -> bytearray:
        """The segment's bytes with all field mutations taken back."""
        data = bytearray((self.root / segment).read_bytes())
        base = int(segment[-20:])
        for mutation in self.case.case["mutations"]:
            did, op = mutation["did"], mutation["op"]
            if op == "flip" and base <= did["byteOffset"] < base + len(data):
                data[did["byteOffset"] - base] = did["old"]
            elif op == "set_field" and base <= did["recordOffset"] < base + len(data):
                self._set_back(data, did["recordOffset"] - base, did["field"], did["old"])
            elif op == "blank" and base <= did["at"] < base + len(data):
                struct.pack_into(">iI", data, did["at"] - base, did["fillerSize"], builders.BLANK)
        return data

    @staticmethod
    def _set_back(data: bytearray, position: int, field: str, old: int) -> None:
        (flags,) = struct.unpack_from(">i", data, position + builders.FIELDS["sysFlag"][0])
        at, form = builders.FIELDS[field]
        at += 12 * bool(flags & builders.BORN_V6) * (field in builders.BEHIND_BORN_HOST)
        at += 12 * bool(flags & builders.STORE_V6) * (field in builders.BEHIND_STORE_HOST)
        struct.pack_into(form, data, position + at, old)

    def record(self, phy_offset: int) -> Record:
        segment = self.segment(phy_offset)
        return builders.decode(self.undone(segment), phy_offset - int(segment[-20:]), int(segment[-20:]))

    def traces(self) -> Iterator[tuple[str, Trace]]:
        """(name for the test, trace) per changed place."""
        for number, mutation in enumerate(self.case.case["mutations"]):
            op, did, params = mutation["op"], mutation["did"], mutation["params"]
            for trace in getattr(self, f"_{op}")(did, params):
                yield f"{number}-{op}-{did.get('field', '')}", trace

    # One method per kind of mutation.

    def _flip(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        record = self.record(did["recordOffset"])
        base = int(self.segment(record.at)[-20:])
        at, low = did["byteOffset"] - base, record.at - base
        exempt = PROPERTIES if did["field"] == "props" and not record.raw_properties.endswith(b"\x02") else ""
        exempt = PROPERTIES if did["field"] == "props" and "__CRC32#" not in record.properties else exempt
        yield Trace(self.segment(record.at), at, at + 1, low, low + record.size, exempt)

    def _set_field(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        record = self.record(did["recordOffset"])
        low = record.at - int(self.segment(record.at)[-20:])
        at, size = builders.field_position(record, did["field"])
        yield Trace(self.segment(record.at), low + at, low + at + size, low, low + record.size)

    def _set_props(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        for offset in did["recordOffsets"]:
            record = self.record(offset)
            low = record.at - int(self.segment(record.at)[-20:])
            yield Trace(self.segment(offset), low, low + record.size, low, low + record.size)

    def _zeroed(self, segment: str, start: int, end: int) -> Trace:
        """A zeroed range, as large as the records that it touches."""
        data = (self.root / segment).read_bytes()
        base, low, high = int(segment[-20:]), 0, end
        try:
            for record in builders.walk(data, base):
                low = record.at - base + record.size
        except (ValueError, struct.error):
            pass
        while high < len(data) and not self._is_record(data, high, base):
            high += 1
        return Trace(segment, start, end, min(low, start), high)

    @staticmethod
    def _is_record(data: bytes, position: int, base: int) -> bool:
        if data[position + 4 : position + 8] == struct.pack(">I", builders.BLANK):
            return struct.unpack_from(">i", data, position)[0] == len(data) - position
        try:
            return builders.decode(data, position, base).phy_offset == base + position
        except (ValueError, struct.error, UnicodeDecodeError):
            return False

    def _zero_range(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        segment = self.segment(did["zeroFrom"])
        base = int(segment[-20:])
        yield self._zeroed(segment, did["zeroFrom"] - base, did["zeroTo"] - base)

    def _zero_tail(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        segment = self.segment(did["zeroFrom"])
        yield self._zeroed(segment, did["zeroFrom"] - int(segment[-20:]), self.segment_size)
        entries = self.case.entries() or []
        furthest = max((e["p"] + e.get("s", 0) for e in entries if e.get("s") != 0x7FFFFFFF), default=0)
        for name in did["zeroedLaterSegments"]:
            written = any((self.root / "consumequeue").rglob("*")) and furthest > int(name)
            unused = not written and name == did["zeroedLaterSegments"][-1]
            yield Trace(f"commitlog/{name}", 0, self.segment_size, 0, self.segment_size, UNWRITTEN_BEFORE if unused else "")

    def _zero_segment(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace(f"commitlog/{did['zeroed']}", 0, self.segment_size, 0, self.segment_size)

    def _blank(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        segment = self.segment(did["at"])
        at = did["at"] - int(segment[-20:])
        start = at if did["what"] == "size" else at + 4
        yield Trace(segment, start, start + 4, at, at + did["fillerSize"])

    def _stray_tail(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        segment = self.segment(did["at"])
        at = did["at"] - int(segment[-20:])
        yield Trace(segment, at, at + did["bytes"], at, at + did["bytes"])

    def _remove_segments(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield from (Trace(f"commitlog/{name}") for name in did["removed"])

    def _cl_empty(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace("commitlog")

    def _remove_first(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield from (Trace(f"commitlog/{name}", exempt=RETENTION) for name in did["removed"])

    def _remove_spare(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield from (Trace(f"commitlog/{name}", exempt=NO_SPARE) for name in did["removed"])

    def _extra_segment(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace(f"commitlog/{did['file']}")

    def _extra_path(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        queue_folder = params.get("dir") and did["path"].startswith("consumequeue/") and did["path"].rsplit("/", 1)[1].isdigit()
        yield Trace(did["path"], exempt=EMPTY_FOLDER if queue_folder else "")

    def _index_extra(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace(f"index/{did['name']}")

    def _checkpoint_set(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        last = max((r.store_time for r in self._all_records()), default=0)
        stored = struct.unpack_from(">3q", (self.root / "checkpoint").read_bytes())
        for number, (old, new) in enumerate(zip(did["old"], did["new"], strict=True)):
            if old != new == stored[number]:  # a later mutation may have set it again
                exempt = HEALTHY_CHECKPOINT if new <= last else WITHIN_MARGIN if new <= last + 3000 else ""
                yield Trace("checkpoint", 8 * number, 8 * number + 8, 0, 48, exempt)

    def _all_records(self) -> Iterator[Record]:
        for path in sorted((self.root / "commitlog").iterdir()):
            if path.name.isdigit() and path.stat().st_size == self.segment_size:
                try:
                    yield from builders.walk(self.undone(f"commitlog/{path.name}"), int(path.name))
                except (ValueError, struct.error):
                    continue

    def _checkpoint_zero(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace("checkpoint", exempt=HEALTHY_CHECKPOINT)

    def _checkpoint_missing(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace("checkpoint")

    def _abort_remove(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace("abort", exempt=KILLED_IN_RECOVERY)

    def _entry(self, did: dict[str, Any], index: int, count: int = 1) -> Trace:
        folder = self.root / "consumequeue" / did["topic"] / did["queue"]
        files = sorted((int(p.name), p.stat().st_size, p.name) for p in folder.iterdir() if p.name.isdigit())
        start, _, name = next(f for f in files if f[0] <= index * 20 < f[0] + f[1])
        at = index * 20 - start
        return Trace(f"consumequeue/{did['topic']}/{did['queue']}/{name}", at, at + 20 * count, at, at + 20 * count)

    def _cq_set(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield self._entry(did, did["index"])

    def _cq_append(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield self._entry(did, did["index"])

    def _cq_zero_tail(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield self._entry(did, did["zeroFromIndex"], did["before"] - did["zeroFromIndex"])

    def _cq_zero_file(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        size = (self.root / did["zeroed"]).stat().st_size
        yield Trace(did["zeroed"], 0, size, 0, size)

    def _cq_delete_queue(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace(did["removed"])

    def _cq_delete_all(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        keys = {(r.topic, r.queue_id) for r in self._all_records() if r.transaction in (0, builders.COMMIT)}
        yield from (Trace(f"consumequeue/{topic}/{queue_id}") for topic, queue_id in sorted(keys))

    def _cq_next_file(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace(did["file"], exempt=JUST_CREATED)

    def _epoch_write(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        path = params.get("path", "epochFileCheckpoint")
        size = (self.root / path).stat().st_size
        yield Trace(path, 0, size, 0, size)

    def _dl_flip(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        folder = self.root / "dledger-n0" / "data"
        at = did["offset"] % self.segment_size
        low = self._entry_start((folder / did["file"]).read_bytes(), at)
        (size,) = struct.unpack_from(">i", (folder / did["file"]).read_bytes(), low + 4)
        yield Trace(f"dledger-n0/data/{did['file']}", at, at + 1, low, low + size)

    @staticmethod
    def _entry_start(data: bytes, at: int) -> int:
        start = end = 0
        while end <= at:
            start = end
            end += struct.unpack_from(">i", data, start + 4)[0]
        return start

    def _dl_zero_tail(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        start = did["offset"] % self.segment_size
        yield Trace(f"dledger-n0/data/{did['file']}", start, self.segment_size, 0, self.segment_size)

    def _dl_delete_file(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        yield Trace(did["file"])

    def _cq_flip(self, did: dict[str, Any], params: dict[str, Any]) -> Iterator[Trace]:
        data = bytearray((self.root / did["file"]).read_bytes())
        data[did["at"]] ^= 1 << params["bit"]
        (size,) = struct.unpack_from(">h", data, did["at"])
        yield Trace(did["file"], did["at"], did["at"] + 1, did["at"], did["at"] + size)


def meets(finding: Finding, trace: Trace) -> bool:
    """Whether this finding is the one that the changed place asks for."""
    if finding.code == "file_unrecognised" and finding.file == trace.file and trace.start is None:
        return True  # a note, if the release skips such a name
    if finding.severity == NOTE or not (finding.file == trace.file or finding.file.startswith(trace.file + "/")):
        return False
    if trace.start is None or trace.end is None or trace.low is None or trace.high is None:
        return True
    if finding.start is None or finding.end is None:
        return False
    touches = finding.start < trace.end and trace.start < finding.end
    return touches and trace.low <= finding.start and finding.end <= trace.high


@pytest.mark.parametrize("case", MUTATED, ids=lambda c: c.name)
def test_every_mutation_is_met(case: Case, audited: Callable[[Case], Audited]) -> None:
    audit = audited(case)
    missed = []
    for name, trace in Golden(case, audit.root).traces():
        if not trace.exempt and not any(meets(f, trace) for f in audit.findings):
            near = [f for f in audit.findings if f.file.startswith(trace.file)][:4]
            missed.append(f"{name}: {trace}; on that file: {near}")
    assert not missed, "\n".join(missed)


# What an undamaged store may be noted for: an empty log, and two states of a broker that was running.
# And what a replica in controller mode keeps back on purpose.
HEALTHY_NOTES = {
    "commitlog_empty", "index_part_flushed", "live_copy", "queue_entry_unconfirmed", "index_range_unconfirmed",
}  # fmt: skip


@pytest.mark.parametrize("case", UNDAMAGED, ids=lambda c: c.name)
def test_undamaged_real_store_raises_no_alarm(case: Case, audited: Callable[[Case], Audited]) -> None:
    audit = audited(case)
    allowed = {NOTE, REBUILDABLE} if case.case["abortPresent"] else {NOTE}
    would_cut = (
        "switched on for a store", "switched on: records", "no moment's state", "confirmOffset stays behind",
        "its checkpoint written, then killed",
    )  # fmt: skip
    if any(words in case.case["story"] for words in would_cut):
        # Every byte is as a broker wrote it, but a start under these settings, or from these mixed moments, drops messages.
        allowed |= {LOSS}
        losses = {f.code for f in audit.findings if f.severity == LOSS}
        drops = {"broker_drops_messages", "broker_skips_messages", "ledger_crash_cut"}
        assert losses <= drops | {"segment_unwritten"}
        assert audit.broker is not None and audit.broker["lost"]["messages"] > 0
    assert {f.severity for f in audit.findings} <= allowed, audit.above_note[:5]
    assert {f.code for f in audit.findings if f.severity == NOTE} <= HEALTHY_NOTES


# ---- built stores --------------------------------------------------------------------------------------------------

SIZES = Sizes(segment=2048, queue_file=200, slots=10, index_max=30)
PROPERTY_CRC = 7  # every so many messages carry one


def build(root: Path, release: str = "5.3.3", clean: bool = True, undispatched: int = 0) -> Store:
    """Sixty messages of two topics, some with IPv6 hosts, property CRC, delay, transactions."""
    builder = StoreBuilder(release, SIZES)
    for n in range(60):
        host = bytes(range(16)) + b"\0\0\x2a\x9f" if n % 11 == 0 else b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
        delayed = n % 13 == 5
        builder.put(
            Message(
                builders.SCHEDULE_TOPIC if delayed else f"Topic{n % 2}",
                2 if delayed else n % 3 % 2,
                b"body %d " % n * (n % 5 + 1) if n % 10 else b"",
                tags="TagA" if n % 3 else None,
                keys=f"k{n} common" if n % 4 else None,
                uniq=f"7F0000010{n:08X}",
                born_host=host,
                store_host=host,
                sys_flag={17: builders.PREPARED, 18: builders.COMMIT, 19: builders.ROLLBACK}.get(n, 0),
                properties=(("DELAY", "3"),) if delayed else (("WAIT", "true"),),
                property_crc=n % PROPERTY_CRC == 0,
            )
        )
    config = {"consumerOffset.json": '{"offsetTable":{"Topic0@group":{0:2,1:3}}}', "delayOffset.json": '{"offsetTable":{3:1}}'}
    return builder.write(root, clean=clean, undispatched=undispatched, config=config)


def middle(store: Store) -> Record:
    """A record in the middle of the log, with body and keys, not the first or last of its segment."""
    return next(
        r for r in store.records[25:] if r.body and r.topic == "Topic0" and "KEYS" in r.properties and store.position_of(r)
    )


def crc_record(store: Store) -> Record:
    return next(r for r in store.records[20:] if "__CRC32#" in r.properties)


@dataclass(frozen=True)
class Row:
    """A surgery, the codes above a note that are found on the damaged file, and whether the range must be told."""

    name: str
    cut: Callable[[Store], Done]
    codes: str
    range_told: bool = True


Cut = Callable[[Store], Done]


def middle_of_queue(store: Store) -> int:
    return len(store.expected.queues["Topic0", 0].entries()) // 2


def field(name: str, change: Callable[[int], int] = lambda v: v + 1, pick: Callable[[Store], Record] = middle) -> Cut:
    return lambda s: damage.set_field(s, pick(s), name, change)


def flip(name: str, byte: int = 0, pick: Callable[[Store], Record] = middle) -> Cut:
    return lambda s: damage.flip_in(s, pick(s), name, byte)


def entry(name: str, delta: int) -> Cut:
    return lambda s: damage.cq_set(s, "Topic0", 0, middle_of_queue(s), name, lambda v: v + delta)


def delayed_entry(store: Store, delta: int) -> Done:
    return damage.cq_set(store, builders.SCHEDULE_TOPIC, 2, 1, "tags", lambda v: v + delta)


def zero_index_file(store: Store) -> Done:
    path = damage.index_files(store)[0]
    return damage.overwrite(path, 0, bytes(path.stat().st_size), "zero_index_file")


def keys(name: str, change: Callable[[int], int], number: int = 5) -> Cut:
    return lambda s: damage.index_entry(s, 0, number, name, change)


def header(name: str, delta: int) -> Cut:
    return lambda s: damage.index_header(s, 0, name, lambda v: v + delta)


def swapped(store: Store) -> Done:
    return damage.copy_under_wrong_name(segment(store, 0), segment(store, 2).name)


def second_entry(store: Store) -> Done:
    return damage.cq_append(store, "Topic0", 0, store.records[0].at, store.records[0].size)


TABLE = (
    Row("body byte", flip("body"), "commitlog_damaged"),
    Row("body CRC", field("bodyCRC", lambda v: v ^ 1), "commitlog_damaged"),
    Row("magic", flip("magic"), "commitlog_damaged"),
    Row("size", field("size", lambda v: v + 4), "commitlog_damaged"),
    Row("size huge", field("size", lambda v: v | 1 << 30), "commitlog_damaged"),
    Row("size negative", field("size", lambda v: -v), "commitlog_damaged"),
    Row("body length", field("bodyLength"), "commitlog_damaged"),
    Row("topic length", flip("topicLength"), "commitlog_damaged"),
    Row("properties length", flip("propsLength", 1), "commitlog_damaged"),
    Row("physical offset", field("physOffset", lambda v: v + 64), "commitlog_foreign"),
    Row("IPv6 flag", field("sysFlag", lambda v: v ^ 0x10), "commitlog_damaged"),
    Row("a page of zeros", lambda s: zero_page(s), "commitlog_damaged"),
    Row("header under a property CRC", field("flag", pick=crc_record), "property_crc_mismatch"),
    Row("properties under their CRC", flip("props", 3, crc_record), "property_crc_mismatch"),
    Row("NUL in the properties", lambda s: nul_in_properties(s), "properties_malformed"),
    Row("filler magic", lambda s: damage.blank_magic(segment(s, 1)), "commitlog_damaged"),
    Row("filler size", lambda s: damage.filler_size(segment(s, 1)), "filler_wrong_size"),
    Row("early blank", lambda s: damage.early_blank(s, middle(s)), "filler_hides_messages filler_wrong_size"),
    Row("stray tail", damage.stray_tail, "commitlog_foreign"),
    Row("segment gone", lambda s: damage.drop_segment(s, 2), "segment_missing", False),
    Row("last segment gone", lambda s: damage.drop_segment(s, -1), "segment_missing", False),
    Row("segment zero", lambda s: damage.zero_segment(s, 1), "message_lost segment_unwritten", False),
    Row(
        "segment cut",
        lambda s: damage.cut_at(segment(s, 1), 1000),
        "broker_refuses commitlog_damaged message_lost segment_wrong_size",
        False,
    ),
    Row("segment grown", lambda s: damage.grow(segment(s, 1), 100), "broker_refuses filler_wrong_size segment_wrong_size", False),
    Row("segment under a wrong name", swapped, "commitlog_foreign message_lost", False),
    Row("queue offset twice", field("queueOffset", lambda v: v - 1), "queue_offset_wrong"),
    Row("queue offset ahead", field("queueOffset", lambda v: v + 3), "queue_offset_wrong"),
    Row("store time of one message", field("storeTimestamp", lambda v: v + 86_400_000), "store_time_odd"),
    Row("entry's offset", entry("offset", 8), "queue_entry_wrong"),
    Row("entry's size", entry("size", 8), "queue_entry_wrong"),
    Row("entry's tags code", entry("tags", 1), "queue_entry_wrong"),
    Row("deliver time of a delayed entry", lambda s: delayed_entry(s, 1), "queue_entry_wrong"),
    Row("entry behind the end", lambda s: damage.cq_append(s, "Topic0", 0, 10**6, 200), "queue_entry_beyond_end"),
    Row("entry twice", second_entry, "queue_entry_twice"),
    Row("tail of a queue zero", lambda s: damage.cq_zero_tail(s, "Topic0", 0, 3), "queue_entry_missing"),
    Row("queue file zero", lambda s: damage.cq_zero_file(s, "Topic0", 0, 0), "queue_entry_missing"),
    Row("queue gone", lambda s: damage.cq_delete_queue(s, "Topic1", 0), "broker_skips_messages queue_entry_missing", False),
    Row("queue file gone", lambda s: damage.cq_delete_file(s, "Topic0", 0, 0), "queue_entry_missing", False),
    Row(
        "queue shifted", lambda s: damage.cq_shift(s, "Topic0", 0, 3), "queue_entry_missing queue_entry_shifted queue_entry_twice"
    ),
    Row(
        "queue file cut",
        lambda s: damage.cut_at(queue_file(s), 100),
        "broker_refuses queue_entry_missing queue_file_wrong_size",
        False,
    ),
    Row("index hash", keys("hash", lambda v: v ^ 4), "index_entry_wrong"),
    Row("index offset", keys("offset", lambda v: v + 4), "index_entry_wrong"),
    Row("index seconds", keys("seconds", lambda v: v + 9), "index_entry_wrong"),
    Row("index chain", keys("previous", lambda v: v ^ 1, 25), "index_chain_broken"),
    Row("index slot", lambda s: damage.index_slot(s, 0, lambda v: v - 1), "index_slot_wrong"),
    Row("index count", header("count", -3), "index_header_wrong"),
    Row("index begin offset", header("beginPhy", 5), "index_header_wrong"),
    Row("index end offset", header("endPhy", 5), "index_header_wrong"),
    Row("index begin time", header("beginTime", 5), "index_header_wrong"),
    Row("index end time", header("endTime", 5), "index_header_wrong"),
    Row("index slot count", header("slots", -3), "index_header_wrong"),
    Row("index file cut", lambda s: damage.cut_at(damage.index_files(s)[1], 300), "index_file_wrong_size", False),
    Row("checkpoint ahead", lambda s: damage.set_checkpoint(s, physic=2**50), "checkpoint_ahead"),
    Row("index begin time far off", header("beginTime", 1 << 40), "index_header_wrong"),
    Row("index file zero", lambda s: zero_index_file(s), "index_header_wrong"),
    Row("checkpoint's master offset", lambda s: damage.set_checkpoint(s, masterFlushed=1 << 60), "checkpoint_offset_beyond_end"),
    Row("checkpoint zero after a clean stop", damage.zero_checkpoint, "checkpoint_zero"),
    Row("checkpoint gone", lambda s: damage.remove(s.root / "checkpoint"), "checkpoint_missing", False),
    Row("checkpoint cut", lambda s: damage.cut_at(s.root / "checkpoint", 20), "checkpoint_short", False),
    Row(
        "foreign name",
        lambda s: damage.add_file(s.root / "commitlog" / "x.bak", bytes(2048)),
        "broker_refuses file_unrecognised",
        False,
    ),
)

# What may stay unseen, and why; `test_exempt_damage_is_at_most_noted` keeps the list true.
EXEMPT = (
    Row("producer's flag", field("flag"), "any value is a producer's own"),
    Row("born time", field("bornTimestamp"), "a producer's clock may show anything"),
    Row("born host", flip("bornHost"), "any address is possible"),
    Row("store host", flip("storeHost"), "a broker may have changed its address"),
    Row("reconsume times", field("reconsumeTimes"), "any count is possible"),
    Row("prepared offset", field("preparedOffset"), "nothing refers to it"),
    Row("first segment gone", lambda s: damage.drop_segment(s, 0), RETENTION),
    Row("checkpoint behind", lambda s: damage.stale_checkpoint(s, -3), HEALTHY_CHECKPOINT),
    Row("abort added", damage.add_abort, "a broker that was killed"),
)


# Damage to the logs of compacted topics: in a store of its own.
def compacted_file(store: Store, kind: int, number: int) -> Path:
    return sorted(compacted.folders(store.root)[kind].iterdir())[number]


def compacted_byte(kind: int, at: int, number: int = 0) -> Cut:
    return lambda s: damage.invert_byte(compacted_file(s, kind, number), at)


COMPACTED = (
    Row("body of a compacted record", compacted_byte(0, 93), "compacted_record_damaged"),
    Row("size of a compacted record", compacted_byte(0, 2), "compacted_record_damaged"),
    Row("place of a compacted record", compacted_byte(0, 34), "compacted_record_damaged"),
    Row("born time of a compacted record", compacted_byte(0, 45), "compacted_record_differs"),
    Row("offset of a compacted entry", compacted_byte(1, 7), "compacted_entry_wrong"),
    Row("size of a compacted entry", compacted_byte(1, 11), "compacted_entry_wrong"),
    Row("tags code of a compacted entry", compacted_byte(1, 19), "compacted_entry_wrong"),
    Row("queue offset of a compacted entry", compacted_byte(1, 35), "compacted_entry_wrong"),
    Row("entries zero", lambda s: damage.zero_range(compacted_file(s, 1, 1), 46, 92), "compacted_entry_wrong", False),
    Row("last entry zero", lambda s: last_compacted_entry(s), "compacted_message_missing"),
    Row("log file gone", lambda s: damage.remove(compacted_file(s, 0, 1)), "broker_refuses compacted_files_differ", False),
    Row(
        "entries' file gone",
        lambda s: damage.remove(compacted_file(s, 1, 0)),
        "broker_refuses compacted_files_differ compacted_record_unlisted",
        False,
    ),
    Row("log file cut", lambda s: damage.cut_at(compacted_file(s, 0, 1), 900), "compacted_files_differ", False),
    Row("compacted queue gone", lambda s: damage.remove(compacted.folders(s.root)[1]), "compacted_files_differ", False),
)


def last_compacted_entry(store: Store) -> Done:
    path = compacted_file(store, 1, -1)
    end = len(path.read_bytes().rstrip(b"\0"))
    start = end // 46 * 46
    return damage.zero_range(path, start, start + 46)


def blamed_beside(row: Row, name: str) -> str:
    """Of two folders that must agree one is gone: the other one's file, or folder, is blamed."""
    kinds = ("compactionLog", "compactionCq")
    other = name.replace(*kinds) if kinds[0] in name else name.replace(*reversed(kinds))
    return other if row.name.endswith("gone") else name


@pytest.mark.parametrize("row", COMPACTED, ids=lambda r: r.name)
def test_damage_to_a_compacted_log_is_found(row: Row, tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    assert product.audit(store.root, store.release, store.broker_conf).above_note == []
    done = row.cut(store)
    audit = product.audit(store.root, store.release, store.broker_conf)
    name = blamed_beside(row, str(done.path.relative_to(store.root)))
    found = [f for f in audit.above_note if f.file == name]
    assert {f.code for f in found} == set(row.codes.split()), audit.above_note
    if row.range_told and done.start is not None and done.end is not None:
        assert any((f.start or 0) < done.end and done.start < (f.end or 0) for f in found), found


def test_a_compacted_log_beyond_its_queue_is_found(tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store", clean=False)
    compacted.write_logs(store)
    damage.flip_in(store, store.records[-4], "body")
    audit = product.audit(store.root, store.release, store.broker_conf)
    newest = compacted_file(store, 1, -1).relative_to(store.root)
    assert {f.code for f in audit.above_note if f.file == str(newest)} == {"compacted_log_ahead"}


def segment(store: Store, number: int) -> Path:
    return sorted((store.root / "commitlog").iterdir())[number]


def queue_file(store: Store) -> Path:
    return damage.queue_files(store, "Topic0", 0)[0]


def zero_page(store: Store) -> Done:
    record = middle(store)
    start = store.position_of(record) + 10
    return damage.zero_range(store.segment_of(record), start, start + 64)


def nul_in_properties(store: Store) -> Done:
    """The end of the properties was not yet there when the broker died: zeros, as a block of a slave's copy ends."""
    record = middle(store)
    at, size = builders.field_position(record, "props")
    start = store.position_of(record) + at
    return damage.zero_range(store.segment_of(record), start + size - 4, start + size)


def bounds(store: Store, done: Done) -> tuple[int, int]:
    """The largest range that a finding of this damage may have: the records, entries or header that it touches."""
    assert done.start is not None and done.end is not None
    kind = done.path.relative_to(store.root).parts[0]
    if kind == "consumequeue":
        return done.start // 20 * 20, -(-done.end // 20) * 20
    if kind == "index":
        entries = 40 + 4 * store.sizes.slots
        if done.start >= entries:
            return done.start - (done.start - entries) % 20, done.start - (done.start - entries) % 20 + 20
        return (0, 40) if done.start < 40 else (done.start, done.end)
    if kind == "checkpoint":
        return 0, 48
    base = int(done.path.name)
    touched = [r for r in store.records if r.at < base + done.end and base + done.start < r.at + r.size]
    if not touched:  # a filler, or what lies behind the last message
        behind = max((r.at + r.size - base for r in store.records if r.at < base + done.end), default=0)
        return behind, store.sizes.segment
    return touched[0].at - base, touched[-1].at + touched[-1].size - base


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return build(tmp_path / "store")


@pytest.mark.parametrize("row", TABLE, ids=lambda r: r.name)
def test_damage_is_found(row: Row, store: Store) -> None:
    done = row.cut(store)
    audit = product.audit(store.root, store.release, store.broker_conf)
    name = str(done.path.relative_to(store.root))
    on_file = [f for f in audit.above_note if f.file == name or f.file.startswith(name + "/")]
    assert {f.code for f in on_file} == set(row.codes.split()), [(f.code, f.file, f.start, f.end) for f in audit.findings][:20]
    if row.range_told and done.start is not None and done.end is not None:
        low, high = bounds(store, done)
        fitting = [f for f in on_file if f.start is not None and f.end is not None and low <= f.start and f.end <= high]
        assert any(f.start < done.end and done.start < f.end for f in fitting if f.start is not None and f.end is not None), (
            on_file
        )


def test_missing_index_file_is_found(store: Store) -> None:
    """Its name was a clock's, so nobody can tell it: the segments tell which keys lead nowhere."""
    damage.remove(damage.index_files(store)[1])
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert {f.code for f in audit.above_note} == {"index_entry_missing"}


@pytest.mark.parametrize(("folder", "code"), [("index", "index_range_missing"), ("consumequeue", "queue_entry_missing")])
def test_missing_folder_is_found(folder: str, code: str, store: Store) -> None:
    damage.remove(store.root / folder)
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert code in {f.code for f in audit.above_note if f.file.startswith(folder)}
    assert folder == "index" or {f.file for f in audit.above_note} >= {"consumequeue/Topic0/0/00000000000000000000"}


def test_a_segment_of_another_broker_is_found(store: Store) -> None:
    """The last one is of a later broker, whose messages are longer, so its queues are less far there."""
    last = segment(store, -1)
    builder = StoreBuilder(store.release, store.sizes)
    builder.clock += 3_600_000
    for number in range(60):
        builder.put(Message(f"Topic{number % 2}", number % 3 % 2, b"x" * 200, uniq=f"Z{number}"))
    other = builder.write(store.root.with_name("other"))
    damage.overwrite(last, 0, (other.root / "commitlog" / last.name).read_bytes())
    audit = product.audit(store.root, store.release, store.broker_conf)
    found = [f.file for f in audit.above_note if f.code == "stores_merged"]
    assert found == [f"commitlog/{last.name}"], audit.above_note


# ---- replicas in controller mode -------------------------------------------------------------------------------------

EPOCHS = (
    (lambda s: replica.epoch_text((1, 0), checksum=5), "epoch_file_damaged"),
    (lambda s: replica.epoch_text((1, 0), count=2), "epoch_file_damaged"),
    (lambda s: b"", "epoch_file_damaged broker_refuses"),
    (lambda s: replica.epoch_text((2, 0), (1, s.records[9].at)), "epoch_not_rising"),
    (lambda s: replica.epoch_text((1, s.records[9].at), (2, s.records[9].at)), "epoch_not_rising"),
    (lambda s: replica.epoch_text((1, 0), (2, 1 << 40)), "epoch_beyond_end"),
    (lambda s: replica.epoch_text((1, 0), (2, s.records[9].at + 1)), "epoch_not_at_record"),
)


@pytest.mark.parametrize(("text", "codes"), EPOCHS)
def test_a_damaged_epoch_file_is_found(text: Callable[[Store], bytes], codes: str, tmp_path: Path) -> None:
    store = replica.replica(tmp_path / "store")
    twin = product.audit(store.root, store.release, store.broker_conf)
    assert not twin.findings and twin.outcome.exit_code == 0
    data = text(store)
    (store.root / "epochFileCheckpoint").write_bytes(data)
    above = product.audit(store.root, store.release, store.broker_conf).above_note
    assert {(f.code, f.file) for f in above} == {(code, "epochFileCheckpoint") for code in codes.split()}
    (found,) = (f for f in above if f.code == codes.split()[0])
    assert found.start is not None and found.end is not None
    whole = found.code == "epoch_file_damaged"
    assert data[found.start : found.end] == (data if whole else data.splitlines()[-1])


@pytest.mark.parametrize("release", ["5.0.0", "5.1.4", "5.2.0", "5.3.3", "5.5.0"])
@pytest.mark.parametrize("killed", [False, True], ids=["clean", "killed"])
def test_an_undamaged_replica_raises_no_alarm(release: str, killed: bool, tmp_path: Path) -> None:
    store = replica.replica(tmp_path / "store", release, undispatched=5 if killed else 0, clean=not killed)
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert {f.severity for f in audit.findings} <= ({NOTE, REBUILDABLE} if killed else {NOTE}), audit.above_note[:5]


@pytest.mark.parametrize("clean", [True, False])
def test_queues_that_end_at_confirm_offset_are_only_noted(clean: bool, tmp_path: Path) -> None:
    """The twin: the same store, whose confirmOffset is the log's end."""
    store = replica.replica(tmp_path / "store", "5.1.4", undispatched=6, clean=clean)
    damage.set_checkpoint(store, confirm=store.records[34].at)
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert not audit.above_note and {f.code for f in audit.findings} >= {"queue_entry_unconfirmed", "index_range_unconfirmed"}
    assert audit.broker is not None and audit.broker["lost"]["messages"] == 0
    damage.set_checkpoint(store, confirm=store.records[-1].at + store.records[-1].size)
    codes = {f.code for f in product.audit(store.root, store.release, store.broker_conf).above_note}
    assert codes >= {"queue_entry_missing", "index_range_missing"}


@pytest.mark.parametrize("row", EXEMPT, ids=lambda r: r.name)
def test_exempt_damage_is_at_most_noted(row: Row, store: Store) -> None:
    done = row.cut(store)
    audit = product.audit(store.root, store.release, store.broker_conf)
    name = str(done.path.relative_to(store.root))
    assert not [f for f in audit.above_note if f.file == name], row.codes


def test_an_empty_folder_of_a_queue_is_found(store: Store) -> None:
    (store.root / "consumequeue" / "Topic0" / "7").mkdir()
    found = product.audit(store.root, store.release, store.broker_conf).findings
    assert [(f.code, f.file, f.severity) for f in found] == [("queue_without_files", "consumequeue/Topic0/7", REBUILDABLE)]


@pytest.mark.parametrize("release", ["4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.4.0", "5.5.0"])
@pytest.mark.parametrize("killed", [False, True], ids=["clean", "killed"])
def test_undamaged_built_store_raises_no_alarm(release: str, killed: bool, tmp_path: Path) -> None:
    store = build(tmp_path / "store", release, clean=not killed, undispatched=5 if killed else 0)
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert {f.severity for f in audit.findings} <= ({NOTE, REBUILDABLE} if killed else {NOTE}), audit.above_note[:5]
    assert audit.outcome.exit_code in ((0, 10) if killed else (0,))


# ---- timers --------------------------------------------------------------------------------------------------------

TIMER_LOG, TIMER_CHECK = f"timerlog/{0:020d}", "config/timercheck"


def timer_bytes(name: str, position: int, change: Callable[[bytes], bytes], size: int = 8) -> Callable[[timers.TimerStore], Done]:
    """Changes one field of a timer file."""

    def cut(made: timers.TimerStore) -> Done:
        with open(made.root / name, "rb") as file:
            file.seek(position)
            old = file.read(size)
        return damage.overwrite(made.root / name, position, change(old))

    return cut


def plus(number: int) -> Callable[[bytes], bytes]:
    return lambda old: (int.from_bytes(old, "big", signed=True) + number).to_bytes(len(old), "big", signed=True)


def slot(made: timers.TimerStore) -> int:
    """Where the slot of the first waiting message lies."""
    return max(made.timers.slots) % timers.SLOTS * timers.SLOT_BYTES


def in_slot(at: int, change: Callable[[bytes], bytes]) -> Callable[[timers.TimerStore], Done]:
    return lambda made: timer_bytes("timerwheel", slot(made) + at, change)(made)


def unit_field(at: int, number: int, size: int = 8) -> Callable[[timers.TimerStore], Done]:
    return timer_bytes(TIMER_LOG, 52 * 7 + at, plus(number), size)


@dataclass(frozen=True)
class TimerRow:
    """unit: the bytes that a finding may name around the damage."""

    name: str
    cut: Callable[[timers.TimerStore], Done]
    codes: str
    unit: int


TIMER_TABLE = (
    TimerRow("unit's size", unit_field(0, 1, 4), "timer_unit_damaged", 52),
    TimerRow("unit's magic", unit_field(12, 64, 4), "timer_unit_damaged", 52),
    TimerRow("unit zero", timer_bytes(TIMER_LOG, 52 * 7, lambda old: bytes(52), 52), "timer_unit_damaged", 52),
    TimerRow("unit's link", unit_field(4, 52), "timer_unit_wrong", 52),
    TimerRow("unit's write time", unit_field(16, 5000), "timer_unit_wrong", 52),
    TimerRow("unit's delay", unit_field(24, 5000, 4), "timer_unit_wrong", 52),
    TimerRow("unit's physical offset", unit_field(28, 4), "timer_unit_wrong", 52),
    TimerRow("unit's message size", unit_field(36, 4, 4), "timer_unit_wrong", 52),
    TimerRow("unit's topic", unit_field(40, 4, 4), "timer_unit_wrong", 52),
    TimerRow("slot's time", in_slot(0, plus(1)), "timer_slot_wrong", 32),
    TimerRow("slot's first unit", in_slot(8, plus(52)), "timer_slot_wrong", 32),
    TimerRow("slot's last unit", in_slot(16, plus(-52)), "timer_slot_wrong", 32),
    TimerRow("slot zero", in_slot(0, lambda old: bytes(8)), "timer_slot_wrong", 32),
    TimerRow("read time", timer_bytes(TIMER_CHECK, 0, plus(7_200_000)), "timer_message_lost", 32),
    TimerRow("read time below 0", timer_bytes(TIMER_CHECK, 0, plus(-(1 << 62))), "timer_checkpoint_wrong", 32),
    TimerRow("flush position", timer_bytes(TIMER_CHECK, 8, plus(520)), "timer_checkpoint_wrong", 32),
    TimerRow("empty checkpoint", lambda made: damage.cut_at(made.root / TIMER_CHECK, 0), "timer_checkpoint_missing", 0),
    TimerRow("no checkpoint", lambda made: damage.remove(made.root / TIMER_CHECK), "timer_checkpoint_missing", 0),
    TimerRow("no timer log", lambda made: damage.remove(made.root / TIMER_LOG), "timer_log_missing", 0),
    TimerRow("no wheel", lambda made: damage.remove(made.root / "timerwheel"), "timer_wheel_missing", 0),
    TimerRow("empty wheel", lambda made: damage.cut_at(made.root / "timerwheel", 0), "timer_wheel_missing", 0),
    TimerRow("wheel cut", lambda made: damage.cut_at(made.root / "timerwheel", 99), "broker_refuses", 0),
)


@pytest.mark.parametrize("row", TIMER_TABLE, ids=lambda r: r.name)
def test_damage_of_a_timer_file_is_found(row: TimerRow, tmp_path: Path) -> None:
    made = timers.timer_store(tmp_path / "store")
    done = row.cut(made)
    audit = product.audit(made.root, made.store.release, made.conf)
    name = str(done.path.relative_to(made.root))
    fitting = [f for f in audit.above_note if f.file == name]
    assert {f.code for f in fitting} == set(row.codes.split()), [(f.code, f.file, f.start, f.end) for f in audit.findings]
    if row.unit and done.start is not None and done.end is not None:
        low, high = done.start // row.unit * row.unit, -(-done.end // row.unit) * row.unit
        assert any(f.start is not None and f.end is not None and low <= f.start and f.end <= high for f in fitting), fitting


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("release", ["5.0.0", "5.1.4", "5.3.3", "5.4.0", "5.5.0"])
def test_undamaged_timer_files_raise_no_alarm(release: str, clean: bool, tmp_path: Path) -> None:
    made = timers.timer_store(tmp_path / "store", release, clean=clean)
    assert product.audit(made.root, release, made.conf).findings == []


# ---- timers in RocksDB ---------------------------------------------------------------------------------------------


def entry_changed(change: Callable[[tuple[int, int]], tuple[int, int]]) -> Callable[[KeyedTimers], object]:
    def damage(made: KeyedTimers) -> None:
        key = max(made.entries)
        made.entries[key] = change(made.entries[key])

    return damage


def key_changed(made: KeyedTimers) -> None:
    time, unique = max(made.entries)
    made.entries[time + 1000, unique] = made.entries.pop((time, unique))


def another_key(made: KeyedTimers) -> None:
    time, unique = max(made.entries)
    made.entries[time, unique[::-1]] = made.entries.pop((time, unique))


KEYED_TABLE: dict[str, tuple[Callable[[KeyedTimers], object], str, int]] = {
    "entry gone": (lambda made: made.entries.pop(max(made.entries)), "timer_message_lost", 1),
    "no database": (lambda made: made.entries.clear(), "timer_message_lost", 4),
    "entry's size": (entry_changed(lambda old: (old[0] + 1, old[1])), "timer_unit_wrong", 1),
    "entry's physical offset": (entry_changed(lambda old: (old[0], old[1] + 4)), "timer_message_lost timer_unit_wrong", 1),
    "entry to another message": (entry_changed(lambda old: (old[0], 0)), "timer_unit_wrong timer_message_lost", 1),
    "entry beyond the end": (entry_changed(lambda old: (old[0], 1 << 40)), "timer_unit_beyond_end timer_message_lost", 1),
    "entry's time": (key_changed, "timer_unit_wrong", 1),
    "entry's unique key": (another_key, "timer_unit_wrong", 1),
    "value of another length": (lambda made: made.more.update({bytes(12): b"x"}), "timer_unit_wrong", 1),
    "short key": (lambda made: made.more.update({b"k": bytes(12)}), "timer_unit_wrong", 1),
    "read time": (lambda made: setattr(made, "read_time", 1 << 42), "timer_message_lost", 4),
}


@pytest.mark.parametrize("name", KEYED_TABLE)
def test_damage_of_timers_in_rocksdb_is_found(name: str, tmp_path: Path) -> None:
    damage_of, codes, count = KEYED_TABLE[name]
    made = keyed_timers(tmp_path / "store")
    damage_of(made)
    audit = product.audit(made.write().root, "5.4.0", made.conf)
    assert_codes(audit, codes, count)


def assert_codes(audit: Audited, codes: str, count: int) -> None:
    """These codes and no others above a note, all of the database. count: of the first one."""
    assert {(f.code, f.file) for f in audit.above_note} == {(code, "rocksdbstore") for code in codes.split()}, audit.above_note
    assert sum(f.count for f in audit.above_note if f.code == codes.split()[0]) == count


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
def test_undamaged_timers_in_rocksdb_raise_no_alarm(release: str, clean: bool, tmp_path: Path) -> None:
    made = keyed_timers(tmp_path / "store", release, clean=clean).write()
    audit = product.audit(made.root, release, made.conf)
    assert audit.findings == [] and audit.outcome.exit_code == 0 and audit.outcome.covered.not_judged == []
    assert audit.outcome.holds.timers.fates.waiting.messages == 4


# ---- index and transactions in RocksDB -----------------------------------------------------------------------------


def first_of(pairs: dict[bytes, bytes]) -> bytes:
    return sorted(pairs)[len(pairs) // 2]


def renamed(pairs: dict[bytes, bytes], change: Callable[[bytes], bytes]) -> None:
    key = first_of(pairs)
    pairs[change(key)] = pairs.pop(key)


def end_of(store: TableStore) -> int:
    return max(record.at + record.size for record in store.records)


def led_to(offset: int) -> Callable[[bytes], bytes]:
    return lambda key: key[:-8] + struct.pack(">q", offset)


# An entry that is not where its message asks for one is missing there, too.
MOVED, GONE = "index_entry_wrong index_entry_missing", "index_entry_missing index_entry_wrong"
BEYOND = "index_entry_beyond_end index_entry_missing"
TABLES: dict[str, tuple[Callable[[TableStore], object], str, int]] = {
    "index entry gone": (lambda s: s.index.pop(first_of(s.index)), "index_entry_missing", 1),
    "index entry of another key": (lambda s: renamed(s.index, lambda key: key[:-10] + b"?" + key[-9:]), MOVED, 1),
    "index entry of another hour": (lambda s: renamed(s.index, lambda key: bytes(8) + key[8:]), GONE, 1),
    "index entry of another time": (lambda s: s.index.update({first_of(s.index): bytes(8)}), MOVED, 1),
    "index entry leads elsewhere": (lambda s: renamed(s.index, led_to(40)), MOVED, 1),
    "index entry beyond the end": (lambda s: renamed(s.index, led_to(1 << 40)), BEYOND, 1),
    "index entry after the last message": (lambda s: renamed(s.index, led_to(end_of(s))), BEYOND, 1),
    "index entry without a place": (lambda s: renamed(s.index, led_to(-1)), MOVED, 1),
    "short index key": (lambda s: s.index.update({b"@": bytes(8)}), "index_entry_wrong", 1),
    "index mark beyond the end": (lambda s: setattr(s, "index_mark", 1 << 40), "index_entry_beyond_end", 1),
    "half message's size": (lambda s: s.halves.update({first_of(s.halves): bytes(7) + b"\1"}), "transaction_entry_wrong", 1),
    "half message's key": (lambda s: renamed(s.halves, lambda key: key + b"?"), "transaction_entry_wrong", 1),
    "half entry leads elsewhere": (lambda s: renamed(s.halves, lambda k: bytes(8) + k[8:]), "transaction_entry_wrong", 1),
    "half entry beyond the end": (lambda s: renamed(s.halves, lambda k: b"\0\1" + k[2:]), "transaction_entry_wrong", 1),
    "short half key": (lambda s: s.halves.update({b"k": bytes(8)}), "transaction_entry_wrong", 1),
    "half mark beyond the end": (lambda s: setattr(s, "half_mark", 1 << 40), "transaction_entry_wrong", 1),
}


@pytest.mark.parametrize("name", TABLES)
def test_damage_of_index_and_transactions_in_rocksdb_is_found(name: str, tmp_path: Path) -> None:
    damage_of, codes, count = TABLES[name]
    made = table_store(tmp_path / "store")
    damage_of(made)
    assert_codes(product.audit(made.write().root, "5.4.0", made.conf), codes, count)


def test_a_lost_database_of_index_and_transactions_is_found(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store")
    audit = product.audit(made.root, "5.4.0", made.conf)
    assert {(f.code, f.count) for f in audit.above_note if f.file == "rocksdbstore"} == {
        ("index_entry_missing", len(made.index)), ("transaction_entry_missing", 3),
    }  # fmt: skip


TRANSACTIONS_ALONE = "indexRocksDBEnable=false\n"  # of which 5.4.0 asks no mark


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize(("release", "more"), [("5.4.0", TRANSACTIONS_ALONE), ("5.5.0", "")])
def test_a_table_in_rocksdbstore_that_the_manifest_does_not_name_is_found(
    release: str, more: str, clean: bool, tmp_path: Path
) -> None:
    """After a kill a healthy broker may leave one, so it is a note."""
    made = table_store(tmp_path / "store", release, clean)
    made.index = made.index if not more else {}
    made.write()
    (made.root / "rocksdbstore" / "000099.sst").write_bytes(b"x")
    audit = product.audit(made.root, release, made.conf + more)
    met = [f for f in audit.findings if f.code == "rocksdbstore_damaged"]
    assert [(f.file, f.severity) for f in met] == [("rocksdbstore/000099.sst", "rebuildable" if clean else "note")]
    assert audit.outcome.exit_code == (10 if clean else 0)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
def test_undamaged_index_and_transactions_in_rocksdb_raise_no_alarm(release: str, clean: bool, tmp_path: Path) -> None:
    made = table_store(tmp_path / "store", release, clean).write()
    audit = product.audit(made.root, release, made.conf)
    assert audit.findings == [] and audit.outcome.exit_code == 0 and "rocksdbstore" not in audit.outcome.covered.not_judged


# ---- config/ -------------------------------------------------------------------------------------------------------

TOPICS, OFFSETS, GROUPS, DELAYS = (
    f"config/{name}.json" for name in ("topics", "consumerOffset", "subscriptionGroup", "delayOffset")
)


def topics_json(*names: str, version: int = 7, time: int = 0) -> bytes:
    table = ",".join(f'"{name}":{{"perm":6,"readQueueNums":4,"topicName":"{name}","writeQueueNums":4}}' for name in names)
    written = f',"timestamp":{time}' if time else ""
    return f'{{"dataVersion":{{"counter":{version}{written}}},"topicConfigTable":{{{table}}}}}'.encode()


WRITTEN = {
    TOPICS: topics_json("Topic0", "Topic1"),
    f"{TOPICS}.bak": topics_json("Topic0", version=6),
    OFFSETS: b'{"offsetTable":{"Topic0@g":{0:2,1:3\n\t\t}}}',
    f"{OFFSETS}.bak": b'{"offsetTable":{"Topic0@g":{0:1}}}',
    GROUPS: b'{"subscriptionGroupTable":{"g":{"groupName":"g"}}}',
    DELAYS: b'{"offsetTable":{3:1}}',
}


def with_config(root: Path, changed: dict[str, bytes | None], release: str = "5.3.3", conf: str = "") -> product.Audited:
    """The built store with what a broker keeps in config/, and these changes; None removes a file."""
    store = build(root, release)
    for name, data in {**WRITTEN, **changed}.items():
        path = root / name
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
    return product.audit(root, release, store.broker_conf + conf)


def both(name: str, data: bytes | None) -> dict[str, bytes | None]:
    return {name: data, f"{name}.bak": data}


@dataclass(frozen=True)
class ConfigRow:
    name: str
    changed: dict[str, bytes | None]
    file: str
    codes: str
    topics: tuple[str, ...] = ()
    lost: bool = False  # another form shows what a start does not hold


CONFIG_TABLE = (
    ConfigRow("topics empty", both(TOPICS, b""), TOPICS, "config_table_lost", ("Topic0", "Topic1")),
    ConfigRow("topics gone", both(TOPICS, None), TOPICS, "config_table_lost", ("Topic0", "Topic1")),
    ConfigRow(
        "topics blank beside a good .bak",
        {TOPICS: b" \n"},
        TOPICS,
        "config_table_lost config_damaged",
        ("Topic0", "Topic1"),
        True,
    ),
    ConfigRow("topics torn, the .bak older", {TOPICS: WRITTEN[TOPICS][:60]}, TOPICS, "config_backup_taken", ("Topic1",)),
    ConfigRow("topics put back", {TOPICS: topics_json("Topic0", version=2)}, TOPICS, "config_older", ("Topic1",)),
    ConfigRow(
        "topics of another broker",
        both(TOPICS, topics_json("Else", "BenchmarkTest", time=1)),
        TOPICS,
        "topic_not_in_table",
        ("Topic0", "Topic1"),
        True,
    ),
    ConfigRow(
        "topics torn without a .bak",
        {**both(TOPICS, None), TOPICS: b"{"},
        TOPICS,
        "config_damaged config_table_lost",
        ("Topic0", "Topic1"),
    ),
    ConfigRow("topics refused", both(TOPICS, b"{"), TOPICS, "broker_refuses config_damaged"),
    ConfigRow("offsets gone", both(OFFSETS, None), OFFSETS, "config_table_lost"),
    ConfigRow("offsets zeros", {OFFSETS: bytes(40)}, OFFSETS, "config_backup_taken"),
    ConfigRow("offsets gone, the .bak there", {OFFSETS: None}, OFFSETS, "config_backup_taken"),
    ConfigRow("groups gone", {GROUPS: None}, GROUPS, "config_table_lost"),
    ConfigRow("groups empty", {GROUPS: b""}, GROUPS, "config_table_lost"),
    ConfigRow("delays gone", {DELAYS: None}, DELAYS, "delayed_messages_again"),
    ConfigRow("delays empty", {DELAYS: b""}, DELAYS, "delayed_messages_again config_table_lost"),
    ConfigRow("a level gone", {DELAYS: b'{"offsetTable":{1:0}}'}, DELAYS, "delayed_messages_again"),
)


@pytest.mark.parametrize("row", CONFIG_TABLE, ids=lambda r: r.name)
def test_damage_in_config_is_found(row: ConfigRow, tmp_path: Path) -> None:
    audit = with_config(tmp_path / "store", row.changed)
    codes = {*row.codes.split(), *(["topic_not_in_table"] if row.topics else [])}
    assert {f.code for f in audit.above_note if f.file == row.file} == codes, audit.findings
    assert tuple(f.topic for f in audit.above_note if f.code == "topic_not_in_table") == row.topics
    assert "everything" not in verdict_text(audit.outcome) and audit.outcome.exit_code == (
        20 if "broker_refuses" in row.codes or row.lost else 10
    )


@pytest.mark.parametrize(("offsets", "codes"), [("", ["consumer_offsets_empty"]), ('"T@g":{0:1}', [])], ids=["none", "one"])
def test_a_table_of_offsets_without_any_group_is_found(offsets: str, codes: list[str], tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    builder.put(Message("%RETRY%g", 0, b"again"))
    made = builder.write(tmp_path / "store", config={"consumerOffset.json": f'{{"offsetTable":{{{offsets}}}}}'})
    for name in (GROUPS, TOPICS, DELAYS):
        (made.root / name).write_bytes(WRITTEN[name] or b"")
    assert [f.code for f in product.audit(made.root, "5.3.3", made.broker_conf).above_note] == codes


def test_a_copy_without_config_whose_groups_consumed_is_found(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    builder.put(Message("%RETRY%g", 0, b"again"))
    made = builder.write(tmp_path / "store", config={"consumerOffset.json": '{"offsetTable":{"T@g":{0:1}}}'})
    for name in (GROUPS, TOPICS, DELAYS):
        (made.root / name).write_bytes(WRITTEN[name] or b"")
    assert product.audit(made.root, "5.3.3", made.broker_conf).above_note == []
    damage.remove(made.root / "config")
    above = product.audit(made.root, "5.3.3", made.broker_conf).above_note
    assert ("config_not_copied", "config") in {(f.code, f.file) for f in above}, above


@pytest.mark.parametrize("release", ["4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.4.0", "5.5.0"])
def test_undamaged_config_raises_no_alarm(release: str, tmp_path: Path) -> None:
    assert not with_config(tmp_path / "store", {}, release).above_note


@pytest.mark.parametrize(
    ("changed", "release", "conf", "notes"),
    [
        ({TOPICS: topics_json("Topic0", "BenchmarkTest")}, "5.3.3", "", set()),  # Topic1 was deleted
        ({DELAYS: None}, "4.9.8", "", {"delayed_messages_again"}),  # no delivery yet
        ({DELAYS: None}, "5.3.3", "brokerRole=SLAVE\nbrokerId=1\n", {"delayed_messages_again"}),  # not synchronised yet
        ({f"{GROUPS}.bak": b"{"}, "5.3.3", "", {"config_damaged"}),  # nobody looks at it
        ({TOPICS: topics_json("Topic0", "Topic1")[:-1] + b",}"}, "5.3.3", "", {"config_damaged"}),  # edited by hand
    ],
)
def test_what_healthy_brokers_leave_in_config_is_at_most_noted(
    changed: dict[str, bytes | None], release: str, conf: str, notes: set[str], tmp_path: Path
) -> None:
    audit = with_config(tmp_path / "store", changed, release, conf)
    assert not audit.above_note and notes <= {f.code for f in audit.findings}


# ---- queues in RocksDB ---------------------------------------------------------------------------------------------


def entry_of(store: KeyedStore) -> tuple[str, int, int]:
    return next(key for key in store.entries if key[2] == 7)


def change_entry(store: KeyedStore, place: int, value: int) -> None:
    entry = list(store.entries[entry_of(store)])
    entry[place] = value
    store.entries[entry_of(store)] = (entry[0], entry[1], entry[2], entry[3])


def lead_into_another_queue(store: KeyedStore) -> None:
    """More than one entry of one queue leads into messages of others."""
    for number, record in enumerate(store.records[:3]):
        store.entries["Other", 0, number] = (record.at, record.size, 0, 1)
    store.maxima["Other", 0] = store.records[2].at, 2


def flip_block(folder: Path) -> None:
    damage.invert_byte(max(folder.glob("*.sst"), key=lambda path: path.stat().st_size), 100, 1)


BEFORE: dict[str, tuple[Callable[[KeyedStore], object], str]] = {  # what is changed before the database is written
    "entry gone": (lambda s: s.entries.pop(entry_of(s)), "queue_entry_missing broker_skips_messages"),
    "entry leads elsewhere": (lambda s: change_entry(s, 0, 1), "queue_entry_wrong broker_skips_messages"),
    "entry's size": (lambda s: change_entry(s, 1, 5), "queue_entry_wrong message_disputed"),
    "entry's tags code": (lambda s: change_entry(s, 2, 12345), "queue_entry_wrong message_disputed"),
    "maximum": (lambda s: s.maxima.update({entry_of(s)[:2]: (4711, 9)}), "queue_end_wrong broker_skips_messages"),
    "entry without a message": (
        lambda s: (s.entries.update({("Other", 0, 0): (1 << 40, 90, 0, 1)}), s.maxima.update({("Other", 0): (1 << 40, 0)})),
        "queue_entry_beyond_end segment_missing",
    ),
    "entries that lead into another queue's messages": (lead_into_another_queue, "queue_entry_unexpected message_disputed"),
}
AFTER: dict[str, tuple[Callable[[Path], object], str]] = {  # and after it
    "bad block": (flip_block, "queue_database_damaged broker_skips_messages queue_entry_missing"),
    "table that the MANIFEST does not name": (lambda f: (f / "000099.sst").write_bytes(b"x"), "queue_database_older"),
    "table gone": (lambda f: next(f.glob("*.sst")).unlink(), "queue_database_damaged broker_refuses"),
    "CURRENT": (lambda f: (f / "CURRENT").write_bytes(b"x"), "queue_database_damaged broker_refuses"),
}


@pytest.mark.parametrize("what", [*BEFORE, *AFTER])
def test_damage_of_queues_in_rocksdb_is_found(what: str, tmp_path: Path) -> None:
    """The undamaged twin gives nothing: tests/store_io/kinds/rocksdb_queues/test_rocksdb_fold.py, by release."""
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s")
    if what in BEFORE:
        BEFORE[what][0](store)
    store.write()
    if what in AFTER:
        AFTER[what][0](store.root / "consumequeue")
    codes = (BEFORE | AFTER)[what][1].split()  # type: ignore[operator]
    audit = product.audit(store.root, "5.3.3", store.broker_conf)
    assert {f.code for f in audit.above_note} == set(codes)
    met = [f for f in audit.above_note if f.code == codes[0]]
    assert all(f.file.startswith("consumequeue") and f.start is None for f in met), audit.findings[:5]
    if what.startswith("entry ") and what != "entry without a message":
        assert {(f.topic, f.queue_id, f.queue_offset) for f in met} == {entry_of(keyed_store(tmp_path / "t"))}


TWINS: dict[str, tuple[Callable[[KeyedStore], object], str]] = {  # before a database beside queues in files is written
    "entries gone": (lambda s: [s.entries.pop(key) for key in list(s.entries)[5:9]], "queue_twin_missing"),
    "entry's size": (lambda s: change_entry(s, 1, 5), "queue_twin_differs"),
}


@pytest.mark.parametrize("what", TWINS)
def test_damage_of_queues_that_are_written_twice_is_found(what: str, tmp_path: Path) -> None:
    """The undamaged twin gives nothing: tests/store_io/kinds/rocksdb_queues/test_double_write_fold.py, by release."""
    pytest.importorskip("rocksdict")
    store = combined_store(tmp_path / "s")
    TWINS[what][0](store)
    audit = product.audit(store.write().root, "5.4.0", store.plain.broker_conf + TWICE)
    assert {f.code for f in audit.above_note} == {TWINS[what][1]}
