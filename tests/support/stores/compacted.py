"""The logs of compacted topics, written byte by byte into a built store: a second witness of their form.

As CompactionLog puts them: of each queue the records with KEYS, each with its place in this log as physical offset, and a
46-byte entry in a file of the same name. `ENTRIES_FILE` and `LOG_FILE` are the lengths of the files.
Source: CompactionLog, SparseConsumeQueue and BatchConsumeQueue, 5.1.4 to 5.5.0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder, encode, write_sparse

TOPIC = "Compacted"
ENTRIES_FILE, LOG_FILE = 46 * 8, 46 * 8 * 6
SETTINGS = {"compactionCqMappedFileSize": str(ENTRIES_FILE + 5), "compactionMappedFileSize": str(LOG_FILE - ENTRIES_FILE)}
TOPICS_JSON = json.dumps(
    {
        "topicConfigTable": {
            TOPIC: {"topicName": TOPIC, "attributes": {"cleanup.policy": "COMPACTION"}},
            "Plain": {"topicName": "Plain"},
        }
    }
)
END = struct.pack(">qiqqqhii", -1, 0, 0, 0, 0, 0, -1, 0)


@dataclass
class CompactedFiles:
    """One queue's files by name, without the zeros at their ends. placed: where each record is, in order."""

    log: dict[int, bytes]
    entries: dict[int, bytes]
    placed: list[tuple[int, Record]]


def put_all(records: list[Record]) -> CompactedFiles:
    """What dispatch puts into one queue's log."""
    files = CompactedFiles({}, {}, [])
    start = 0
    for record in records:
        if not files.log:
            files.log[start] = files.entries[start] = b""
        room = LOG_FILE - len(files.log[start])
        if len(files.entries[start]) + 46 >= ENTRIES_FILE or record.size + 8 > room:
            files.log[start] += struct.pack(">iI", room, builders.BLANK)
            files.entries[start] += END
            start += LOG_FILE
            files.log[start] = files.entries[start] = b""
        at = start + len(files.log[start])
        files.placed.append((at, record))
        files.log[start] += encode(replace(record, phy_offset=at))
        files.entries[start] += entry_of(record, at)
    return files


def entry_of(record: Record, at: int) -> bytes:
    tags = builders.tags_code(record)
    return struct.pack(">qiqqqhii", at, record.size, tags, record.store_time, record.queue_offset, 1, -1, 0)


def folders(root: Path, queue_id: int = 0) -> tuple[Path, Path]:
    """Of the log, and of the entries."""
    compaction = root / "compaction"
    return compaction / "compactionLog" / TOPIC / str(queue_id), compaction / "compactionCq" / TOPIC / str(queue_id)


def write_logs(store: Store, put: Callable[[Record], bool] = lambda record: True) -> dict[int, CompactedFiles]:
    """Write the logs of all queues of the topic. put: which of the records with keys are in them."""
    made = {}
    for queue_id in sorted({r.queue_id for r in store.records if r.topic == TOPIC}):
        own = [r for r in store.records if (r.topic, r.queue_id) == (TOPIC, queue_id)]
        made[queue_id] = put_all([r for r in own if r.properties.get("KEYS", "").strip() and put(r)])
        for folder, data, size in zip(
            folders(store.root, queue_id), (made[queue_id].log, made[queue_id].entries), (LOG_FILE, ENTRIES_FILE), strict=True
        ):
            for start, content in data.items():
                write_sparse(folder / f"{start:020d}", content, size)
    return made


def build(root: Path, release: str = "5.3.3", clean: bool = True, messages: int = 60) -> Store:
    """A store with messages of a compacted topic, two queues, and of another topic; no logs yet."""
    builder = StoreBuilder(release, Sizes(segment=8192, queue_file=2000, slots=10, index_max=100), settings=dict(SETTINGS))
    for n in range(messages):
        topic = "Plain" if n % 9 == 8 else TOPIC
        builder.put(Message(topic, n % 2, b"value %d" % n, tags="t" if n % 4 else None, keys=f"k{n % 7}" if n % 5 else None))
    return builder.write(root, clean=clean, config={"topics.json": TOPICS_JSON})
