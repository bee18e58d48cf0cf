"""coverage: how much of each store's CommitLog was read completely within a time, and which segments waited longest.

A run may leave bytes unread: an unreadable file, an interrupted disk, an audit that takes unchanged segments as they were. What
counts is the union over runs: a segment is verified where some run of that time read all bytes of a file of this name, this size
and this modification time. A copy made anew without its times (cp without -p) starts at 0 % again. A segment that
the newest run could not read, and all of a store in which that run found no segment any more, do not count as verified, whatever
an earlier run has read there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter

from jobs.cli.options import Command
from jobs.report.past_views import CoverageView, Gone, KnownRun, NamedRun, StoreCoverage, Waiting
from jobs.report.texts.history_text import coverage_text
from jobs.report.texts.run_words import short_names
from jobs.report.values_as_rows import micros_of
from jobs.tables import past_runs
from jobs.tables.delta_query import text
from jobs.tables.past_runs import History, began, by_store
from store_io.base.errors import StoreError, UsageError

LOOK_BACK = 100  # runs before the time asked for in which a segment's last reading is looked for
LISTED = 100  # segments of a store that waited longest


def run(command: Command) -> int:
    """Run the command. Returns 0 once the answer is written."""
    past_runs.no_arguments(command)
    tables = past_runs.tables_of(command)
    if "--within" not in command.options:
        raise UsageError("coverage needs --within: a span back from now (12h, 7d, 4w) or a date (2026-11-01)")
    now = datetime.now(UTC)
    view = read_coverage(History(tables), now, command.options["--within"], command.options.get("--store"))
    past_runs.write_view(command, view, coverage_text, (store.location for store in view.stores))
    return 0


@dataclass(frozen=True, slots=True)
class Run(KnownRun):
    """A row of `runs`."""

    location: str | None
    segment_count: int | None
    exit_code: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A segment as the latest listing has it. verified: when the file as it is was last read completely; 0: not known."""

    store: str
    file: str
    size_bytes: int
    problem: str | None
    verified: int


def read_coverage(history: History, now: datetime, since: datetime, store: str | None = None) -> CoverageView:
    """Read the coverage out of the tables. Raises StoreError if there is no run of any store."""
    store, _ = history.runs_of(store)
    runs = history.runs(Run, None, store)
    if not runs:
        raise StoreError(f"no run in {history.uri}")
    after = micros_of(since)
    times = {run.run_id: began(run) for run in runs}
    before = [run_id for run_id, when in sorted(times.items(), key=itemgetter(1, 0), reverse=True) if when < after][:LOOK_BACK]
    looked_at = [run_id for run_id, when in times.items() if when >= after] + before
    listings = latest_listings(runs)
    # A run may have taken a segment as an earlier one verified it; a version without verified_at read every byte itself.
    statement = f"""
        WITH times (run_id, began) AS (VALUES {", ".join(f"({text(run_id)}, {times[run_id]})" for run_id in looked_at)}),
        listings (store, run_id) AS (VALUES {", ".join(f"({text(run.store)}, {text(run.run_id)})" for run in listings.values())}),
        files AS (SELECT *, coalesce(modified_ns, -1) AS time FROM segments),
        readings AS (
            SELECT store, file, size_bytes, time, max(coalesce(CAST(verified_at AS BIGINT), began)) AS verified
            FROM files JOIN times USING (run_id) WHERE problem IS NULL AND digest <> '' GROUP BY store, file, size_bytes, time
        )
        SELECT files.store, files.file, files.size_bytes, files.problem, coalesce(verified, 0) AS verified
        FROM files JOIN listings USING (store, run_id) LEFT JOIN readings USING (store, file, size_bytes, time)
        ORDER BY files.store, coalesce(verified, 0), files.file"""
    run_ids = sorted({*looked_at, *(run.run_id for run in listings.values())})
    segments = history.query(Listed, statement, run_ids, None if store is None else [store])
    return coverage_view(segments, runs, history.uri, now, after)


def latest_listings(runs: Sequence[Run]) -> dict[str, Run]:
    """Return store -> the newest run that could list its segments, else the first one. runs: by time."""
    found: dict[str, Run] = {}
    for run in runs:
        if run.segment_count or run.store not in found:
            found[run.store] = run
    return found


def coverage_view(segments: Sequence[Listed], runs: Sequence[Run], uri: str, now: datetime, after: int) -> CoverageView:
    """Return the coverage. segments: of each store's listing, those that waited longest first. runs: all, by time."""
    listings, listed = latest_listings(runs), by_store(segments)
    counted = Counter(run.store for run in runs if began(run) >= after)
    newest = {run.store: run for run in runs}
    stores, shown_as = [], short_names(listings)
    for name, run in listings.items():
        known, last = listed[name], newest[name]
        gone = Gone(last.started_at, last.run_id, last.exit_code, last.verdict) if known and not last.segment_count else None
        done = [segment for segment in known if segment.verified >= after and gone is None and not segment.problem]
        read_now = {segment.file for segment in done}
        waiting = [segment for segment in known if segment.file not in read_now]
        size, read = (sum(segment.size_bytes for segment in own) for own in (known, done))
        stores.append(
            StoreCoverage(
                store=name,
                name=shown_as[name],
                location=run.location,
                listed=NamedRun(run.run_id, run.started_at),
                gone=gone,
                runs_within=counted[name],
                segments=len(known),
                segments_verified=len(done),
                bytes=size,
                bytes_verified=read,
                fraction=read / size if size else None,
                least_recently=[Waiting(one.file, one.size_bytes, one.verified or None) for one in waiting[:LISTED]],
                unlisted=max(0, len(waiting) - LISTED),
            )
        )
    stores.sort(key=lambda store: (1.0 if store.fraction is None else store.fraction, store.store))
    size, read = sum(store.bytes for store in stores), sum(store.bytes_verified for store in stores)
    looked_back = f"{LOOK_BACK} runs before that"
    return CoverageView(uri, micros_of(now), after, looked_back, size, read, read / size if size else None, stores)
