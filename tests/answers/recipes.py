"""Makes the stores of tests/answers, each a few bytes or files away from a real one or from one that is written here.

`make_answer_store(name, folder)` makes the copies of NAME.toml below the folder, always with the same bytes.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.stores import timers
from tests.support.stores.builders import Dispatcher, Message, Sizes, StoreBuilder, field_position, walk, write_derived
from tests.support.stores.corpus_tools import CORPUS, Case
from tests.support.stores.replica import epoch_text

SIZES = Sizes(segment=16384, queue_file=2000, slots=50, index_max=200)
GROUPS = {"orders": "billing", "%RETRY%billing": "billing", "payments": "shipping", "invoices": "tax"}
BUSINESS = ("invoices", "orders", "payments")
DAY = 86_400_000
FIRST = 1_700_000_000_000


def make_answer_store(name: str, folder: Path) -> None:
    """Make the copies of NAME.toml in folders of their names below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    RECIPES[name](folder)


# ---- a broker's life -----------------------------------------------------------------------------------------------


def message(number: int, label: str = "a") -> Message:
    """Name the message of that number: three topics, and now and then one that a group tries again."""
    topic, queue = ("orders", "orders", "payments", "invoices")[number % 4], number // 4 % 2
    more: tuple[tuple[str, str], ...] = ()
    if number % 30 == 29:
        topic, queue, more = "%RETRY%billing", 0, (("RETRY_TOPIC", "orders"),)
    body = f"{label} {number} ".encode() * (2 + number % 5)
    keys, queue = (f"k{number % 7}", 0) if topic == "invoices" else (None, queue)
    return Message(topic, queue, body, tags="t", keys=keys, uniq=f"{label}{number:031d}", properties=more)


def broker(
    root: Path, messages: int = 360, *, clean: bool = True, undispatched: int = 0, label: str = "a",
    other_from: int | None = None, first: int = FIRST,
) -> Path:  # fmt: skip
    """Write a broker's whole store, with its tables. other_from: the number from which on the messages are of another life."""
    builder = StoreBuilder("5.3.3", SIZES, start_time=first)
    for number in range(messages):
        builder.put(message(number, label if other_from is None or number < other_from else label + "x"))
    builder.write(root, clean=clean, undispatched=undispatched)
    write_tables(root)
    return root


def write_tables(root: Path, counter: int = 12) -> None:
    """Write topics, groups and offsets as a broker has them whose groups have consumed all that is in the queues."""
    ends = queue_ends(root)
    topics = {topic: _topic(topic, 1 + max(q for t, q in ends if t == topic)) for topic, _ in ends}
    readers = {
        topic: GROUPS.get(topic, "CID_RMQ_SYS_TRANS" if topic.startswith("RMQ_SYS") else "readers")
        for topic in topics
        if topic != "SCHEDULE_TOPIC_XXXX" and not topic.startswith("rmq_sys")
    }
    own = sorted({group for group in readers.values() if group != "CID_RMQ_SYS_TRANS"})
    offsets = {f"{topic}@{group}": _ends_of(ends, topic) for topic, group in readers.items()}
    delays = {queue + 1: end for (topic, queue), end in sorted(ends.items()) if topic == "SCHEDULE_TOPIC_XXXX"}
    version = {"counter": counter, "stateVersion": 0, "timestamp": FIRST}
    put(root, "topics.json", {"dataVersion": version, "topicConfigTable": topics})
    put(root, "subscriptionGroup.json", {"dataVersion": version, "subscriptionGroupTable": {name: _group(name) for name in own}})
    put(root, "consumerOffset.json", {"dataVersion": version | {"counter": 0}, "offsetTable": offsets})
    put(root, "delayOffset.json", {"dataVersion": version | {"counter": 0}, "offsetTable": delays})


