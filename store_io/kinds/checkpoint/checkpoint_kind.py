"""The store's checkpoint, as an audit asks for it (formats.md 7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from schemas import checkpoint_layout
from schemas.rows import AuditOutcome
from store_io.base.errors import StoreError
from store_io.kinds.checkpoint.checkpoint_reader import StoredCheckpoint, read_checkpoint
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Opening
from store_io.model.opened_copy import OpenedCopy


class CheckpointKind(Kind[StoredCheckpoint, None, None]):
    """The checkpoint: a small file, which needs no task."""

    name = "checkpoint"

    def open(self, opening: Opening) -> StoredCheckpoint:
        try:
            stored = read_checkpoint(opening.source, opening.listing)
        except StoreError as error:
            opening.gaps.cannot_read(error.gap())
            stored = StoredCheckpoint()
        opening.checkpoint = stored.fields
        return stored

    def nothing_found(self) -> None:
        return None

    def plan_inputs(self, copy: OpenedCopy) -> Iterable[str]:
        return (checkpoint_layout.CHECKPOINT_FILE,)

    def add_to_outcome(self, evidence: Evidence, outcome: AuditOutcome) -> None:
        stored = evidence.copy[self]
        outcome.checkpoint = asdict(stored.fields) if stored.present else {}


CHECKPOINT = CheckpointKind()
