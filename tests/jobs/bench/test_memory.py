"""The most memory that a process has held."""

from __future__ import annotations

import sys

import pytest

from jobs.bench import memory


@pytest.mark.skipif(sys.platform != "linux", reason="no other system says it")
def test_the_peak_is_of_what_was_held_since_it_was_reset() -> None:
    before = memory.reset_peak()
    held = bytearray(b"x" * (64 << 20))
    del held
    peak = memory.peak_bytes()
    assert before is not None and peak is not None and peak > before + (60 << 20)
    assert (memory.reset_peak() or 0) < peak - (30 << 20) and (memory.peak_bytes() or 0) < peak - (30 << 20)


def test_where_the_system_does_not_say_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_RESET", "/nowhere/at/all")
    monkeypatch.setattr(memory, "_STATUS", "/nowhere/at/all")
    assert memory.reset_peak() is None and memory.peak_bytes() is None
