"""Named surgeries on a store directory. Each asserts that bytes (or names) changed, and says what it did.

Paths are of files in a copy that belongs to the test. Offsets: `position` in a file, `phy_offset` in the whole CommitLog.
Values are changed, never set blindly: writing a fixed value is sometimes no damage.
"""

from __future__ import annotations

import random
import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.stores import builders
from tests.support.stores.builders import Record, Store

ENTRY_FIELDS = {"offset": (0, ">q"), "size": (8, ">i"), "tags": (12, ">q")}
INDEX_HEADER = {
    "beginTime": (0, ">q"),
    "endTime": (8, ">q"),
    "beginPhy": (16, ">q"),
    "endPhy": (24, ">q"),
    "slots": (32, ">i"),
    "count": (36, ">i"),
}
INDEX_ENTRY = {"hash": (0, ">i"), "offset": (4, ">q"), "seconds": (12, ">i"), "previous": (16, ">i")}
CHECKPOINT = ("physic", "logics", "index", "masterFlushed", "confirm", "logicsPhysical")


@dataclass(frozen=True)
class Done:
    """What a surgery did. [start, end): the changed bytes of `path`; None where whole files came or went."""

    what: str
    path: Path
    start: int | None = None
    end: int | None = None


# ---- any file ------------------------------------------------------------------------------------------------------


def write_at(path: Path, position: int, data: bytes) -> None:
    """Write in place, whatever is there. For thousands of damages: what is emptied and written anew goes to the disk at once,
    some milliseconds each time."""
    with open(path, "r+b") as f:
        f.seek(position)
        f.write(data)


def overwrite(path: Path, position: int, data: bytes, what: str = "overwrite") -> Done:
    """Write `data` over the file's bytes; at least one of them must change."""
    with open(path, "r+b") as f:
        f.seek(position)
        old = f.read(len(data))
        assert old != data, f"{what} at {position} of {path.name} changes nothing"
        assert len(old) == len(data), f"{what} at {position} of {path.name} leads out of the file"
        f.seek(position)
        f.write(data)
    return Done(what, path, position, position + len(data))


def set_number(path: Path, position: int, form: str, change: Callable[[int], int], what: str) -> Done:
    """Replace the number of struct format `form` at `position` by change(it)."""
    with open(path, "rb") as f:
        f.seek(position)
        (old,) = struct.unpack(form, f.read(struct.calcsize(form)))
    return overwrite(path, position, struct.pack(form, change(old)), what)


def invert_byte(path: Path, position: int, mask: int = 0xFF) -> Done:
    with open(path, "rb") as f:
        f.seek(position)
        old = f.read(1)
    return overwrite(path, position, bytes([old[0] ^ mask]), "invert_byte")


def zero_range(path: Path, start: int, end: int) -> Done:
    return overwrite(path, start, bytes(end - start), "zero_range")


def cut_at(path: Path, length: int) -> Done:
    """Make the file shorter."""
    size = path.stat().st_size
    assert 0 <= length < size
    with open(path, "r+b") as f:
        f.truncate(length)
    return Done("cut_at", path, length, size)


def grow(path: Path, count: int) -> Done:
    """Make the file longer by zeros."""
    size = path.stat().st_size
    assert count > 0
    with open(path, "r+b") as f:
        f.truncate(size + count)
    return Done("grow", path, size, size + count)


def remove(path: Path) -> Done:
    """Delete a file or a whole folder."""
    assert path.exists()
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return Done("remove", path)


def add_file(path: Path, data: bytes = b"") -> Done:
    assert not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Done("add_file", path)


def add_directory(path: Path) -> Done:
    path.mkdir(parents=True)
    return Done("add_directory", path)


def copy_under_wrong_name(path: Path, name: str) -> Done:
    """A file restored under another's name (which it replaces)."""
    target = path.with_name(name)
    assert target != path and (not target.exists() or target.read_bytes() != path.read_bytes())
    shutil.copyfile(path, target)
    return Done("copy_under_wrong_name", target)


# ---- CommitLog -----------------------------------------------------------------------------------------------------


def set_field(store: Store, record: Record, field: str, change: Callable[[int], int]) -> Done:
    """Change one number of a record's header (`builders.FIELDS`), its CRC left as it is."""
    at, _ = builders.field_position(record, field)
    form = builders.FIELDS[field][1]
    return set_number(store.segment_of(record), store.position_of(record) + at, form, change, f"set_field {field}")


