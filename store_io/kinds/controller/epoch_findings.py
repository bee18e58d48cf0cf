"""The epoch file of a replica in controller mode: damaged, in no order, or naming places where the log has no record's edge.

Source of the rules: controller.md 1, 4, 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from schemas.finding_codes import Code
from schemas.rows import EXTENT_MESSAGE, Finding
from store_io.kinds.controller.controller_files import BadEpochFile, EpochLine, StoredEpochs
from store_io.model.evidence import Evidence


def epoch_findings(evidence: Evidence) -> list[Finding]:
    """Return the findings on the epoch file; none if the broker is not in controller mode."""
    epochs = evidence.copy.epochs
    found = [_damaged(bad, epochs) for bad in epochs.bad]
    found += _not_rising(epochs)
    found += _beyond_end(evidence)
    if evidence.log_whole:
        found += _inside_records(evidence)
    return found


def _damaged(bad: BadEpochFile, epochs: StoredEpochs) -> Finding:
    if bad.fatal:
        follows = "start() fails over it, whatever the .bak holds"
    elif epochs.path:
        follows = f"the broker takes {epochs.path}, which may lack the newest epoch"
    else:
        follows = "the broker starts without epochs"
    expected = "entries with their number and checksum"
    return Finding(
        Code.EPOCH_FILE_DAMAGED,
        bad.path,
        0,
        bad.size,
        expected=expected,
        actual=bad.reason,
        message=f"{bad.path}: {bad.reason}; {follows}",
    )


def _not_rising(epochs: StoredEpochs) -> Iterator[Finding]:
    for before, line in pairwise(epochs.lines):
        if line.epoch.epoch <= before.epoch.epoch or line.epoch.start <= before.epoch.start:
            last = f"epoch {before.epoch.epoch} from {before.epoch.start:,}"
            yield _of_line(Code.EPOCH_NOT_RISING, epochs, line, f"an epoch and a start above those of {last}")


def _beyond_end(evidence: Evidence) -> Iterator[Finding]:
    prediction, epochs = evidence.prediction, evidence.copy.epochs
    if not evidence.end_is_known or prediction is None or not prediction.starts:
        return
    end = max(evidence.log.data_end, prediction.truncate_at)
    for line in epochs.lines:
        if line.epoch.start > end:
            yield _of_line(Code.EPOCH_BEYOND_END, epochs, line, f"a start of at most {end:,}, the log's end")
        elif line.epoch.start < 0:
            yield _of_line(Code.EPOCH_NOT_RISING, epochs, line, "a start of at least 0")


def _inside_records(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings on epochs that start inside of a sound record.

    A place at which the log is damaged, or ends, shows nothing.
    """
    epochs = evidence.copy.epochs
    suspects = set(evidence.no_epoch_starts)
    for line in epochs.lines:
        start = line.epoch.start
        if start in suspects and any(
            extent.kind == EXTENT_MESSAGE and extent.start < start - segment.base_offset < extent.end
            for segment in evidence.segments
            if segment.base_offset < start < segment.base_offset + segment.size
            for extent in segment.extents
        ):
            yield _of_line(Code.EPOCH_NOT_AT_RECORD, epochs, line, "a physical offset at which a record begins")


def _of_line(code: Code, epochs: StoredEpochs, line: EpochLine, expected: str) -> Finding:
    said = f"epoch {line.epoch.epoch} from {line.epoch.start:,}"
    return Finding(
        code,
        epochs.path,
        line.start,
        line.end,
        phy_offset=line.epoch.start if line.epoch.start >= 0 else None,
        expected=expected,
        actual=said,
        message=f"{epochs.path}: {said}; expected {expected}",
    )
