"""Judges unusual headers of a segment's valid messages: found in columns, looked at one by one.

Torn properties may be written again by the broker itself: the transaction check, the schedule and retry services put a message
back or move it with the body, the born time and the properties that it has. So one damage is found as often as its message was
written. The first one is the damage, the later ones are its consequences.
Source: TransactionalMessageBridge.renewHalfMessageInner, DefaultTransactionalMessageCheckListener.toMessageExtBrokerInner,
EndTransactionProcessor.endMessageTransaction, ScheduleMessageService.messageTimeup, PopReviveService.reviveRetry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.rows import NOTE, Finding, QueueKey, SegmentSummary, TornProperties
from schemas.severity_cases import Case, severity_in
from store_io.base.findings import Findings
from store_io.base.java.java_compat import decode_utf8
from store_io.broker import header_faults as faults
from store_io.log.records import bridges
from store_io.log.records.message_columns import HAS_INNER, INNER_ALONE
from store_io.log.records.message_decode import field_place, host_text
from store_io.log.scan.segment_findings import Span, message_finding
from store_io.source.segment_window import SegmentWindow

NEIGHBOURS = 2  # messages of one other host, on either side of a single one, that make it odd
MAX_ODD_HOSTS = 100

# Hosts that change more than MAX_ODD_HOSTS times in so many messages mean nothing. A batch is no measure: the window decides its
# size.
PART_ROWS = 512

_FIELDS = {faults.BODY_CRC: "BODYCRC", faults.SYS_FLAG: "SYSFLAG", faults.BODY_LENGTH: "BODYLENGTH"}
_FIELDS |= {faults.BORN_HOST: "BORNHOST", faults.STORE_HOST: "STOREHOST"}


def _place(row: np.void, field: str) -> tuple[int, int]:
    """Return (first byte, end) of a header's field, in bytes of the segment."""
    start = int(row["position"])
    if field == faults.PROPERTIES_LENGTH:
        return start + int(row["props_at"]) - 2, start + int(row["props_at"])
    low, high = field_place(_FIELDS[field], int(row["sys_flag"]))
    return start + low, start + high


def odd_header(path: str, row: np.void, key: QueueKey, window: SegmentWindow) -> tuple[list[Finding], list[TornProperties]]:
    """Return the findings on a message with ODD_HEADER, and what a copy of it would have in common with it."""

    def read(field: str, signed: bool = True) -> int:
        return int.from_bytes(window.read(*_place(row, field)), "big", signed=signed)

    def port(field: str) -> int:
        return int.from_bytes(window.read(*_place(row, field))[-4:], "big", signed=True)

    start = int(row["position"]) + int(row["body_at"])
    head = window.read(start, start + min(int(row["body_len"]), faults.HEAD_BYTES))
    inner = bool(row["flags"] & (HAS_INNER | INNER_ALONE))
    lengths = read(faults.BODY_LENGTH), read(faults.PROPERTIES_LENGTH)
    ports = port(faults.BORN_HOST), port(faults.STORE_HOST)
    found, torn = [], []
    for fault in faults.header_faults(int(row["sys_flag"]), *lengths, int(row["body_crc"]), head, inner, ports):
        low, high = _place(row, fault.field)
        actual = read(fault.field, signed=False)
        found.append(
            message_finding(
                Code.MESSAGE_HEADER_ODD, Span(path, low, high), row, key,
                severity=severity_in(Code.MESSAGE_HEADER_ODD, Case.UNREADABLE, fault.unreadable),
                actual=f"0x{actual:0{2 * (high - low)}x}", message=f"the header of a message holds {fault.text}",
            )
        )  # fmt: skip
        if fault.field == faults.SYS_FLAG:  # a broker that writes the message again keeps them, but for the transaction's state
            same = int(row["body_crc"]), int(row["body_len"]), int(row["born_time"])
            flags = actual & ~layout.SYS_TRANSACTION_MASK
            torn.append(
                TornProperties(int(row["phy_offset"]), same, frozenset({f"{fault.field} {flags}"}), Code.MESSAGE_HEADER_ODD)
            )
    return found, torn


