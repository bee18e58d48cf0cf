"""Random undamaged stores in which messages wait, and a start: its moment, disk and settings. Imports nothing of the product."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

from tests.support.stores import timers
from tests.support.stores.builders import HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC, Message, Sizes, Store, StoreBuilder, version_of

RELEASES = ("4.8.0", "4.9.1", "4.9.2", "4.9.8", "5.0.0", "5.1.0", "5.1.1", "5.3.2", "5.3.3", "5.5.0")
HOUR = 3_600_000
SIZES = Sizes(segment=2048, queue_file=2000, slots=10, index_max=300)
GROUP = "CID_RMQ_SYS_TRANS"


@dataclass
class RandomDay:
    """conf: broker.conf. at: ms of the start; used, size: percent and bytes of the disk, None if not known."""

    store: Store
    release: str
    conf: str
    at: int
    zone: str
    used: float | None
    size: int | None
    has_timers: bool


def random_day(root: Path, rng: random.Random) -> RandomDay:
    """Write a random store under `root`."""
    release = rng.choice(RELEASES)
    builder = StoreBuilder(release, SIZES)
    wheel = timers.Timers() if version_of(release) >= (5,) and rng.random() < 0.5 else None
    step = rng.choice([10, 1000, 60_000, HOUR // 4])
    halves = operations = 0
    quiet = wheel is None and rng.random() < 0.2  # nothing waits
    for number in range(rng.choice([20, 60, 120, 250])):
        builder.clock += rng.randrange(2 * step)
        born = builder.clock - rng.choice([0, 5, 70 * HOUR, 73 * HOUR])
        kind = 1 if quiet else rng.random()
        if kind < 0.35:
            halves += 1
            builder.put(Message(HALF_TOPIC, uniq=f"U{number}", born_time=born, properties=_half(rng)))
        elif kind < 0.6 and halves:
            operations += 1
            builder.put(_operation(rng, release, halves, born))
        elif kind < 0.75:
            level = rng.choice([1, 3, 10, 17, 18])
            body = b"" if rng.random() < 0.1 else b"delayed"
            builder.put(Message(SCHEDULE_TOPIC, level - 1, body, properties=(("DELAY", str(level)), ("REAL_TOPIC", "orders"))))
        elif kind < 0.9 and wheel is not None:
            _timer(rng, builder, wheel, number)
        else:
            builder.put(Message("orders", number % 2, b"x" * rng.choice([0, 10, 300])))
    config = {}
    if rng.random() < 0.7:
        ends = ((HALF_TOPIC, halves), (OP_TOPIC, operations))
        table = {f"{topic}@{GROUP}": {"0": rng.choice([0, count // 2, count])} for topic, count in ends}
        config["consumerOffset.json"] = json.dumps({"offsetTable": table})
    if rng.random() < 0.7:
        counts = {level: builder.next_offsets.get((SCHEDULE_TOPIC, level - 1), 0) for level in (1, 3, 10, 17, 18)}
        table = {str(level): rng.choice([0, count // 3]) for level, count in counts.items()}
        config["delayOffset.json"] = json.dumps({"offsetTable": table})
    store = builder.write(root, config=config)
    if wheel is not None:
        wheel.write(root)
    near, far = [-HOUR, 5000, HOUR, 70 * HOUR, 72 * HOUR, 100 * HOUR], [168 * HOUR, 169 * HOUR, 192 * HOUR, 340 * HOUR]
    at = builder.clock + rng.choice(far if wheel is not None and rng.random() < 0.6 else near)
    at += rng.randrange(HOUR)
    at -= max(0, at % HOUR - 50 * 60_000)  # no hour ends within minutes of the start
    _set_times(rng, root, at)
    size = rng.choice([None, 4, 30]) if rng.random() < 0.6 else None
    return RandomDay(
        store,
        release,
        f"{store.broker_conf}\n{_settings(rng, at)}"
        + (f"mappedFileSizeTimerLog={wheel.file_bytes}\n" if wheel is not None else ""),
        at,
        rng.choice(["UTC", "Asia/Shanghai", "America/New_York"]),
        rng.choice([None, round(rng.uniform(40, 99.9), 2), 75.0, 75.01, 85.0, 85.5, 90.0]),
        None if size is None else size * len(builder.segments) * SIZES.segment,
        wheel is not None,
    )


def _half(rng: random.Random) -> tuple[tuple[str, str], ...]:
    found = [("REAL_TOPIC", "orders"), ("REAL_QID", "0")]
    if rng.random() < 0.3:
        found.append(("TRANSACTION_CHECK_TIMES", rng.choice(["1", "2", "3", "14", "15", "16", "x", ""])))
    if rng.random() < 0.1:
        found.append(("CHECK_IMMUNITY_TIME_IN_SECONDS", rng.choice(["1", "600", "900000"])))
    return tuple(found)


def _operation(rng: random.Random, release: str, halves: int, born: int) -> Message:
    count = rng.choice([1, 1, 2, 5]) if version_of(release) >= (5, 1, 0) else 1
    numbers = [rng.randrange(halves) for _ in range(count)]
    text = "".join(f"{n}," for n in numbers) if version_of(release) >= (5, 1, 0) else str(numbers[0])
    return Message(OP_TOPIC, body=text.encode(), tags=rng.choice(["d", "d", "d", "d", "x"]), born_time=born)


def _timer(rng: random.Random, builder: StoreBuilder, wheel: timers.Timers, number: int) -> None:
    """Put a timer message; most of them stand in the wheel, before those that do not."""
    due = (builder.clock // 1000 + rng.choice([60, 3600, 86_400, 7 * 86_400])) * 1000
    record = builder.put(timers.message(number, due))
    if wheel.queue_offset == record.queue_offset and rng.random() < 0.95:
        wheel.enqueue(record, due, builder.clock // 1000 * 1000)
        wheel.queue_offset += 1


def _set_times(rng: random.Random, root: Path, at: int) -> None:
    ages = [rng.choice([0.5, 40, 47.9, 71.9, 72.1, 90, 101, 300]) for _ in (root / "commitlog").iterdir()]
    if rng.random() < 0.7:
        ages.sort(reverse=True)
    for path, hours in zip(sorted((root / "commitlog").iterdir()), ages, strict=True):
        os.utime(path, ((at - int(hours * HOUR)) / 1000,) * 2)


def _settings(rng: random.Random, at: int) -> str:
    hour = at // HOUR % 24
    choices = {
        "fileReservedTime": [48, 1, 100, 72],
        "deleteWhen": ["04", "00;12", f"{hour:02d}", f"{(hour + 1) % 24:02d}", f"{hour};{(hour + 13) % 24}"],
        "diskMaxUsedSpaceRatio": [95, 60, 5, 99],
        "cleanFileForciblyEnable": ["false", "true"],
        "deleteFileBatchMax": [3, 0, 100],
        "diskSpaceCleanForciblyRatio": [70, 95, 20],
        "transactionCheckMax": [3, 2],
        "transactionTimeOut": [3000, 4_000_000],
        "transactionCheckInterval": [4000, 120_000],
    }
    return "".join(f"{key}={rng.choice(values)}\n" for key, values in choices.items() if rng.random() < 0.4)
