"""Progress while Spark runs: segments, bytes, rate, time left. One line that redraws itself on a terminal, nothing elsewhere.

Tasks report through two Spark accumulators, whose values arrive in the driver with each finished task; a thread reads them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from jobs.report.texts.text import bytes_text, count_text, seconds_text

_INTERVAL_SECONDS = 0.2
_JSON_SECONDS = 1.0
_CLEAR = "\r\x1b[2K"


class Progress:
    """How far a run is. Use it as a context manager around the work: the line is gone when it ends, however it ends.

    stream: where to draw; None draws nothing.  as_json: a JSON object per line and second, and one at the end, for other
    programs.  counters: (bytes done, segments done), read at each drawing.
    """

    def __init__(self, stream: TextIO | None, counters: Callable[[], tuple[int, int]] | None = None, as_json: bool = False):
        self._stream = stream
        self._json = as_json
        self._counters = counters
        self._total = (0, 0)
        self._what = "starting"
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def expect(self, what: str, size_bytes: int, segments: int) -> None:
        """What comes next: a word for it, and how much work it adds."""
        self._what, self._total = what, (self._total[0] + size_bytes, self._total[1] + segments)

    def done(self) -> tuple[int, int]:
        """(bytes, segments) so far."""
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
            self._write(self._json_line("stopped" if kind else "done") if self._json else _CLEAR)

    def _draw(self) -> None:
        if self._json:
            self._write(self._json_line())
            while not self._stop.wait(_JSON_SECONDS):
                self._write(self._json_line())
        while not self._stop.wait(_INTERVAL_SECONDS):
            size, segments = self.done()
            rate = size / (time.monotonic() - self._began)
            self._write(_CLEAR + progress_line(self._what, size, self._total[0], segments, self._total[1], rate))

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
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stop.set()  # nobody looks any more


def progress_line(what: str, size: int, total: int, segments: int, total_segments: int, rate: float) -> str:
    """One line without its end. rate: bytes per second so far; 0: not known yet."""
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
    """Two accumulators that tasks add to. Hand `report` into the task's closure; the object itself stays in the driver."""

    def __init__(self, context: Any):
        self._bytes = context.accumulator(0)
        self._segments = context.accumulator(0)

    def __call__(self) -> tuple[int, int]:
        """(bytes, segments) of the tasks that have ended."""
        return self._bytes.value, self._segments.value

    @property
    def report(self) -> Callable[[int, int], None]:
        """What a task calls with (bytes, segments) that it has done."""
        sizes, segments = self._bytes, self._segments

        def report(size_bytes: int, segment_count: int) -> None:
            sizes.add(size_bytes)
            segments.add(segment_count)

        return report
