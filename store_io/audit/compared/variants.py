"""The releases and settings that are tried on a copy."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from schemas.layouts.store_names import EXT
from store_io.broker.queues.combination import reads_rocksdb
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.config_rules import config_files, config_rules
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.model.opened_copy import OpenedCopy

# Switches that change what a start cuts, deletes or leaves out (recovery.md 0). Those that say of which kind the store is, and
# how large its files are, are not tried: a store has one kind.
SETTINGS = (
    "checkCRCOnRecover",
    "forceVerifyPropCRC",
    "duplicationEnable",
    "recheckReputOffsetFromCq",
    "enableConsumeQueueExt",
    "enableMultiDispatch",
    "enableLmq",
    "enableAcceleratedRecovery",
    "checkCommitLogOffsetOnRecover",
    "timerWheelEnable",
)


@dataclass(frozen=True)
class Variant:
    """A release, with the store's own settings or with one of them changed."""

    release: str
    changed: tuple[str, bool] | None = None


def changed_settings(copy: OpenedCopy) -> list[Variant]:
    """Return the copy's own release with each of these switches turned, one at a time."""
    rules, tried = copy.rules, set(SETTINGS)
    if not any(entry.path.startswith(EXT + "/") for entry in copy.listing.files):
        tried.discard("enableConsumeQueueExt")
    if copy[TIMERS].in_use is None and rules.timers:
        tried.discard("timerWheelEnable")
    if reads_rocksdb(rules):  # not modelled (rocksdb.md 5)
        tried.discard("recheckReputOffsetFromCq")
    return [Variant(rules.release, (key, not rules.value(key))) for key in SETTINGS if key in tried]


def nameless(rules: BrokerRules) -> tuple[Any, ...]:
    """Return the rules and the settings' values, without the release's name and the settings' origins."""
    own = {name: value for name, value in vars(rules).items() if name not in ("release", "version", "settings")}
    return sorted(own.items()), [(key, setting.value) for key, setting in sorted(rules.settings.items())]


def same_rules(rules: BrokerRules) -> Hashable:
    """Return the key that two releases share if they do the same with every copy."""
    files = tuple(file.path for file in config_files(rules))
    return repr((nameless(rules), config_rules(rules), files))
