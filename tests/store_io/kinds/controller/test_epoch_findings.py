"""Findings on the epoch file by themselves; their twins are in tests/test_detection.py."""

from __future__ import annotations

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, Extent, SegmentSummary
from store_io.broker.epochs import Epoch
from store_io.kinds.controller.controller_files import BadEpochFile, EpochLine, StoredEpochs
from store_io.kinds.controller.controller_kind import CONTROLLER, ControllerFiles
from store_io.kinds.controller.epoch_findings import epoch_findings
from store_io.kinds.controller.epoch_starts import EpochStartsResult
from store_io.model.opened_copy import OpenedCopy
from tests.support.handmade.evidence import copy_of, evidence_of

TWO = StoredEpochs(
    (Epoch(1, 0), Epoch(2, 50)), "epochFileCheckpoint", (EpochLine(Epoch(1, 0), 4, 7), EpochLine(Epoch(2, 50), 8, 12))
)


def replica(epochs: StoredEpochs) -> OpenedCopy:
    return copy_of(of_kinds={CONTROLLER: ControllerFiles(epochs)})


def segment_of(kind: str) -> SegmentSummary:
    return SegmentSummary(f"commitlog/{0:020d}", 0, 100, extents=[Extent(kind, 0, 100, 1)])


def test_what_follows_from_a_damaged_file_is_said() -> None:
    bad = BadEpochFile("epochFileCheckpoint", 9, "it is no UTF-8", fatal=False)
    for epochs, said in (
        (StoredEpochs(bad=(bad,)), "without epochs"),
        (StoredEpochs((Epoch(1, 0),), "epochFileCheckpoint.bak", bad=(bad,)), "takes epochFileCheckpoint.bak"),
        (StoredEpochs(bad=(BadEpochFile("epochFileCheckpoint", 0, "it is empty", fatal=True),)), "start() fails"),
    ):
        (found,) = epoch_findings(evidence_of(replica(epochs)))
        assert said in found.message and found.file == "epochFileCheckpoint"


def test_a_start_inside_of_damage_says_nothing() -> None:
    for kind, count in ((EXTENT_MESSAGE, 1), (EXTENT_DAMAGED, 0)):
        evidence = evidence_of(replica(TWO), segments=[segment_of(kind)], found={CONTROLLER: EpochStartsResult([50])})
        found = epoch_findings(evidence)
        assert [(f.code, f.start, f.end) for f in found] == [("epoch_not_at_record", 8, 12)] * count
