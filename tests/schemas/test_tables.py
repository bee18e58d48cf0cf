"""The tables' columns: comments, units, keys, and rows that fit."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from jobs.tables.delta_tables import RUNS, arrow_table, run_rows
from schemas.arrow import DATASET_SCHEMAS, arrow_type
from schemas.outcome import Outcome
from schemas.tables import DATASETS, RUN_ID, STORE, TABLES
from tests.support.handmade import samples


@pytest.mark.parametrize("table", [*TABLES, *DATASETS])
def test_every_column_says_what_it_is(table: str) -> None:
    columns = TABLES[table] if table in TABLES else (STORE, *DATASETS[table])
    assert len({c.name for c in (*columns, RUN_ID)}) == len(columns) + 1
    assert any(c.comment.startswith("Key") for c in columns)
    for column in columns:
        assert column.comment.endswith(".") and len(column.comment) > 3, column.name
        assert re.fullmatch(r"[a-z_]+", column.name)
        if column.name.endswith("_ms"):
            assert "ms since 1970" in column.comment, column.name


def test_runs_come_last() -> None:
    assert list(TABLES)[-1] == RUNS


def test_rows_of_a_run_fit_their_tables() -> None:
    outcomes = [samples.lacking(samples.damaged()), samples.clean(), samples.not_audited(), samples.refused()]
    tables = {name: arrow_table(rows, TABLES[name]) for name, rows in run_rows(samples.RUN, outcomes).items()}
    assert {name: t.num_rows for name, t in tables.items()} == {
        "segments": 4, "queues": 1, "index_files": 1, "findings": 29, "plan_steps": 3, "replica_parts": 2, "runs": 4,
    }  # fmt: skip
    runs = {row["store"]: row for row in tables["runs"].to_pylist()}
    assert runs["hurt-\u202e"]["truncate_at"] == 1124 and runs["hurt-\u202e"]["findings_dropped"] == 5
    assert runs["gone"]["starts"] is None
    assert {name: (row["answer"], row["steps"]) for name, row in runs.items()} == {
        "hurt-\u202e": ("repair", ["other", "repair", "start", "check"]), "calm": ("start", ["start"]),
        "gone": ("not_known", ["change"]), "stuck": ("repair", ["repair", "start", "check"]),
    }  # fmt: skip
    unknown = "lost_messages lost_bytes messages segment_count damaged_extents unread_segments unread_bytes losses notes".split()
    assert {runs["gone"][name] for name in unknown} == {None} and None not in {runs["calm"][name] for name in unknown}
    assert [runs[name]["outcome_rank"] for name in ("hurt-\u202e", "gone", "calm")] == [3, 2, 0]
    for name, table in tables.items():
        started = "started_at" if name == "runs" else "run_started_at"
        assert set(table.column(started).to_pylist()) == {samples.RUN.started_at}
    assert (
        runs["stuck"]["starts"] is False
        and runs["stuck"]["lost_messages"] is None
        and runs["stuck"]["refusal"].startswith("commitlog/x.swp")
    )
    assert runs["calm"]["settings"][0] == {"key": "checkCRCOnRecover", "value": "True", "from": "default"}
    assert tables["findings"]["number"].to_pylist() == [*range(27), 0, 1]


def test_a_key_that_no_column_has_is_a_fault_of_the_program() -> None:
    with pytest.raises(KeyError, match="no such column: colour"):
        arrow_table([{"store": "s", "colour": 1}], TABLES["queues"])


def test_missing_keys_are_null_and_bytes_that_are_no_text_are_escaped() -> None:
    table = arrow_table([{"store": "a\udcff"}], TABLES["queues"])
    assert table.column("store").to_pylist() == ["a\\udcff"]
    assert table.column("topic").to_pylist() == [None]


def test_a_time_comes_as_a_timestamp_too_if_a_calendar_has_it() -> None:
    times = [1_795_209_630_000, -1, 1 << 62, None]
    rows = [{"file": str(ms), "first_store_time_ms": ms, "modified_ns": 1_795_209_630_000_000_000} for ms in times]
    table = arrow_table(rows, TABLES["segments"])
    assert table.column("first_store_time_ms").to_pylist() == times
    when = datetime(2026, 11, 20, 21, 20, 30, tzinfo=UTC)
    assert table.column("first_store_time").to_pylist() == [when, None, None, None]
    assert set(table.column("modified_at").to_pylist()) == {when}


def test_a_store_is_called_by_its_name_or_its_place_in_all_tables() -> None:
    named, placed = samples.lacking(samples.damaged()), replace(samples.clean(), name=samples.HOSTILE, key="/copies/x/store")
    rows = run_rows(samples.RUN, [named, placed])
    for name in ("segments", "runs"):
        assert {(row["store"], row["store_from"]) for row in rows[name]} == {
            (named.name, "name"), ("/copies/x/store", "location"),
        }  # fmt: skip
    assert {(row["store"], row["holder"]) for row in rows["replica_parts"]} == {(named.name, "/copies/x/store")}
    assert [row["folder"] for row in rows["runs"]] == [named.name, samples.HOSTILE]


def test_a_store_that_could_not_be_audited_has_a_row_in_runs_alone() -> None:
    outcome = Outcome("x", "/x", "5.5.0", 3, ["no store"])
    rows = run_rows(samples.RUN, [outcome])
    assert {name: len(list(found)) for name, found in rows.items() if found} == {"runs": 1}


def test_a_datasets_schema_keeps_the_comments() -> None:
    field = DATASET_SCHEMAS["index"].field("key_hash")
    assert field.type == pa.int32() and field.metadata[b"comment"] == b"Hash that the entry holds."


def test_types() -> None:
    assert arrow_type("long") == pa.int64()
    assert arrow_type({"type": "array", "elementType": "string"}) == pa.list_(pa.string())
