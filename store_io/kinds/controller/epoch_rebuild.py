"""The epoch file of a repaired replica: those epochs that fit the new log, in a form that every start reads.

An epoch is kept where its number and its start rise and its start is a place between two records of the new log. A file of length
0 is never left: no start survives it (controller.md 1).
"""

from __future__ import annotations

from schemas.advice import Refusal
from schemas.finding_codes import Code
from schemas.layouts.store_names import EPOCH_FILE
from store_io.base.errors import NotAFile
from store_io.broker.epochs import NO_END, Epoch
from store_io.kinds.controller.controller_files import EPOCH_FILE_BYTES, FILES, Fatal, Unusable, epoch_text, parse_epochs
from store_io.kinds.controller.controller_kind import CONTROLLER
from store_io.repair.kind_repair import KindRepair, Round
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import WRITE_EPOCHS
from store_io.repair.repair_work import Work
from store_io.wording.refusals import refusal_sentence

CODES = (Code.EPOCH_FILE_DAMAGED, Code.EPOCH_NOT_RISING, Code.EPOCH_BEYOND_END, Code.EPOCH_NOT_AT_RECORD)


class ControllerRepair(KindRepair):
    """The epoch file, written anew if it is at fault, or if an epoch begins beyond the new log's end."""

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        if refusal.path not in FILES:
            return False
        _put_backup(work, audit, reason, NO_END)
        return True

    def write_marks(self, now: Round) -> None:
        audit, log_end = now.audit, now.log.end
        epochs = audit.copy[CONTROLLER].epochs
        if epochs.refusal:
            _put_backup(now.work, audit, str(refusal_sentence(epochs.refusal)), log_end)
            return
        blamed = [finding for finding in audit.findings if finding.code in CODES]
        if not blamed and all(epoch.start <= log_end for epoch in epochs.epochs):
            return
        lines = {finding.start for finding in blamed if finding.file == epochs.path and finding.code != Code.EPOCH_FILE_DAMAGED}
        fit = [line.epoch for line in epochs.lines if line.start not in lines and 0 <= line.epoch.start <= log_end]
        put(now.work, audit, rising(sorted(fit)), "only epochs that fit the log")


def _put_backup(work: Work, audit: Audited, reason: str, log_end: int) -> None:
    """Put what its .bak holds in the place of a file over which start() fails, else nothing."""
    lines: list[Epoch] = []
    for path in filter(audit.tree.exists, FILES):
        try:
            lines = [line.epoch for line in parse_epochs(work.source.read_small(path, EPOCH_FILE_BYTES))]
        except (Unusable, Fatal, NotAFile):
            continue
        if lines:
            break
    put(work, audit, rising([line for line in sorted(lines) if 0 <= line.start <= log_end]), reason)


def rising(epochs: list[Epoch]) -> list[Epoch]:
    """Return the epochs above all before them.

    epochs: by number.
    """
    kept: list[Epoch] = []
    for epoch in epochs:
        if not kept or epoch.epoch > kept[-1].epoch and epoch.start > kept[-1].start:
            kept.append(epoch)
    return kept


def put(work: Work, audit: Audited, epochs: list[Epoch], reason: str) -> None:
    """Write these in the place of both files, as steps of their own; without any a start has none."""
    for path in FILES:
        if audit.tree.exists(path) and work.tree.exists(path) and (path != EPOCH_FILE or not epochs):
            work.remove(path, reason, work.tree)
    if epochs:
        text = epoch_text(epochs)
        work.steps.add(WRITE_EPOCHS, EPOCH_FILE, start=0, end=len(text), reason=reason)
        work.writer.put(EPOCH_FILE, text)
