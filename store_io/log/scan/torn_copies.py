"""Torn properties that the broker itself wrote again: the transaction check, the schedule and retry services put a message
back or move it with the body, the born time and the properties that it has.

So one damage is found as often as its message was written. The first one is the damage, the later ones are its consequences.
Source: TransactionalMessageBridge.renewHalfMessageInner, DefaultTransactionalMessageCheckListener.toMessageExtBrokerInner,
EndTransactionProcessor.endMessageTransaction, ScheduleMessageService.messageTimeup, PopReviveService.reviveRetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from schemas import commitlog_layout as layout
from schemas.rows import NOTE, Finding, SegmentSummary, TornProperties
from store_io.base.java_compat import decode_utf8


def torn_properties(row: np.void, data: bytes) -> TornProperties:
    """Return the properties in `data`, each parsed and put together again: a copy of this message shares them."""
    parts = {decode_utf8(part) for part in data.split(layout.PROPERTY_END)}
    torn = frozenset(part for part in parts if "\0" in part)
    return TornProperties(int(row["phy_offset"]), (int(row["body_crc"]), int(row["body_len"]), int(row["born_time"])), torn)


def told_once(segments: Sequence[SegmentSummary]) -> Iterator[Finding]:
    """The findings of these segments, those on copies of a message that is torn already as notes that name it."""
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
    where = f"the message at physical offset {origin}"
    text = f"{finding.message}: a copy that the broker made of {where}"
    return replace(finding, severity=NOTE, message=text, next=f"Look at {where}: the damage came from there.")