def put(root: Path, name: str, table: dict[str, Any], older: dict[str, Any] | None = None) -> None:
    """Write a table, and as its .bak the one before it (without `older` the same). Names that are numbers have no quotes."""
    (root / "config").mkdir(exist_ok=True)
    for path, content in ((name, table), (f"{name}.bak", older or table)):
        text = re.sub(r'"(\d+)":', r"\1:", json.dumps(content, separators=(",", ":")))
        (root / "config" / path).write_text(text, encoding="utf-8")


def table_of(root: Path, name: str) -> dict[str, Any]:
    """Read a table that `put` has written."""
    text = (root / "config" / name).read_text(encoding="utf-8")
    return dict(json.loads(re.sub(r"(?<=[{,])(\d+):", r'"\1":', text)))


def queue_ends(root: Path) -> dict[tuple[str, int], int]:
    """Find how many entries each queue in files has; a slot that is all zero is none."""
    ends: dict[tuple[str, int], int] = {}
    for path in sorted((root / "consumequeue").glob("*/*/*")):
        data = path.read_bytes()
        used = sum(any(data[at : at + 12]) for at in range(0, len(data), 20))
        key = path.parent.parent.name, int(path.parent.name)
        ends[key] = max(ends.get(key, 0), int(path.name) // 20 + used)
    return ends


def _ends_of(ends: dict[tuple[str, int], int], topic: str) -> dict[int, int]:
    return {queue: end for (name, queue), end in sorted(ends.items()) if name == topic}


def _topic(name: str, queues: int) -> dict[str, Any]:
    return {
        "attributes": {}, "order": False, "perm": 6, "readQueueNums": queues, "topicFilterType": "SINGLE_TAG", "topicName": name,
        "topicSysFlag": 0, "writeQueueNums": queues,
    }  # fmt: skip


def _group(name: str) -> dict[str, Any]:
    return {
        "attributes": {}, "brokerId": 0, "consumeBroadcastEnable": True, "consumeEnable": True, "consumeFromMinEnable": True,
        "consumeMessageOrderly": False, "consumeTimeoutMinute": 15, "groupName": name, "groupRetryPolicy": {"type": "CUSTOMIZED"},
        "groupSysFlag": 0, "notifyConsumerIdsChangedEnable": True, "retryMaxTimes": 16, "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1,
    }  # fmt: skip


# ---- real stores ---------------------------------------------------------------------------------------------------


def real(root: Path, case: str, kind: str = "") -> Path:
    """Unpack a store of the corpus; its release's settings stand in the TOML."""
    spot = root.parent / f"{root.name}.corpus"
    Case(CORPUS / kind / case).unpack(spot).rename(root)
    shutil.rmtree(spot)
    return root


def whole(root: Path) -> Path:
    """A sound store of 5.4.0, stopped cleanly, with tables: six segments of 64 KiB."""
    write_tables(real(root, "g67-540-force-crc"))
    return root


def _golden(case: str, kind: str = "") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        real(folder / "store", case, kind)

    return make


def _without(*gone: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        root = whole(folder / "store")
        for name in gone:
            (root / name).unlink()

    return make


# ---- the stores ----------------------------------------------------------------------------------------------------


def donor_has_the_end(folder: Path) -> None:
    """The last two segments are missing; a second copy has them."""
    whole(folder / "whole")
    _without("commitlog/00000000000000262144", "commitlog/00000000000000327680")(folder)


def log_moved(folder: Path) -> None:
    """Only the first segment is left where the log once was."""
    for path in sorted((whole(folder / "store") / "commitlog").iterdir())[1:]:
        path.unlink()


def config_not_copied(folder: Path) -> None:
    """Neither config/ nor index/ was copied."""
    root = broker(folder / "store")
    shutil.rmtree(root / "config")
    shutil.rmtree(root / "index")


def slave_alone(folder: Path) -> None:
    """A slave that had not yet taken over the tables of its master."""
    root = broker(folder / "store")
    topics = table_of(root, "topics.json")
    for name in BUSINESS:
        del topics["topicConfigTable"][name]
    put(root, "topics.json", topics)
    put(root, "consumerOffset.json", {"offsetTable": {}})
    for path in (root / "config").glob("delayOffset.json*"):
        path.unlink()


def topics_few(folder: Path) -> None:
    """A takeover of tables was broken off: each topic was deleted in a write of its own."""
    root = broker(folder / "store")
    topics = table_of(root, "topics.json")
    rows, left = topics["topicConfigTable"], ("%RETRY%billing", "orders")
    put(
        root,
        "topics.json",
        {"dataVersion": topics["dataVersion"] | {"counter": 15}, "topicConfigTable": {name: rows[name] for name in left}},
        {"dataVersion": topics["dataVersion"] | {"counter": 14}, "topicConfigTable": {n: rows[n] for n in ("invoices", *left)}},
    )


def dledger_lines_gone(folder: Path) -> None:
    """A DLedger log with complete queues, stopped cleanly; broker.conf does not say where the log is."""
    (real(folder / "store", "g113-533-dledger-killed-late") / "abort").unlink()


def epochs_apart(folder: Path) -> None:
    """Three replicas of which each has another first epoch, or another history: none but b has all messages."""
    for name, messages, epoch, number in (("a", 0, 1, 1), ("b", 300, 2, 2), ("c", 174, 1, 3)):
        root = folder / name
        if messages:
            broker(root, messages)
        else:
            StoreBuilder("5.3.3", SIZES).write(root)
        (root / "epochFileCheckpoint").write_bytes(epoch_text((epoch, 0)))
        (root / "brokerIdentity").write_text(f"oracle#broker-a#{number}", encoding="utf-8")


def identity_renamed(folder: Path) -> None:
    """A replica whose identity names another broker than broker.conf does."""
    root = broker(folder / "store", 120)
    (root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0)))
    (root / "brokerIdentity").write_text("oracle#broker-b#2", encoding="utf-8")


