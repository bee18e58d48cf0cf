"""Every byte of one small store flipped, every file of it cut at every length: found, or a proven don't-care.

    ./spark-submit.sh test -m soak tests/test_every_byte.py

By default some of the bytes and lengths: one in `SOME`, which shares no factor with the size of any entry, so that each field
has its turn; and of each byte one of the flips, in turn.

Found: the audit says something above `note` that it does not say of the undamaged store. A don't-care is listed below with its
reason, by field, and proven where it occurs: the second witness's broker does exactly the same with and without the flip, down
to each ConsumeQueue and index entry. Of some don't-cares a cross-check sees every flip: these are told as notes.
"""

from __future__ import annotations

import os
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.rows import NOTE
from tests.support.answers import product
from tests.support.damage import write_at
from tests.support.second_witness import broker as witness
from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=512, queue_file=60, slots=3, index_max=12)
SOME = 13
MASKS = 0xFF, 0x80, 0x01
PRODUCERS_OWN = "what a producer sends here is its own; nothing derives from it"
ADDRESS = "any address is possible, and nothing derives from it"
NO_CHECKSUM = "no checksum covers it and nothing derives from it"
NEVER_READ = "nothing ever reads it"
LAGS = "a checkpoint may lag behind; only one ahead of the data is wrong"

# field -> why a flip in it may stay unseen
DONT_CARE = {
    "message.flag": PRODUCERS_OWN,
    "message.bornTimestamp": PRODUCERS_OWN,
    "message.bornHost": ADDRESS,
    "message.storeHost": ADDRESS,
    "message.reconsumeTimes": NO_CHECKSUM,
    "message.preparedOffset": NO_CHECKSUM,
    "message.storeTimestamp": "a step below what index entries and neighbours can tell; no checksum covers it",
    "message.sysFlag": "bits that nothing derives from: no checksum covers them",
    "message.props": "a character of a property that nothing derives from: no checksum covers it",
    "message.bodyCRC of no body": "no release evaluates it",
    "message.bodyLength of no body": "a negative one counts as 0",
    "message.queueId of a prepared message": "it enters no queue",
    "message.queueOffset of a prepared message": "it enters no queue",
    "segment.behind filler": NEVER_READ,
    "index.entry 0": NEVER_READ,
    "index.seconds of the first entry": "counted from the end of a file before it, which retention may have removed",
    "checkpoint.physic": LAGS,
    "checkpoint.logics": LAGS,
    "checkpoint.index": LAGS,
    "checkpoint.masterFlushed": "no recovery without a controller reads it",
    "checkpoint.confirm": "no recovery without a controller or duplication reads it",
    "checkpoint.logicsPhysical": "no release before 5.5.0 reads it",
}

# those of which every flip is told as a note
NOTED = {"message.bodyCRC of no body", "message.bodyLength of no body", "message.sysFlag"}


def build(root: Path) -> Store:
    """Eight messages in two segments, two queues and one index file, as 5.3.3 left them after a clean stop."""
    builder = StoreBuilder("5.3.3", SIZES)
    v6 = bytes(range(16)) + b"\0\0\x2a\x9f"
    for message in (
        Message("T", body=b"first", tags="a", keys="k"),
        Message("T", body=b"", uniq="u1", properties=(("WAIT", "true"),)),
        Message("T", body=b"v6", tags="b", born_host=v6, store_host=v6, uniq="u2"),
        Message("T", body=b"crc", tags="c", property_crc=True, keys="x y"),
        Message("T", body=b"second version", version=builders.V2, uniq="u3"),
        Message("U", 1, b"half", sys_flag=builders.PREPARED, uniq="u4"),
        Message("U", 1, b"other queue", tags="d", keys="k"),
        Message("T", body=b"last", tags="a", uniq="u5"),
    ):
        builder.put(message)
    return builder.write(root)


def record_fields(record: Record) -> Iterator[tuple[str, int, int]]:
    """(name, first byte, end) of all parts of a record, tiling it."""
    for name in (*builders.FIELDS, "body", "topicLength", "topic", "propsLength", "props"):
        at, size = builders.field_position(record, name)
        empty = name in ("bodyCRC", "bodyLength") and not record.body
        prepared = name in ("queueId", "queueOffset") and record.transaction == builders.PREPARED
        yield f"message.{name}{' of no body' * empty}{' of a prepared message' * prepared}", at, at + size


