"""Single faults are healed to what was written, larger damage is not touched: on records of many forms, at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from store_io.audit.healing.changes import DEFAULT_RISK
from tests.support.answers.healing import CONTIGUOUS, Damaged, healed, random_damage, varied_store
from tests.support.stores import builders
from tests.support.stores.builders import Record

FIXED = ("size", "magic", "bodyCRC", "physOffset", "bodyLength")


def single_faults(at: random.Random, record: Record) -> Iterator[tuple[str, int, int]]:
    """(kind, byte of the record, mask): one wrong bit or byte where the rest of the store shows it."""
    for name in FIXED:
        place, size = builders.field_position(record, name)
        if name != "bodyCRC" or record.body:
            yield name, place + at.randrange(size), 1 << at.randrange(8)
            yield name, place + at.randrange(size), at.randrange(1, 256)
    body = builders.field_position(record, "bodyLength")[0] + 4
    if record.body:
        yield "body", body + at.randrange(len(record.body)), 1 << at.randrange(8)
        yield "body", body + at.randrange(len(record.body)), at.randrange(1, 256)
    topic = body + len(record.body)
    yield "topicLength", topic, at.randrange(1, 256)
    yield "propertiesLength", topic + 1 + len(record.topic) + at.randrange(2), at.randrange(1, 256)


def count_damage(folder: Path, seed: int, number: int, property_crc: bool) -> Counter[str]:
    """What becomes of so many damages of more than one byte.

    "wrong": a change is made that does not put back what was there. "partly": each change is right, and other wrong bytes stay
    in the record, where no check sees them; by kind. "whole": the record is as it was, as all but one wrong byte lie in others.
    """
    damaged, at = Damaged(varied_store(folder, seed, property_crc=property_crc)), random.Random(seed)
    records = {n: damaged.records(n) for n in range(len(damaged.tasks)) if damaged.records(n)}
    found: Counter[str] = Counter()
    while found["damages"] < number:
        segment = at.choice(list(records))
        record, sound = at.choice(records[segment]), damaged.bytes[segment]
        start = record.at - damaged.tasks[segment].base_offset
        kind, data = random_damage(at, sound, start, start + record.size)
        wrong = [i for i, (a, b) in enumerate(zip(data, sound, strict=True)) if a != b]
        if len(wrong) < 2:
            continue
        found.update(["damages", kind])
        for healing in (h for h in damaged.search(segment, data) if h.heals):
            assert healing.change is not None
            made, change = healed(data, [healing]), healing.change
            right = made[change.position : change.position + len(change.new)] == sound[change.position :][: len(change.new)]
            left = any(made[i] != sound[i] for i in wrong if healing.start <= i < healing.end)
            found["wrong" if not right else f"partly {kind}" if left else "whole"] += 1
    return found


def test_single_faults_become_what_was_written(tmp_path: Path) -> None:
    damaged, at, found = Damaged(varied_store(tmp_path, 7, count=9)), random.Random(7), Counter[str]()
    for number, task in enumerate(damaged.tasks):
        for record in damaged.records(number):
            for kind, place, mask in single_faults(at, record):
                data = bytearray(damaged.bytes[number])
                data[record.at - task.base_offset + place] ^= mask
                healings = damaged.search(number, bytes(data))
                changed = healed(bytes(data), healings)
                assert changed == damaged.bytes[number] or not any(h.heals for h in healings), (kind, place, mask)
                found[kind, changed == damaged.bytes[number]] += 1  # type: ignore[index]
    kinds = {*FIXED, "body", "topicLength", "propertiesLength"}
    assert {kind for kind, right in found if right} == kinds  # type: ignore[misc]
    assert sum(count for (_, right), count in found.items() if not right) <= 2, found  # type: ignore[misc]  # a last record, as if torn


def test_a_few_random_damages_are_left_alone(tmp_path: Path) -> None:
    found = count_damage(tmp_path, 11, 40, property_crc=False)
    assert not found["wrong"] and not any(found[f"partly {kind}"] for kind in CONTIGUOUS), found


@pytest.mark.soak
def test_the_false_rate_over_100_000_random_damages(tmp_path: Path) -> None:
    """The figures of heal.md."""
    plain: Counter[str] = Counter()
    for seed in range(8):
        plain += count_damage(tmp_path / f"plain{seed}", seed, 10_000, property_crc=False)
    with_crc: Counter[str] = Counter()
    for seed in range(2):
        with_crc += count_damage(tmp_path / f"crc{seed}", seed, 10_000, property_crc=True)
    print(f"without a property CRC: {dict(plain)}\nwith one: {dict(with_crc)}")
    assert plain["damages"] + with_crc["damages"] == 100_000
    assert plain["wrong"] + with_crc["wrong"] < DEFAULT_RISK * 100_000
    assert sum(plain[f"partly {kind}"] for kind in CONTIGUOUS) < 50
    assert not any(with_crc[f"partly {kind}"] for kind in CONTIGUOUS)