def compacted_later(folder: Path) -> None:
    """A topic is compacted by its table, and nothing of it was ever put into a compacted log."""
    root = broker(folder / "store")
    topics = table_of(root, "topics.json")
    topics["topicConfigTable"]["invoices"]["attributes"] = {"cleanup.policy": "COMPACTION"}
    put(root, "topics.json", topics)


def two_brokers_merged(folder: Path) -> None:
    """The files of a second broker were copied over those of a first, longer one."""
    broker(folder / "store")
    second = broker(folder / "second", 200, label="b", first=FIRST + 10 * DAY)
    shutil.copytree(second, folder / "store", dirs_exist_ok=True)
    shutil.rmtree(second)


def timer_slot_gone(folder: Path) -> None:
    """The wheel has lost the slot of two timers that wait; their units lie before those that a start reads again."""
    builder, held = StoreBuilder("5.3.3", SIZES), timers.Timers(file_bytes=5 * timers.UNIT_BYTES + 16)
    first, later = FIRST + 2000, FIRST + 3_600_000
    times = [first, first, *(later + 1000 * (number // 2) for number in range(13))]
    taken = [builder.put(timers.message(number, time)) for number, time in enumerate(times)]
    for record, time in zip(taken, times, strict=True):
        held.enqueue(record, time, FIRST)
    builder.clock = first + 10_000
    for number in range(2):
        builder.put(timers.delivered(number, times[number]))
    held.queue_offset, held.read_time = len(taken), first + 60_000
    root = folder / "store"
    builder.write(root)
    write_tables(root)
    held.write(root)
    with open(root / "timerwheel", "r+b") as wheel:
        wheel.seek(later // 1000 % timers.SLOTS * timers.SLOT_BYTES)
        wheel.write(bytes(timers.SLOT_BYTES))


def pair_earlier(folder: Path) -> None:
    """A slave that was stopped 60 messages before its master."""
    broker(folder / "master")
    broker(folder / "slave", 300)


def pair_diverged(folder: Path) -> None:
    """Two brokers that took messages each for itself after the 300th."""
    broker(folder / "a")
    broker(folder / "b", 330, other_from=300)


def pair_tables(folder: Path) -> None:
    """Two copies with the same log; one has older offsets and lacks a topic that was made later."""
    for name in ("master", "slave"):
        root = broker(folder / name)
        if name == "master":
            topics = table_of(root, "topics.json")
            later = topics["topicConfigTable"] | {"refunds": _topic("refunds", 4)}
            put(root, "topics.json", {"dataVersion": topics["dataVersion"] | {"counter": 13}, "topicConfigTable": later}, topics)
        else:
            offsets = table_of(root, "consumerOffset.json")
            for row in offsets["offsetTable"].values():
                row |= {queue: offset - 5 for queue, offset in row.items()}
            put(root, "consumerOffset.json", offsets)


def pair_damaged(folder: Path) -> None:
    """Two copies with the same log; in one a bit of a body in the last segment is inverted."""
    whole(folder / "slave")
    path = whole(folder / "master") / "commitlog" / "00000000000000327680"
    data = bytearray(path.read_bytes())
    record = list(walk(data))[20]
    data[record.at + field_position(record, "body")[0]] ^= 8
    path.write_bytes(data)


def repaired(folder: Path) -> None:
    """As a repair leaves a log that it ended within its last segment: all else is made of what is left."""
    root = real(folder / "store", "g67-540-force-crc")
    path = root / "commitlog" / "00000000000000327680"
    end = list(walk(path.read_bytes()))[20].at
    path.write_bytes(path.read_bytes()[:end].ljust(65536, b"\0"))
    derived = Dispatcher("5.4.0", Sizes(segment=65536, queue_file=1200, slots=100, index_max=600))
    for segment in sorted((root / "commitlog").iterdir()):
        for record in walk(segment.read_bytes(), int(segment.name)):
            derived.put(record)
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)
    write_derived(root, derived)
    assert derived.last
    times = derived.last.store_time, derived.last.store_time, derived.pages[-2].end_time
    (root / "checkpoint").write_bytes(struct.pack(">3q", *times).ljust(4096, b"\0"))
    write_tables(root)


def _broker_store(**settings: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        broker(folder / "store", **settings)

    return make


def _whole_store(folder: Path) -> None:
    whole(folder / "store")


RECIPES: dict[str, Callable[[Path], None]] = {
    "copy-while-running": _golden("g5x-533-broker-live"),
    "donor-has-the-end": donor_has_the_end,
    "segment-between": _without("commitlog/00000000000000131072"),
    "segment-at-end": _without("commitlog/00000000000000327680"),
    "log-moved": log_moved,
    "config-not-copied": config_not_copied,
    "slave-alone": slave_alone,
    "dledger-lines-gone": dledger_lines_gone,
    "epochs-apart": epochs_apart,
    "topics-few": topics_few,
    "identity-renamed": identity_renamed,
    "compacted-later": compacted_later,
    "two-brokers-merged": two_brokers_merged,
    "golden-crash": _golden("g81-550-logics-time"),
    "golden-body": _golden("g84-540-clean-physoffset"),
    "golden-zero-tail": _golden("g11-533-zero-tail"),
    "golden-dledger-tail": _golden("g103-514-dledger-tail"),
    "golden-controller-behind": _golden("g110-533-controller-behind"),
    "golden-rocksdb-gone": _golden("g93-540-rdb-gone-clean", "kinds/rocksdb"),
    "golden-batch-lmq": _golden("g78-514-batch-lmq"),
    "golden-ext-damaged": _golden("g83-514-ext-damaged"),
    "golden-first-gone": _golden("g25-480-first-gone-crash"),
    "golden-fresh": _golden("g41-533-fresh"),
    "golden-queue-offsets": _golden("g85-533-queue-offsets"),
    "timer-slot-gone": timer_slot_gone,
    "pair-earlier": pair_earlier,
    "pair-diverged": pair_diverged,
    "pair-tables": pair_tables,
    "pair-damaged": pair_damaged,
    "sound-clean": _broker_store(),
    "sound-unclean": _broker_store(clean=False, undispatched=24),
    "sound-no-config": _golden("g67-540-force-crc"),
    "sound-repaired": repaired,
    "not-modelled": _whole_store,
}
