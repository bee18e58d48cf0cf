"""Units against their messages."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.timers import DELETE, ROLL, timer_store


@pytest.mark.parametrize(
    ("number", "at", "form", "value", "said"),
    [
        (0, 36, ">i", 5, "size"),  # of the message with which the log begins
        (7, 28, ">q", 3, "a timer message at physical offset 3"),
        (7, 36, ">i", 5, "size"),
        (7, 40, ">i", 5, "topic hash"),
        (7, 24, ">i", 3_607_000, "time"),
        (7, 12, ">i", 1 | DELETE, "the mark of a message that deletes"),
    ],
)
def test_each_field(tmp_path: Path, number: int, at: int, form: str, value: int, said: str) -> None:
    made = timer_store(tmp_path / "store")
    path = made.root / "timerlog" / f"{0:020d}"
    overwrite(path, 52 * number + at, struct.pack(form, value))
    found = [f for f in product.audit(made.root, "5.3.3", made.conf).findings if f.code == "timer_unit_wrong"]
    assert any(said in (f.expected or "") for f in found)
    assert all(
        (f.file, f.start, f.end) == (f"timerlog/{0:020d}", 52 * number, 52 * (number + 1))
        for f in found
        if said in (f.expected or "")
    )


def test_a_rolled_unit_comes_before_its_messages_time(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    record = made.waiting[-1]
    timers = made.timers
    for path in (made.root / "timerlog").iterdir():
        path.unlink()
    (made.root / "timerlog").rmdir()
    timers.enqueue(record, 1_700_000_900_000, 1_700_000_000_000, 1 | ROLL)
    timers.write(made.root)
    assert not product.audit(made.root, "5.3.3", made.conf).above_note
