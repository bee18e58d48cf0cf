"""Stores in which the offsets of a queue begin again: its topic was deleted and made again, or a broker forgot where they were.

`life` is a number of messages of topic A, queue 0, with queue offsets from 0 on. Topic B goes on throughout.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.stores.builders import Dispatcher, Message, Record, Sizes, Store, StoreBuilder, write_derived
from tests.support.stores.rocksdb_stores import keyed_of

FILES, BATCH, ROCKSDB = "files", "batch", "rocksdb"
KINDS = (FILES, BATCH, ROCKSDB)
RELEASE = {FILES: "5.3.3", BATCH: "5.1.4", ROCKSDB: "5.3.3"}
_SIZES = Sizes(segment=8192)


def made_again(root: Path, kind: str, lives: Sequence[int], held: Sequence[int], clean: bool = True, first: int = 0) -> Store:
    """The store. held: the lives that have entries, by number.  first: queue offset with which each life but the first begins."""
    builder = StoreBuilder(RELEASE[kind], _SIZES, batch_topics=("A",) if kind == BATCH else ())
    of_life: list[list[Record]] = []
    for number, messages in enumerate(lives):
        builder.next_offsets["A", 0] = first if number else 0
        of_life.append([builder.put(Message("A", body=b"life %d" % number)) for _ in range(messages)])
        for _ in range(3):
            builder.put(Message("B", body=b"other"))
    batch = {"attributes": {"queue.type": "BatchCQ"}} if kind == BATCH else {}
    topics = {"topicConfigTable": {"A": {"topicName": "A", **batch}, "B": {"topicName": "B"}}}
    store = builder.write(root, clean=clean, config={"topics.json": json.dumps(topics)} if kind == BATCH else None)
    entries = [record for number in held for record in of_life[number]]
    if kind == ROCKSDB:
        keyed = keyed_of(store, clean)
        keyed.entries = {key: entry for key, entry in keyed.entries.items() if key[0] == "B"}
        keyed.maxima = {key: end for key, end in keyed.maxima.items() if key[0] == "B"}
        mark = keyed.mark
        for record in entries:
            keyed.put(record)
        keyed.mark = mark
        keyed.write()
        return replace(store, broker_conf=keyed.broker_conf)
    shutil.rmtree(root / ("batchconsumequeue" if kind == BATCH else "consumequeue") / "A")
    queues = Dispatcher(builder.release, _SIZES, builder.batch_topics, index=False)
    for record in entries:
        queues.put(record)
    write_derived(root, queues)
    return store
