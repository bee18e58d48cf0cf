"""Writes what the files of config/ lack, with --fix-config; without it says what that would write."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.rows import Row
from store_io.base.errors import StoreError
from store_io.kinds.config.rebuild.config_changes import ConfigChange, config_changes, levels_without_offset
from store_io.kinds.config.rebuild.delivered_levels import delivered_levels
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_steps import WRITE_CONFIG
from store_io.repair.repair_work import Work

IN_DATABASE = "--fix-config: the tables are in {}/, a database, and no repair writes that"


def fix_config(work: Work, audit: Audited) -> Audited:
    """The audit of the copy with these files. Raises StoreError. Notes in `work` what was written, or would be."""
    if not work.request.fix_config:
        # Where the release does not start a repair by policy broker ends, and says that the option helps.
        if audit.starts:
            work.config = [change.row for change in _changes(work, audit)]
        return audit
    changes = _changes(work, audit)
    if audit.config.database and not changes:
        raise StoreError(IN_DATABASE.format(audit.config.database))
    for change in changes:
        work.config.append(change.row)
        if not change.left_out:
            _write(work, audit, change)
    return audit_changed(work, "the copy") if written_files(work.config) else audit


def written_files(config: Sequence[Row]) -> list[str]:
    """The files that rows of the report say to be replaced; the others stay as they are."""
    return [row["file"] for row in config if not row["left_out"]]


def _changes(work: Work, audit: Audited) -> list[ConfigChange]:
    delivered = delivered_levels(work, audit, levels_without_offset(audit))
    request = work.request
    return list(config_changes(audit, delivered, request.empty_config, told_only=not request.fix_config))


def _write(work: Work, audit: Audited, change: ConfigChange) -> None:
    entry = audit.copy.listing.get(change.path)
    lost = {"bytes": entry.size} if entry is not None and entry.kind == "file" else {}
    lost |= {"entries": change.lost}
    reason = f"{change.reason}; not proven: {change.unproven}" if change.unproven else change.reason
    kept = {"entries": change.entries, "bytes": len(change.data or b"")}
    work.steps.add(WRITE_CONFIG, change.path, reason=reason, kept=kept, lost=lost)
    if change.data is None:
        work.writer.remove(change.path)
    else:
        work.writer.put(change.path, change.data)
