"""Ratios in a file: kept ones stay, worse ones fail, and a file of another kind is a usage error."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import ratios, this_machine
from store_io.base.errors import UsageError
from tests import ROOT


def test_what_was_not_measured_again_stays_in_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "ratios.json")
    ratios.write(path, "one kind", {"task 1 KiB": 2.4, "explain": 0.05})
    ratios.write(path, "another", {"explain": 0.09})
    ratios.write(path, "one kind", {"explain": 0.06})
    assert ratios.read(path) == {"one kind": {"task 1 KiB": 2.4, "explain": 0.06}, "another": {"explain": 0.09}}


def test_ratios_of_other_processors_are_not_compared(tmp_path: Path) -> None:
    path = str(tmp_path / "ratios.json")
    ratios.write(path, "one kind", {"explain": 0.05})
    assert ratios.of_processor(path, "one kind") == {"explain": 0.05}
    with pytest.raises(UsageError, match=r"no ratios of this processor \(another\), only of: one kind\. --write"):
        ratios.of_processor(path, "another")


def test_the_kept_file_is_one_that_can_be_compared() -> None:
    kept = ratios.read(str(ROOT / "bench" / "ratios.json"))
    assert kept and all(of for of in kept.values())


def test_a_processor_has_one_name() -> None:
    assert this_machine.kind() and this_machine.machine_text().startswith(this_machine.kind())


def test_more_than_a_tenth_worse_fails() -> None:
    kept = {"task": 2.0, "explain": 0.05, "not measured": 1.0}
    text, worse = ratios.compared(kept, {"task": 2.19, "explain": 0.04, "query": 0.1})
    assert not worse and "WORSE" not in text and "not measured" not in text
    lines = [line.split() for line in text.splitlines()[1:]]
    assert lines == [["task", "2", "2.19", "+9%"], ["explain", "0.05", "0.04", "-20%"], ["query", "0.1", "new"]]
    text, worse = ratios.compared(kept, {"task": 2.21, "explain": 0.05})
    assert worse and text.splitlines()[1].split() == ["task", "2", "2.21", "+10%", "WORSE"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"processors": 1}', '{"processors": {"a": {"b": "x"}}}', '{"ratios": {"a": 1}}', "[" * 100_000]
)
def test_a_file_of_another_kind(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ratios.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="holds no ratios"):
        ratios.read(str(path))
    with pytest.raises(UsageError, match="cannot read"):
        ratios.read(str(tmp_path / "none.json"))
