"""Where two files contradict each other: which of them has the finding, and what may be wrong as well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from schemas.rows import Finding
from store_io.audit.evidence import Evidence
from store_io.audit.log_map import MESSAGE
from store_io.base.errors import StoreError
from store_io.formats import index_reader

MAX_DISPUTED = 1000


def settled(evidence: Evidence, findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those on an index file's header where the comparison with messages blames an entry for the same."""
    found = list(findings)
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.file].append(finding)
    for path, summary in evidence.index.items():
        kept = index_reader.without_header_echoes(by_file[path], summary, evidence.copy.rules.index_slots)
        if len(kept) != len(by_file[path]):
            found = [f for f in found if f.file != path] + kept
    return found


def disputed(evidence: Evidence, findings: Sequence[Finding]) -> list[Finding]:
    """The messages whose tags code or keys an entry contradicts: header and properties have no checksum, so the message may be
    the one that is wrong."""
    log = evidence.log
    found: dict[int, Finding] = {}
    for finding in findings:
        phy_offset = finding.phy_offset
        if finding.code not in ("queue_entry_wrong", "index_entry_wrong") or phy_offset is None or phy_offset in found:
            continue
        if len(found) >= MAX_DISPUTED or log.kind_at(np.array([phy_offset]))[0] != MESSAGE or finding.count > 1:
            continue
        path, position = log.segment_of(phy_offset)
        try:
            with evidence.copy.source.open(path) as file:
                size = int.from_bytes(file.read(position, 4), "big", signed=True)
        except StoreError:  # it changed underneath, which is reported elsewhere
            continue
        if 0 < size <= log.range_end(phy_offset) - phy_offset:
            found[phy_offset] = Finding(
                "message_disputed", path, position, position + size, phy_offset=phy_offset, topic=finding.topic,
                queue_id=finding.queue_id, queue_offset=finding.queue_offset, actual=f"{finding.file} says otherwise",
            )  # fmt: skip
    return list(found.values())
