"""The progress line: what it says, where it is drawn, and that it is gone afterwards."""

from __future__ import annotations

import io
import json
import threading

import pytest

from jobs.tasks.progress import Progress, progress_line
from tests.support.processes.children import PATIENCE_SECONDS


def test_what_the_line_says() -> None:
    assert progress_line("reading", 0, 0, 0, 0, 0.0) == "reading"
    assert progress_line("reading", 0, 2_000_000_000, 0, 2, 0.0) == "reading, 0 %, 0 of 2 segments, 0 B of 2 GB"
    line = progress_line("reading", 500_000_000, 2_000_000_000, 1, 2, 1e8)
    assert line == "reading, 25 %, 1 of 2 segments, 500 MB of 2 GB, 100 MB/s, 15 s left"
    assert progress_line("reading", 3, 2, 1, 1, 1.0) == "reading, 100 %, 1 of 1 segment, 3 B of 2 B, 1 B/s"


class Seen(io.StringIO):
    """A stream that tells when a text was written to it."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self._awaited, self.there = awaited, threading.Event()

    def write(self, text: str) -> int:
        if self._awaited in text:
            self.there.set()
        return super().write(text)


def test_it_draws_while_work_goes_on_and_leaves_an_empty_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.tasks.progress._INTERVAL_SECONDS", 0.01)
    stream = Seen("30 %")
    done = (10, 1)
    with Progress(stream, lambda: done) as progress:
        progress.expect("reading", 100, 4)
        done = (30, 2)
        assert stream.there.wait(PATIENCE_SECONDS)
    text = stream.getvalue()
    assert "reading, 30 %, 2 of 4 segments, 30 B of 100 B" in text
    assert text.endswith("\r\x1b[2K") and "\n" not in text


def test_nothing_is_drawn_without_a_stream() -> None:
    with Progress(None, lambda: (1, 0)) as progress:
        progress.expect("reading", 100, 4)
    assert progress.done() == (1, 0)


def test_an_interrupt_passes_and_the_line_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.tasks.progress._INTERVAL_SECONDS", 0.01)
    stream = Seen("starting")
    with pytest.raises(KeyboardInterrupt), Progress(stream):
        assert stream.there.wait(PATIENCE_SECONDS)
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_a_terminal_that_went_away_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.tasks.progress._INTERVAL_SECONDS", 0.01)
    stream = Seen("starting")
    with Progress(stream):
        stream.close()
        assert stream.there.wait(PATIENCE_SECONDS)


def test_objects_for_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.tasks.progress._JSON_SECONDS", 0.01)
    stream = Seen('"bytes": 30')
    done = (10, 1)
    with Progress(stream, lambda: done, as_json=True) as progress:
        progress.expect("reading", 100, 4)
        done = (30, 2)
        assert stream.there.wait(PATIENCE_SECONDS)
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    keys = "phase seconds segments segments_expected bytes bytes_expected bytes_per_second seconds_left".split()
    assert [*rows[0]] == keys and rows[-1]["phase"] == "done" and rows[-1]["seconds_left"] == 0
    assert {row["phase"] for row in rows[1:-1]} == {"reading"}
    assert (rows[-1]["segments"], rows[-1]["segments_expected"], rows[-1]["bytes"], rows[-1]["bytes_expected"]) == (2, 4, 30, 100)
    with pytest.raises(KeyboardInterrupt), Progress(last := io.StringIO(), as_json=True):
        raise KeyboardInterrupt
    assert json.loads(last.getvalue().splitlines()[-1])["phase"] == "stopped"
