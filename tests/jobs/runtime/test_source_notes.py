"""What a source says while Spark plans it reaches the driver's terminal, once."""

from __future__ import annotations

import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.runtime import source_notes
from jobs.runtime.session import Session
from jobs.runtime.source_notes import Listener, say

SENTENCES = ["No release was named", "hostile\x1b[31m\u202e", "No release was named"]
SHOWN = ["No release was named", "hostile\\x1b[31m\\u202e"]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a socket: its path may have about 100 bytes."""
    monkeypatch.setattr(source_notes, "_said", set())
    with tempfile.TemporaryDirectory(prefix="notes-") as folder:
        yield str(Path(folder, "notes"))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_driver_prints_what_another_process_says_once(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = Listener(place)
    monkeypatch.setenv(source_notes.PLACE, place)
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
    monkeypatch.setenv(source_notes.PLACE, place)
    say([*SENTENCES, "new"])
    listener.close()
    assert lines(capsys) == ["new"]


def test_it_is_printed_here_where_nobody_listens(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(source_notes.PLACE, place)
    say(SENTENCES)
    assert lines(capsys) == SHOWN
    say(SENTENCES)  # the next load of the same script
    assert lines(capsys) == []
    Listener(place + "/no/folder").close()


def test_a_reader_of_standard_error_that_has_ended_ends_no_listener(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    def write(text: str) -> None:
        printed.append(text)
        if len(printed) == 1:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=write, flush=lambda: None))
    listener = Listener(place)
    monkeypatch.setenv(source_notes.PLACE, place)
    say(["first", "second"])
    listener.close()
    assert "second" in printed


def test_a_listener_that_does_not_read_holds_nobody_up(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(source_notes.PLACE, place)
    monkeypatch.setattr(source_notes, "_PATIENCE", 0.001)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.bind(place)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line, pytest.raises(BlockingIOError):
            line.setblocking(False)
            while True:
                line.sendto(b"waits", place)
        say(["said here"])
    assert lines(capsys) == ["said here"]


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_session_prints_all_before_the_folder_of_the_socket_goes(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupted: bool
) -> None:
    jvm = SimpleNamespace(process=None, end=lambda *_: Path(place).unlink())
    session = Session(cast(Any, SimpleNamespace(_accumulatorServer=SimpleNamespace(), master="")), cast(Any, jvm), None)
    session._listener = Listener(place)
    monkeypatch.setattr("jobs.runtime.session._forget", lambda *_: None)
    monkeypatch.setenv(source_notes.PLACE, place)
    say(SENTENCES)
    session.__exit__(KeyboardInterrupt if interrupted else None, None, None)
    assert lines(capsys) == SHOWN and session._listener._line is None
    assert not session._listener._thread.is_alive(), "it was asked to end where its socket still was"
