"""Half messages that a started broker's first check gives up: it moves them to a topic of its own and never asks for them again.

It looks at half messages in the order of their queue. Whether one counts as decided hangs on the operation messages that were
read by then: 32 at first, more when one has to be asked for. So decided ones may be moved as well.
Source: TransactionalMessageServiceImpl.check, needDiscard, needSkip and fillOpRemoveMap, 4.6.1 to 5.5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schemas.first_day import StartMoment, TransactionsOfDay
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.day_settings import day_settings
from store_io.first_day.role import is_master
from store_io.kinds.transactions.half_kind import TRANSACTIONS, HalfQueues
from store_io.kinds.transactions.half_rows import NO_IMMUNITY
from store_io.model.evidence import Evidence

PULLED = 32  # operation messages that are read together
HOUR_MS = 3_600_000
EARLIER_INTERVAL_MS = 60_000  # the default up to 5.1.0


@dataclass(frozen=True)
class _Limits:
    """When a check gives a half message up, or waits for it. Times in ms.

    now: the moment of the check.
    """

    now: int
    reserved: int
    most_checks: int
    timeout: int


def transactions(evidence: Evidence, moment: StartMoment) -> TransactionsOfDay | None:
    """Return what the first check does to half messages, as if none were deleted before; None if not all of them are known.

    A slave, or a master that stays fenced, checks nothing.
    """
    queues, rules = evidence[TRANSACTIONS], evidence.copy.rules
    if queues is None:
        return None
    numbers, decided = queues.rows.halves["queue_offset"], queues.rows.operations["half"]
    undecided = ~np.isin(numbers, decided)
    moved = np.zeros(len(numbers), bool)
    if is_master(evidence):
        settings = day_settings(evidence.request.broker_conf, rules)
        reserved = settings["fileReservedTime"] * HOUR_MS
        now = moment.at_ms + _interval(rules)
        moved = _Check(
            queues, _Limits(now, reserved, int(rules.value("transactionCheckMax")), settings["transactionTimeOut"])
        ).moved()
    return TransactionsOfDay(int(moved.sum()), int((undecided & ~moved).sum()))


def _interval(rules: BrokerRules) -> int:
    own = rules.settings["transactionCheckInterval"]
    return EARLIER_INTERVAL_MS if own.origin == "default" and not rules.at_least("5.1.1") else int(own.value)


@dataclass
class _Check:
    """The first check, followed message by message."""

    queues: HalfQueues
    limits: _Limits
    _decided: set[int] = field(default_factory=set)
    _read: int = 0  # rows of operation messages
    _newest: int | None = None  # born time of the last operation message of the last reading; None if that gave none

    def moved(self) -> np.ndarray:
        """Say which of the half messages are moved."""
        halves, limits, queues = self.queues.rows.halves, self.limits, self.queues
        found = np.zeros(len(halves), bool)
        if queues.half_from < 0 or queues.operations_from < 0:
            return found
        low, high = queues.operations_bounds
        if low <= queues.operations_from <= high:  # else it reads none, and later ones neither
            self._pull()
        for i, (number, born, checks, immunity) in enumerate(halves.tolist()):
            age, named = limits.now - born, immunity != NO_IMMUNITY
            waits = immunity * 1000 if named and immunity != -1 else limits.timeout
            while number not in self._decided:
                if checks >= limits.most_checks or age > limits.reserved:
                    found[i] = True
                    break
                if not named and 0 <= age < waits:
                    return found  # the queue waits for it
                asked = self._newest is None or self._newest - limits.now > limits.timeout or age < 0
                if asked or age < waits:
                    break  # written again, after its producer was asked or because it is not to be
                self._pull()
        return found

    def _pull(self) -> None:
        """Read the next operation messages."""
        rows, last = self.queues.rows.operations, self._read + PULLED
        first, self._newest = self._read, None
        numbers = rows["queue_offset"]
        if first == len(rows):
            return
        while last < len(rows) and len(np.unique(numbers[first:last])) < PULLED:  # a message may have many rows
            last += last - first
        kept = np.unique(numbers[first:last])[:PULLED]
        last = int(np.searchsorted(numbers, kept[-1], side="right"))
        self._decided.update(rows["half"][first:last].tolist())
        self._read, self._newest = last, int(rows["born_time"][last - 1])
