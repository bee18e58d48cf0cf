"""The limits by which a release deletes segments: hours, ages, ratios of the disk.

Source: DefaultMessageStore.CleanCommitLogService, CommitLog.deleteExpiredFile, MessageStoreConfig, UtilAll, 4.6.1 to 5.5.1;
DLedgerMmapFileStore.CleanSpaceService of DLedger 0.1 to 0.3.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from store_io.base.java.java_compat import parse_double, parse_number, split_dropping_tail
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.day_settings import CLEAN, LEDGER_CHECK, LEDGER_CLEAN, WARNING

HOUR_MS = 3_600_000
_FIRST_RUN_MS = 60_000
_LEDGER_EACH_MS = 100
_ANY = -math.inf, math.inf


@dataclass(frozen=True)
class Hours:
    """The hours of deleteWhen.

    known: those before the first that is no number. broken: there is such a one, so that a run at any other hour ends with an
    exception before it deletes.
    """

    known: frozenset[int]
    broken: bool = False


def hours_of(text: str) -> Hours:
    """Return the hours of a value of deleteWhen. Source: UtilAll.isItTimeToDo."""
    found: set[int] = set()
    for word in split_dropping_tail(text, ";"):
        number = parse_number(word, 32)
        if number is None:
            return Hours(frozenset(found), broken=True)
        found.add(number)
    return Hours(frozenset(found))


@dataclass(frozen=True)
class CleaningRules:
    """How one cleaning service deletes.

    first_ms, each_ms: when its first run is, after the start, and the time between two.
    batch: files of a run.
    expired_above: the ratio of the disk over which expired files go at any hour.
    forced_above: the ratio over which ages do not count in a run; infinite if nothing forces it.
    full_above: the ratio over which the broker takes no message.
    as_df: the ratio is that of df, in whole percents, rounded up.
    """

    first_ms: int
    each_ms: int
    batch: int
    reserved_ms: int
    hours: Hours
    expired_above: float
    forced_above: float
    full_above: float
    as_df: bool

    def ratio(self, percent: float) -> float:
        """Return the ratio that the service sees of a disk."""
        return math.ceil(round(percent, 6)) / 100 if self.as_df else percent / 100

    def forces(self, percent: float | None) -> bool:
        """Say whether ages do not count on such a disk; not if it is not known."""
        return percent is not None and self.ratio(percent) > self.forced_above


def cleaning_rules(rules: BrokerRules, day: Mapping[str, Any]) -> CleaningRules:
    """Return how the service of RocketMQ deletes. day: the settings that `day_settings` returns."""
    most = min(max(day["diskMaxUsedSpaceRatio"], 10), 95) / 100
    newer = rules.at_least("5.0.0")
    forced = _ratio(day[CLEAN], day["diskSpaceCleanForciblyRatio"] / 100)
    warning = _ratio(day[WARNING], day["diskSpaceWarningLevelRatio"] / 100)
    forced = _within(forced, *((0.30, 0.85) if newer else _ANY))
    warning = _within(warning, *((0.35, 0.90) if newer else _ANY))
    full, forced = warning, min(forced, warning)
    return CleaningRules(
        _FIRST_RUN_MS,
        max(1, day["cleanResourceInterval"]),
        max(1, day["deleteFileBatchMax"]),
        day["fileReservedTime"] * HOUR_MS,
        hours_of(day["deleteWhen"]),
        min(most, forced) if newer else most,
        forced if day["cleanFileForciblyEnable"] else math.inf,
        full,
        rules.at_least("4.9.2"),
    )


def ledger_cleaning_rules(rules: BrokerRules, day: Mapping[str, Any]) -> CleaningRules:
    """Return how the service of DLedger deletes. Ratios are compared with a float."""
    newer = rules.at_least("4.9.4")
    check = min(max(day["diskMaxUsedSpaceRatio"], 10), 95) / 100 if newer else _within(_ratio(day[LEDGER_CHECK], 0.70), *_ANY)
    clean = _within(_ratio(day[LEDGER_CLEAN], 0.85), 0.50, math.inf)
    return CleaningRules(
        0,
        _LEDGER_EACH_MS,
        10,
        max(1, day["fileReservedTime"] + 1) * HOUR_MS,
        hours_of(day["deleteWhen"]),
        float(np.float32(check)),
        float(np.float32(clean)) if day["cleanFileForciblyEnable"] else math.inf,
        min(0.95, clean + 0.05),
        newer,
    )


def _ratio(text: str, otherwise: float) -> float:
    """Return the ratio of a JVM property, if it is set and a number."""
    number = parse_double(text)
    return otherwise if number is None else number


def _within(ratio: float, least: float, most: float) -> float:
    """Return the ratio between these bounds. One that is NaN has none, and no disk is above it."""
    return math.inf if math.isnan(ratio) else min(max(ratio, least), most)
