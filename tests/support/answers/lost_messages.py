"""Which messages of a store a start would lose, by the product; and what it keeps, in the form of a broker's recorded answers."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schemas.rows import QueueKey
from store_io.messages.lost.lost_places import lost_places
from store_io.messages.message_rows import scan_messages
from store_io.messages.scans import MessageScan
from tests.support import damage
from tests.support.answers.product import Audited
from tests.support.stores.builders import Message, StoreBuilder

COLUMNS = ("phy_offset", "topic", "queue_id", "queue_offset", "total_size", "transaction", "body_crc", "body", "lost")
Row = dict[str, Any]


def damaged_store(root: Path) -> tuple[Path, str, list[int]]:
    """(root, broker.conf, physical offsets) of twenty messages, the twelfth damaged."""
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message("T", body=b"body %02d" % n * 9)) for n in range(20)]
    made = builder.write(root)
    damage.flip_in(made, records[11], "body")
    return made.root, made.broker_conf, [r.at for r in records]


def rows_of(done: Audited, **more: Any) -> list[Row]:
    """All messages of the store, or with only_lost those alone that a start would lose, each with what becomes of it."""
    audit, found = done.audit, list[Row]()
    places = lost_places(audit)
    for file in sorted(audit.segment_files, key=lambda f: (f.start, f.path)):
        scan = MessageScan(audit.request.location, file.path, file.start, file.size, COLUMNS, rules=audit.rules, **more)
        for batch in scan_messages(MessageScan(**{**scan.__dict__, "loss": places.of(file.path)})):
            found += batch.to_pylist()
    return found


def losses(done: Audited) -> Counter[str]:
    """How many messages are lost, and how."""
    return Counter(row["lost"] for row in rows_of(done, only_lost=True, unpack=True))


def planned(done: Audited) -> tuple[int, int]:
    """(messages, timer messages) that the plan counts."""
    assert done.broker is not None
    timer = (done.broker["timer"] or {}).get("lost") or {}
    return done.broker["lost"]["messages"], timer.get("messages", 0)


def kept_queues(done: Audited) -> Mapping[QueueKey, list[Row]]:
    """The messages of each queue that a start keeps, by queue offset."""
    found: dict[QueueKey, list[Row]] = defaultdict(list)
    for row in rows_of(done):
        if row["lost"] in (None, "undelivered") and row["transaction"] not in ("prepared", "rollback"):
            found[row["topic"], row["queue_id"]].append(row)
    return {key: sorted(rows, key=lambda row: row["queue_offset"]) for key, rows in found.items()}


def digest(key: QueueKey, rows: list[Row]) -> str:
    """As recorded of a queue that a broker served (`served` in a case's expected.json)."""
    lines = (
        f"{key[0]}|{key[1]}|{row['queue_offset']}|{row['phy_offset']}|{row['body_crc']}|"
        f"{zlib.crc32(row['body']) & 0x7FFFFFFF}|{row['total_size']}\n"
        for row in rows
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()
