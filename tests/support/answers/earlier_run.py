"""An audit as the next run of the same store knows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from schemas.rows import NOTE, EarlierRun, EarlierSegment
from store_io.audit.audit_store import StoreAudit

VERIFIED_AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def earlier(audit: StoreAudit, changes: dict[str, dict[str, Any]] | None = None) -> EarlierRun:
    """What the tables would say of this audit. changes: by name of a segment."""
    segments = {}
    for row in audit.outcome().rows.segments:
        segment = EarlierSegment(
            row["size_bytes"], row["modified_ns"], row["edge_digest"], bool(row["damaged_bytes"] or row["findings"]), "run-0",
            VERIFIED_AT, row,
        )  # fmt: skip
        name = row["file"].rpartition("/")[2].lstrip("0") or "0"
        segments[row["file"]] = replace(segment, **(changes or {}).get(name, {}))
    settings = {key: str(s.value) for key, s in audit.rules.settings.items()}
    queues = {
        (row["topic"], row["queue_id"]): tuple((f["file"], f["entries"], f["digest"]) for f in row["compared"] or ())
        for row in audit.outcome().rows.queues
    }
    index = {row["file"]: row["digest"] for row in audit.outcome().rows.index_files}
    derived = tuple(
        (f.file, f.phy_offset, f.count)
        for f in audit.outcome().found.findings
        if f.severity != NOTE and f.file.startswith(("consumequeue", "index"))
    )
    return EarlierRun("run-0", audit.request.release, settings, segments, queues, index, derived)
