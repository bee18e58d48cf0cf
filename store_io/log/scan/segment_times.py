"""Store times along a segment: single ones that fit neither neighbour, and clock steps.

The broker sets store times in the append lock, so they only fall where its clock was set back.
"""

from __future__ import annotations

import numpy as np

from schemas.finding_codes import Code
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.findings import Findings
from store_io.log.records.message_columns import ROW_DTYPE
from store_io.log.records.message_decode import field_place
from store_io.log.scan.segment_runs import TOLERANCE_MS

CLOCK_STEP_MS = 3_600_000  # at a segment's first or last message, where one neighbour is missing: more is no clock step


def _time(row: np.void) -> int:
    return int(row["store_time"])


class StoreTimes:
    """Fed with all messages of a segment in order."""

    def __init__(self, path: str, base_offset: int, findings: Findings):
        self._path, self._base, self._findings = path, base_offset, findings
        self._last = b""  # the rows of the last two messages of earlier batches
        self._open: list[np.void] | None = None  # a fall at the last message so far: the (up to) two before it, and it

    def feed(self, rows: np.ndarray, falls: np.ndarray) -> None:
        """Take the next messages, and which of them fell by more than the tolerance."""
        if self._open is not None:
            self._judge(self._open, rows[0])
            self._open = None
        last = np.frombuffer(self._last, ROW_DTYPE)
        if len(last) < 2 <= len(last) + len(rows):
            first, second = [*last, *rows[:2]][:2]
            if _time(first) == 0 and _time(second) > TOLERANCE_MS:
                self._odd(first)
        for i in falls.tolist():
            met = [*last, *rows[: i + 1]][-3:] if i < 2 else list(rows[i - 2 : i + 1])
            if i + 1 < len(rows):
                self._judge(met, rows[i + 1])
            else:
                self._open = [row.copy() for row in met]
        self._last = (self._last + rows[-2:].tobytes())[-2 * ROW_DTYPE.itemsize :]

    def finish(self) -> None:
        """End the stream of messages."""
        if self._open is not None:
            self._judge(self._open, None)

    def _judge(self, met: list[np.void], after: np.void | None) -> None:
        """Judge a fall of store times.

        met: the message before the fall, after the one before it if there is one, and the message after the fall.
        after: the next message, or None.
        """
        high, low = met[-2], met[-1]
        fall = _time(high) - _time(low)
        before = met[-3] if len(met) > 2 else None
        if before is not None and _time(low) >= _time(before) - TOLERANCE_MS:
            self._odd(high)
        elif after is not None and _time(after) >= _time(high) - TOLERANCE_MS:
            self._odd(low)
        elif before is None and fall > CLOCK_STEP_MS:
            self._odd(high)
        elif after is None and fall > CLOCK_STEP_MS:
            self._odd(low)
        else:
            self._add(Code.STORE_TIME_BACK, "", low, f"store times are {fall:,} ms earlier from here on: the clock was set back")

    def _odd(self, row: np.void) -> None:
        self._add(
            Code.STORE_TIME_ODD,
            severity_in(Code.STORE_TIME_ODD, Case.NEIGHBOURS_AGREE),
            row,
            "a message's store time fits neither the message before it nor the one after it",
        )

    def _add(self, code: Code, severity: str, row: np.void, text: str) -> None:
        start = int(row["position"]) + field_place("STORETIMESTAMP", int(row["sys_flag"]))[0]
        self._findings.add(
            Finding(
                code,
                self._path,
                start,
                start + 8,
                severity,
                int(row["phy_offset"]),
                queue_offset=int(row["queue_offset"]),
                actual=str(_time(row)),
                message=text,
            )
        )
