"""Progress while Spark runs: segments, bytes, rate, time left. One line that redraws itself on a terminal, nothing elsewhere.

Tasks report through three Spark accumulators, whose values arrive in the driver with each finished task; a thread reads them.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TextIO

from pyspark.accumulators import AccumulatorParam

from jobs.cli.terminal import clear_line
from jobs.report.texts.text import printable, seconds_text
from store_io.base.wording import bytes_text, count_text

_INTERVAL_SECONDS = 0.2
_JSON_SECONDS = 1.0
_FEW = 3  # stores that others wait for


class Progress:
    """The progress of a run. Use it as a context manager around the work: the line is gone when it ends, however it ends.

    stream: None draws nothing.
    counters: (bytes done, segments done), read at each drawing.
    as_json: a JSON object per line and second, and one at the end, for other programs.
    """

    def __init__(self, stream: TextIO | None, counters: Callable[[], tuple[int, int]] | None = None, as_json: bool = False):
        self._stream = stream
        self._json = as_json
        self._counters = counters
        self._total = (0, 0)
        self._what = "starting"
        self._began = time.monotonic()
        self._names: Sequence[str] = ()
        self._by_store: Counter[int] = Counter()  # bytes expected
        self._ended = 0
        self._drawing = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def expect(self, what: str, size_bytes: int, segments: int, by_store: Mapping[int, int] | None = None) -> None:
        """Take a word for the next work, and how much it adds.

        by_store: a store's number -> its bytes of that work.
        """
        self._what, self._total = what, (self._total[0] + size_bytes, self._total[1] + segments)
        self._by_store.update(by_store or {})

    def of_stores(self, names: Sequence[str]) -> None:
        """Take the stores of the run.

        If there are several, a line names each one that has ended, and those that keep it waiting.
        """
        self._names = names if len(names) > 1 else ()

    def taken_over(self, count: int) -> None:
        """Count stores that were finished before the run was killed."""
        self._ended += count
        if self._names and count:
            self._tell(f"{count} of {len(self._names)} stores taken over: they were finished before", {"taken_over": count})

    def ended(self, name: str, code: int, size_bytes: int, seconds: float) -> None:
        """Count a store that has ended. seconds: that its tasks took, one after the other."""
        self._ended += 1
        if not self._names:
            return
        rate = f", {bytes_text(int(size_bytes / seconds))}/s" if seconds > 0 else ""
        told = f"{self._ended} of {len(self._names)}: {printable(name)}: code {code}, {bytes_text(size_bytes)}{rate}"
        self._tell(told, {"store": name, "code": code, "bytes": size_bytes, "task_seconds": round(seconds, 3)})

    def say(self, sentence: str) -> None:
        """Print a line that stays."""
        self._tell(sentence, {"said": sentence})

    def warn(self, sentence: str) -> None:
        """Write a line that stays. If nobody asked for progress, it goes to standard error."""
        if self._stream is not None:
            self._tell(f"warning: {sentence}", {"warning": sentence})
        else:
            print(f"warning: {sentence}", file=sys.stderr, flush=True)

    def _tell(self, line: str, row: dict[str, Any]) -> None:
        if self._stream is not None:
            self._write(json.dumps({"phase": "store", **row}) + "\n" if self._json else f"{clear_line()}{line}\n")

    def _waiting(self) -> str:
        """Return the few stores that all others wait for. "" while there are many, or as long as no store has ended."""
        if len(self._by_store) <= _FEW or not isinstance(self._counters, SparkCounters):
            return ""
        done = self._counters.by_store()
        left = [number for number, size in self._by_store.items() if done.get(number, 0) < size]
        if not 0 < len(left) <= _FEW:
            return ""
        return f", waiting for {', '.join(printable(self._names[n]) for n in sorted(left) if n < len(self._names))}"

    def done(self) -> tuple[int, int]:
        """Return (bytes, segments) so far."""
        return self._counters() if self._counters else (0, 0)

    def __enter__(self) -> Progress:
        if self._stream is not None:
            self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._write(self._json_line("stopped" if kind else "done") if self._json else clear_line())

    def _draw(self) -> None:
        if self._json:
            self._write(self._json_line())
            while not self._stop.wait(_JSON_SECONDS):
                self._write(self._json_line())
        while not self._stop.wait(_INTERVAL_SECONDS):
            size, segments = self.done()
            rate = size / (time.monotonic() - self._began)
            line = progress_line(self._what, size, self._total[0], segments, self._total[1], rate)
            self._write(clear_line() + line + self._waiting())

    def _json_line(self, phase: str = "") -> str:
        size, segments = self.done()
        total, total_segments = self._total
        seconds = time.monotonic() - self._began
        rate = size / seconds if seconds > 0 else 0.0
        left = None if phase or not rate else round(max(total - size, 0) / rate, 1)
        row = {
            "phase": phase or self._what,
            "seconds": round(seconds, 1),
            "segments": segments,
            "segments_expected": total_segments,
            "bytes": size,
            "bytes_expected": total,
            "bytes_per_second": round(rate),
            "seconds_left": 0.0 if phase == "done" else left,
        }
        return json.dumps(row) + "\n"

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            with self._drawing:
                self._stream.write(text)
                self._stream.flush()
        except (OSError, ValueError):
            self._stop.set()  # nobody looks any more


def progress_line(what: str, size: int, total: int, segments: int, total_segments: int, rate: float) -> str:
    """Return one line without its end. rate: bytes per second so far; 0: not known yet."""
    parts = [what]
    if total:
        parts.append(f"{min(100, 100 * size // total)} %")
    if total_segments:
        parts.append(f"{segments:,} of {count_text(total_segments, 'segment')}")
    if total:
        parts.append(f"{bytes_text(size)} of {bytes_text(total)}")
    if rate > 0:
        parts.append(f"{bytes_text(int(rate))}/s")
        if total > size:
            parts.append(f"{seconds_text((total - size) / rate)} left")
    return ", ".join(parts)


class SparkCounters:
    """Accumulators that tasks add to. Hand `report` into the task's closure; the object itself stays in the driver."""

    def __init__(self, context: Any):
        self._bytes = context.accumulator(0)
        self._segments = context.accumulator(0)
        self._by_store = context.accumulator({}, _Sums())

    def __call__(self) -> tuple[int, int]:
        """Return (bytes, segments) of the tasks that have ended."""
        return self._bytes.value, self._segments.value

    def by_store(self) -> dict[int, int]:
        """Return a store's number -> bytes of its tasks that have ended."""
        return dict(self._by_store.value)

    @property
    def report(self) -> Callable[..., None]:
        """Return the function that a task calls with (bytes, segments) that it has done.

        In an audit it also gives the number of its store.
        """
        sizes, segments, by_store = self._bytes, self._segments, self._by_store

        def report(size_bytes: int, segment_count: int, store: int = 0) -> None:
            sizes.add(size_bytes)
            segments.add(segment_count)
            by_store.add({store: size_bytes})

        return report


class _Sums(AccumulatorParam[dict[int, int]]):
    """Sums by number."""

    def zero(self, value: dict[int, int]) -> dict[int, int]:
        return {}

    def addInPlace(self, value1: dict[int, int], value2: dict[int, int]) -> dict[int, int]:
        for key, size in value2.items():
            value1[key] = value1.get(key, 0) + size
        return value1
