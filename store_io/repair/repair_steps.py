"""The steps that a repair carries out, in their order and with their numbers: what each does to which bytes, and why, and what it
keeps and loses.

A dry run records the same steps, as it does the same. NEW.repair.json has them under `steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.rows import Row
from store_io.rules.loading import Tree

COPY, TAKE, REMOVE, RENAME, RESIZE, CREATE = "copy", "take", "remove", "rename", "resize", "create"
CUT, ZERO, BRIDGE, FILL, ADD_SEGMENT = "cut", "zero", "bridge", "fill", "add_segment"
REBUILD_QUEUE, REBUILD_INDEX, WRITE_ENTRY = "rebuild_queue", "rebuild_index", "write_entry"
WRITE_CHECKPOINT, CORRECT_OFFSETS = "write_checkpoint", "correct_offsets"
ACTIONS = (
    COPY, TAKE, REMOVE, RENAME, RESIZE, CREATE, CUT, ZERO, BRIDGE, FILL, ADD_SEGMENT, REBUILD_QUEUE, REBUILD_INDEX, WRITE_ENTRY,
    WRITE_CHECKPOINT, CORRECT_OFFSETS,
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One act on the new store. file: "" for all of it.  start, end: bytes of the file, None for the whole.  reason: a clause.

    kept, lost: what the step puts or leaves there, and what it takes away: numbers of "messages", "bytes", "entries" (of queues
    and index), "files" and "positions" (of a queue, or of consumers), those that it is about.
    """

    action: str
    file: str
    start: int | None = None
    end: int | None = None
    reason: str = ""
    kept: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Steps:
    """The steps so far."""

    done: list[Step] = field(default_factory=list)

    def add(self, action: str, file: str, **more: Any) -> None:
        """One more; `more`: the other fields of `Step`."""
        self.done.append(Step(action, file, **more))

    @property
    def changed(self) -> bool:
        """Whether the new store is anything else than a copy by now."""
        return any(step.action != COPY for step in self.done)

    @property
    def rows(self) -> list[Row]:
        """For the report, numbered from 1."""
        return [
            {
                "number": number, "action": step.action, "file": step.file, "start": step.start, "end": step.end,
                "reason": step.reason, "kept": _known(step.kept), "lost": _known(step.lost),
            }
            for number, step in enumerate(self.done, 1)
        ]  # fmt: skip


def _known(numbers: Mapping[str, int]) -> Row:
    return {name: count for name, count in numbers.items() if count}


def bytes_at(tree: Tree, path: str) -> dict[str, int]:
    """What goes with a file, or with a folder and all that is in it: for `lost`."""
    inside = [e for e in tree.all if e.path.startswith(path + "/")] if tree.is_folder(path) else []
    own = tree.by_path.get(path)
    return {"bytes": sum(e.size for e in [*inside, *([own] if own is not None else [])] if e.kind == "file")}
