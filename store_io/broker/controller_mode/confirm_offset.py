"""The place up to which a fenced broker dispatches: confirmOffset, as load() leaves it.

Source: CommitLog.recoverNormally, recoverAbnormally, getConfirmOffset; 5.1.1 and later (controller.md 3). `last_read` is
that of a store with duplicationEnable, 5.0.0 and later (recovery.md 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.rows import WALK_BROKER, SegmentSummary
from store_io.broker.dispatch import Choice
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.queues.queue_puts import end_of


@dataclass
class ConfirmOffset:
    """The value in the broker's memory. dispatched_to: lastConfirmValidMsgPhyOffset of recoverAbnormally."""

    value: int
    dispatched_to: int = 0
    last_read: int = -1  # lastValidMsgPhyOffset; -1: none was read

    def begin(self, phy_offset: int) -> None:
        """The scan begins in the segment of this base offset."""
        self.dispatched_to = phy_offset

    def read(self, summary: SegmentSummary) -> None:
        """Take in what a scan read, dispatched or not."""
        rows = summary.runs[summary.runs["walk"] & WALK_BROKER != 0]
        if len(rows):
            self.last_read = int(np.max(_places(summary, rows)))  # where it lies, whatever it stores

    def confirm_last(self, begin: int, unclean: bool) -> None:
        """Set the value that recovery leaves with duplicationEnable: the start of the last message read, else its begin."""
        if self.last_read >= 0:
            self.value = self.last_read
        elif unclean:
            self.value = begin

    def met(self, scan: ScanId, summary: SegmentSummary, choice: Choice, needs: Needs) -> None:
        """Take in what a scan after an unclean exit dispatched, messages without a queue entry too."""
        rows = summary.runs[summary.runs["walk"] & WALK_BROKER != 0]
        if not len(rows):
            return
        ends = end_of(rows["last_phy_offset"], rows["last_size"])
        first_ends = end_of(rows["first_phy_offset"], rows["first_size"])
        yes, inside = choice.accepts(rows["first_phy_offset"], rows["last_phy_offset"], first_ends, ends)
        if inside.any():
            needs.phy_cuts[scan].add(choice.threshold)
        if yes.any():  # the end that the last of them stores
            self.dispatched_to = int(ends[yes][np.argmax(_places(summary, rows)[yes])])

    def settle(self, minimum: int, end: int, unclean: bool) -> None:
        """Clamp the value as recovery does. minimum, end: of the log."""
        if self.value < minimum:
            self.value = minimum
        else:
            self.value = min(self.value, self.dispatched_to if unclean else end)
        self.value = min(self.value, end)


def _places(summary: SegmentSummary, rows: np.ndarray) -> np.ndarray:
    """Return the place of the last record of each of these runs. A run with another physical offset in it is one record."""
    places: np.ndarray = np.where(rows["regular"], rows["last_phy_offset"], summary.base_offset + rows["first_position"])
    return places
