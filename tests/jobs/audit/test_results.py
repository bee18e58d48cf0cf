"""result.json of a run that was stopped, and reading it back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.audit.results import read_result, remove_result, write_metrics, write_stopped
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.runtime.output import OutputFailed

BEGUN = datetime(2024, 1, 2, tzinfo=UTC)


def options(out: Path) -> AuditOptions:
    stores = (StoreArgument("a", "/a", "5.3.3"), StoreArgument("b", "/b", "5.3.3", problem="no such folder"))
    return AuditOptions(stores, str(out), run_id="one")


def test_a_stopped_run_has_a_result_with_every_store(tmp_path: Path) -> None:
    result = write_stopped(options(tmp_path), "stopped by a signal", BEGUN, 1.5)
    assert result == json.loads((tmp_path / "result.json").read_text()) == read_result(str(tmp_path), "one")
    assert (result["exit_code"], result["complete"], result["run_id"]) == (3, False, "one")
    assert [store["incomplete"] for store in result["stores"]] == [["stopped by a signal"], ["no such folder"]]


def test_only_the_runs_own_result_is_read(tmp_path: Path) -> None:
    assert read_result(str(tmp_path), "one") is None
    write_stopped(options(tmp_path), "x", BEGUN, 0)
    assert read_result(str(tmp_path), "two") is None
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(OutputFailed, match="cannot read"):
        read_result(str(tmp_path), "one")


def test_an_earlier_result_is_removed_and_the_folder_made(tmp_path: Path) -> None:
    remove_result(str(tmp_path / "new"))
    assert (tmp_path / "new").is_dir()
    write_stopped(options(tmp_path), "x", BEGUN, 0)
    remove_result(str(tmp_path))
    assert not (tmp_path / "result.json").exists()


def test_metrics_can_be_read_by_others_and_a_place_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    result = write_stopped(options(tmp_path), "x", BEGUN, 0)
    write_metrics(str(tmp_path / "m.prom"), result)
    assert (tmp_path / "m.prom").stat().st_mode & 0o444 == 0o444
    with pytest.raises(OutputFailed, match="--prometheus"):
        write_metrics(str(tmp_path / "none" / "m.prom"), result)
