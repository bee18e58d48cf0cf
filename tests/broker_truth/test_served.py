"""What real brokers served from the corpus's stores, by queue and by key, is what the broker's view gives."""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from store_io.messages.served.broker_view import SERVED, BrokerView, Served
from tests.support.answers.product import Audited
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

PULL = 16  # messages that the recording consumer asked for at a time
KEYED = 64
CASES = [case for case in corpus_tools.plain_cases() if case.expected.get("served")]
MANY_KEYS, MANY_KEYS_SOAK = 1200, 1800  # stores with more are served by queue only here


def line(root: Path, one: Served) -> str:
    """As the README of the corpus shapes it; the body's checksum is counted here, from the file."""
    assert one.message is not None and one.file is not None
    m = one.message
    with open(root / one.file, "rb") as file:
        file.seek(one.position + m.body_position)
        crc = zlib.crc32(file.read(max(0, m.body_length))) & 0x7FFFFFFF
    return f"{one.topic}|{one.queue_id}|{m.queue_offset}|{m.phy_offset}|{m.body_crc}|{crc}|{m.total_size}\n"


def asked_for(case: Case) -> int:
    return int(case.expected["served"]["keyHits"] + case.expected["served"]["keyMisses"])


SERVED_CASES = [pytest.param(case, MANY_KEYS, id=case.name) for case in CASES] + [
    pytest.param(case, MANY_KEYS_SOAK, id=f"{case.name}-by-key", marks=pytest.mark.soak)
    for case in CASES
    if MANY_KEYS < asked_for(case) <= MANY_KEYS_SOAK
]


@pytest.mark.parametrize(("case", "most_keys"), SERVED_CASES)
def test_served_by_queue_and_by_key(case: Case, most_keys: int, audited: Callable[[Case], Audited]) -> None:
    audit, recorded = audited(case), case.expected["served"]
    lines: dict[str, list[str]] = defaultdict(list)
    hits = misses = full = 0
    with BrokerView(audit.audit, PULL) as view:
        queues = view.queues()
        for one in view.read([(key, 0, 1 << 62) for key in queues]):
            if one.status != SERVED or one.message is None:
                continue
            lines[f"{one.topic}-{one.queue_id}"].append(line(audit.root, one))
            if asked_for(case) > most_keys:
                continue
            properties = one.message.properties
            keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
            for key in keys + [key for key in properties.get("KEYS", "").split(" ") if key]:
                found = [answer.phy_offset for answer in view.by_key(one.message.topic, key, KEYED)]
                hits += one.phy_offset in found
                full += one.phy_offset not in found and len(found) >= KEYED
                misses += one.phy_offset not in found and len(found) < KEYED
    for name, queue in recorded["queues"].items():
        topic, _, queue_id = name.rpartition("-")
        assert queues.get((topic, int(queue_id)), (0, 0)) == (queue["min"], queue["max"]), name
        assert hashlib.sha256("".join(lines[name]).encode()).hexdigest() == queue["sha256"], (name, lines[name][:3])
    assert sum(map(len, lines.values())) == recorded["served"]
    if asked_for(case) <= most_keys:
        assert (hits, misses, full) == (recorded["keyHits"], recorded["keyMisses"], recorded["keyAnswersFull"])
