"""The index of a new store: the names of its files, and how many entries they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.finding_codes import CATALOGUE, Cure
from schemas.rocksdb_layout import TABLES_FOLDER
from schemas.rows import WALK_AUDIT, Row, SegmentSummary
from schemas.store_names import INDEX
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_INDEX
from store_io.repair.repair_work import Work
from store_io.source.byte_source import name_of


@dataclass(frozen=True)
class IndexPlan:
    """The plan of a new index.

    paths: its new files, in order; none if the release builds no index, or no message has a key.
    reasons: codes of the findings; without any the index stays as it is.
    """

    paths: tuple[str, ...] = ()
    entries: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """For the report."""
        return {"files": len(self.paths), "entries": self.entries, "reasons": list(self.reasons)}


def keys_of(segment: SegmentSummary) -> int:
    """How many index entries the segment's messages have."""
    runs = segment.index_runs[segment.index_runs["walk"] & WALK_AUDIT != 0]
    return int(runs["keys"].sum()) if len(runs) else 0


def prepare_index(work: Work, audit: Audited) -> IndexPlan:
    """Decide whether the index is made anew; then the old files are removed, and the new ones are there, empty."""
    of_files = (f for f in audit.serious if f.file.partition("/")[0] != TABLES_FOLDER)
    blamed = (f for f in of_files if CATALOGUE[f.code].cure is Cure.REBUILD_INDEX or f.file.partition("/")[0] == INDEX)
    reasons = tuple(sorted({f.code for f in blamed}))
    if not reasons:
        return IndexPlan()
    names = audit.tree.children(INDEX)
    plan = IndexPlan(reasons=reasons)
    if work.rules.builds_index:
        total = sum(map(keys_of, audit.segments))
        count = -(-total // (work.rules.index_max - 1))
        existing = [e.path for e in names if e.kind == "file"]
        plan = IndexPlan(tuple(index_names(existing, count, audit.end_time)), total, reasons)
    kept = {"entries": plan.entries, "files": len(plan.paths)}
    work.steps.add(REBUILD_INDEX, INDEX, reason=", ".join(reasons), kept=kept)
    for entry in names:
        work.writer.remove(entry.path)
    for path in plan.paths:
        work.writer.create(path, work.rules.index_file_bytes)
    return plan


def index_names(existing: Sequence[str], count: int, last_time: int) -> list[str]:
    """Return names for that many index files: ascending, below every name that a broker makes later in any time zone.

    Existing ones are used again; without any they are 14 hours before the last message's time.
    """
    known = sorted(n for n in (name_of(p) for p in existing) if len(n) == 17 and n.isdigit() and n < "3")
    names = known[:count]
    while len(names) < count:
        if names:
            moment = _milliseconds(names[-1]) + 1
        else:
            moment = max(0, last_time - 14 * 3_600_000)
        names.append(_stamp(moment))
    return [f"{INDEX}/{name}" for name in names]


def _stamp(milliseconds: int) -> str:
    text = str(np.datetime64(milliseconds, "ms"))
    return "".join(c for c in text if c.isdigit())[:17]


def _milliseconds(name: str) -> int:
    text = f"{name[:4]}-{name[4:6]}-{name[6:8]}T{name[8:10]}:{name[10:12]}:{name[12:14]}.{name[14:]}"
    try:
        return int(np.datetime64(text, "ms").astype(np.int64))
    except ValueError:
        return 0
