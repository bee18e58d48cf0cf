"""Segments that a started broker deletes by itself, in the release's own order and limits.

Source: DefaultMessageStore.CleanCommitLogService, MappedFileQueue.deleteExpiredFileByTime; DLedgerCommitLog.deleteExpiredFile and
recover, DLedgerMmapFileStore.CleanSpaceService.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.first_day import Retention, StartMoment
from schemas.rows import EXTENT_MESSAGE
from store_io.broker.prediction import LogFile, Prediction
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.day_settings import day_settings
from store_io.first_day.cleaning import Cleaning, Disk, LogSegment, next_hour
from store_io.first_day.cleaning_rules import CleaningRules, cleaning_rules, ledger_cleaning_rules
from store_io.first_day.unread import not_consumed
from store_io.model.evidence import Evidence

_FULL = Disk(100.0)


def retention(evidence: Evidence, moment: StartMoment, written: int = 0) -> Retention | None:
    """Return what the broker deletes. None: it does not start, or there are no rules for its disk.

    written: how many messages the broker writes by itself within a minute.
    """
    rules, prediction = evidence.copy.rules, evidence.prediction
    day = day_settings(evidence.request.broker_conf, rules)
    if prediction is None or not prediction.starts or prediction.after_load is None or day["replicasPerDiskPartition"] > 1:
        return None
    own, ledger = cleaning_rules(rules, day), ledger_cleaning_rules(rules, day)
    log = _Log(_segments(evidence, False), _segments(evidence, True), own, ledger, not rules.at_least("5.0.0"))
    behind = _made_behind(evidence, prediction, written) and not _takes_none(rules, own, moment)
    parts = _Parts(log, moment, Disk(moment.disk_used, moment.disk_size), behind)
    at_once = parts.soon()
    hour_ms = next_hour(parts.begin_ms, own.hours, moment.timezone)
    in_hour = parts.in_hour(hour_ms) if hour_ms is not None else []
    full = [path for path in _Parts(log, moment, _FULL, behind).soon() if path not in at_once]
    gone = {*at_once, *in_hour}
    unread = not_consumed(evidence, gone)
    return Retention(
        day["fileReservedTime"],
        day["deleteWhen"],
        tuple(at_once),
        tuple(in_hour),
        tuple(full),
        _messages(evidence, gone),
        unread=unread.largest if unread is not None else (),
        unread_more=unread.more if unread is not None else None,
        next_hour_ms=hour_ms,
        forced=(own if log.old else ledger).forces(moment.disk_used),
    )


@dataclass(frozen=True)
class _Log:
    """The files that are in the log after recovery: the CommitLog's, then DLedger's.

    ends: the service deletes an older part of a DLedger log to its last file.
    """

    old: Sequence[LogSegment]
    ledger: Sequence[LogSegment]
    own_rules: CleaningRules
    ledger_rules: CleaningRules
    ends: bool


class _Parts:
    """The services that delete parts of a log, on one disk.

    While a DLedger log has an older part, its own service deletes nothing. Up to 4.9.8 that part goes to its last file, and then
    the service begins; from 5.0.0 on the last one stays.
    """

    def __init__(self, log: _Log, moment: StartMoment, disk: Disk, made_behind: bool):
        self._log, self._zone, self._behind = log, moment.timezone, made_behind
        mixed = bool(log.old) and bool(log.ledger)
        self._ends = mixed and log.ends
        self._first = self._ledger(disk)
        if log.old:
            self._first = Cleaning(log.old, log.own_rules, self._zone, disk, made_behind and not mixed, not self._ends)
        self._then: Cleaning | None = None
        self.begin_ms = moment.at_ms + (log.own_rules if log.old else log.ledger_rules).first_ms

    def _ledger(self, disk: Disk) -> Cleaning:
        return Cleaning(self._log.ledger, self._log.ledger_rules, self._zone, disk, self._behind)

    def _begins(self) -> bool:
        """Say whether the service of DLedger begins now, after the older part has gone."""
        if self._then is not None or not self._ends or self._first.left:
            return False
        self._then = self._ledger(self._first.disk)
        return True

    def soon(self) -> list[str]:
        """Return what goes at once."""
        found, until_ms = self._first.soon(self.begin_ms)
        if self._begins():
            assert self._then is not None
            found += self._then.soon(until_ms)[0]
        return found

    def in_hour(self, begin_ms: int) -> list[str]:
        """Return what goes in the hour that begins then, after what has gone at once."""
        found = self._first.in_hour(begin_ms)
        self._begins()
        return found + self._then.in_hour(begin_ms) if self._then is not None else found


def _segments(evidence: Evidence, of_ledger: bool) -> list[LogSegment]:
    """Return the files of one part of the log after recovery, by their place in it."""
    prediction = evidence.prediction
    assert prediction is not None and prediction.after_load is not None
    files: list[LogFile] = [file for file in prediction.after_load.log if file.of_ledger is of_ledger]
    files.sort(key=lambda file: file.file.start)
    found = []
    for file in files:
        entry = evidence.copy.listing.get(file.file.path)
        found.append(LogSegment(file.file.path, file.file.size, entry.mtime_ns // 1_000_000 if entry is not None else 0))
    return found


def _made_behind(evidence: Evidence, prediction: Prediction, written: int) -> bool:
    """Say whether the broker writes more by itself than the last file has room for."""
    assert prediction.after_load is not None
    last = max(prediction.after_load.log, key=lambda file: file.file.start, default=None)
    if last is None or not written:
        return False
    runs = [extent for s in evidence.segments for extent in s.extents if extent.kind == EXTENT_MESSAGE]
    count, size = sum(e.message_count for e in runs), sum(e.end - e.start for e in runs)
    return bool(count) and written * size // count > last.file.start + last.file.size - prediction.end


def _takes_none(rules: BrokerRules, own: CleaningRules, moment: StartMoment) -> bool:
    """Say whether the broker takes no message, its own neither, from its first second on, as 4.7.1 to 4.9.8 do over 90 %."""
    early = rules.at_least("4.7.1") and not rules.at_least("5.0.0")
    return early and moment.disk_used is not None and own.ratio(moment.disk_used) > own.full_above


def _messages(evidence: Evidence, paths: set[str]) -> int | None:
    """Return the valid messages in these files; None if one of them was never read."""
    found, missing = 0, set(paths)
    for segment in evidence.segments:
        if segment.path in paths:
            found += sum(extent.message_count for extent in segment.extents)
            missing.discard(segment.path)
    for path in missing:
        known = evidence.earlier.reused_segment(path)
        if known is None or known.row.get("messages") is None:
            return None
        found += known.row["messages"]
    return found
