"""coverage: how much of each store's CommitLog was read completely within a time, and which segments waited longest.

A run may leave bytes unread: an unreadable file, an interrupted disk, an audit that takes unchanged segments as they were. What
counts is the union over runs: a segment is verified where some run of that time read all bytes of a file of this name, this size
and this modification time. A copy made anew without its times (cp without -p) starts at 0 % again. A segment that
the newest run could not read, and all of a store in which that run found no segment any more, do not count as verified, whatever
an earlier run has read there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobs.cli.options import Command
from jobs.report.texts.history_text import coverage_text
from jobs.report.texts.run_words import short_names
from jobs.tables import past_runs
from jobs.tables.delta_query import one_of, text
from jobs.tables.past_runs import History, micros_of, time_of
from schemas.rows import Row
from store_io.base.errors import StoreError, UsageError

LOOK_BACK = 100  # runs before the time asked for in which a segment's last reading is looked for
LISTED = 100  # segments of a store that waited longest
_FILE = ["store", "file", "size_bytes", "modified_ns"]
_SEGMENT = ["problem", *_FILE[1:]]


def run(command: Command) -> int:
    """Run the command. Returns 0 once the answer is written."""
    past_runs.no_arguments(command)
    tables = past_runs.tables_of(command)
    if "--within" not in command.options:
        raise UsageError("coverage needs --within: a span back from now (12h, 7d, 4w) or a date (2026-11-01)")
    now = datetime.now(UTC)
    view = read_coverage(History(tables), now, command.options["--within"], command.options.get("--store"))
    past_runs.write_view(command, view, coverage_text, (store["location"] or "" for store in view["stores"]))
    return 0


def read_coverage(history: History, now: datetime, since: datetime, store: str | None = None) -> Row:
    """Read the tables into the rows of `coverage_view`. Raises StoreError if there is no run of any store."""
    store, runs = history.runs_of(store, ["location", "segment_count", "exit_code", "verdict"])
    stores = None if store is None else [store]
    if not runs:
        raise StoreError(f"no run in {history.uri}")
    latest: dict[str, Row] = {}
    for row in runs:  # by time: a newest run that could not even list the store says nothing of its segments
        if row["segment_count"] or row["store"] not in latest:
            latest[row["store"]] = row
    chosen = {(row["store"], row["run_id"]) for row in latest.values()}
    listed = history.query("segments", sorted({run_id for _, run_id in chosen}), _SEGMENT, stores=stores)
    current = [row for row in listed if (row["store"], row["run_id"]) in chosen]

    after = micros_of(since)
    within = sorted({row["run_id"] for row in runs if row["started_at"] >= after})
    before = sorted({(row["started_at"], row["run_id"]) for row in runs if row["started_at"] < after}, reverse=True)
    times = {row["run_id"]: row["started_at"] for row in runs}
    found = _verified(history, within, times, stores)
    missing = [key for row in current if found.get(key := _key(row), 0) < after]
    if missing:
        earlier = list(dict.fromkeys(run_id for _, run_id in before))[:LOOK_BACK]
        files = sorted({str(key[1]) for key in missing})
        few = one_of("file", files) if len(files) <= 1000 else "TRUE"
        for key, when in _verified(history, earlier, times, stores, few).items():
            found[key] = max(when, found.get(key, 0))
    return coverage_view(Listed(current, found, latest), runs, history.uri, now, since)


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _FILE)


def _verified(
    history: History, run_ids: Sequence[str], times: dict[str, int], stores: Sequence[str] | None, only: str = "TRUE"
) -> dict[tuple[object, ...], int]:
    """Return file as it was then -> when these runs last read all its bytes, µs since 1970. only: a condition of SQL."""
    if not run_ids:
        return {}
    # A run may have taken a segment as an earlier one verified it; a version without verified_at read every byte itself.
    began = ", ".join(f"({text(run_id)}, {times[run_id]})" for run_id in run_ids)
    statement = f"""
        SELECT {", ".join(_FILE)}, max(verified_at) AS verified, max(began) FILTER (WHERE verified_at IS NULL) AS read
        FROM known JOIN (VALUES {began}) AS runs (run_id, began) USING (run_id)
        WHERE problem IS NULL AND digest <> '' AND {only}
        GROUP BY {", ".join(_FILE)}"""
    rows = history.query("segments", run_ids, [*_SEGMENT, "digest", "verified_at"], statement, stores)
    return {_key(row): max(row["verified"] or 0, row["read"] or 0) for row in rows}


@dataclass(frozen=True)
class Listed:
    """The latest listings.

    segments: rows of `segments`.
    verified: file as it is -> when it was last read completely, µs since 1970.
    runs: store -> the row of `runs` of its listing.
    """

    segments: Sequence[Row]
    verified: dict[tuple[object, ...], int]
    runs: dict[str, Row]


def coverage_view(listed: Listed, runs: Sequence[Row], uri: str, now: datetime, since: datetime) -> Row:
    """Return the coverage as the JSON holds it. runs: all rows of `runs`, by time."""
    after = micros_of(since)
    segments: defaultdict[str, list[Row]] = defaultdict(list)
    for row in listed.segments:
        segments[row["store"]].append(row)
    counted = Counter(row["store"] for row in runs if row["started_at"] >= after)
    newest = {row["store"]: row for row in runs}
    stores, shown_as = [], short_names(listed.runs)
    for name, row in listed.runs.items():
        known = [(listed.verified.get(_key(s), 0), s) for s in segments[name]]
        gone = None if newest[name]["segment_count"] or not known else newest[name]
        done = [s for when, s in known if when >= after and gone is None and not s["problem"]]
        read_now = {s["file"] for s in done}
        waiting = sorted((pair for pair in known if pair[1]["file"] not in read_now), key=lambda pair: (pair[0], pair[1]["file"]))
        size, read = sum(s["size_bytes"] for _, s in known), sum(s["size_bytes"] for s in done)
        stores.append(
            {
                "store": name,
                "name": shown_as[name],
                "location": row["location"],
                "listed": {"run_id": row["run_id"], "started_at": time_of(row["started_at"])},
                "gone": gone
                and {"started_at": time_of(gone["started_at"]), **{key: gone[key] for key in ("run_id", "exit_code", "verdict")}},
                "runs_within": counted[name],
                "segments": len(known),
                "segments_verified": len(done),
                "bytes": size,
                "bytes_verified": read,
                "fraction": read / size if size else None,
                "least_recently": [
                    {"file": s["file"], "size_bytes": s["size_bytes"], "verified": time_of(when) if when else None}
                    for when, s in waiting[:LISTED]
                ],
                "unlisted": max(0, len(waiting) - LISTED),
            }
        )
    stores.sort(key=lambda store: (1.0 if store["fraction"] is None else store["fraction"], store["store"]))
    total, read = sum(s["bytes"] for s in stores), sum(s["bytes_verified"] for s in stores)
    return {
        "schema_version": past_runs.SCHEMA_VERSION,
        "tables": uri,
        "made_at": time_of(micros_of(now)),
        "since": time_of(after),
        "looked_back": f"{LOOK_BACK} runs before that",
        "bytes": total,
        "bytes_verified": read,
        "fraction": read / total if total else None,
        "stores": stores,
    }
