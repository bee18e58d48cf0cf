"""A medium that keeps other bytes than it was given: whatever a repair writes is read again before the store is put in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreError
from store_io.repair.repair_plan import POLICIES, RepairPlan
from store_io.repair.repair_store import repair
from store_io.repair.repair_work import RepairOutcome, RepairRequest
from store_io.repair.writing.store_writer import StoreFileWriter
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import content, run_tasks
from tests.support.damage import invert_byte

BODY = 90  # a byte in the body of a segment's first message
REBUILDING, AUDITING = "rebuilding queues and index", "auditing the new store"


def repaired_with(
    damage: Callable[[Path], None], at: str, root: Path, plan: RepairPlan, target: Path, policy: str
) -> tuple[RepairOutcome, list[str]]:
    """A repair during which the new store is damaged once, when it begins with that; (its outcome, all that it began with)."""
    said: list[str] = []

    def progress(sentence: str) -> None:
        if sentence == at and at not in said:
            (folder,) = target.parent.glob(".new.repairing-*/store")
            damage(folder)
        said.append(sentence)

    request = RepairRequest("store", StoreLocation(str(root)), str(target), plan, policy)
    return repair(request, run_tasks, progress=progress), said


@pytest.mark.parametrize("policy", POLICIES)
def test_a_copy_with_another_byte_is_no_copy(
    damaged: tuple[Path, RepairPlan, dict[str, str]], policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, plan, _ = damaged
    real = StoreFileWriter.take_all

    def take_all(self: StoreFileWriter, file: Any, reached: Any = None) -> None:
        real(self, file, lambda position: None)
        if self.path.startswith("commitlog/"):
            self.write(BODY, bytes([file.read(BODY, 1)[0] ^ 1]))

    monkeypatch.setattr(StoreFileWriter, "take_all", take_all)
    with pytest.raises(StoreError, match="not the one that the plan was made from: commitlog/"):
        repaired_with(lambda _: None, "", root, plan, tmp_path / "new", policy)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("policy", POLICIES)
def test_a_message_that_changes_after_its_checksum_was_taken(
    damaged: tuple[Path, RepairPlan, dict[str, str]], policy: str, tmp_path: Path
) -> None:
    """A rebuild does not take checksums of sound segments again; the audit of the new store does."""
    root, plan, _ = damaged
    segment = min((root / "commitlog").iterdir()).name
    outcome, said = repaired_with(
        lambda folder: invert_byte(folder / "commitlog" / segment, BODY), REBUILDING, root, plan, tmp_path / "new", policy
    )
    assert AUDITING in said[said.index(REBUILDING) :]
    assert outcome.exit_code == 20 and any(segment in problem for problem in outcome.report.problems)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", ["consumequeue", "index"])
def test_an_entry_that_is_not_what_was_written_is_made_again(
    damaged: tuple[Path, RepairPlan, dict[str, str]], part: str, tmp_path: Path
) -> None:
    root, plan, whole = damaged

    def damage(folder: Path) -> None:
        path = max((p for p in (folder / part).rglob("*") if p.is_file()), key=lambda p: (p.stat().st_blocks, p.name))
        invert_byte(path, len(path.read_bytes().rstrip(b"\0")) - 1)

    outcome, said = repaired_with(damage, AUDITING, root, plan, tmp_path / "new", "broker")
    assert outcome.exit_code == 0 and said.count(AUDITING) > 1
    assert content(tmp_path / "new") == whole
