"""The steps that a repair carries out, in their order and with their numbers. Each says what it does to which bytes, why, and
what it keeps and loses.

plan.json has them under `repair`, by policy; a dry run shows them, and NEW.repair.json has them under `steps`. All three come
from the same run of the same code, so they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.layouts.dledger_layout import DATA, FOLDER_PREFIX
from schemas.layouts.store_names import COMMITLOG
from schemas.repair import COPY as COPY
from schemas.repair import CORRECT_OFFSETS as CORRECT_OFFSETS
from schemas.repair import RepairStep
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree

(
    TAKE, HEAL, REMOVE, RENAME, RESIZE, CREATE, CUT, ZERO, BRIDGE, FILL, ADD_SEGMENT, REBUILD_QUEUE, REBUILD_INDEX, WRITE_ENTRY,
    WRITE_HEADER, WRITE_CHECKPOINT, WRITE_EPOCHS, WRITE_CONFIG, REBUILD_TIMERS, REBUILD_DATABASE, REBUILD_TABLES,
) = _OTHERS = (
    "take", "heal", "remove", "rename", "resize", "create", "cut", "zero", "bridge", "fill", "add_segment", "rebuild_queue",
    "rebuild_index", "write_entry", "write_header", "write_checkpoint", "write_epochs", "write_config", "rebuild_timers",
    "rebuild_database", "rebuild_tables",
)  # fmt: skip
ACTIONS = COPY, *_OTHERS, CORRECT_OFFSETS
_NOT_ITS_PLAN = "the steps of the plan do not follow from the copy"


@dataclass
class Steps:
    """The steps so far.

    planned: those of the plan; None if the plan has none for this repair.
    """

    planned: Sequence[RepairStep] | None = None
    done: list[RepairStep] = field(default_factory=list)

    def add(self, action: str, file: str, **more: Any) -> None:
        """Add one more step. more: the other fields of `RepairStep`."""
        self.take(RepairStep(action, file, **more))

    def take(self, step: RepairStep) -> None:
        """Take a step, before it is carried out. Raises StoreError if the plan has another one under its number."""
        step = replace(step, kept=_known(step.kept), lost=_known(step.lost))
        self.done.append(step)
        if self.planned is None:
            return
        number = len(self.done)
        if number > len(self.planned):
            raise StoreError(f"{_NOT_ITS_PLAN}: step {number}, {_said(step)}, is not in the plan, which ends with {number - 1}")
        if _said(self.planned[number - 1]) != _said(step):
            raise StoreError(
                f"{_NOT_ITS_PLAN}: step {number} is {_said(self.planned[number - 1])} in the plan, {_said(step)} by the copy"
            )

    def finish(self) -> None:
        """Raise StoreError if the plan has steps that were not carried out."""
        if self.planned is not None and len(self.planned) > len(self.done):
            number = len(self.done)
            step = _said(self.planned[number])
            raise StoreError(f"{_NOT_ITS_PLAN}: step {number + 1}, {step}, is in the plan and nothing asks for it")

    @property
    def changed(self) -> bool:
        """Say whether the new store is anything else than a copy by now."""
        return any(step.action != COPY for step in self.done)


def _said(step: RepairStep) -> str:
    """Return a step in one line, without its reason: two steps with the same line do the same."""
    size = "" if step.start is None else f" [{step.start}, {step.end})"
    counts = (("kept", step.kept), ("lost", step.lost))
    numbers = [f"{word} {count} {name}" for word, held in counts for name, count in sorted(held.items())]
    numbers += [f"sha256 {step.sha256}"] if step.sha256 else []
    return " ".join([f"{step.action} {step.file!r}{size}", *([f"({', '.join(numbers)})"] if numbers else [])])


def _known(numbers: Mapping[str, int]) -> Mapping[str, int]:
    return {name: count for name, count in numbers.items() if count}


def is_of_log(path: str) -> bool:
    """Say whether a step's file belongs to the log: a CommitLog segment, or a data file of a DLedger group."""
    top, _, below = path.partition("/")
    return top == COMMITLOG or top.startswith(FOLDER_PREFIX) and below.partition("/")[0] == DATA


def bytes_at(tree: Tree, path: str) -> dict[str, int]:
    """Return the bytes that go with a file, or with a folder and all that is in it: for `lost`."""
    inside = [e for e in tree.all if e.path.startswith(path + "/")] if tree.is_folder(path) else []
    own = tree.by_path.get(path)
    return {"bytes": sum(e.size for e in [*inside, *([own] if own is not None else [])] if e.kind == "file")}
