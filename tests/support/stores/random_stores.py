"""Small random stores, their settings and the release that meets them: everything follows from one `random.Random`."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support import damage
from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder
from tests.support.stores.replica import epoch_text
from tests.support.stores.rocksdb_stores import KeyedStore, keyed_of

RELEASES = (
    "4.6.1 4.7.0 4.7.1 4.8.0 4.9.0 4.9.1 4.9.2 4.9.3 4.9.4 4.9.5 4.9.6 4.9.7 4.9.8 "
    "5.0.0 5.1.0 5.1.1 5.1.2 5.1.3 5.1.4 5.2.0 5.3.0 5.3.1 5.3.2 5.3.3 5.3.4 5.4.0 5.5.0 5.5.1"
).split()
LONG_TOPIC = "LongTopic_" * 15
TOPICS = ("TopicA", "TopicA", "TopicA", "_x", "%RETRY%group", "rmq_sys_wheel_timer")
TAGS = (None, "a", "b", "标签", "🐇🐇", "tag with spaces", "a||b", "Aa", "BB")


@dataclass
class RandomStore:
    """A store on disk, damaged or not, and what meets it."""

    store: Store
    release: str
    broker_conf: str
    done: list[damage.Done]
    tried: int  # damages drawn; some find nothing to cut

    def describe(self) -> str:
        """One line: who wrote, who reads, which settings differ from the store's own, what was damaged."""
        own = set(self.store.broker_conf.splitlines())
        other = [line for line in self.broker_conf.splitlines() if line not in own]
        damages = []
        for one in self.done:
            where = "" if one.start is None else f"@{one.start}"
            damages.append(f"{one.what}({one.path.relative_to(self.store.root)}{where})")
        who = f"written by {self.store.release}, {'clean' if self.store.clean else 'killed'}, read by {self.release}"
        return f"{who}; {' '.join(other) or 'own settings'}; {', '.join(damages) or 'no damage'}"


