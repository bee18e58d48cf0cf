"""Writes what the files of config/ lack, with --fix-config; without it says what that would write."""

from __future__ import annotations

from store_io.base.errors import StoreError
from store_io.repair.config.config_changes import ConfigChange, config_changes, levels_without_offset
from store_io.repair.config.delivered_levels import delivered_levels
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_steps import WRITE_CONFIG
from store_io.repair.repair_work import Work

IN_DATABASE = "--fix-config: the tables are in {}/, a database, and no repair writes that"


def fix_config(work: Work, audit: Audited) -> Audited:
    """The audit of the copy with these files. Raises StoreError. Notes in `work` what was written, or would be."""
    if work.request.fix_config and audit.config.database:
        raise StoreError(IN_DATABASE.format(audit.config.database))
    if not work.request.fix_config:
        # Where the release does not start a repair by policy broker ends, and says that the option helps.
        if audit.starts and not audit.config.database:
            work.config = [change.row for change in _changes(work, audit)]
        return audit
    for change in _changes(work, audit):
        work.config.append(change.row)
        _write(work, audit, change)
    return audit_changed(work, "the copy") if work.config else audit


def _changes(work: Work, audit: Audited) -> list[ConfigChange]:
    delivered = delivered_levels(work, audit, levels_without_offset(audit))
    return list(config_changes(audit, delivered))


def _write(work: Work, audit: Audited, change: ConfigChange) -> None:
    entry = audit.copy.listing.get(change.path)
    lost = {"bytes": entry.size} if entry is not None and entry.kind == "file" else {}
    reason = f"{change.reason}; not proven: {change.unproven}" if change.unproven else change.reason
    kept = {"entries": change.entries, "bytes": len(change.data or b"")}
    work.steps.add(WRITE_CONFIG, change.path, reason=reason, kept=kept, lost=lost)
    if change.data is None:
        work.writer.remove(change.path)
    else:
        work.writer.put(change.path, change.data)
