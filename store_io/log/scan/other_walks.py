"""Walks one segment by the rules of other brokers, on the back of the audit's own walk. It finds which of its messages each
accepts, and where each stops.

The audit's check is the strictest, so that a walk by other rules meets the same messages up to where it stops, or up to bytes
which the audit refuses and these rules accept. There it leaves the audit's, and needs a scan of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from schemas.rows import RUN_DTYPE, WALK_AUDIT, WALK_BOTH, WALK_BROKER, WALK_PART, BrokerStop, OtherWalk, SegmentSummary
from store_io.broker.message_verdict import BAD, END, HALF, VALID
from store_io.broker.queues.multi_dispatch import MultiDispatch
from store_io.broker.releases import BrokerRules, ReleaseRules
from store_io.log.records.message_columns import HAS_MULTI_DISPATCH, HAS_TAGS, OLD_PARSER_DIFFERS, RecordCheck
from store_io.log.scan.segment_edges import first_record
from store_io.source.segment_window import SegmentWindow

MOST_OTHERS = 255 // WALK_PART - 1  # that one scan follows: a run has room for no larger number of a part
STOP_KINDS = {END: "end", HALF: "half", BAD: "bad"}

RefusedFrom = Callable[[np.ndarray, RecordCheck], int]  # how many of these messages the walk of a check accepts
Entered = Callable[[BrokerRules, np.void], MultiDispatch]


@dataclass(frozen=True)
class WalkRules:
    """The rules of a broker that decide which records its recovery accepts, and what a scan says of them. Hashable."""

    check: int
    delays: tuple[tuple[int, int], ...]
    old_property_parser: bool
    offsets_checked: bool
    sign_first: bool
    entries_need_dup_info: bool
    tag_index: bool
    light: tuple[bool, ...]
    kind: tuple[Any, ...] = ()  # of a walk that is not recovery's: what else decides it

    @staticmethod
    def of(rules: BrokerRules, unclean: bool) -> WalkRules:
        """Return the walk rules of a recovery scan after a clean or unclean exit.

        Delays during recovery decide nothing: a walk that follows the audit's has its tags codes.
        """
        return WalkRules(
            RecordCheck.broker(rules).settings,
            tuple(sorted(rules.delays.items())),
            rules.old_property_parser,
            unclean and rules.checks_phy_offset,
            rules.checks_sign_first,
            rules.entries_need_dup_info,
            rules.tag_index,
            light_rules(rules),
        )


_LIGHT = tuple(field.name for field in fields(ReleaseRules) if field.name.startswith("lmq_leaves_out"))


def light_rules(rules: BrokerRules) -> tuple[bool, ...]:
    """Return the settings that decide which light queues a message enters."""
    return (bool(rules.value("enableLmq")), rules.multi_dispatch, *(getattr(rules, name) for name in _LIGHT))


class _Follower:
    """One such walk. own: it needs a scan of its own."""

    def __init__(self, rules: BrokerRules, window: SegmentWindow, path: str):
        self.rules, self.check = rules, RecordCheck.broker(rules, path)
        self.first = first_record(window, self.check)
        self.light = light_rules(rules)
        self.stop: BrokerStop | None = None
        self.part = 0
        self.own = False


class OtherWalks:
    """The other walks that one scan follows.

    own: the scan's own rules, by which its index runs are counted.
    refused_from: for a check and messages of the window, how many of them its walk accepts.
    """

    def __init__(self, own: BrokerRules, others: Sequence[BrokerRules], window: SegmentWindow, path: str):
        self._own, self._window = own, window
        self.watches_old_parser = any(rules.old_property_parser != own.old_property_parser for rules in others)
        self._all = [_Follower(rules, window, path) for rules in others]
        self._together = list(self._all)
        self._keyed = self._tagged = False
        self.part = 0  # the number of that part of the segment which is being read

    def parts(self, found: list[tuple[int, int, int]], rows: np.ndarray, refused_from: RefusedFrom) -> list[tuple[int, int, int]]:
        """Return these ranges of messages, parted at each place at which a walk by other rules leaves them.

        found: (from, to, walk); in the result `walk` includes the part.
        """
        if not self._all:
            return found
        left = sorted(((refused_from(rows, one.check), one) for one in self._together), key=lambda place: place[0])
        parts = []
        for low, high, walk in found:
            while left and left[0][0] < min(high, len(rows)):
                at, one = left.pop(0)
                if at > low:
                    parts.append((low, at, walk + WALK_PART * self.part))
                    low = at
                self._refuses(one, int(rows["position"][at]) - one.check.framing.header_bytes)
            if low < high:
                parts.append((low, high, walk + WALK_PART * self.part))
        return parts

    def met(self, flags: int, rows: np.ndarray, index: bool, entered: Entered) -> None:
        """Note what of these messages other rules may see otherwise.

        flags: all of theirs.
        index: there are index files.
        entered: the light queues that a message enters by some rules.
        """
        if flags & OLD_PARSER_DIFFERS:
            self._parsed_apart()
        if flags & HAS_MULTI_DISPATCH:
            own_light = light_rules(self._own)
            light = [one for one in self._all if not one.own and one.light != own_light]
            sets = {one.light: one.rules for one in light}
            for row in rows[rows["flags"] & HAS_MULTI_DISPATCH != 0] if sets else ():
                own = entered(self._own, row)
                for key, rules in list(sets.items()):
                    # Whether entries that are missing are a fault depends on the switch, whatever the queues are.
                    if entered(rules, row) != own or rules.multi_dispatch != self._own.multi_dispatch:
                        del sets[key]
            for one in light:
                one.own |= one.light not in sets
        if self._all and not index and not self._keyed:
            self._keyed, self._tagged = bool((rows["key_count"] > 0).any()), self._tagged or bool(flags & HAS_TAGS)

    def refused(self, position: int) -> None:
        """End the walks that came so far, or let them leave, where the audit's walk met something that is no message."""
        for one in list(self._together):
            self._refuses(one, position)

    def judged(self, damaged: bool) -> None:
        """Note that the stop of the audit's walk was judged.

        damaged: messages were looked for after it, by their properties, too.
        """
        if damaged:
            self._parsed_apart()

    def _parsed_apart(self) -> None:
        for one in self._all:
            one.own |= one.rules.old_property_parser != self._own.old_property_parser

    def _refuses(self, one: _Follower, position: int) -> None:
        """End this walk here, or part it from the audit's."""
        self._together.remove(one)
        self.part += 1
        one.part = self.part
        verdict = one.check.verdict(self._window, position, self._window.size)
        if verdict.kind == VALID:
            one.own = True
        else:
            one.stop = BrokerStop(STOP_KINDS[verdict.kind], position, verdict.reason)

    def answers(self) -> list[OtherWalk | None]:
        """Return the outcome of each walk, in the order in which the walks were given."""
        found: list[OtherWalk | None] = []
        for one in self._all:
            # Without index files the messages that put a key are counted, and tags are one for some releases alone.
            counted = one.rules.tag_index == self._own.tag_index or self._keyed or not self._tagged
            found.append(OtherWalk(one.first, one.stop, one.part) if one.stop and counted and not one.own else None)
        return found


def by_own_rules(summary: SegmentSummary) -> SegmentSummary:
    """Return a scan's summary as it is without the others that it followed."""
    runs = summary.runs
    if len(runs) and (runs["walk"] >= WALK_PART).any():
        runs = runs.copy()
        runs["walk"] %= WALK_PART
    return replace(summary, runs=runs, others=[])


def by_other_rules(summary: SegmentSummary, number: int) -> SegmentSummary | None:
    """Return the summary by the rules of the other of that number; None: it needs a scan of its own. Its index runs are those of
    the scan: they do not show what a broker indexes by other rules."""
    other = summary.others[number]
    if other is None:
        return None
    runs = summary.runs[summary.runs["walk"] & WALK_AUDIT != 0]
    walks = np.where(runs["walk"] // WALK_PART < other.part, WALK_BOTH, WALK_AUDIT).astype(RUN_DTYPE["walk"])
    runs["walk"] = walks
    return replace(summary, runs=runs, first=other.first, broker=other.stop, others=[])


assert WALK_PART > WALK_AUDIT | WALK_BROKER
