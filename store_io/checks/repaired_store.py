"""Whether a repair has made this store and gave up messages or tables: else it would look like one that never had them.

A repair writes what it gave up, which records it healed, which tables it let begin empty, and which findings it could not change,
into its report, NEW.repair.json beside the new store. The report counts only where the store's log still holds the bytes with
which that repair ended it: one that belongs to another store says nothing.
The file is ordinary input: only its first bytes are read, and what is not the report of such a repair gives no note.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from schemas.finding_codes import CATALOGUE, Code, Part, Stays
from schemas.layouts.store_names import COMMITLOG, REPORT_SUFFIX
from schemas.outcome import Outcome
from schemas.repair import EmptiedTable, FindingKept, FindingsStay, HealedPlace, LogTail
from schemas.rows import EXTENT_MESSAGE, NOTE, Finding, MappedFile, SegmentSummary
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreError
from store_io.base.wording import as_sentence, count_text
from store_io.broker.message_verdict import VALID
from store_io.broker.settings.config_rules import CONFIG_FILES, LMQ_OFFSETS
from store_io.log.records.message_columns import RecordCheck
from store_io.source.byte_source import ByteSource, StoreLocation, read_beside
from store_io.source.segment_window import SegmentWindow

if TYPE_CHECKING:  # pages word its note, and need no decoder for that
    from store_io.model.evidence import Evidence

HEAD_BYTES = 64 << 10  # of a report: what is read here comes before its lists, which have no bound
HEAD = ("schema_version", "made_at", "consistent", "given_up", "log_tail", "stays", "healed_at", "emptied")
NOT_KNOWN = "messages whose number is not known"
TAIL_BYTES = 4096
_WINDOW_BYTES = 1 << 16
MOST_HEALED = 500  # records that a report names in its first bytes
_PLACE = ("file", "start", "end", "phy_offset", "topic", "queue_id", "queue_offset")
_TIME = "%Y-%m-%d %H:%M:%S"
_MEMBER = re.compile(r'\s*[{,]\s*"([a-z_]+)"\s*:\s*')
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class _Report:
    made_at: str
    messages: int
    unknown: bool  # more than are counted, or some where none is
    tail: LogTail
    healed: tuple[HealedPlace, ...] = ()
    emptied: tuple[EmptiedTable, ...] = ()
    stays: Mapping[str, FindingsStay] = field(default_factory=dict)


def repaired(evidence: Evidence) -> list[Finding]:
    """Return the notes on a store that a repair has made: messages given up, records healed, tables emptied.

    Any other store has none.
    """
    report = _report_beside(evidence, evidence.request.location)
    return [*_given_up(report), *_healed(evidence, report), *_emptied(report)] if report is not None else []


def repaired_findings(evidence: Evidence, location: StoreLocation) -> list[Finding]:
    """Return the note on messages that a repair gave up in the store at `location`. Any other store has none.

    evidence: of that store, or of a copy of it.
    """
    report = _report_beside(evidence, location)
    return _given_up(report) if report is not None else []


def stays_of(findings: Iterable[FindingKept | Finding]) -> dict[str, FindingsStay]:
    """Return, by code, the number of findings that a repair could not change, and a digest of their places.

    findings: the report's `kept`, or those of a later audit.
    """
    found: dict[str, list[str]] = {}
    for finding in findings:
        if _no_repair_changes(finding.code):
            place = {name: getattr(finding, name) for name in (*_PLACE, *["more"] * bool(finding.more))}
            found.setdefault(str(finding.code), []).append(json.dumps(place, sort_keys=True))
    return {
        code: FindingsStay(len(own), hashlib.sha256("\n".join(sorted(own)).encode()).hexdigest())
        for code, own in sorted(found.items())
    }


def kept_by_repair(evidence: Evidence, findings: list[Finding]) -> list[Finding]:
    """Return the findings; those that the repair of this store could not change become notes.

    For each code either all of its findings do, or none.
    """
    serious = [f for f in findings if f.severity != NOTE and _no_repair_changes(f.code)]
    report = _report_beside(evidence, evidence.request.location) if serious else None
    if report is None:
        return findings
    same = {code for code, now in stays_of(serious).items() if report.stays.get(code) == now}
    why = f"the repair that made this store on {report.made_at} UTC kept it as it is, and no repair changes it"
    return [
        replace(f, severity=severity_in(f.code, Case.KEPT_BY_REPAIR), message=f"{f.message.rstrip('.')}: {why}.")
        if f.severity != NOTE and f.code in same
        else f
        for f in findings
    ]


@cache
def _no_repair_changes(code: str) -> bool:
    """Say whether findings of that code that a repair leaves are about messages.

    Neither a start nor a person mends these.
    """
    row = CATALOGUE.get(code)
    if row is None or row.about not in (Part.LOG, Part.QUEUE):
        return False
    return bool(row.stays & (Stays.ALWAYS | Stays.AS_BEFORE | Stays.MOVED_MESSAGE))


def _report_beside(evidence: Evidence, location: StoreLocation) -> _Report | None:
    """Read the report beside the store; None without one, or if it belongs to another log."""
    data = read_beside(location, REPORT_SUFFIX, HEAD_BYTES)
    report = _read(data) if data is not None else None
    return report if report is not None and _same_log(evidence, report.tail) else None


def _given_up(report: _Report) -> list[Finding]:
    if not (report.messages or report.unknown):
        return []
    number = count_text(report.messages, "message") if report.messages else NOT_KNOWN
    return [
        Finding(
            Code.STORE_REPAIRED,
            COMMITLOG,
            phy_offset=report.tail.end,
            actual=number,
            message=f"this store was made by a repair on {report.made_at} UTC that gave up {number}",
            count=max(1, report.messages),
        )
    ]


def _healed(evidence: Evidence, report: _Report) -> list[Finding]:
    """Return a note on each record that the repair has healed."""
    found = []
    for place in report.healed:
        phy = place.phy_offset
        holder = next((s for s in evidence.segments if s.base_offset <= phy < s.base_offset + s.size), None)
        start = _message_start(evidence, holder, phy, place.bytes) if holder is not None else None
        if holder is not None and start is not None:
            text = f"a repair on {report.made_at} UTC has healed this record: its report has the old and the new bytes"
            found.append(Finding(Code.MESSAGE_HEALED, holder.path, start, start + place.bytes, phy_offset=phy, message=text))
    return found


def _emptied(report: _Report) -> list[Finding]:
    """Return a note on each table of config/ that the repair has let begin empty."""
    found = []
    for table in report.emptied:
        lost = f", {count_text(table.lost, 'entry', 'entries')} lost" if table.lost else ""
        text = f"{table.file}: a repair on {report.made_at} UTC let this table begin empty, by --empty-config{lost}"
        found.append(Finding(Code.CONFIG_TABLE_EMPTIED, table.file, message=text, count=max(1, table.lost)))
    return found


def _message_start(evidence: Evidence, segment: SegmentSummary, phy_offset: int, size: int) -> int | None:
    """Return the position in its segment of the valid message at that physical offset, with its header.

    None unless it has that size.
    """
    copy = evidence.copy
    check = RecordCheck.audit_of(segment.base_offset, copy.rules, segment.path)
    start = phy_offset - segment.base_offset - check.framing.header_bytes
    if start < 0:
        return None
    try:
        with copy.source.open(segment.path) as file:
            verdict = check.verdict(SegmentWindow(file, file.size, _WINDOW_BYTES), start, file.size)
    except StoreError:
        return None
    return start if verdict.kind == VALID and verdict.size == size else None


def log_tail(source: ByteSource, segments: Iterable[MappedFile], end: int) -> LogTail:
    """Return the last bytes of a log that ends at `end`, by which a later audit recognises it. Raises StoreError."""
    size, digest = 0, hashlib.sha256()
    segment = next((s for s in segments if s.start < end <= s.start + s.size), None)
    if segment is not None:
        position = end - segment.start
        size = min(TAIL_BYTES, position)
        with source.open(segment.path) as file:
            digest.update(file.read(position - size, size))
    return LogTail(end, size, digest.hexdigest())


def repair_note(outcome: Outcome) -> str:
    """Return a sentence on the messages that the repair of this store gave up; empty for any other store."""
    message = next((f.message for f in outcome.found.findings if f.code == Code.STORE_REPAIRED), "")
    return as_sentence(message) if message else ""


def _same_log(evidence: Evidence, tail: LogTail) -> bool:
    if not tail.end:
        return not any(e.kind == EXTENT_MESSAGE for s in evidence.segments for e in s.extents)
    try:
        return tail.bytes > 0 and log_tail(evidence.copy.source, evidence.copy.segment_files, tail.end) == tail
    except StoreError:
        return False


def _read(data: bytes) -> _Report | None:
    """Read a report; None if it is no report of a repair that was put in place."""
    report = _first_members(data.decode("ascii", "replace"))
    if report.get("schema_version") != 1 or report.get("consistent") is not True:
        return None
    given, tail, made_at = report.get("given_up"), _tail(report.get("log_tail")), report.get("made_at")
    if not isinstance(given, dict) or not _is_count(given.get("messages")) or tail is None:
        return None
    if not isinstance(made_at, str) or not _is_time(made_at):
        return None
    healed, emptied, stays = report.get("healed_at"), report.get("emptied"), report.get("stays")
    return _Report(
        made_at,
        given["messages"],
        bool(given.get("signs")),
        tail,
        tuple(HealedPlace(**r) for r in healed[:MOST_HEALED] if _is_place(r)) if isinstance(healed, list) else (),
        tuple(EmptiedTable(**r) for r in emptied if _is_emptied(r)) if isinstance(emptied, list) else (),
        {code: FindingsStay(**r) for code, r in stays.items() if _is_stay(r)} if isinstance(stays, dict) else {},
    )


def _first_members(text: str) -> dict[str, Any]:
    """Return the members with which a JSON object begins, as many as are whole, up to the last of HEAD."""
    found: dict[str, Any] = {}
    decoder = json.JSONDecoder()
    place = _MEMBER.match(text)
    while place is not None and not found.keys() >= set(HEAD):
        try:
            found[place[1]], end = decoder.raw_decode(text, place.end())
        except (ValueError, RecursionError):
            break
        place = _MEMBER.match(text, end)
    return found


def _is_time(text: str) -> bool:
    try:
        return datetime.strptime(text, _TIME).strftime(_TIME) == text
    except ValueError:
        return False


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _tail(row: Any) -> LogTail | None:
    if not isinstance(row, dict) or row.keys() != {"end", "bytes", "sha256"}:
        return None
    tail = LogTail(**row)
    return tail if _is_count(tail.end) and _is_count(tail.bytes) and _is_digest(tail.sha256) else None


def _is_stay(row: Any) -> bool:
    return isinstance(row, dict) and row.keys() == {"count", "sha256"}


def _is_place(row: Any) -> bool:
    return isinstance(row, dict) and row.keys() == {"phy_offset", "bytes"} and all(map(_is_count, row.values()))


def _is_emptied(row: Any) -> bool:
    files = {file.path for file in CONFIG_FILES} | {LMQ_OFFSETS}
    return (
        isinstance(row, dict)
        and row.keys() == {"file", "lost"}
        and isinstance(row["file"], str)
        and row["file"] in files
        and _is_count(row["lost"])
    )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None
