"""Finds the messages that a repair gives up, and names each: topic, queue, both offsets, hashes of its keys.

    missing_messages(unsaved)       messages that the copy shows and does not hold
    cut_messages(unsaved)           valid ones of the copy beyond the new end of the log, as lines that can be sent again

`given_up` counts the same messages. A missing one is named by what is left of it: an entry of its queue, or its place between two
others, and index entries that lead to it, which hold the hashes of "topic#key". An audit of the new store says so again
(`store_io/checks/repaired_store.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from schemas.finding_codes import CATALOGUE, Code
from schemas.layouts.store_names import INDEX
from schemas.repair import DroppedMessage, GivenUp, QueueRange, UnsavedMessages
from schemas.rows import NOTE, Finding, MappedFile, QueueKey, SegmentSummary
from store_io.base.errors import StoreError
from store_io.base.ranges import Ranges, subtract, union
from store_io.base.wording import count_text
from store_io.broker.loading import Tree, numbered_files
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.releases import BrokerRules
from store_io.checks.missing_messages import places_missing
from store_io.checks.repaired_store import NOT_KNOWN
from store_io.messages.lost.segment_loss import SegmentLoss
from store_io.messages.lost.sendable import SendableMessage, sendable_messages, to_resend
from store_io.messages.message_rows import scan_messages
from store_io.messages.redaction import read_redaction
from store_io.messages.scans import EntryScan, MessageScan
from store_io.messages.stored_entry_rows import scan_index_entries
from store_io.model.queue_leftovers import LeftoverResult
from store_io.model.queue_runs import message_runs
from store_io.repair.repair_work import Beyond
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store

MOST_HASHES = 100  # of one message, which rarely has more than a few keys


def given_up(
    leftovers: Mapping[QueueKey, LeftoverResult],
    answered: Sequence[QueueRange],
    dropped: Sequence[DroppedMessage],
    cut: int,
    findings: Iterable[Finding],
    is_cut: Callable[[int], bool] = lambda phy_offset: False,
) -> GivenUp:
    """Return the messages that are given up.

    cut: valid ones that the copy holds.
    leftovers, findings: of the copy's audit.
    answered, dropped: what the repair made of them.
    is_cut: whether the message with a physical offset, to which an entry leads, is among those that are cut.
    """
    missing = places_missing(leftovers, missing_offsets(answered, dropped), is_cut)
    signs, earlier = set(), 0
    for finding in findings:
        if CATALOGUE[finding.code].shows_missing and finding.severity != NOTE:
            signs.add(finding.code)
        elif finding.code == Code.STORE_REPAIRED and finding.actual == NOT_KNOWN:
            signs.add(Code.STORE_REPAIRED)
        elif finding.code == Code.STORE_REPAIRED:
            earlier = finding.count
    return GivenUp(missing + cut + earlier, missing, cut, earlier, () if missing or earlier else tuple(sorted(signs)))


def missing_offsets(answered: Sequence[QueueRange], dropped: Sequence[DroppedMessage]) -> dict[QueueKey, Ranges]:
    """Return by queue the queue offsets at which these ranges and messages of a repair say that a message is missing.

    A message that had to go and that the copy holds whole is not missing: it is cut.
    """
    found: dict[QueueKey, Ranges] = defaultdict(list)
    held: dict[QueueKey, Ranges] = defaultdict(list)
    for row in answered:
        found[row.topic, row.queue_id].append((row.first, row.end))
    for one in dropped:
        ranges = held if one.valid else found
        ranges[one.topic, one.queue_id].append((one.queue_offset, one.queue_offset + 1))
    return {key: subtract(union(ranges), union(held.get(key, []))) for key, ranges in found.items()}


@dataclass(frozen=True)
class Missing:
    """Messages of one queue that the copy shows and does not hold: queue offsets from `first` to before `end`.

    phy_offset, size: the message's place as an entry says; None if nothing does.
    """

    topic: str
    queue_id: int
    first: int
    end: int
    phy_offset: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Unsaved:
    """The messages that a repair of this copy could not save.

    missing: in the order of topics, queues and offsets.
    not_named: how many more there are, of which only the number is known.
    cut: valid messages of the copy that the new log leaves out.
    segments: those of the copy with such messages, each with their places.
    records: how many records they are, an inner batch being one; None if the copy itself does not hold all of them, as a
    donor's or healed ones.
    """

    location: StoreLocation
    rules: BrokerRules
    missing: tuple[Missing, ...] = ()
    not_named: int = 0
    cut: int = 0
    segments: tuple[tuple[MappedFile, SegmentLoss], ...] = ()
    records: int | None = None

    @property
    def messages(self) -> int:
        """Return how many have a name."""
        return sum(row.end - row.first for row in self.missing) + self.cut


def find_missing(
    leftovers: Mapping[QueueKey, LeftoverResult],
    answered: Sequence[QueueRange],
    dropped: Sequence[DroppedMessage],
    count: int,
    is_cut: Callable[[int], bool] = lambda phy_offset: False,
) -> tuple[tuple[Missing, ...], int]:
    """Return (missing messages with a name, how many have none).

    leftovers: of the copy's audit.
    answered, dropped: what the repair made of them.
    count, is_cut: as `given_up` has them.
    An LMQ queue only leads to messages of others, so it names one only if no other queue does.
    """
    ranges = missing_offsets(answered, dropped)
    found: list[Missing] = []
    places: set[int] = set()
    for key in sorted(leftovers.keys() | ranges.keys(), key=lambda key: (key[0].startswith(LMQ_PREFIX), key)):
        known = []
        for entry in leftovers[key].lost if key in leftovers else ():
            known.append((entry.queue_offset, entry.queue_offset + 1))
            if entry.phy_offset not in places and not is_cut(entry.phy_offset):
                places.add(entry.phy_offset)
                found.append(Missing(*key, entry.queue_offset, entry.queue_offset + 1, entry.phy_offset, entry.size))
        if not key[0].startswith(LMQ_PREFIX):
            found += [Missing(*key, first, end) for first, end in subtract(ranges.get(key, []), union(known))]
    found.sort(key=lambda row: (row.topic, row.queue_id, row.first))
    return tuple(found), max(0, count - sum(row.end - row.first for row in found))


def segments_left_out(
    segments: Iterable[SegmentSummary], location: StoreLocation, left: LeftOut, beyond: Iterable[Beyond]
) -> tuple[tuple[MappedFile, SegmentLoss], ...]:
    """Return (segment, places) of each segment of the copy with messages that the new log leaves out.

    segments: as the repair's audit has them; one that the repair has renamed or added is not in the copy.
    """
    own, found = Tree(list_store(location).files).by_path, {b.file.path: (b.file, b.start) for b in beyond if b.messages}
    dropped: dict[int, list[int]] = defaultdict(list)  # by the base: the message has the file's new name
    for row in left.dropped:
        dropped[row.phy_offset - row.start].append(row.phy_offset)
    for s in segments:
        start = left.start_in(s)
        if s.path in own and (start < s.size or s.base_offset in dropped):
            file, cut = found.get(s.path, (MappedFile(s.path, s.base_offset, own[s.path].size), s.size))
            found[s.path] = file, min(start, cut)
    losses = ((file, SegmentLoss(cut, timers=np.array(sorted(dropped[file.start]), np.int64))) for file, cut in found.values())
    return tuple(sorted(losses, key=lambda row: (row[0].start, row[0].path)))


@dataclass(frozen=True)
class LeftOut:
    """The valid messages of the copy that the new log leaves out.

    end: the physical offset at which it ends.
    removed: paths of files of the copy's log that the new log does not have.
    dropped: those that had to go before its end.
    """

    end: int
    removed: Set[str]
    dropped: Sequence[DroppedMessage]

    def start_in(self, segment: SegmentSummary) -> int:
        """Return the position in the segment from which on all of its messages are left out."""
        return 0 if segment.path in self.removed else max(0, self.end - segment.base_offset)

    def by_queue(self, segments: Iterable[SegmentSummary]) -> Counter[QueueKey]:
        """Return how many records of each queue are left out."""
        found = records_by_queue((segment, self.start_in(segment)) for segment in segments)
        found.update((row.topic, row.queue_id) for row in self.dropped)
        return found


def records_by_queue(segments: Iterable[tuple[SegmentSummary, int]]) -> Counter[QueueKey]:
    """Return the number of records of each queue in these segments, from a position on: one number for each queue, no more."""
    found = Counter[QueueKey]()
    for segment, start in segments:
        runs = message_runs(segment, start)
        counts = np.bincount(runs["queue"], runs["records"], len(segment.queues))
        for number in np.flatnonzero(counts).tolist():
            found[segment.queues[number]] += int(counts[number])
    return found


def not_accounted(
    before: Iterable[SegmentSummary], after: Iterable[SegmentSummary], left: LeftOut, added: Mapping[QueueKey, int]
) -> dict[QueueKey, int]:
    """Return by queue how many more records the scan of the copy accepted than the new log has and the repair names as left out.

    A number below zero: so many fewer.
    added: the records that the repair brings into the new log (`LogPlan.added`).
    """
    copy = list(before)
    held = records_by_queue((segment, 0) for segment in copy)
    held.subtract(records_by_queue((segment, 0) for segment in after))
    held.subtract(left.by_queue(copy))
    held.update(added)
    return {key: count for key, count in held.items() if count}


# ---- the complete list -----------------------------------------------------------------------------------------------


def missing_messages(unsaved: Unsaved) -> Iterator[UnsavedMessages]:
    """Yield each message, or each range of which nothing but queue offsets is known."""
    hashes = key_hashes(unsaved)
    for row in unsaved.missing:
        own = None if row.phy_offset is None else hashes.get(row.phy_offset, [])
        messages = row.end - row.first
        yield UnsavedMessages("missing", row.topic, row.queue_id, row.first, messages, row.phy_offset, row.size, own)


def name_of_cut(message: SendableMessage) -> UnsavedMessages:
    """Return the name of a message that can be sent again."""
    at = message.queue_offset, 1, message.phy_offset, None
    return UnsavedMessages("cut", message.stored_topic, message.stored_queue_id, *at, message.key_hashes)


def key_hashes(unsaved: Unsaved) -> dict[int, list[int]]:
    """Return, by the physical offset of a missing message, the hashes of its keys in the copy's index files.

    They may also have been lost with the message. At most MOST_HASHES of one message: all entries of a bad file may lead to one.
    Raises StoreError.
    """
    places = np.unique(np.array([row.phy_offset for row in unsaved.missing if row.phy_offset is not None], np.int64))
    found: dict[int, dict[int, None]] = {}  # the hashes in the order of the index
    if not len(places):
        return {}
    scan = EntryScan(unsaved.location, unsaved.rules, (int(places[0]), int(places[-1]) + 1))
    source = open_source(unsaved.location)
    for file in numbered_files(Tree(list_store(unsaved.location).files), INDEX):
        for batch in scan_index_entries(scan, file, source):
            phy, keys = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("phy_offset", "key_hash"))
            chosen = np.isin(phy, places)
            for place, key in zip(phy[chosen].tolist(), keys[chosen].tolist(), strict=True):
                own = found.setdefault(place, {})
                if len(own) < MOST_HASHES:
                    own[key] = None
    return {place: list(own) for place, own in found.items()}


def cut_messages(unsaved: Unsaved) -> Iterator[SendableMessage]:
    """Yield valid messages of the copy beyond the new end of the log, in its order, as lines that can be sent again.

    One window of a segment and the bodies of one batch are held at a time. Raises StoreError.
    """
    if not unsaved.cut:
        return
    source, shown = open_source(unsaved.location), read_redaction(None)
    scan = to_resend(MessageScan(unsaved.location, "", 0, 0, rules=unsaved.rules, only_lost=True))
    count, last = 0, -1
    for file, loss in unsaved.segments:
        for batch in scan_messages(scan.of(file, loss), source):
            for message in sendable_messages(batch, shown):
                count, last = count + (message.phy_offset != last), message.phy_offset
                yield message
    if unsaved.records is not None and count != unsaved.records:
        found = f"{count} of {count_text(unsaved.records, 'valid record')} that the new store does not hold"
        raise StoreError(f"only {found} can be listed, so it is not put in place: a fault of this program")
