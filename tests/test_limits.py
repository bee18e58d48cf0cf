"""The list of limits in docs/contract.md 7 has the code's own numbers, and every limit for a file that is read whole."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from tests import ROOT

ROW = re.compile(r"^\* .+: ((?:\d[\d ]*)?\d)(?: ([KMG]iB))?\b.*\s\(`([\w.]+)\.(\w+)`\)$", re.MULTILINE)
ROWS = ROW.findall(re.sub(r"\n {2}", " ", (ROOT / "docs" / "contract.md").read_text("utf-8")))
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
OWN = {"limit", "_TABLE_BYTES"}  # a parameter that is passed on; a scratch file of our own


@pytest.mark.parametrize(("number", "unit", "module", "name"), ROWS, ids=[name for *_, name in ROWS])
def test_a_limit_is_that_of_the_code(number: str, unit: str, module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) == int(number.replace(" ", "")) * UNITS.get(unit, 1)


def test_every_file_that_is_read_whole_has_a_limit_in_the_list() -> None:
    used = set()
    for package in ("store_io", "jobs"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            for node in ast.walk(ast.parse(text)) if "read_small" in text or "read_regular" in text else ():
                if isinstance(node, ast.Call) and re.search(r"\bread_(small|regular)$", ast.unparse(node.func)):
                    used |= {ast.unparse(given).rpartition(".")[2] for given in node.args[1:]}
    assert len(used - OWN) > 3
    assert used - OWN - {name for *_, name in ROWS} == set()
