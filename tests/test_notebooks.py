"""The notebooks: run from the top in a kernel of their own, and what is committed shows what they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from jobs.commands import notebook
from jobs.runtime import setup as environment

NOTEBOOKS = {path.stem: path for path in sorted(notebook.FOLDER.glob("*.ipynb"))}
SHOWN = {  # notebook -> (texts that its outputs hold, plots)
    "exploring_messages": (["14,211 messages, 10.3 MB", "426 transactions, 140 open", "zstd decoded 67"], 7),
    "incident_walkthrough": (
        [
            "Do not start this copy yet",
            "0x6a becomes 0x62 at byte 6,761 of commitlog/00000000000000524288",
            "body as it is: 0x5db198bd",
            "body with this change: 0x7c769847",
            "store 20 1670 279 530831 16",
            "healed 0 1671 0 647246 16",
        ],
        4,
    ),
    "trend_over_audits": (
        [f"night {i}: exit code {code}" for i, code in enumerate((0, 0, 20, 20, 0), 1)]
        + ["night-4 20 2 485", "broker-a: code 20 -> 0; 2 new findings, 6 fixed findings"],
        4,
    ),
}


def outputs(found: Any) -> Iterator[tuple[str, str]]:
    """(kind, text or base64) of everything that the cells gave."""
    for cell in found.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield "text", output.text
            yield from output.get("data", {}).items()
            assert output.output_type != "error", output


def check_shown(name: str, found: Any) -> None:
    shown = list(outputs(found))
    text = " ".join(re.sub(r"\s+", " ", value) for kind, value in shown if kind.startswith("text"))
    wanted, plots = SHOWN[name]
    for piece in wanted:
        assert piece in text, piece
    assert sum(kind == "image/png" for kind, _ in shown) == plots


def test_every_notebook_is_tested() -> None:
    assert set(NOTEBOOKS) == set(SHOWN)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_is_committed_shows_a_run_from_the_top(name: str) -> None:
    found = nbformat.read(NOTEBOOKS[name], 4)
    nbformat.validate(found)
    check_shown(name, found)
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert code[0].metadata.tags == ["parameters"]
    assert NOTEBOOKS[name].stat().st_size < 500_000
    assert str(environment.ROOT) not in NOTEBOOKS[name].read_text()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_dollars_in_the_names_of_a_store_are_text(name: str) -> None:
    """As TeX, a group called `$\\frac$` would end the cell that draws it."""
    code = "".join(cell.source for cell in nbformat.read(NOTEBOOKS[name], 4).cells if cell.cell_type == "code")
    assert '"text.parse_math": False' in code


BY_DEFAULT = "incident_walkthrough"  # audits, repairs and reads by most of the sources; the others under the mark soak


@pytest.mark.spark
@pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == BY_DEFAULT else pytest.mark.soak) for name in NOTEBOOKS])
def test_each_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in notebook.kernel_environment().items():
        monkeypatch.setenv(variable, value)
    found = nbformat.read(NOTEBOOKS[name], 4)
    for cell in found.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    around = {"metadata": {"path": str(notebook.FOLDER)}}
    NotebookClient(found, timeout=200, startup_timeout=200, kernel_name="python3", resources=around).execute()
    check_shown(name, found)
