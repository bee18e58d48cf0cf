"""Steps: in their order, numbered, and only with numbers that say something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.repair import RepairStep
from schemas.rows import StoreFile
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree
from store_io.repair.repair_steps import REBUILD_DATABASE, Steps, bytes_at


def test_what_goes_with_a_folder_is_all_that_is_in_it() -> None:
    files = [StoreFile("a", "directory", 0, 0), StoreFile("a/b", "file", 5, 0), StoreFile("a/c/d", "file", 7, 0)]
    tree = Tree([*files, StoreFile("ab", "file", 100, 0)])
    assert [bytes_at(tree, path)["bytes"] for path in ("a", "a/c", "a/b", "ab", "none")] == [12, 7, 5, 100, 0]


def test_a_digest_is_a_part_of_what_a_step_says() -> None:
    made = RepairStep(REBUILD_DATABASE, "consumequeue", reason="why", kept={"entries": 3}, sha256="a" * 64)
    Steps([replace(made, reason="another one")]).take(made)
    for other in ({"sha256": "b" * 64}, {"kept": {"entries": 4}}):
        with pytest.raises(StoreError, match="the steps of the plan do not follow from the copy"):
            Steps([replace(made, **other)]).take(made)
