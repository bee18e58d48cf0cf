"""The most memory that a process has held."""

from __future__ import annotations

import sys

import pytest

from dev import this_machine


@pytest.mark.skipif(sys.platform != "linux", reason="no other system says it")
def test_the_peak_is_of_what_was_held_since_it_was_reset() -> None:
    before = this_machine.reset_peak()
    held = bytearray(b"x" * (64 << 20))
    del held
    peak = this_machine.peak_bytes()
    assert before is not None and peak is not None and peak > before + (60 << 20)
    assert (this_machine.reset_peak() or 0) < peak - (30 << 20) and (this_machine.peak_bytes() or 0) < peak - (30 << 20)


def test_where_the_system_does_not_say_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(this_machine, "_RESET", "/nowhere/at/all")
    monkeypatch.setattr(this_machine, "_STATUS", "/nowhere/at/all")
    assert this_machine.reset_peak() is None and this_machine.peak_bytes() is None
