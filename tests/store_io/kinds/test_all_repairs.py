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


def test_a_kind_is_rebuilt_in_two_parts_around_the_pass_over_the_log() -> None:
    """A part that does nothing waits for the pass as well, and ends after it."""
    steps = KindRepair().rebuild(None)  # type: ignore[arg-type]
    assert next(steps) is None and next(steps, "done") == "done"
