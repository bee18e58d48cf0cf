"""Declares the views that are beside the Delta tables, in SQL that Spark, DuckDB and DataFusion (delta-rs) all read.

Each view is made of tables of the same names as in `schemas.tables`, and of views before it.
"""

from __future__ import annotations

VIEWS: dict[str, str] = {
    "runs_latest": """
SELECT runs.* FROM runs JOIN (
    SELECT store, run_id, started_at, row_number() OVER (PARTITION BY store ORDER BY started_at DESC, run_id DESC) AS place
    FROM runs
) AS newest ON runs.store = newest.store AND runs.run_id = newest.run_id AND runs.started_at = newest.started_at
WHERE newest.place = 1""",
    "findings_latest": """
SELECT findings.* FROM findings
JOIN runs_latest ON findings.store = runs_latest.store AND findings.run_id = runs_latest.run_id""",
    "stores": """
SELECT latest.store, known.runs, known.first_run_at, known.last_complete_at, known.last_consistent_at,
    latest.run_id, latest.started_at, latest.location, latest.exit_code, latest.safety, latest.answer, latest.steps,
    latest.first_day_at, latest.first_day_segments, latest.first_day_messages, latest.first_day_timers_lost,
    latest.first_day_timers_never, latest.first_day_registers, latest.verdict
FROM runs_latest AS latest JOIN (
    SELECT store, count(DISTINCT run_id) AS runs, min(started_at) AS first_run_at,
        max(CASE WHEN complete THEN started_at END) AS last_complete_at,
        max(CASE WHEN exit_code = 0 THEN started_at END) AS last_consistent_at
    FROM runs GROUP BY store
) AS known ON latest.store = known.store""",
}
"""View -> its SELECT: a row for each store's latest run, the findings of these, and one row for each store."""
