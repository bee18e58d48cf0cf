"""The checkpoint of a repaired store: as a clean stop leaves it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from schemas.advice import Refusal
from schemas.layouts import checkpoint_layout as layout
from schemas.layouts.store_names import INDEX
from store_io.log.entries.index_entries import read_header
from store_io.repair.kind_repair import Added, KindRepair, Round
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import WRITE_CHECKPOINT
from store_io.repair.repair_work import Work


@dataclass(frozen=True)
class NewCheckpoint:
    """The values of a new checkpoint.

    time, index_time: store times up to which log and queues, and the index, are on the disk.
    master: the master's flushed offset.
    last_message: physical offset of the log's last message; 0 if no message is confirmed.
    end: the log's end; a replica in controller mode has everything before it in its queues.
    """

    time: int = 0
    index_time: int = 0
    master: int = 0
    last_message: int = 0
    end: int = 0


class CheckpointRepair(KindRepair):
    """The checkpoint: as a clean stop leaves it, or such that the release starts."""

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        if refusal.path != layout.CHECKPOINT_FILE:
            return False
        put(work, NewCheckpoint(), reason)
        return True

    def write_marks(self, now: Round) -> None:
        if now.work.steps.changed or is_blamed(now.audit):
            write_checkpoint(now.work, now.audit, now.before.checkpoint.master_flushed_offset, now.log.end)

    def lead_to(self, work: Work, audit: Audited, added: Added) -> bool:
        at = added.phy_offset
        put(work, NewCheckpoint(audit.last_store_time, index_time(work, audit), 0, at, at), "leads a start to the added segment")
        return False


def put(work: Work, new: NewCheckpoint, reason: str) -> None:
    """Write the checkpoint, as a step of its own; the last two fields if the release knows them."""
    work.steps.add(WRITE_CHECKPOINT, layout.CHECKPOINT_FILE, start=0, end=layout.FILE_BYTES, reason=reason)
    confirmed = new.last_message if work.rules.keeps_confirm_offset else 0
    confirmed = new.end if work.rules.controlled else confirmed
    logics = new.last_message if work.rules.start_by_logics_offset and not work.rules.rocksdb_queues else 0
    queued = 0 if work.rules.rocksdb_queues else new.time  # rocksdb.md 2
    fields = struct.pack(layout.FIELDS_FORMAT, new.time, queued, new.index_time, new.master, confirmed, logics)
    work.writer.put(layout.CHECKPOINT_FILE, fields.ljust(layout.FILE_BYTES, b"\0"))


def write_checkpoint(work: Work, audit: Audited, stored_master: int, log_end: int) -> None:
    """Write the checkpoint by that audit.

    stored_master: the master's flushed offset in the copy, which stays if the log still holds it.
    """
    master = stored_master if -1 <= stored_master <= log_end else 0
    new = NewCheckpoint(audit.last_store_time, index_time(work, audit), master, audit.last_message, log_end)
    put(work, new, "as a clean stop leaves it")


def is_blamed(audit: Audited) -> bool:
    """Say whether the audit finds anything above a note about the checkpoint."""
    return any(f.file == layout.CHECKPOINT_FILE for f in audit.serious)


def index_time(work: Work, audit: Audited) -> int:
    """Return the newest index file's last time. All of it is on the disk, so a later crash need not delete it."""
    files = [e.path for e in work.tree.children(INDEX) if e.kind == "file"]
    return max(0, min(read_header(work.source, files[-1]).end_timestamp, audit.last_store_time)) if files else 0
