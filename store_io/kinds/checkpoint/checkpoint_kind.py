"""The store's checkpoint, as an audit asks for it, and the check of its times against the log's (formats.md 7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from schemas.layouts import checkpoint_layout
from schemas.outcome import Outcome
from schemas.rows import Finding, MappedFile, PlanStep
from store_io.base.errors import StoreError
from store_io.kinds.checkpoint.checkpoint_reader import StoredCheckpoint, checkpoint_findings, read_checkpoint
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Opening, rebuilt
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

    def left_by_start(self, evidence: Evidence, serious: Sequence[Finding]) -> Iterable[PlanStep]:
        return rebuilt(serious, lambda file: file if file == checkpoint_layout.CHECKPOINT_FILE else "").values()

    def plan_inputs(self, copy: OpenedCopy) -> Iterable[str]:
        return (checkpoint_layout.CHECKPOINT_FILE,)

    def add_to_outcome(self, evidence: Evidence, outcome: Outcome) -> Outcome:
        stored = evidence.copy[self]
        return replace(outcome, holds=replace(outcome.holds, checkpoint=stored.fields)) if stored.present else outcome


CHECKPOINT = CheckpointKind()


def checkpoint_times(evidence: Evidence) -> list[Finding]:
    """Compare the checkpoint with the log, if the log's newest message was read."""
    if not evidence.end_is_known:
        return []
    times = [(s.first_store_time, s.last_store_time) for s in evidence.segments if s.first_store_time or s.last_store_time]
    times += [time_of_head(evidence, file) for file in evidence.unread]
    first, last = (min(t[0] for t in times), max(t[1] for t in times)) if times else (0, 0)
    return checkpoint_findings(
        evidence.copy[CHECKPOINT],
        first_store_time=first,
        last_store_time=last,
        log_end=evidence.log.data_end,
        unclean=evidence.copy.unclean,
        keyed_queues=evidence.copy.rules.rocksdb_queues,
    )


def time_of_head(evidence: Evidence, file: MappedFile) -> tuple[int, int]:
    """Return earliest and latest store time of an unread segment, by its first record or an earlier run; else zeros."""
    known = evidence.earlier.unchanged(file.path)
    if known is not None and known.verified_run and known.row.get("messages"):
        return known.row["first_store_time_ms"], known.row["last_store_time_ms"]
    first = evidence.edges[file.path].first if file.path in evidence.edges else None
    return (first.store_time, first.store_time) if first is not None and first.check_ok and not first.blank else (0, 0)