def flip_in(store: Store, record: Record, field: str, byte: int = 0, bit: int = 0) -> Done:
    """Flip one bit in a record's field, body, topic or props."""
    at, size = builders.field_position(record, field)
    assert 0 <= byte < size, f"{field} of the record at {record.at} has {size} bytes"
    return invert_byte(store.segment_of(record), store.position_of(record) + at + byte, 1 << bit)


def reseal_crc(store: Store, record: Record) -> Done:
    """Make BODYCRC fit the body that is in the file now, so that only other checks can see its damage."""
    at, size = builders.field_position(record, "body")
    with open(store.segment_of(record), "rb") as f:
        f.seek(store.position_of(record) + at)
        body = f.read(size)
    crc = struct.pack(">i", zlib.crc32(body) & 0x7FFFFFFF)
    return overwrite(store.segment_of(record), store.position_of(record) + 8, crc, "reseal_crc")


def torn_at(store: Store, record: Record, kept: int) -> Done:
    """Zero from inside a record to the segment's end, as a power loss leaves it."""
    assert 0 <= kept < record.size
    return zero_range(store.segment_of(record), store.position_of(record) + kept, store.sizes.segment)


def filler_of(path: Path) -> int:
    """Position of the segment's filler. Raises ValueError without one."""
    data = path.read_bytes()
    position = 0
    for record in builders.walk(data):
        position = record.at + record.size
    if struct.unpack_from(">I", data, position + 4)[0] != builders.BLANK:
        raise ValueError(f"{path.name} does not end in a filler")
    return position


def blank_magic(path: Path) -> Done:
    """Damage the magic of a segment's filler."""
    return invert_byte(path, filler_of(path) + 5, 0x10)


def filler_size(path: Path, change: Callable[[int], int] = lambda size: size + 70000) -> Done:
    return set_number(path, filler_of(path), ">i", change, "filler_size")


def early_blank(store: Store, record: Record) -> Done:
    """A filler's magic in the middle: for the broker it hides the rest of the segment."""
    return overwrite(store.segment_of(record), store.position_of(record) + 4, struct.pack(">I", builders.BLANK), "early_blank")


def drop_segment(store: Store, number: int) -> Done:
    """Remove one segment, counted in name order, from the end when negative."""
    return remove(sorted((store.root / "commitlog").iterdir())[number])


def zero_segment(store: Store, number: int) -> Done:
    path = sorted((store.root / "commitlog").iterdir())[number]
    return zero_range(path, 0, path.stat().st_size)


def stray_tail(store: Store, count: int = 3) -> Done:
    """Old records, with their old addresses, right behind the last message, as far as they fit."""
    last = store.records[-1]
    position = store.position_of(last) + last.size
    data = b""
    for record in store.records[:count]:
        encoded = builders.encode(record)
        if position + len(data) + len(encoded) + 8 > store.sizes.segment:
            break
        data += encoded
    assert data, "no room behind the last message"
    return overwrite(store.segment_of(last), position, data, "stray_tail")


# ---- checkpoint and abort ------------------------------------------------------------------------------------------


def set_checkpoint(store: Store, **fields: int) -> Done:
    """Set fields of the checkpoint by name (`CHECKPOINT`)."""
    path = store.root / "checkpoint"
    data = bytearray(path.read_bytes())
    for name, value in fields.items():
        struct.pack_into(">q", data, 8 * CHECKPOINT.index(name), value)
    return overwrite(path, 0, bytes(data), "set_checkpoint")


def stale_checkpoint(store: Store, segment: int = -2) -> Done:
    """All times, and the offset of 5.5.0, as when the given segment's first message was new."""
    starts = sorted({r.at - r.at % store.sizes.segment for r in store.records})
    first = next(r for r in store.records if r.at >= starts[max(segment, -len(starts))])
    fields = dict.fromkeys(("physic", "logics", "index"), first.store_time + 3000)
    return set_checkpoint(store, **fields, logicsPhysical=first.at + 1)


def zero_checkpoint(store: Store) -> Done:
    return set_checkpoint(store, **dict.fromkeys(CHECKPOINT, 0))


def add_abort(store: Store) -> Done:
    return add_file(store.root / "abort")


