"""Whatever is wrong with a text that somebody gave is a sentence: also what ends a parser in an error of another kind."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import results
from jobs.cli.options import Command
from jobs.commands.export import read_json
from jobs.commands.past import run_list
from jobs.runtime.output import OutputFailed
from jobs.tables import past_runs
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.repair.repair_plan import read_plan

DEEP, LONG = "[" * 100_000, "9" * 5000


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (json.loads, DEEP, "it is nested too deeply"),
        (json.loads, '{"a":' * 100_000, "it is nested too deeply"),
        (json.loads, LONG, "it has a number of too many digits"),
        (json.loads, "{", "Expecting"),
        (tomllib.loads, f"a = {DEEP}", "it is nested too deeply"),
        (tomllib.loads, f"a = {LONG}", "it has a number of too many digits"),
    ],
)
def test_every_error_of_a_parser_is_a_value_error(parse: Callable[[Any], Any], text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parsed(parse, text)


@pytest.mark.parametrize("text", [DEEP, LONG, f'{{"run_id": {DEEP}', "{", "[]"])
def test_files_that_others_may_have_written_give_a_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(text)
    with pytest.raises(StoreError, match=r"result\.json"):
        read_json(str(file))
    with pytest.raises(StoreError, match=r"result\.json"):
        run_list._tables_of(Command("runs", arguments=(str(tmp_path),)))
    assert past_runs._run_of(str(file)) is None
    with pytest.raises(UsageError, match="the plan is no JSON"):
        read_plan(text.encode())
    if text == "[]":
        assert results.read_result(str(tmp_path), "run") is None
    else:
        with pytest.raises(OutputFailed, match=r"result\.json"):
            results.read_result(str(tmp_path), "run")
