"""A fleet of small stores, and a task that ends the process that begins it."""

from __future__ import annotations

import os
import signal
from dataclasses import fields
from pathlib import Path
from typing import Any

from jobs.cli.stores import StoreArgument
from store_io.log.scan.segment_scan import SegmentTask
from tests.support.stores.builders import Message, Sizes, StoreBuilder

STORES = 4


class Deadly(SegmentTask):
    """A scan that ends the process that begins it, unless that is the driver; `lives` times, -1: always."""

    driver: int
    marks: str
    lives: int

    def __getattribute__(self, name: str) -> Any:
        if name == "location" and os.getpid() != self.driver:
            seen = len(os.listdir(self.marks))
            if self.lives < 0 or seen < self.lives:
                Path(self.marks, str(seen)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def deadly(task: SegmentTask, marks: Path, lives: int) -> Deadly:
    made = Deadly(**{field.name: getattr(task, field.name) for field in fields(task)})
    for name, value in (("driver", os.getpid()), ("marks", str(marks)), ("lives", lives)):
        object.__setattr__(made, name, value)
    return made


def fleet(tmp_path: Path) -> tuple[StoreArgument, ...]:
    found = []
    for number in range(STORES):
        builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=200))
        for message in range(40):
            builder.put(Message(queue_id=message % 3, body=b"%04d" % message * 10, uniq=f"u{message}"))
        store = builder.write(tmp_path / f"store-{number}")
        found.append(StoreArgument(f"store-{number}", str(store.root), "5.3.3", store.broker_conf))
    return tuple(found)
