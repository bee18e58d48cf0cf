"""Rows of the tables as literals, and what report, diff and coverage make of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.commands import coverage, difference, fleet
from jobs.tables import past_runs

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
DAY = 86_400_000_000
T0 = 1_795_000_000_000_000
Row = dict[str, Any]


def run_row(store: str, run: int, code: int = 0, **more: Any) -> Row:
    row = dict.fromkeys(fleet.COLUMNS)
    return {
        **row, "level": "full",
        "run_id": f"r{run}", "store": store, "started_at": T0 + run * DAY, "exit_code": code, "complete": code != 3, "gaps": [],
        "verdict": f"verdict {code}", "starts": None if code == 3 else True, "lost_messages": 0, "lost_bytes": 0, "losses": 0,
        "rebuildable": 0, "notes": 0, "messages": 10, "segment_count": 2, "damaged_extents": 0, "bytes_read": 2048,
        "seconds": 1.5, "location": f"/copies/{store}", "release": "5.3.3", "tool_version": "1", "rules_version": "1", **more,
    }  # fmt: skip


def view_of(rows: list[Row], codes: list[Row] | None = None, ended: dict[str, int] | None = None, since: Any = None) -> Row:
    gone = [{"store": name, "started_at": at, "run_id": "r0"} for name, at in (ended or {}).items()]
    known = past_runs.one_per_run([*rows, *gone])
    return fleet.fleet_view(past_runs.one_per_run(rows), codes or [], known, "/t", NOW, since)


def place(start: int | None, end: int | None, a: int | None, b: int | None, severity: Any = "loss", **more: Any) -> Row:
    words = {"message": "m", "expected": None, "actual": None, "next": "n"}
    before, after = severity if isinstance(severity, tuple) else (severity, severity)
    return {
        "store": "s", "code": "c", "file": "f", "start": start, "end": end, "phy_offset": None, "topic": None, "queue_id": None,
        "queue_offset": None, "count_a": a, "count_b": b, "words_a": {"severity": before, **words} if a is not None else None,
        "words_b": {"severity": after, **words} if b is not None else None, **more,
    }  # fmt: skip


def segment(number: int, digest: str | None = "d", wrote: int | None = 100, size: int = 100, **more: Any) -> Row:
    file = f"commitlog/{number * 100:020}"
    return {
        "store": "s",
        "file": file,
        "base_offset": number * 100,
        "size_bytes": size,
        "digest": digest,
        "wrote": wrote,
        "known": True,
        "modified_ns": 1,
        "problem": None,
        **more,
    }


BEFORE = [segment(0), segment(1), segment(2), segment(3, wrote=50), segment(4, wrote=None)]


def diff(a: Row | None, b: Row | None, moved: list[Row], before: list[Row] = BEFORE, after: list[Row] = BEFORE) -> Row:
    def files(segments: list[Row]) -> dict[str, list[Row]]:
        return {"segments": segments, "index": [], "queues": []}

    sides = [{"s": {"settings": [], **row}} if row else {} for row in (a, b)]
    names = sorted(sides[0] | sides[1])
    compared = difference.Compared(moved, [], files(before), files(after))
    return difference.difference_view(*sides, list(difference.compare_stores(names, *sides, compared)))


A, B = run_row("s", 1), run_row("s", 2)


def covered(verified: dict[int, int], segments: list[Row] = BEFORE) -> Row:
    """verified: segment number -> days since T0."""
    keys = {reading_key(segments[number]): T0 + days * DAY for number, days in verified.items()}
    runs = [run_row("s", n) for n in range(4)]
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=T0 + 2 * DAY)
    return coverage.coverage_view(coverage.Listed(segments, keys, {"s": runs[-1]}), runs, "/t", NOW, since)


def reading_key(row: Row) -> tuple[object, ...]:
    return row["store"], row["file"], row["size_bytes"], row["modified_ns"]
