"""Checks for a copy that holds no message, or less of its log than an earlier audit saw. What is gone has no bytes that could
be wrong.

Three findings, each about one question:

    commitlog_empty    a note: the copy holds no message, and nothing in it shows that it ever held one, as of a new broker.
    commitlog_emptied  a loss: it holds none, and other parts of the same copy show that it held some.
    commitlog_shrunk   a loss: an earlier audit saw messages beyond the place where the log ends now.

The first two follow from the bytes of the copy alone, the third from these and from what earlier runs wrote into the tables.
A folder without commitlog/ is judged like an empty one if it has one of the last two; without either nothing shows that it ever
was a store, and it could not be audited (`StoreAudit.settle`).

What retention may do decides the third. It deletes whole segments at the log's front and never the newest one: the log begins
later and holds fewer messages, but its end never moves back. A log that begins beyond the earlier end is no finding either: it
turned over between two audits, or a slave was made anew. An end that moves back was cut by a recovery, wiped by hand, or the copy
is of something else. Damaged bytes count as there: they have findings of their own. The copy is compared with the run that saw
the log reach furthest, not with the last one: else the second audit of an emptied copy would find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES, TIMER_LOG
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, LOSS, Finding, FurthestRun, SegmentSummary, StoreFile
from schemas.severity_cases import Case, severity_in
from store_io.base.wording import count_text
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS
from store_io.checks.missing_messages import missing_text, of_an_empty_log
from store_io.kinds.unread.unread_kind import holds_unread
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import name_of, shown
from store_io.source.store_dir import is_foreign


def log_end(segments: Sequence[SegmentSummary], kinds: Sequence[str] = (EXTENT_MESSAGE,)) -> int | None:
    """Return the end of the last extent of these kinds, a physical offset, or None."""
    return max((s.base_offset + e.end for s in segments for e in s.extents if e.kind in kinds), default=None)


def empty_findings(evidence: Evidence) -> list[Finding]:
    """Return the finding on a copy whose log was all read and holds neither a message nor damage. Any other copy has none."""
    if not evidence.log_whole or evidence.unread or log_end(evidence.segments, (EXTENT_MESSAGE, EXTENT_DAMAGED)) is not None:
        return []
    if holds_unread(evidence):
        return []
    shown, offsets = list(_traces(evidence)), list(_offsets_read(evidence.copy))
    if not shown and not offsets:
        return [Finding(Code.COMMITLOG_EMPTY, COMMITLOG, actual="no message")]
    # A slave copies offsets from its master before its own log arrives: alone they show no more than this.
    number = of_an_empty_log(evidence)
    some = missing_text(number) or "some"
    whose = f"this copy held {some}" if shown else f"consumers of this broker or its master had read {some}"
    holds = evidence.copy.listing.get(COMMITLOG) or evidence.copy.ledger_data
    here = "the CommitLog holds no message" if holds else "there is no commitlog/ here"
    message = f"{here}, but {whose}: {'; '.join([*shown, *offsets])}"
    found = Finding(Code.COMMITLOG_EMPTIED, COMMITLOG, expected="messages", actual="no message", message=message)
    return [replace(found, expected=some, count=number.messages) if number else found]


def _traces(evidence: Evidence) -> Iterator[str]:
    """Yield clauses that say what shows that the log held messages."""
    checkpoint = evidence.copy.checkpoint
    if max(checkpoint.physic_time, checkpoint.logics_time, checkpoint.index_time) > 0:
        yield "the checkpoint has the time of a message"
    if max(checkpoint.confirm_phy_offset, checkpoint.logics_phy_offset) > 0:
        yield "the checkpoint has the physical offset of a message"
    queues = sum(queue.used_end > 0 for queue in evidence.queues.values())
    if queues:
        yield f"{queues:,} ConsumeQueue{' has' if queues == 1 else 's have'} entries"
    index = sum(header.index_count > 1 or header.end_phy_offset > 0 for header in evidence.copy.headers.values())
    if index:
        yield f"{index:,} index file{' has' if index == 1 else 's have'} entries"
    for known, folders, noun in (
        (queues, (QUEUES, BATCH_QUEUES, EXT), "ConsumeQueue file"),
        (index, (INDEX,), "index file"),
        (0, (TIMER_LOG,), "timer log file"),
    ):
        files = 0 if known else sum(_is_made_for_a_message(entry, folders) for entry in evidence.copy.listing.files)
        if files:
            yield f"{files:,} {noun}{' is' if files == 1 else 's are'} here, which a broker makes when it stores a message"


def _is_made_for_a_message(entry: StoreFile, folders: Sequence[str]) -> bool:
    """Say whether a file lies in one of these folders under a number, whatever it holds.

    Mapped files are made by their first put (MappedFileQueue.getLastMappedFile, asked by ConsumeQueue, ConsumeQueueExt,
    BatchConsumeQueue, IndexService and TimerLog).
    """
    top, _, name = entry.path.partition("/")
    number = name_of(name)
    return entry.kind == "file" and entry.size > 0 and top in folders and number.isascii() and number.isdecimal()


def _offsets_read(copy: OpenedCopy) -> Iterator[str]:
    """Yield clauses on offsets in config/ that show that there were messages."""
    for offsets, file in ((copy.offsets, CONSUMER_OFFSETS), (copy.delay_offsets, DELAY_OFFSETS)):
        beyond = sum(offset > 0 for offset in offsets.values())
        if beyond:
            yield f"{beyond:,} offset{' is' if beyond == 1 else 's are'} above 0 in {file}"


Begins = Mapping[str, int | None]  # path -> the earliest store time in a segment with messages, ms


def shrunk_findings(
    evidence: Evidence, furthest: FurthestRun | None, named: bool, begins_before: Callable[[FurthestRun], Begins]
) -> list[Finding]:
    """Return the finding on a copy that lacks messages which the `furthest` run saw; none for any other.

    named: a person gave both the same name, so both are of one broker. Without that the two are held to be of one log if the copy
    is empty, or a segment of both begins alike; else the finding is a note, as another store may have lain there.
    begins_before: what the earlier run says of the segments; asked for only if that matters.
    """
    if furthest is None or not evidence.end_is_known or holds_unread(evidence) or _is_another_folder(evidence, furthest):
        return []
    end = log_end(evidence.segments, (EXTENT_MESSAGE, EXTENT_DAMAGED))
    if end is not None and (furthest.log_end is None or end >= furthest.log_end):
        return []
    same = named or end is None or _same_segment(evidence.segments, begins_before(furthest))
    until = f"messages up to physical offset {furthest.log_end}" if furthest.log_end is not None else "messages"
    here = "no message" if end is None else f"messages up to physical offset {end}"
    now = "this copy holds none" if end is None else f"this copy's log ends at {end:,}"
    if evidence.copy.no_store:
        folder = shown(evidence.request.location.root)
        now = f"{folder} {'holds no CommitLog' if evidence.copy.listing.files else 'is an empty folder'} now"
    return [
        Finding(
            Code.COMMITLOG_SHRUNK,
            COMMITLOG,
            severity=severity_in(Code.COMMITLOG_SHRUNK, Case.OTHER_STORE, not same),
            phy_offset=end,
            expected=until,
            actual=here,
            message=f"{_seen(furthest)}; {now}" + ("" if same else ", and nothing shows that both are of one broker"),
            next=Advice(Step.LOOK_AT_FOLDER) if evidence.copy.no_store else None if same else Advice(Step.NEW_NAME),
        )
    ]


def shows_a_store(findings: Iterable[Finding]) -> bool:
    """Say whether these say of a folder without commitlog/ that it was a store."""
    codes = (Code.COMMITLOG_EMPTIED, Code.COMMITLOG_SHRUNK)
    return any(finding.code in codes and finding.weight == LOSS for finding in findings)


def _is_another_folder(evidence: Evidence, furthest: FurthestRun) -> bool:
    """Say whether the folder holds other things than a store and lies elsewhere than the copy that was seen.

    The path is then wrong.
    """
    foreign = bool(evidence.copy.no_store) and is_foreign(evidence.copy.listing)
    return foreign and furthest.location != evidence.request.location.root


def _seen(furthest: FurthestRun) -> str:
    until = f", up to physical offset {furthest.log_end:,}" if furthest.log_end is not None else ""
    return f"the audit of {furthest.started_at} UTC (run {furthest.run_id}) saw {count_text(furthest.messages, 'message')}{until}"


def _same_segment(now: Sequence[SegmentSummary], first: Begins) -> bool:
    """Say whether two audits have a segment in common: the same file, with messages whose earliest store time is the same."""
    return any(segment.first_store_time and first.get(segment.path) == segment.first_store_time for segment in now)