class StoreHosts:
    """Fed with all messages of a segment in order: single ones whose store host no other message there has.

    A broker's address changes at a start, for all messages from then on; what it copies from older messages keeps theirs, so
    this proves no damage.
    """

    def __init__(self, path: str, findings: Findings):
        self._path, self._findings = path, findings
        self._runs: list[tuple[int, int, np.void]] = []  # the last three: host, messages, the first of them
        self._met: Counter[int] = Counter()
        self._odd: list[tuple[np.void, int]] = []  # and the host of its neighbours
        self._fed = 0
        self._last: int | None = None
        self._changes = 0  # of the host, among the messages of this part so far

    def feed(self, rows: np.ndarray, changes: bool) -> None:
        """Take the next messages. changes: they are not all of one host."""
        if not changes and len(self._runs) == 1 and self._runs[0][0] == rows["store_host"][0]:  # as in most segments
            host, before, first = self._runs[0]
            self._met[host] += len(rows)
            self._runs[0] = host, before + len(rows), first
            self._passed(len(rows))
            return
        low = 0
        while low < len(rows):
            high = min(len(rows), low + PART_ROWS - self._fed % PART_ROWS)
            self._feed_part(rows[low:high])
            self._passed(high - low)
            low = high
        self._runs = [(host, count, first.copy()) for host, count, first in self._runs]  # the next messages take the rows' place

    def _passed(self, count: int) -> None:
        """Count messages that were fed. Each part of the segment counts its own changes."""
        if self._fed // PART_ROWS != (self._fed + count) // PART_ROWS:
            self._changes = 0
        self._fed += count

    def _feed_part(self, rows: np.ndarray) -> None:
        hosts = rows["store_host"]
        starts = np.flatnonzero(hosts[1:] != hosts[:-1]) + 1
        self._changes += len(starts) + (self._last is not None and self._last != int(hosts[0]))
        self._last = int(hosts[-1])
        if self._changes > MAX_ODD_HOSTS:
            self._odd, self._runs = [], []
            self._met.update(dict(zip(*(part.tolist() for part in np.unique(hosts, return_counts=True)), strict=True)))
            return
        for low, high in zip([0, *starts.tolist()], [*starts.tolist(), len(rows)], strict=True):
            self._run(int(hosts[low]), high - low, rows[low])

    def _run(self, host: int, count: int, first: np.void) -> None:
        self._met[host] += count
        if self._runs and self._runs[-1][0] == host:
            host, before, first = self._runs.pop()
            count += before
        self._runs = [*self._runs[-2:], (host, count, first)]
        if len(self._runs) == 3 and len(self._odd) < MAX_ODD_HOSTS:
            (left, before, _), (_, single, row), (right, later, _) = self._runs
            if left == right and single == 1 and min(before, later) >= NEIGHBOURS and row["flag"] != bridges.FLAG:
                self._odd.append((row.copy(), left))
                self._runs = [(left, before + later, self._runs[0][2])]

    def finish(self, window: SegmentWindow, keys: list[QueueKey]) -> None:
        """End the stream of messages."""
        for row, _ in self._odd:
            if self._met[int(row["store_host"])] > 1:
                continue
            start, end = (int(row["position"]) + at for at in field_place("STOREHOST", int(row["sys_flag"])))
            wanted, actual = "the store host of the messages before and after it", host_text(window.read(start, end))
            finding = message_finding(
                Code.STORE_HOST_ODD, Span(self._path, start, end), row, keys[row["topic_ref"]], expected=wanted, actual=actual
            )
            self._findings.add(finding)


def torn_properties(row: np.void, data: bytes) -> TornProperties:
    """Return the properties in `data`, each parsed and put together again: a copy of this message shares them."""
    parts = {decode_utf8(part) for part in data.split(layout.PROPERTY_END)}
    torn = frozenset(part for part in parts if "\0" in part)
    return TornProperties(int(row["phy_offset"]), (int(row["body_crc"]), int(row["body_len"]), int(row["born_time"])), torn)


def told_once(segments: Sequence[SegmentSummary]) -> Iterator[Finding]:
    """Yield the findings of these segments, those on copies of a message that is torn already as notes that name it."""
    holders: dict[tuple[tuple[int, int, int], str], TornProperties] = {}  # the first with these
    origin: dict[tuple[str, int | None], int] = {}  # code and phy_offset of a copy -> of the message that it is a copy of
    for one in sorted((torn for segment in segments for torn in segment.torn), key=lambda torn: torn.phy_offset):
        first = holders.get((one.same, min(one.parts, default="")))
        if first is not None and one.parts <= first.parts:
            origin[one.code, one.phy_offset] = first.phy_offset
        for part in one.parts:
            holders.setdefault((one.same, part), one)
    for finding in chain.from_iterable(segment.findings for segment in segments):
        copied = finding.severity != NOTE and (finding.code, finding.phy_offset) in origin
        yield _consequence(finding, origin[finding.code, finding.phy_offset]) if copied else finding


def _consequence(finding: Finding, origin: int) -> Finding:
    text = f"{finding.message}: a copy that the broker made of the message at physical offset {origin}"
    return replace(
        finding,
        severity=severity_in(finding.code, Case.COPIED_BY_BROKER),
        message=text,
        next=Advice(Step.LOOK_AT_ORIGIN, (origin,)),
    )
