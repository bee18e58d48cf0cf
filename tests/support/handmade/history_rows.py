"""What is read of the tables as literals, and what report, diff and coverage make of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from jobs.commands.past import coverage, difference, fleet
from jobs.commands.past.difference import Compared, File, Segment
from jobs.report.past_views import CodeCount, CoverageView, DifferenceView, FleetView, Found, KnownRun, LatestRun, TrendRun
from jobs.report.values_as_rows import columns_of, values
from jobs.tables import past_runs
from jobs.tables.delta_tables import run_rows
from schemas.outcome import Outcome
from tests.support.handmade import samples

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
DAY = 86_400_000_000
T0 = 1_795_000_000_000_000
T = TypeVar("T")


def value(shape: type[T], **known: Any) -> T:
    """A value of which only some columns matter."""
    return shape(**dict.fromkeys(columns_of(shape)) | known)


def of_run(shape: type[T], store: str, run: int, code: int = 0, **more: Any) -> T:
    row = {
        "level": "full", "run_id": f"r{run}", "store": store, "started_at": T0 + run * DAY, "exit_code": code,
        "complete": code != 3, "gaps": [], "verdict": f"verdict {code}", "starts": None if code == 3 else True,
        "lost_messages": 0, "lost_bytes": 0, "losses": 0, "rebuildable": 0, "notes": 0, "messages": 10, "segment_count": 2,
        "damaged_extents": 0, "bytes_read": 2048, "seconds": 1.5, "location": f"/copies/{store}", "release": "5.3.3",
        "tool_version": "1", "rules_version": "1", "settings": {}, **more,
    }  # fmt: skip
    return value(shape, **{name: held for name, held in row.items() if name in columns_of(shape)})


def run_row(store: str, run: int, code: int = 0, **more: Any) -> LatestRun:
    return of_run(LatestRun, store, run, code, **more)


def kept(outcome: Outcome, store: str) -> LatestRun:
    """What the tables keep of an audit, as the report reads it."""
    (row,) = run_rows(samples.RUN, [outcome])["runs"]
    known = {name: row.get(name) for name in columns_of(LatestRun)}
    (run,) = values(LatestRun, [{**known, "run_id": "r1", "store": store, "started_at": T0}])
    return run


def view_of(
    runs: list[LatestRun], codes: Iterable[CodeCount] = (), ended: dict[str, int] | None = None, since: int | None = None
) -> FleetView:
    gone = [KnownRun("r0", name, at) for name, at in (ended or {}).items()]
    runs = sorted(runs, key=lambda run: (run.store, past_runs.began(run), run.run_id))
    known = sorted([*runs, *gone], key=lambda run: (run.store, past_runs.began(run), run.run_id))
    trend = [TrendRun(**{f.name: getattr(run, f.name) for f in fields(TrendRun) if f.default is MISSING}) for run in runs]
    latest = list({run.store: run for run in runs}.values())
    return fleet.fleet_view(trend, fleet.with_codes(latest, list(codes)), known, "/t", NOW, since)


def place(start: int | None, end: int | None, a: int | None, b: int | None, severity: Any = "loss", **more: Any) -> list[Found]:
    """What the two runs find in one place. a, b: how many; None: nothing."""
    both = severity if isinstance(severity, tuple) else (severity, severity)
    row = {"store": "s", "code": "c", "file": "f", "start": start, "end": end, "message": "m", "next": "n", **more}
    return [
        value(Found, later=later, severity=word, count=count, **row)
        for later, word, count in ((False, both[0], a), (True, both[1], b))
        if count is not None
    ]


def segment(number: int, digest: str | None = "d", wrote: int | None = 100, size: int = 100, **more: Any) -> Segment:
    row = {"file": f"commitlog/{number * 100:020}", "modified_ns": 1, "known": True, **more}
    return Segment(store="s", later=False, size_bytes=size, digest=digest, base_offset=number * 100, wrote=wrote, **row)


BEFORE = [segment(0), segment(1), segment(2), segment(3, wrote=50), segment(4, wrote=None)]


def diff(
    a: difference.Run | None, b: difference.Run | None, moved: Iterable[Found] = (), after: list[Segment] = BEFORE
) -> DifferenceView:
    sides = [{"s": run} if run else {} for run in (a, b)]
    segments = [*BEFORE, *(replace(one, later=True) for one in after)]
    stores = difference.compare_stores(["s"], sides[0], sides[1], Compared(list(moved), [], segments))
    return difference.difference_view(sides[0], sides[1], list(stores))


A, B = of_run(difference.Run, "s", 1), of_run(difference.Run, "s", 2)


def file(name: str, digest: str | None = "d", size: int = 60) -> File:
    return File("s", False, name, size, digest)


def covered(
    verified: dict[int, int], segments: list[Segment] = BEFORE, problem: int | None = None, **newest: Any
) -> CoverageView:
    """verified: segment number -> days since T0. problem: the segment that cannot be read. newest: of a run after all others."""
    listed = [
        coverage.Listed("s", row.file, row.size_bytes, "cannot be read" if number == problem else None, at)
        for number, row in enumerate(segments)
        for at in [T0 + verified[number] * DAY if number in verified else 0]
    ]
    runs = [of_run(coverage.Run, "s", n) for n in range(4)]
    runs += [of_run(coverage.Run, "s", 4, **newest)] if newest else []
    return coverage.coverage_view(sorted(listed, key=lambda one: (one.verified, one.file)), runs, "/t", NOW, T0 + 2 * DAY)
