"""Messages with keys that no index file covers."""

from __future__ import annotations

import numpy as np

from schemas.layouts import index_layout
from schemas.rows import INDEX_RUN_DTYPE, WALK_AUDIT, IndexFileSummary
from store_io.kinds.index.unindexed import unindexed
from tests.support.handmade.evidence import copy_of, evidence_of, log_path, request_of, segment

COPY = copy_of({log_path(0): 1000, "index/7": 100})
FILE = IndexFileSummary("index/7", 100)
INDEX = {FILE.path: FILE}


def test_all_that_lies_outside_is_one_finding_at_the_newest_header() -> None:
    segments = [segment(0, index_unindexed=(700, 800, 2, 3)), segment(1000), segment(2000, index_unindexed=(2100, 2100, 1, 1))]
    (finding,) = unindexed(evidence_of(COPY, segments=segments, index=INDEX))
    assert (finding.file, finding.start, finding.end) == ("index/7", 0, index_layout.HEADER_BYTES)
    assert (finding.phy_offset, finding.count) == (700, 4)
    assert finding.expected == "4 entries of 3 messages from 700 to 2,100"
    assert unindexed(evidence_of(COPY, segments=[segment(0)], index=INDEX)) == []


def test_without_any_index_file_the_keys_of_all_messages_are_missing() -> None:
    runs = np.zeros(2, INDEX_RUN_DTYPE)
    runs["walk"], runs["records"], runs["keys"] = WALK_AUDIT, 5, (7, 0)
    runs["first_key_phy_offset"], runs["last_key_phy_offset"] = 40, 90
    (finding,) = unindexed(evidence_of(copy_of({log_path(0): 1000}), segments=[segment(0, index_runs=runs)]))
    assert (finding.file, finding.start, finding.phy_offset, finding.count) == ("index", None, 40, 7)


def test_nothing_is_said_where_the_index_was_not_read() -> None:
    facts = {"segments": [segment(0, index_unindexed=(700, 800, 2, 3))], "index": INDEX}
    assert len(unindexed(evidence_of(COPY, **facts))) == 1
    assert unindexed(evidence_of(COPY, request_of(level="quick"), **facts)) == []
    assert unindexed(evidence_of(COPY, late=frozenset({FILE.path}), **facts)) == []
    assert unindexed(evidence_of(COPY, broken=True, **facts)) == []
