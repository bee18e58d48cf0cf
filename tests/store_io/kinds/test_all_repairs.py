"""The list of the kinds' parts in a repair."""

from __future__ import annotations

import importlib

from store_io.kinds.all_repairs import REPAIRS
from store_io.repair.kind_repair import KindRepair
from tests import ROOT


def test_every_part_is_listed_once() -> None:
    for path in sorted((ROOT / "store_io" / "kinds").rglob("*.py")):
        if "KindRepair" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    listed = [type(part) for part in REPAIRS]
    assert len(listed) == len(set(listed)) and set(listed) == set(KindRepair.__subclasses__())
