"""Two files that contradict each other: the one that has the finding, and the one that may be wrong as well."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.base.errors import StoreError
from store_io.model.evidence import Evidence
from store_io.model.log_map import MESSAGE

MAX_DISPUTED = 1000


def disputed(evidence: Evidence, findings: Iterable[Finding]) -> list[Finding]:
    """Return the messages whose tags code or keys an entry contradicts.

    Header and properties have no checksum, so the message may be the wrong one.
    """
    log = evidence.log
    found: dict[int, Finding] = {}
    for finding in findings:
        phy_offset = finding.phy_offset
        if finding.code not in (Code.QUEUE_ENTRY_WRONG, Code.INDEX_ENTRY_WRONG) or phy_offset is None or phy_offset in found:
            continue
        if len(found) >= MAX_DISPUTED or log.kind_at(np.array([phy_offset]))[0] != MESSAGE or finding.count > 1:
            continue
        path, position = log.segment_of(phy_offset)
        try:
            with evidence.copy.source.open(path) as file:
                size = int.from_bytes(file.read(position, 4), "big", signed=True)
        except StoreError:  # a failed read is noted: `base.failed_reads`
            continue
        if 0 < size <= log.range_end(phy_offset) - phy_offset:
            found[phy_offset] = Finding(
                Code.MESSAGE_DISPUTED, path, position, position + size, phy_offset=phy_offset, topic=finding.topic,
                queue_id=finding.queue_id, queue_offset=finding.queue_offset, actual=f"{finding.file} says otherwise",
            )  # fmt: skip
    return list(found.values())
