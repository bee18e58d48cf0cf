"""The steps that a repair carries out, in their order and with their numbers. Each says what it does to which bytes, why, and
what it keeps and loses.

plan.json has them under `repair`, by policy; a dry run shows them, and NEW.repair.json has them under `steps`. All three come
from the same run of the same code, so they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.dledger_layout import DATA, FOLDER_PREFIX
from schemas.rows import Row
from schemas.store_names import COMMITLOG
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree

ACTIONS = (
    COPY, TAKE, HEAL, REMOVE, RENAME, RESIZE, CREATE, CUT, ZERO, BRIDGE, FILL, ADD_SEGMENT,
    REBUILD_QUEUE, REBUILD_INDEX, WRITE_ENTRY, WRITE_HEADER, WRITE_CHECKPOINT, WRITE_EPOCHS, WRITE_CONFIG,
    REBUILD_TIMERS, CORRECT_OFFSETS, REBUILD_DATABASE, REBUILD_TABLES,
) = (
    "copy", "take", "heal", "remove", "rename", "resize", "create", "cut", "zero", "bridge", "fill", "add_segment",
    "rebuild_queue", "rebuild_index", "write_entry", "write_header", "write_checkpoint", "write_epochs", "write_config",
    "rebuild_timers", "correct_offsets", "rebuild_database", "rebuild_tables",
)  # fmt: skip
_NOT_ITS_PLAN = "the steps of the plan do not follow from the copy"


@dataclass(frozen=True)
class Step:
    """One change of the new store.

    file: "" for all of it.
    start, end: bytes of the file, None for the whole.
    reason: a clause.

    kept, lost: what the step puts or leaves there, and what it takes away: counts of "messages", "bytes", "entries" (of queues,
    index and tables of config/), "files", "queues" and "positions" (queue offsets, or offsets of consumers). Only those that
    apply to the action are present.
    sha256: of what a rebuilt database holds, whose files are others in each run (rocksdb.md 9); else empty.
    """

    action: str
    file: str
    start: int | None = None
    end: int | None = None
    reason: str = ""
    kept: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""

    def row(self, number: int) -> Row:
        """Return the step as plan and report have it.

        number: from 1.
        """
        found = {
            "number": number, "action": self.action, "file": self.file, "start": self.start, "end": self.end,
            "reason": self.reason, "kept": _known(self.kept), "lost": _known(self.lost),
        }  # fmt: skip
        return found | ({"sha256": self.sha256} if self.sha256 else {})


@dataclass
class Steps:
    """The steps so far.

    planned: those of the plan, as rows; None if the plan has none for this repair.
    """

    planned: Sequence[Row] | None = None
    done: list[Step] = field(default_factory=list)

    def add(self, action: str, file: str, **more: Any) -> None:
        """Add one more step. more: the other fields of `Step`."""
        self.take(Step(action, file, **more))

    def take(self, step: Step) -> None:
        """Take a step, before it is carried out. Raises StoreError if the plan has another one under its number."""
        self.done.append(step)
        if self.planned is None:
            return
        number = len(self.done)
        row = step.row(number)
        if number > len(self.planned):
            raise StoreError(f"{_NOT_ITS_PLAN}: step {number}, {_said(row)}, is not in the plan, which ends with {number - 1}")
        if _said(self.planned[number - 1]) != _said(row):
            raise StoreError(
                f"{_NOT_ITS_PLAN}: step {number} is {_said(self.planned[number - 1])} in the plan, {_said(row)} by the copy"
            )

    def finish(self) -> None:
        """Raise StoreError if the plan has steps that were not carried out."""
        if self.planned is not None and len(self.planned) > len(self.done):
            row = self.planned[len(self.done)]
            raise StoreError(f"{_NOT_ITS_PLAN}: step {row['number']}, {_said(row)}, is in the plan and nothing asks for it")

    @property
    def changed(self) -> bool:
        """Say whether the new store is anything else than a copy by now."""
        return any(step.action != COPY for step in self.done)

    @property
    def rows(self) -> list[Row]:
        """Return the steps as the report has them, numbered from 1."""
        return [step.row(number) for number, step in enumerate(self.done, 1)]


def _said(row: Row) -> str:
    """Return a step in one line, without its reason: two steps with the same line do the same."""
    size = "" if row["start"] is None else f" [{row['start']}, {row['end']})"
    numbers = [f"{word} {count} {name}" for word in ("kept", "lost") for name, count in sorted(row[word].items())]
    numbers += [f"sha256 {row['sha256']}"] if "sha256" in row else []
    return " ".join([f"{row['action']} {row['file']!r}{size}", *([f"({', '.join(numbers)})"] if numbers else [])])


def _known(numbers: Mapping[str, int]) -> Row:
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