def remove_abort(store: Store) -> Done:
    return remove(store.root / "abort")


# ---- ConsumeQueue --------------------------------------------------------------------------------------------------


def queue_files(store: Store, topic: str, queue_id: int, kind: str = "consumequeue") -> list[Path]:
    return sorted((store.root / kind / topic / str(queue_id)).iterdir())


def cq_set(store: Store, topic: str, queue_id: int, entry: int, field: str, change: Callable[[int], int]) -> Done:
    """Change one number of the entry of this queue offset."""
    files = queue_files(store, topic, queue_id)
    at = entry * 20
    path = next(p for p in files if int(p.name) <= at < int(p.name) + p.stat().st_size)
    position, form = ENTRY_FIELDS[field]
    return set_number(path, at - int(path.name) + position, form, change, f"cq_set {field}")


def cq_append(store: Store, topic: str, queue_id: int, phy_offset: int, size: int, code: int = 0) -> Done:
    """An entry more than there is, behind the last one of the last file."""
    path = queue_files(store, topic, queue_id)[-1]
    used = len(path.read_bytes().rstrip(b"\0"))
    return overwrite(path, -(-used // 20) * 20, struct.pack(">qiq", phy_offset, size, code), "cq_append")


def cq_zero_tail(store: Store, topic: str, queue_id: int, entries: int) -> Done:
    """The last entries of the last file become zero."""
    path = queue_files(store, topic, queue_id)[-1]
    used = -(-len(path.read_bytes().rstrip(b"\0")) // 20) * 20
    return zero_range(path, max(0, used - 20 * entries), used)


def cq_zero_file(store: Store, topic: str, queue_id: int, number: int = -1) -> Done:
    path = queue_files(store, topic, queue_id)[number]
    return zero_range(path, 0, path.stat().st_size)


def cq_delete_file(store: Store, topic: str, queue_id: int, number: int) -> Done:
    return remove(queue_files(store, topic, queue_id)[number])


def cq_delete_queue(store: Store, topic: str, queue_id: int, kind: str = "consumequeue") -> Done:
    return remove(store.root / kind / topic / str(queue_id))


def cq_shift(store: Store, topic: str, queue_id: int, entry: int) -> Done:
    """One entry is put twice: all later ones of that file stand one slot further on."""
    path = next(p for p in queue_files(store, topic, queue_id) if int(p.name) <= entry * 20 < int(p.name) + p.stat().st_size)
    data = path.read_bytes()
    at = entry * 20 - int(path.name)
    return overwrite(path, at, (data[at : at + 20] + data[at:])[: len(data) - at], "cq_shift")


# ---- index ---------------------------------------------------------------------------------------------------------


def index_files(store: Store) -> list[Path]:
    return sorted((store.root / "index").iterdir())


def index_header(store: Store, number: int, field: str, change: Callable[[int], int]) -> Done:
    position, form = INDEX_HEADER[field]
    return set_number(index_files(store)[number], position, form, change, f"index_header {field}")


def index_slot(store: Store, number: int, change: Callable[[int], int], slot: int | None = None) -> Done:
    """Change a slot's entry number (default: the first slot in use)."""
    path = index_files(store)[number]
    data = path.read_bytes()
    if slot is None:
        slot = next(s for s in range(store.sizes.slots) if struct.unpack_from(">i", data, 40 + 4 * s)[0] > 0)
    return set_number(path, 40 + 4 * slot, ">i", change, "index_slot")


def index_entry(store: Store, number: int, entry: int, field: str, change: Callable[[int], int]) -> Done:
    """Change one number of entry `entry` (counted from 1)."""
    position, form = INDEX_ENTRY[field]
    at = 40 + 4 * store.sizes.slots + 20 * entry + position
    return set_number(index_files(store)[number], at, form, change, f"index_entry {field}")


# ---- at random -----------------------------------------------------------------------------------------------------


def random_number_change(rng: random.Random) -> Callable[[int], int]:
    """A change that always changes: small steps, bits, far values; wrapped to 31 bits so that every format holds it."""
    kind = rng.randrange(5)
    delta = rng.choice([1, 2, 8, 20, 4096, 1 << 24])
    bit = rng.randrange(31)

    def change(old: int) -> int:
        low = old & 0x7FFFFFFF
        choices = [low + delta, low - delta, low ^ 1 << bit, -old or 1, 0 if old else 1]
        new = choices[kind]
        new = new if -0x80000000 <= new <= 0x7FFFFFFF else low ^ 1
        return new if new != old else low ^ 1

    return change


def random_damage(store: Store, rng: random.Random) -> Done | None:
    """One surgery of any kind on the store as it is now; None where the chosen kind finds nothing to cut.

    The store may have been damaged before: the choice goes by what is on disk, and by the records as they were written.
    """
    kinds = _LOG + _LOG + _QUEUE + _INDEX + _OTHER
    kind = rng.choice(kinds)
    try:
        return kind(store, rng)
    except (AssertionError, IndexError, OSError, StopIteration, ValueError, struct.error):
        return None


def _any_record(store: Store, rng: random.Random) -> Record:
    """Any record, the first of a segment more often than by chance."""
    record = rng.choice(store.records)
    if rng.random() < 0.3:
        start = record.at - record.at % store.sizes.segment
        record = next(r for r in store.records if r.at >= start)
    return record


def _field(store: Store, rng: random.Random) -> Done:
    fields = [name for name, (_, form) in builders.FIELDS.items() if form == ">i" or form == ">q"]
    record, name = _any_record(store, rng), rng.choice(fields)
    if name == "storeTimestamp":
        return set_field(store, record, name, lambda t: rng.choice([0, t + 86_400_000, t - 86_400_000, -1]))
    if name == "physOffset" and rng.random() < 0.6:
        return set_field(store, record, name, lambda p: p + rng.choice([-200, 200, store.sizes.segment, -store.sizes.segment]))
    if name == "queueOffset":  # not negative: no record exists of what a broker makes of that
        return set_field(store, record, name, lambda q: rng.choice([0, q + 1, q + 3, max(0, q - 2), q + 5000]))
    return set_field(store, record, name, random_number_change(rng))


def _flip(store: Store, rng: random.Random) -> Done:
    record = _any_record(store, rng)
    name = rng.choice(["body", "topic", "props", "magic", "topicLength", "propsLength", "bornHost", "storeHost", "props"])
    _, size = builders.field_position(record, name)
    return flip_in(store, record, name, rng.randrange(size), rng.randrange(8))


def _resealed(store: Store, rng: random.Random) -> Done:
    record = _any_record(store, rng)
    flip_in(store, record, "body", rng.randrange(len(record.body)), rng.randrange(8))
    return reseal_crc(store, record)


def _page(store: Store, rng: random.Random) -> Done:
    record = _any_record(store, rng)
    start = store.position_of(record) + rng.randrange(record.size)
    return zero_range(store.segment_of(record), start, min(store.sizes.segment, start + rng.choice([1, 16, 100, 512, 4096])))


def _segments(store: Store) -> list[Path]:
    return [p for p in sorted((store.root / "commitlog").iterdir()) if p.is_file() and p.name.isdigit()]


def _drop(store: Store, rng: random.Random) -> Done:
    segments = _segments(store)
    return remove(rng.choice([segments[0], segments[-1], rng.choice(segments)]))


def _swap_name(store: Store, rng: random.Random) -> Done:
    one, two = rng.sample(_segments(store), 2)
    return copy_under_wrong_name(one, two.name)


def _wrong_length(store: Store, rng: random.Random) -> Done:
    path = rng.choice(_every_file(store))
    if rng.random() < 0.3:
        return grow(path, rng.choice([1, 20, 4096]))
    return cut_at(path, rng.choice([0, 0, 1, path.stat().st_size // 2, path.stat().st_size - 1]))


def _every_file(store: Store) -> list[Path]:
    found = [p for p in sorted(store.root.rglob("*")) if p.is_file()]
    return [p for p in found if p.name not in ("lock", "abort", "abort.bak") and p.parent.name != "config"]


def _foreign(store: Store, rng: random.Random) -> Done:
    folder = rng.choice([p.parent for p in _every_file(store) if p.name != "checkpoint"])
    # Numbers are whole entries: no record exists of what a broker makes of a queue file that begins between two of them.
    name = rng.choice(["x.bak", "readme", "99999999999999999999", "00000000000009200000", "+920"])
    if rng.random() < 0.5:
        return add_directory(folder / name)
    return add_file(folder / name, bytes(rng.choice([0, 3, store.sizes.segment, store.sizes.queue_file])))


def _any_byte(store: Store, rng: random.Random) -> Done:
    path = rng.choice(_every_file(store))
    return invert_byte(path, rng.randrange(path.stat().st_size), 1 << rng.randrange(8))


def _checkpoint(store: Store, rng: random.Random) -> Done:
    kind = rng.randrange(4)
    if kind == 0:
        return zero_checkpoint(store)
    if kind == 1:
        return stale_checkpoint(store, -rng.randrange(1, 5))
    if kind == 2:
        return remove(store.root / "checkpoint")
    record = rng.choice(store.records)
    name = rng.choice(CHECKPOINT)
    value = (
        record.store_time + rng.choice([0, 2999, 3000, 3001]) if name in CHECKPOINT[:3] else record.at + rng.choice([0, 1, -1])
    )
    return set_checkpoint(store, **{name: max(0, value)})


def _abort(store: Store, rng: random.Random) -> Done:
    return remove_abort(store) if (store.root / "abort").exists() else add_abort(store)


def _a_queue(store: Store, rng: random.Random) -> tuple[str, int]:
    key = rng.choice(
        [(p.parent.name, int(p.name)) for p in sorted((store.root / "consumequeue").glob("*/*")) if p.name.isdigit()]
    )
    return key


def _cq_entry(store: Store, rng: random.Random) -> Done:
    topic, queue_id = _a_queue(store, rng)
    path = rng.choice(queue_files(store, topic, queue_id))
    used = len(path.read_bytes().rstrip(b"\0")) // 20
    entry = int(path.name) // 20 + rng.choice([0, max(used - 1, 0), rng.randrange(used + 1)])
    return cq_set(store, topic, queue_id, entry, rng.choice(list(ENTRY_FIELDS)), random_number_change(rng))


def _cq_tail(store: Store, rng: random.Random) -> Done:
    return cq_zero_tail(store, *_a_queue(store, rng), rng.randrange(1, 12))


def _cq_more(store: Store, rng: random.Random) -> Done:
    record = rng.choice(store.records)
    return cq_append(store, *_a_queue(store, rng), record.at + rng.choice([0, 64, 5000]), record.size)


def _cq_files(store: Store, rng: random.Random) -> Done:
    key = _a_queue(store, rng)
    kind = rng.randrange(5)
    if kind == 0:
        return cq_delete_queue(store, *key)
    if kind == 1:
        return cq_zero_file(store, *key, rng.choice([0, -1]))
    if kind == 2:
        return cq_shift(store, *key, rng.randrange(6))
    if kind == 3:
        return remove(store.root / "consumequeue")
    return cq_delete_file(store, *key, rng.choice([0, -1]))


def _index(store: Store, rng: random.Random) -> Done:
    number = rng.choice([0, -1])
    change = random_number_change(rng)
    kind = rng.randrange(4)
    if kind == 0:
        return index_header(store, number, rng.choice(list(INDEX_HEADER)), change)
    if kind == 1:
        return index_slot(store, number, change)
    if kind == 2:
        return remove(index_files(store)[number])
    return index_entry(store, number, rng.randrange(1, store.sizes.index_max), rng.choice(list(INDEX_ENTRY)), change)


def _torn(store: Store, rng: random.Random) -> Done:
    record = rng.choice(store.records[-10:])
    return torn_at(store, record, rng.randrange(record.size))


_Kind = Callable[[Store, random.Random], Done]
_LOG: list[_Kind] = [
    _field,
    _field,
    _flip,
    _flip,
    _resealed,
    _page,
    _torn,
    _drop,
    _swap_name,
    lambda store, rng: blank_magic(rng.choice(_segments(store))),
    lambda store, rng: filler_size(rng.choice(_segments(store)), random_number_change(rng)),
    lambda store, rng: early_blank(store, _any_record(store, rng)),
    lambda store, rng: zero_segment(store, rng.choice([0, -1, 1])),
    lambda store, rng: stray_tail(store, rng.randrange(1, 6)),
]
_QUEUE: list[_Kind] = [_cq_entry, _cq_entry, _cq_entry, _cq_tail, _cq_more, _cq_files, _cq_files]
_INDEX: list[_Kind] = [_index, _index]
_OTHER: list[_Kind] = [_checkpoint, _checkpoint, _checkpoint, _abort, _abort, _wrong_length, _foreign, _any_byte]
