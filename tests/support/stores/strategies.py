"""Hypothesis strategies: messages, whole stores, damages. What they draw is built with `tests.support.stores.builders` alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder

# Property texts may hold anything but the two separators; tags and keys are often not ASCII.
texts = st.text(st.characters(exclude_characters="\x00\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=12)
tags = st.none() | st.sampled_from(["a", "TagA", "标签", "🐇", "Aa", "polygenelubricants"]) | texts
keys = st.none() | st.sampled_from(["k", "k1 k2", " k  k ", "键"]) | texts
topics = st.sampled_from(["TopicA", "_x", "%RETRY%g", "a", "T" * 127, "T" * 128, "T" * 250])
hosts = st.sampled_from([b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", bytes(range(16)) + b"\0\0\x2a\x9f"])
names = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
properties = st.lists(st.tuples(names, texts), max_size=3).map(tuple)
bodies = st.one_of(
    st.just((b"", 0)),
    st.binary(max_size=200).map(lambda b: (b, 0)),
    st.tuples(st.binary(min_size=1, max_size=200), st.sampled_from(sorted(builders.COMPRESSED))).map(
        lambda pair: (builders.compress(pair[0], pair[1]), builders.COMPRESSED[pair[1]])
    ),
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message that a producer can send: both versions, IPv6 hosts, empty bodies, transactions, compressed bodies."""
    body, sys_flag = draw(bodies)
    sys_flag |= draw(st.sampled_from([0, 0, 0, builders.PREPARED, builders.COMMIT, builders.ROLLBACK]))
    topic, queue_id, extra = draw(topics), draw(st.integers(0, 2)), draw(properties)
    if draw(st.integers(0, 7)) == 0:
        level = draw(st.integers(1, 20))
        topic, queue_id, extra = builders.SCHEDULE_TOPIC, level - 1, (*extra, ("DELAY", str(level)))
    return Message(
        topic,
        queue_id,
        body,
        tags=draw(tags),
        keys=draw(keys),
        uniq=draw(st.none() | texts),
        flag=draw(st.integers(-(1 << 31), (1 << 31) - 1)),
        sys_flag=sys_flag,
        born_host=draw(hosts),
        store_host=draw(hosts),
        reconsume_times=draw(st.integers(0, 20)),
        properties=extra,
        property_crc=draw(st.booleans()),
    )


sizes = st.builds(
    Sizes,
    segment=st.sampled_from([1024, 2000, 4096]),
    queue_file=st.integers(1, 20).map(lambda n: 20 * n),
    slots=st.integers(1, 20),
    index_max=st.integers(2, 60),
)


@st.composite
def store_builders(draw: st.DrawFn, most: int = 20) -> StoreBuilder:
    """A builder with up to `most` messages in it; segments close wherever the next message does not fit."""
    release = draw(st.sampled_from(["4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.4.0", "5.5.0", "5.5.1"]))
    builder = StoreBuilder(release, draw(sizes))
    for message in draw(st.lists(messages(), max_size=most)):
        if builders.version_of(release) < (5, 1) and len(message.topic) > 127:
            continue  # its length does not fit into one signed byte, and V2 was not there yet
        try:
            builder.put(message)
        except ValueError:
            continue  # larger than a whole segment
    return builder


def record_list(builder: StoreBuilder, base: int) -> list[Record]:
    """The records that were put into the segment at `base`."""
    return [r for r in builder.records if base <= r.at < base + builder.sizes.segment]


@dataclass(frozen=True)
class Mutation:
    """One change to bytes in memory: at a fraction of the length, so that it fits any length."""

    kind: str
    where: float
    count: int
    data: bytes

    def apply(self, old: bytes) -> bytes:
        """The changed bytes; other than the old ones unless there was nothing to change."""
        at = min(int(self.where * len(old)), max(len(old) - 1, 0))
        if self.kind == "invert":
            return old[:at] + bytes(b ^ 0xFF for b in old[at : at + self.count]) + old[at + self.count :]
        if self.kind == "zero":
            return old[:at] + bytes(len(old[at : at + self.count])) + old[at + self.count :]
        if self.kind == "cut":
            return old[:at]
        if self.kind == "repeat":
            return (old[: at + self.count] + old[at:])[: len(old)]
        return (old[:at] + self.data + old[at + len(self.data) :])[: len(old)]


mutations = st.builds(
    Mutation,
    st.sampled_from(["invert", "invert", "zero", "cut", "repeat", "overwrite"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 64),
    st.binary(min_size=1, max_size=16) | st.sampled_from([b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab", b"\xcb\xd4\x31\x94"]),
)


def mutate_store(store: Store, draws: list[tuple[float, Mutation]]) -> list[Path]:
    """Apply mutations to files of a store on disk (chosen by fraction, in name order). Returns the files that changed."""
    changed = []
    for which, mutation in draws:
        files = [p for p in sorted(store.root.rglob("*")) if p.is_file() and p.name not in ("lock", "abort.bak")]
        path = files[int(which * len(files))]
        old = path.read_bytes()
        new = mutation.apply(old)
        if new != old:
            path.write_bytes(new)
            changed.append(path)
    return changed