def random_body(rng: random.Random) -> tuple[bytes, int]:
    """(body, system flag bits)"""
    size = rng.choice([0, 1, 10, 40, 40, 120, 200])
    body = rng.randbytes(size) if rng.random() < 0.5 else b"abc " * (size // 4)
    if body and rng.random() < 0.15:
        kind = rng.choice(list(builders.COMPRESSED))
        return builders.compress(body, kind), builders.COMPRESSED[kind]
    return body, 0


@dataclass
class Habits:
    """What the producers of one store do."""

    batch: bool
    lmq: bool
    property_crc: float
    dup_info: float
    clock_step_ms: int
    long_topic: bool  # before 5.1.0 its length does not fit into one signed byte: the record is then damaged when written
    slashes: bool
    odd_values: bool  # with 0x01 in them: what is derived of them differs between releases, so an upgrade leaves both kinds
    system_lmq: bool  # multi-dispatch of retry and system topics: releases differ in whether they do it

    @classmethod
    def draw(cls, rng: random.Random, release: str, healthy: bool) -> Habits:
        version = builders.version_of(release)
        return cls(
            batch=version >= (5,) and rng.random() < 0.25,
            lmq=version >= (4, 9, 3) and rng.random() < 0.25,
            property_crc=rng.choice([0, 0, 0, 0.5, 1]) if version >= (5, 2, 0) else 0,
            dup_info=rng.choice([0, 0, 0, 0.9, 1]),
            clock_step_ms=rng.choice([1, 300, 2500]),
            long_topic=version >= (5, 1, 0) or not healthy and rng.random() < 0.5,
            slashes=version >= (5, 1, 2),
            odd_values=not healthy,
            system_lmq=not healthy,
        )

    def message(self, rng: random.Random) -> Message:
        body, sys_flag = random_body(rng)
        topic, queue_id, properties = rng.choice(TOPICS), rng.randrange(2), []
        kind = rng.random()
        inner_count, lmq = 0, tuple[str, ...]()
        if kind < 0.08:
            topic, queue_id = builders.SCHEDULE_TOPIC, rng.randrange(4)
            properties = [("DELAY", str(queue_id + 1)), ("REAL_TOPIC", "TopicA"), ("REAL_QID", "0")]
        elif kind < 0.16:
            sys_flag |= rng.choice([builders.PREPARED, builders.COMMIT, builders.ROLLBACK])
        elif kind < 0.2 and self.long_topic:
            topic = LONG_TOPIC
        elif kind < 0.35 and self.batch:
            topic, inner_count = "Batch", rng.choice([0, 1, 3, 7])
            body, sys_flag = builders.inner_body([b"m"] * inner_count) or body, 0
        elif kind < 0.55 and self.lmq and (self.system_lmq or topic in ("TopicA", "_x")):
            names = ["%LMQ%one", "%LMQ%two", "plainLmq"] + ["%LMQ%a/b"] * self.slashes
            lmq = tuple(rng.sample(names, rng.randrange(1, 3)))
        if self.lmq and self.system_lmq and rng.random() < 0.03:  # lists that no broker writes
            offsets = rng.choice(["0", "0,x", "3,4,5", " ", "7,9"])
            properties += [("INNER_MULTI_DISPATCH", "%LMQ%one,%LMQ%two"), ("INNER_MULTI_QUEUE_OFFSET", offsets)]
            lmq = ()
        if rng.random() < self.dup_info:
            properties.append(("DUP_INFO", "1_2"))
        hosts = [b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", bytes(range(16)) + b"\0\0\x2a\x9f"]
        made = Message(
            topic,
            queue_id,
            body,
            tags=rng.choice(TAGS),
            keys=rng.choice([None, None, "k", "k1 k2", "键 k1", " k  k "]),
            uniq=f"{rng.randrange(1 << 32):08X}" if rng.random() < 0.7 else None,
            flag=rng.randrange(4),
            sys_flag=sys_flag,
            born_host=hosts[rng.random() < 0.1],
            store_host=hosts[rng.random() < 0.1],
            reconsume_times=rng.randrange(3),
            properties=tuple(properties),
            lmq=lmq,
            inner_count=inner_count,
            property_crc=rng.random() < self.property_crc,
        )
        if self.odd_values and made.flag == 3 and made.keys in ("k", "k1 k2"):  # releases up to 4.9.0 drop or cut these
            made = replace(made, keys="x\x01y" if made.keys == "k" else "x\x01")
        return made


def random_builder(rng: random.Random, release: str, healthy: bool = False) -> StoreBuilder:
    """A builder with some dozens of messages in it (rarely none). healthy: nothing that only a damaged log holds."""
    sizes = Sizes(
        segment=rng.choice([1000, 1536, 2048, 4096]),
        queue_file=20 * rng.choice([2, 3, 5, 10, 20]),
        ext_file=rng.choice([128, 256]),
        batch_file=46 * rng.choice([2, 3, 8]),
        slots=rng.choice([1, 3, 10]),
        index_max=rng.choice([2, 5, 12, 30, 100]),
    )
    habits = Habits.draw(rng, release, healthy)
    late = rng.random() < 0.25  # retention took the beginning
    starts = {
        (topic, i): rng.randrange(1, 25) for topic in (*dict.fromkeys(TOPICS), LONG_TOPIC) for i in range(2) if rng.random() < 0.7
    }
    builder = StoreBuilder(
        release,
        sizes,
        first_offset=sizes.segment * rng.randrange(1, 5) if late else 0,
        queue_starts=starts if late else None,
        batch_topics={"Batch"} if habits.batch else (),
        lmq=habits.lmq,
        index=rng.random() < 0.9,
        ext_bit_map=rng.choice([8, 16]) if rng.random() < 0.12 else None,
        stale_fill=builders.version_of(release) <= (4, 9, 0) and rng.random() < 0.5,
    )
    count = 0 if rng.random() < 0.03 else rng.choice([3, 15, 30, 60])
    while len(builder.records) < count:
        builder.clock += rng.randrange(habits.clock_step_ms + 1) - (5000 if rng.random() < 0.02 else 0)
        if rng.random() < 0.05:
            batch = [habits.message(rng) for _ in range(rng.randrange(2, 4))]
            try:
                builder.put_batch([m for m in batch if not m.inner_count and not m.lmq][:2] or batch[:1])
            except ValueError:
                continue
        else:
            builder.put(habits.message(rng))
    if rng.random() < 0.1:
        builder.roll()
    return builder


def random_settings(rng: random.Random, store: Store) -> str:
    """broker.conf lines of whoever reads the store: mostly the store's own."""
    given = dict(line.split("=", 1) for line in store.broker_conf.splitlines())
    flags = {
        "checkCRCOnRecover": "false",
        "forceVerifyPropCRC": "true",
        "duplicationEnable": "true",
        "messageIndexEnable": "false",
        "messageIndexSafe": "true",
        "recheckReputOffsetFromCq": "true",
        "enableMultiDispatch": "true",
        "enableLmq": "true",
        "enableAcceleratedRecovery": "true",
        "checkCommitLogOffsetOnRecover": "true",
        "commitLogRecoverMaxNum": rng.choice(["1", "2", "3", "0"]),
        "messageDelayLevel": "2s 7m",
    }
    for name, value in flags.items():
        if rng.random() < 0.06:
            given[name] = value
    for name in ("enableMultiDispatch", "enableConsumeQueueExt"):
        if rng.random() < 0.03:
            given[name] = "false"
    return "".join(f"{name}={value}\n" for name, value in given.items())


def random_store(root: Path, rng: random.Random, most_damages: int = 4, without: frozenset[int] = frozenset()) -> RandomStore:
    """Build and damage one store under `root`. `without`: numbers of damages to leave out; the others stay as they were."""
    written_by = rng.choice(RELEASES)
    builder = random_builder(rng, written_by)
    records: list[Record] = builder.records
    clean = rng.random() < 0.5
    lagging = not clean or rng.random() < 0.3
    undispatched = rng.randrange(min(len(records), 12) + 1) if lagging and rng.random() < 0.7 else 0
    store = builder.write(
        root, clean=clean, undispatched=undispatched, spare=rng.random() < (0.1 if clean else 0.7), topics_json=rng.random() < 0.7
    )
    release = written_by if rng.random() < 0.6 else rng.choice(RELEASES)
    settings = random_settings(rng, store)
    if release >= "5":  # what compensateForHA throws over there, the second witness does not know; tests/broker_truth holds it
        settings = settings.replace("duplicationEnable=true\n", "")
    seeds = [rng.getrandbits(64) for _ in range(rng.randrange(most_damages + 1))] if store.records else []
    tried = (damage.random_damage(store, random.Random(seed)) for n, seed in enumerate(seeds) if n not in without)
    return RandomStore(store, release, settings, [one for one in tried if one is not None], len(seeds))


def random_keyed(root: Path, rng: random.Random, release: str) -> tuple[KeyedStore, str]:
    """A small store with queues in RocksDB, damaged at random, and what was done. Not written yet; of no topic of type BatchCQ.

    Messages of light queues have their entry in their own queue alone, as where enableLmq was switched on later.
    """
    builder = random_builder(rng, release)
    while builder.batch_topics or not any(record.transaction in (0, builders.COMMIT) for record in builder.records):
        builder = random_builder(rng, release)
    clean = rng.random() < 0.5
    plain = builder.write(root, clean=clean, spare=rng.random() < 0.3)
    dispatched = len(builder.records) if rng.random() < 0.5 else rng.randrange(len(builder.records))
    keyed = keyed_of(plain, clean, dispatched)
    tried = [damage.random_damage(keyed.plain, random.Random(rng.getrandbits(64))) for _ in range(rng.randrange(4))]
    done = [one.what for one in tried if one is not None]
    if rng.random() < 0.2 and keyed.entries:
        for key in rng.sample(list(keyed.entries), min(len(keyed.entries), 3)):
            del keyed.entries[key]
        done.append("entries gone")
    if rng.random() < 0.1 and keyed.maxima:
        queue = rng.choice(list(keyed.maxima))
        at, number = keyed.maxima[queue]
        keyed.maxima[queue] = at, max(0, number + rng.choice([-2, 1, 7]))
        done.append("another maximum")
    if rng.random() < 0.1:
        keyed.mark = max(0, keyed.mark + rng.choice([-300, 300, 5000]))
        done.append("another mark")
    return keyed, f"{'clean' if clean else 'killed'}, {dispatched} of {len(builder.records)} dispatched, {', '.join(done)}"


def random_replica(root: Path, rng: random.Random, release: str) -> tuple[Store, str]:
    """A small store of a replica in controller mode, damaged at random, and what was done; of no topic of type BatchCQ."""
    builder = random_builder(rng, release)
    while builder.batch_topics or not builder.records:
        builder = random_builder(rng, release)
    records, clean = builder.records, rng.random() < 0.5
    one, last = rng.choice(records), records[-1]
    confirmed = rng.choice([0, one.at, one.at + 5, one.at + one.size, last.at, last.at + last.size])
    undispatched = rng.choice([0, 0, rng.randrange(len(records) + 1)])
    store = builder.write(
        root, clean=clean, undispatched=undispatched, spare=rng.random() < 0.3, checkpoint={"confirm": confirmed}
    )
    starts = sorted({0, *(rng.choice(records).at for _ in range(rng.randrange(3)))})
    epochs = [*enumerate(starts, 1), *([(9, 1 << 40)] if rng.random() < 0.15 else [])]
    (root / "epochFileCheckpoint").write_bytes(epoch_text(*epochs) if rng.random() < 0.9 else b"")
    (root / "brokerIdentity").write_bytes(b"DefaultCluster#broker-a#1")
    tried = [damage.random_damage(store, random.Random(rng.getrandbits(64))) for _ in range(rng.randrange(4))]
    done = ", ".join(one.what for one in tried if one is not None)
    return store, f"{'clean' if clean else 'killed'}, confirmed {confirmed} of {last.at + last.size}, epochs {epochs}, {done}"
