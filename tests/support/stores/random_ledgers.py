"""Small random DLedger stores, damaged at random: everything follows from one `random.Random` and the release."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

from tests.support import damage
from tests.support.stores import builders
from tests.support.stores.builders import Message
from tests.support.stores.dledger_stores import FOLDER, HEADER, SIZES, UNIT, Entry, LedgerBuilder, LedgerStore

# What may be damaged, one of them each time: those of the log twice, as there is most to be wrong.
_KINDS = (
    "body", "header", "length", "tail", "last", "zeros",
    "body", "header", "length", "tail", "last", "zeros",
    "unit", "units", "short index", "no index", "no data file", "short data file",
    "queues", "checkpoint", "no checkpoint", "committed", "no committed", "no term", "abort",
)  # fmt: skip


def random_ledger(root: Path, random: Random, release: str) -> tuple[LedgerStore, str]:
    """A store of a node alone in its group, and what was done to it."""
    builder = LedgerBuilder(release)
    count = random.choice([1, 3, 20, 45])
    for number in range(count):
        builder.put(_message(random, number))
        builder.term += random.random() < 0.03
    clean = random.random() < 0.4
    undispatched = random.choice([0, 0, random.randrange(count + 1)])
    committed = random.choice([None, None, None, -1, random.randrange(count)])
    root.mkdir(parents=True)
    store = builder.write(root, clean=clean, undispatched=undispatched, committed=committed)
    tried = [(kind, _damage(store, kind, random)) for kind in random.sample(_KINDS, random.choice([0, 1, 1, 2, 3]))]
    done = ", ".join(kind for kind, worked in tried if worked)
    state = f"{'clean' if clean else 'killed'}, {count} entries, {undispatched} not dispatched, committed {committed}"
    return store, f"{state}; {done or 'no damage'}"


def _message(random: Random, number: int) -> Message:
    topic, queue_id, properties, flags = f"Topic{random.randrange(2)}", random.randrange(2), [], 0
    kind = random.random()
    if kind < 0.08:
        topic, queue_id = builders.SCHEDULE_TOPIC, random.randrange(4)
        properties = [("DELAY", str(queue_id + 1)), ("REAL_TOPIC", "Topic0"), ("REAL_QID", "0")]
    elif kind < 0.2:
        flags = random.choice([builders.PREPARED, builders.COMMIT, builders.ROLLBACK])
    return Message(
        topic,
        queue_id,
        b"x" * random.randrange(5, 300),
        tags=random.choice([None, "a"]),
        keys=random.choice([None, f"k{number}"]),
        uniq=f"7F00{number:08X}" if random.random() < 0.7 else None,
        sys_flag=flags,
        properties=tuple(properties),
    )


def _damage(store: LedgerStore, kind: str, random: Random) -> bool:
    """Whether there was something to damage."""
    try:
        _damage_one(store, kind, random)
    except (AssertionError, IndexError, OSError, struct.error):  # an earlier damage took it
        return False
    return True


def _damage_one(store: LedgerStore, kind: str, random: Random) -> None:
    entry, bit = random.choice(store.entries), 1 << random.randrange(8)
    path, at = store.data_of(entry), entry.at % SIZES.segment
    match kind:
        case "body":
            damage.invert_byte(path, at + HEADER + random.randrange(40, entry.record.size), bit)
        case "header":
            damage.invert_byte(path, at + random.randrange(HEADER), bit)
        case "length":  # of the entry, or of its message
            place = random.choice([4, HEADER - 4, HEADER])
            damage.set_number(path, at + place, ">i", damage.random_number_change(random), "length")
        case "tail":
            _cut(store, entry, at + random.choice([0, 20, HEADER + 12]), gone=random.random() < 0.5)
        case "last":
            last = store.entries[-1]
            place = last.at % SIZES.segment + random.randrange(last.size)
            damage.invert_byte(store.data_of(last), place, bit)
        case "zeros":
            start = at + random.randrange(entry.size)
            damage.zero_range(path, start, min(SIZES.segment, start + random.choice([1, 16, 100, 512])))
        case "unit":
            damage.invert_byte(store.index, UNIT * entry.index + random.randrange(UNIT), bit)
        case "units":
            damage.zero_range(store.index, UNIT * entry.index, UNIT * len(store.entries))
        case "short index":
            damage.cut_at(store.index, UNIT * entry.index + random.choice([0, 0, 5]))
        case "no index":
            damage.remove(store.index.parent)
        case "no data file":
            damage.remove(path)
        case "short data file":
            damage.cut_at(path, at + random.choice([0, 0, 30]))
        case "queues":
            damage.remove(store.root / "consumequeue")
        case "checkpoint":
            damage.invert_byte(store.root / "checkpoint", random.randrange(24), bit)
        case "no checkpoint":
            damage.remove(store.root / FOLDER / "checkpoint")
        case "committed":
            store.set_checkpoint(random.choice([-1, entry.index, len(store.entries) + 3, "x"]))
        case "no committed":
            damage.cut_at(store.root / FOLDER / "checkpoint", random.choice([0, 3, 20]))
        case "no term":
            damage.remove(store.root / FOLDER / "currterm")
        case "abort":
            abort = store.root / "abort"
            damage.remove(abort) if abort.exists() else damage.add_file(abort, b"4711")


def _cut(store: LedgerStore, entry: Entry, at: int, gone: bool) -> None:
    """The log ends there. gone: the files behind are, too; else they hold zeros."""
    file = store.data_of(entry)
    damage.zero_range(file, at, SIZES.segment)
    for path in sorted(file.parent.iterdir()):
        if path.name > file.name:
            damage.remove(path) if gone else damage.write_at(path, 0, bytes(SIZES.segment))
