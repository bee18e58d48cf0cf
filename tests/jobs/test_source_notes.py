"""What a source says while Spark plans it reaches the driver's terminal, once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.spark_sources import notes
from jobs.spark_sources.notes import Listener, say

SENTENCES = ["No release was named", "hostile\x1b[31m\u202e", "No release was named"]
SHOWN = ["No release was named", "hostile\\x1b[31m\\u202e"]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a socket: its path may have about 100 bytes."""
    monkeypatch.setattr(notes, "_said", set())
    with tempfile.TemporaryDirectory(prefix="notes-") as folder:
        yield str(Path(folder, "notes"))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_driver_prints_what_another_process_says_once(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = Listener(place)
    monkeypatch.setenv(notes.PLACE, place)
    for _ in range(3):  # Spark plans anew for each query
        say(SENTENCES)
    listener.close()
    assert lines(capsys) == SHOWN
    listener.close()


def test_what_the_driver_has_said_is_not_said_again(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    say(SENTENCES)
    assert lines(capsys) == SHOWN
    listener = Listener(place)
    monkeypatch.setenv(notes.PLACE, place)
    say([*SENTENCES, "new"])
    listener.close()
    assert lines(capsys) == ["new"]


def test_it_is_printed_here_where_nobody_listens(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(notes.PLACE, place)
    say(SENTENCES)
    assert lines(capsys) == SHOWN
    Listener(place + "/no/folder").close()
