"""Five years of a fleet: prune, compact and vacuum on 1,800 nights of 200 stores, and what `report` takes before and after.

    ./spark-submit.sh test -m big tests/jobs/tables -s

prints the figures that docs/performance.md, section 12, sums up. NIGHTS and STORES set other numbers. It writes some 700 MB
below TMPDIR.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.commands import tables_command
from jobs.runtime.setup import ROOT
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.delta_tables import arrow_table
from jobs.tables.table_care import tables_under
from schemas.rows import Row
from schemas.tables import TABLES

NIGHTS, STORES = int(os.environ.get("NIGHTS", "1800")), int(os.environ.get("STORES", "200"))
SEGMENTS, QUEUES = 4, 8  # of a store
NO_SESSION: Any = None
LAST = datetime(2026, 11, 21, 2, 15, tzinfo=UTC)


def rows_of(night: int) -> dict[str, list[Row]]:
    """A night's rows: a log that grows, digests that differ from store to store, a finding of every tenth store."""
    began = LAST - timedelta(days=NIGHTS - 1 - night)
    rows: dict[str, list[Row]] = {name: [] for name in TABLES if name != "replica_parts"}
    for number in range(STORES):
        store, end = {"store": f"broker-{number:03}"}, (night + SEGMENTS) << 30
        bad = number % 10 == night % 10
        rows["runs"].append(
            {
                **store, "started_at": began, "location": f"/copies/broker-{number:03}", "release": "5.3.3", "complete": True,
                "exit_code": 10 * bad, "level": "full", "verdict": "everything is consistent", "safety": "safe", "starts": True,
                "log_end": end, "truncate_at": end, "messages": 900_000 + number, "segment_count": SEGMENTS, "lost_messages": 0,
                "lost_bytes": 0, "losses": 0, "rebuildable": int(bad), "notes": 2, "bytes_read": SEGMENTS << 30, "seconds": 12.5,
                "settings": [{"key": "mappedFileSizeCommitLog", "value": "1073741824", "from": "default"}],
            }
        )  # fmt: skip
        for place in range(SEGMENTS):
            base = (night + place) << 30
            extents = [
                {"kind": "message", "start": 0, "end": 1 << 30, "message_count": 225_000, "plausible": False, "reason": ""}
            ]
            rows["segments"].append(
                {
                    **store, "file": f"commitlog/{base:020}", "base_offset": base, "size_bytes": 1 << 30,
                    "digest": f"{hash((number, base)) & (1 << 64) - 1:016x}{number:016x}", "messages": 225_000,
                    "extents": extents, "verified_at": began,
                }
            )  # fmt: skip
            rows["plan_steps"].append({**store, "number": place, "action": "keep", "file": f"commitlog/{base:020}"})
        for queue in range(QUEUES):
            file = f"consumequeue/orders/{queue}/{night * 6_000_000:020}"
            files = [{"file": file, "size_bytes": 6_000_000, "digest": f"{hash((number, queue, night)) & (1 << 64) - 1:016x}"}]
            rows["queues"].append({**store, "topic": "orders", "queue_id": queue, "log_messages": 112_500, "files": files})
        rows["index_files"].append({**store, "file": f"index/{began:%Y%m%d}021500000", "entries": 900_000})
        if bad:
            rows["findings"].append({**store, "number": 0, "code": "queue_entry_missing", "severity": "rebuildable", "count": 1})
    return rows


def make(place: Path) -> None:
    """All nights, each committed as an audit does it, and their files as old as they would be."""
    logs = {name: DeltaLog(NO_SESSION, f"file:{place}/{name}", TABLES[name]) for name in TABLES if name != "replica_parts"}
    with ThreadPoolExecutor(len(logs)) as threads:
        for night in range(NIGHTS):
            began = LAST - timedelta(days=NIGHTS - 1 - night)
            run_id, month = f"{began:%Y-%m-%d}", f"{began:%Y-%m}"

            def write(name: str, rows: list[Row], run_id: str = run_id, month: str = month, began: datetime = began) -> None:
                file = logs[name].write_file(run_id, arrow_table(rows, TABLES[name]), month)
                os.utime(file.uri.removeprefix("file:"), (began.timestamp(), began.timestamp()))
                logs[name].replace_run(run_id, [file])
                log = place / name / "_delta_log"
                for made in log.iterdir():
                    if made.stat().st_mtime > began.timestamp() + 86400:
                        os.utime(made, (began.timestamp(), began.timestamp()))

            for done in [threads.submit(write, name, rows) for name, rows in rows_of(night).items() if rows]:
                done.result()


def state(place: Path) -> tuple[int, int, int]:
    """Files, files of logs, bytes."""
    files = [file for file in place.rglob("*") if file.is_file()]
    return len(files), sum("_delta_log" in file.parts for file in files), sum(file.stat().st_size for file in files)


def report_seconds(place: Path) -> float:
    """The whole command, with the start of its process."""
    began = time.monotonic()
    words = [ROOT / "spark-submit.sh", "report", "--tables", str(place), "--out", str(place.parent / "report.txt")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


@pytest.mark.big
def test_five_years_of_a_fleet(tmp_path: Path) -> None:
    place = tmp_path / "tables"
    lines = [f"{'after':34} {'seconds':>8} {'files':>7} {'of logs':>8} {'MB':>8} {'report, s':>10} {'peak MB':>8}"]

    def show(what: str, seconds: float) -> None:
        files, of_logs, size = state(place)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of this process, until now
        figures = f"{seconds:8.1f} {files:7,} {of_logs:8,} {size / 1e6:8.1f} {report_seconds(place):10.1f} {peak:8.0f}"
        lines.append(f"{what:34} {figures}")
        print(lines[-1], flush=True)

    def timed(what: str, action: Any) -> Any:
        began = time.monotonic()
        view = action(tables_under(str(place)))
        show(what, time.monotonic() - began)
        return view

    print(f"\n{NIGHTS:,} nights of {STORES:,} stores\n{lines[0]}")
    began = time.monotonic()
    make(place)
    show("all nights", time.monotonic() - began)
    timed("compact", tables_command.compact)
    timed("vacuum --older-than 0h --alone", lambda cares: tables_command.vacuum(cares, 0))
    since = int((LAST - timedelta(days=90)).timestamp() * 1e6)
    view = timed("prune --keep 90d", lambda cares: tables_command.prune(cares, since, None, LAST + timedelta(hours=6)))
    assert len(view.gone) == max(0, NIGHTS - 91) and view.needed == []
    timed("compact again", tables_command.compact)
    timed("vacuum --older-than 0h --alone, again", lambda cares: tables_command.vacuum(cares, 0))
    kept = min(NIGHTS, 91)
    for name, rows in {"runs": STORES, "segments": STORES * SEGMENTS, "queues": STORES * QUEUES}.items():
        (counted,) = DeltaQuery(f"{place}/{name}").ask(["count(*) AS n", "count(DISTINCT run_id) AS runs"])
        assert counted == {"n": kept * rows, "runs": kept}
    files, of_logs, _ = state(place)
    assert files - of_logs < 60  # 91 nights, in four months of six tables, and a few that filled one file
