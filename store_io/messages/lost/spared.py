"""Lost delayed and timer messages that are not to be sent again: consumers have their delivered copies, or get them.

Such a message waits in a topic of the broker's own. Once due, the broker stores a copy in the message's topic; when the waiting
one has lost its queue entry, the copy may well have one. The two share topic, unique key and born time, as a broker copies them.
Source: ScheduleMessageService.messageTimeup, TimerMessageStore.convert (4.8.0 to 5.5.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base.tasks import HERE, Workers
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.messages.lost.lost_places import LostPlaces, lost_places
from store_io.messages.lost.segment_loss import COPY_STAYS, PASSED, TIMERS_HAVE_IT, WAITING_TOPICS, Spared
from store_io.messages.message_filter import MessageFilter
from store_io.messages.message_rows import scan_messages
from store_io.messages.scans import MessageScan
from store_io.model.audit_request import AuditRequest

MAX_WAITING = 500_000  # lost delayed and timer messages whose delivered copies are looked for


class _Waits(NamedTuple):
    """A lost message that waits for `real_topic`."""

    topic: str
    real_topic: str | None
    unique_key: str | None
    born_time_ms: int
    body_crc: int
    phy_offset: int
    queue_id: int
    queue_offset: int


class _Copy(NamedTuple):
    """A message that may be the delivered copy of one that waits. lost: as messages have it."""

    topic: str
    unique_key: str | None
    born_time_ms: int
    body_crc: int
    lost: str | None


def places_of(request: AuditRequest, workers: Workers = HERE, to_send: bool = False) -> LostPlaces:
    """Audit a store, and return the messages that a start would take of it. Raises StoreError if that is not known.

    to_send: also says which of them are not to be sent again.
    """
    audit = run_audit(request, workers)
    places = lost_places(audit)
    return with_spared(audit, places) if to_send else places


def with_spared(audit: StoreAudit, places: LostPlaces) -> LostPlaces:
    """Return the places with those that are not to be sent again.

    If delayed or timer messages are lost the log is read once more, from the first of them on. Raises StoreError if it cannot be
    read.
    """
    search = _Search(audit, places)
    waiting = search.waiting()
    if waiting.first is None:
        return places
    spared = search.spared(waiting)
    segments = dict(places.segments)
    for file in audit.segment_files:
        if file.path in segments:
            segments[file.path] = replace(segments[file.path], spared=spared.within(file.start, file.start + file.size))
    return replace(places, spared=spared, segments=segments)


@dataclass
class _Waiting:
    """Lost waiting messages.

    known: each one's place and identity.
    born: their born times.
    topics: the topics of their copies.
    passed: places of those that delayOffset.json has passed and that no copy can be known by.
    first: the lowest place.
    unsure_from: the place from which on there were too many.
    """

    known: list[tuple[int, bytes]] = field(default_factory=list)
    born: set[int] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    passed: list[int] = field(default_factory=list)
    first: int | None = None
    unsure_from: int | None = None


class _Search:
    """One look through a store."""

    def __init__(self, audit: StoreAudit, places: LostPlaces):
        self._audit, self._places = audit, places

    def waiting(self) -> _Waiting:
        """Return the lost messages of the waiting topics."""
        found = _Waiting()
        passed = self._audit.evidence.copy.delay_offsets
        for batch in self._scan(_Waits._fields, MessageFilter(topics=WAITING_TOPICS), True):
            for row in batch.to_pylist():
                one = _Waits(**row)
                place, target = one.phy_offset, one.real_topic
                found.first = place if found.first is None else found.first
                if len(found.known) + len(found.passed) == MAX_WAITING:
                    found.unsure_from = place
                    return found
                if one.topic == SCHEDULE_TOPIC and not one.unique_key:
                    if one.queue_offset < passed.get(one.queue_id + 1, 0):
                        found.passed.append(place)
                        continue
                if target:
                    found.known.append((place, _identity(target, one)))
                    found.born.add(one.born_time_ms)
                    found.topics.add(target)
        return found

    def spared(self, waiting: _Waiting) -> Spared:
        """Return the waiting messages that need no sending."""
        reasons = dict.fromkeys(waiting.passed, PASSED)
        view = self._audit.evidence[TIMERS].in_use
        held = view.delivering() if view is not None else None
        if held is not None and waiting.known:
            known = np.array([place for place, _ in waiting.known], np.int64)
            reasons |= dict.fromkeys(known[np.isin(known, held)].tolist(), TIMERS_HAVE_IT)
        copies = self._copies(waiting)
        reasons |= {place: COPY_STAYS for place, identity in waiting.known if identity in copies}
        places = sorted(reasons)
        numbers = np.array([reasons[place] for place in places], np.int8)
        return Spared(np.array(places, np.int64), numbers, waiting.unsure_from)

    def _copies(self, waiting: _Waiting) -> set[bytes]:
        """Return the identities of which a message stays, with its entry, in the topic for which it waited."""
        wanted = {identity for _, identity in waiting.known}
        born = np.array(sorted(waiting.born), np.int64)
        found: set[bytes] = set()
        if not wanted:
            return found
        later = MessageFilter(topics=frozenset(waiting.topics - WAITING_TOPICS), phy_offsets=(waiting.first, None))
        for batch in self._scan(_Copy._fields, later, False):
            near = np.isin(batch.column("born_time_ms").to_numpy(zero_copy_only=False), born)
            for copy in (_Copy(**row) for row in batch.filter(pa.array(near)).to_pylist()):
                if copy.lost is None and (identity := _identity(copy.topic, copy)) in wanted:
                    found.add(identity)
        return found

    def _scan(self, columns: tuple[str, ...], wanted: MessageFilter, only_lost: bool) -> Iterator[pa.RecordBatch]:
        audit = self._audit
        scan = MessageScan(audit.request.location, "", 0, 0, columns, wanted, rules=audit.rules, only_lost=only_lost)
        for file in sorted(audit.segment_files, key=lambda f: (f.start, f.path)):
            yield from scan_messages(scan.of(file, self._places.of(file.path)), audit.source)


def _identity(topic: str, message: _Waits | _Copy) -> bytes:
    """Return the digest of the fields that a message and its delivered copy share. Without a unique key the body is compared."""
    told = message.unique_key or message.body_crc
    return blake2b(repr((topic, told, message.born_time_ms)).encode("utf-8", "backslashreplace"), digest_size=16).digest()
