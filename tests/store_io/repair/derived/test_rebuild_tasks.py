"""Entries written from messages."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.answers.repaired import Served, plan_of, previewed, repaired
from tests.support.answers.repaired import numbers as numbers_of
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES

BASES = [(-5, 3), (-(2**63), 3), (7, 0), (7, -3)]
ODD_BATCHES = [
    pytest.param(policy, place, base, count, marks=() if (number + at) % 4 == 0 else pytest.mark.soak)
    for number, (base, count) in enumerate(BASES)
    for at, (place, policy) in enumerate((place, policy) for policy in ("broker", "salvage") for place in (0, 20, 40))
]


@pytest.mark.parametrize(("policy", "place", "base", "count"), ODD_BATCHES)
def test_a_batch_that_no_entry_can_lead_to(base: int, count: int, place: int, policy: str, tmp_path: Path) -> None:
    """With a base below 0, or without messages: a broker's reading of the queue ends at its entry, so it gets none."""
    builder = StoreBuilder("5.3.3", SIZES, batch_topics={"Batch"})
    records = []
    for number in range(41):
        numbers = (("INNER_NUM", str(count)), ("INNER_BASE", str(base))) if number == place else ()
        name, inner = ("Batch", 0 if numbers else 3) if number % 2 == 0 else ("TopicA", 0)
        records.append(builder.put(Message(name, 0, b"x" * 40, uniq=f"{number:032X}", properties=numbers, inner_count=inner)))
    store, odd = builder.write(tmp_path / "store"), records[place]
    plan = plan_of(store.root, "5.3.3", store.broker_conf)
    dry = previewed(store.root, tmp_path / "new", plan, policy)
    outcome = repaired(store.root, tmp_path / "new", plan, policy)
    assert outcome.exit_code == 0, outcome.report.problems
    assert numbers_of(dry) == outcome.report
    assert [row.phy_offset for row in outcome.report.unserved] in ([odd.at], [])
    led_to = []
    for file in sorted((tmp_path / "new" / "batchconsumequeue" / "Batch" / "0").glob("*")):
        data = file.read_bytes()
        led_to += [struct.unpack_from(">q", data, at)[0] for at in range(0, len(data), 46) if any(data[at : at + 46])]
    batches = [r.at for r in Served(tmp_path / "new", SIZES.segment).records() if r.topic == "Batch"]
    assert led_to == [at for at in batches if at != odd.at] and odd.at in batches