def field_names(store: Store, path: Path) -> list[str]:
    """For each byte of the file the field that it belongs to."""
    size = path.stat().st_size
    kind = path.relative_to(store.root).parts[0]
    if kind == "checkpoint":
        names = ("physic", "logics", "index", "masterFlushed", "confirm", "logicsPhysical")
        return [f"checkpoint.{names[at // 8] if at < 48 else 'rest'}" for at in range(size)]
    if kind == "consumequeue":
        entry = ["offset"] * 8 + ["size"] * 4 + ["tags"] * 8
        used = -(-len(path.read_bytes().rstrip(b"\0")) // 20) * 20
        return [f"entry.{entry[at % 20]}" if at < used else "entry.unused" for at in range(size)]
    if kind == "index":
        header = ["beginTime"] * 8 + ["endTime"] * 8 + ["beginPhy"] * 8 + ["endPhy"] * 8 + ["slots"] * 4 + ["count"] * 4
        (count,) = struct.unpack_from(">i", path.read_bytes(), 36)
        found = [f"index.{name}" for name in header] + ["index.slot"] * (4 * SIZES.slots)
        parts = ["hash"] * 4 + ["offset"] * 8 + ["seconds"] * 4 + ["previous"] * 4
        for number in range(SIZES.index_max):
            what = "entry 0" if number == 0 else "unused" if number >= count else ""
            first = " of the first entry" if number == 1 else ""
            found += [f"index.{what or part}{first if part == 'seconds' else ''}" for part in parts]
        return found
    if kind == "commitlog":
        base, found = int(path.name), ["segment.unwritten"] * size
        for record in store.records:
            if base <= record.at < base + size:
                for name, start, end in record_fields(record):
                    found[record.at - base + start : record.at - base + end] = [name] * (end - start)
                last = record.at - base + record.size
        if path.read_bytes()[last + 4 : last + 8] == struct.pack(">I", builders.BLANK):
            found[last : last + 8] = ["segment.filler size"] * 4 + ["segment.filler magic"] * 4
            found[last + 8 :] = ["segment.behind filler"] * (size - last - 8)
        return found
    return [kind] * size


def broker_of(store: Store) -> tuple[Any, Any]:
    """What the second witness's broker does, and the entries that it has then (an index entry's time is not used by any)."""
    plan, entries = witness.run(store.root, store.release, store.broker_conf)
    return plan, [{k: v for k, v in entry.items() if k != "d"} for entry in entries or []]


def alarms(store: Store) -> Counter[tuple[Any, ...]]:
    """What the audit finds above note, counted by all that identifies a finding."""
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.outcome.complete, audit.incomplete
    found = [f for f in audit.findings if f.severity != NOTE]
    return Counter((f.code, f.file, f.start, f.end, f.phy_offset, f.queue_offset, f.actual, f.count) for f in found)


def notes(store: Store) -> int:
    """How many notes the audit has."""
    found = product.audit(store.root, store.release, store.broker_conf).findings
    return sum(f.severity == NOTE for f in found)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = build(tmp_path_factory.mktemp("every") / "store")
    assert not alarms(made), "the undamaged store raises an alarm"
    assert len(list((made.root / "commitlog").iterdir())) >= 2
    return made


FILES = ("commitlog", "consumequeue", "index", "checkpoint")


def files_of(store: Store, kind: str) -> list[Path]:
    found = [p for p in sorted(store.root.rglob("*")) if p.is_file() and p.relative_to(store.root).parts[0] == kind]
    assert found
    return found


def unseen_flips(store: Store, step: int) -> dict[str, list[str]]:
    """Field -> flips (file:byte^mask) in one of `step` bytes that raise no alarm; told apart where the broker does something else
    for them."""
    clean, noted, found = broker_of(store), notes(store), defaultdict(list)
    for path in (p for kind in FILES for p in files_of(store, kind)):
        data, names = path.read_bytes(), field_names(store, path)
        assert len(names) == len(data)
        for position in range(0, min(len(data), 48) if path.name == "checkpoint" else len(data), step):
            for mask in MASKS if step == 1 else MASKS[position % len(MASKS) :][:1]:
                write_at(path, position, bytes([data[position] ^ mask]))
                if not alarms(store):
                    name = names[position]
                    if name not in DONT_CARE or broker_of(store) != clean:
                        name += " (and the broker does something else)" * (name in DONT_CARE)
                    elif name in NOTED and notes(store) <= noted:
                        name += " (and no note tells of it)"
                    found[name].append(f"{path.name}:{position}^{mask:02x}")
            write_at(path, position, data[position : position + 1])
    return dict(found)


@pytest.mark.parametrize("step", [SOME, pytest.param(1, marks=pytest.mark.soak)])
def test_every_flip_is_found_or_proven_harmless(store: Store, step: int) -> None:
    unseen = unseen_flips(store, step)
    wrong = {name: places for name, places in unseen.items() if name not in DONT_CARE}
    assert not wrong, "\n" + "\n".join(f"{name}: {len(places)}: {' '.join(places[:8])}" for name, places in wrong.items())
    if step == 1:
        assert set(DONT_CARE) == set(unseen), f"found after all: {set(DONT_CARE) - set(unseen)}"


def test_the_checkpoint_s_rest_is_never_read(store: Store) -> None:
    path = store.root / "checkpoint"
    data, clean = path.read_bytes(), broker_of(store)
    path.write_bytes(data[:48] + bytes(0xFF for _ in data[48:]))
    try:
        assert not alarms(store) and broker_of(store) == clean
    finally:
        path.write_bytes(data)


@pytest.mark.parametrize("step", [SOME, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", FILES)
def test_every_cut_is_found(kind: str, step: int, store: Store) -> None:
    missed = []
    for path in files_of(store, kind):
        data = path.read_bytes()
        lengths = [*range(49), *range(64, 4096, 251), 4095] if kind == "checkpoint" else range(len(data))
        for length in lengths[::step]:
            os.truncate(path, length)
            try:
                name = str(path.relative_to(store.root))
                if not any(alarm[1] == name for alarm in alarms(store)):
                    missed.append(f"{name} cut to {length}")
            finally:
                write_at(path, length, data[length:])
    assert not missed, missed[:10]
