"""What report, diff and coverage share: formats, where the answer goes."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.cli.options import Command
from jobs.report.texts.history_text import fleet_text
from jobs.report.values_as_rows import time_of
from jobs.tables import past_runs
from store_io.base.errors import StoreError, UsageError
from tests.support.handmade.history_rows import run_row, view_of


def test_formats_and_tables() -> None:
    def chosen(**given: str) -> str:
        return past_runs.format_of(Command("report", options={f"--{k}": v for k, v in given.items()}))

    assert (chosen(), chosen(out="a.html"), chosen(out="a.html", format="json"), chosen(out="a.txt")) == (
        "text",
        "html",
        "json",
        "text",
    )
    with pytest.raises(UsageError, match="report needs --tables"):
        past_runs.tables_of(Command("report"))
    assert past_runs.tables_of(Command("report", options={"--tables": "s3://b/t"})) == "s3://b/t"


def test_a_report_is_not_written_into_a_store(tmp_path: Any) -> None:
    (tmp_path / "store").mkdir()
    command = Command("report", options={"--out": f"{tmp_path}/store/r.html"})
    with pytest.raises(UsageError, match="lies inside the store"):
        past_runs.put(command, "text", [f"{tmp_path}/store", ""])
    outside = Command("report", options={"--out": f"{tmp_path}/r.html"})
    past_runs.put(outside, "text\ud800", [f"{tmp_path}/store"])
    assert (tmp_path / "r.html").read_text() == "text\\ud800"


@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "batchconsumequeue"])
def test_a_report_is_not_written_into_a_store_that_no_table_names(part: str, tmp_path: Any) -> None:
    (tmp_path / "s" / part / "T").mkdir(parents=True)
    (tmp_path / "s" / "config").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "s" / "config")
    for place in ("s/r.html", f"s/{part}/r.html", f"s/{part}/T/r.html", "s/new/r.html", "link/r.html"):
        command = Command("report", options={"--out": f"{tmp_path}/{place}"})
        with pytest.raises(UsageError, match=f"^--out: '{tmp_path}/{place}' lies inside '{tmp_path}/s', which holds {part}/"):
            past_runs.put(command, "text", [])
    assert not [*tmp_path.rglob("r.html")]
    past_runs.put(Command("report", options={"--out": f"{tmp_path}/{part}"}), "text", [])  # a file of that name is no store


@pytest.mark.parametrize("micros", [1 << 62, -(1 << 62), 253_402_300_800_000_000])
def test_a_time_beyond_all_years_is_told(micros: int) -> None:
    told = time_of(micros)
    assert told in ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z")
    assert str(told)[:4] in fleet_text(view_of([run_row("s", 0, started_at=micros)]))


def test_an_unknown_store_is_told_with_the_nearest_name() -> None:
    with pytest.raises(StoreError, match=r"^--store 'brker-a': not in /t \(did you mean broker-a\?\)$"):
        past_runs.chosen_store({"broker-a": 1, "x": 2}, "brker-a", "/t")
