"""Settings that decide nothing of a start, but what a started broker does by itself afterwards: no rules depend on them.

They are apart from `releases.ALL_DEFAULTS`, so that a change of such a setting leaves plans, and answers of earlier runs, as
they are. Source: MessageStoreConfig and BrokerConfig, 4.6.1 to 5.5.1.
"""

from __future__ import annotations

from typing import Any

from store_io.base.java.java_properties import parse_properties
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.given_settings import taken_value
from store_io.broker.settings.known_keys import reads

CLEAN, WARNING = "rocketmq.broker.diskSpaceCleanForciblyRatio", "rocketmq.broker.diskSpaceWarningLevelRatio"
LEDGER_CHECK, LEDGER_CLEAN = "dledger.disk.ratio.check", "dledger.disk.ratio.clean"
JVM_PROPERTIES = frozenset({CLEAN, WARNING, LEDGER_CHECK, LEDGER_CLEAN})
"""Ratios that a broker takes of its JVM (-D), never of broker.conf: a line of such a name says how the JVM was started."""

DAY_DEFAULTS: dict[str, Any] = {
    "cleanFileForciblyEnable": True,
    "cleanResourceInterval": 10_000,  # ms
    "deleteFileBatchMax": 10,  # files of a run; a constant up to 4.9.8
    "deleteWhen": "04",  # hours
    "diskMaxUsedSpaceRatio": 75,  # percent, as the next ones
    "diskSpaceCleanForciblyRatio": 85,
    "diskSpaceWarningLevelRatio": 90,
    "fileReservedTime": 72,  # hours
    "replicasPerDiskPartition": 1,
    "timerStopEnqueue": False,
    "transactionTimeOut": 6000,
    **dict.fromkeys(JVM_PROPERTIES, ""),  # not set
}


def day_settings(broker_conf: str | None, rules: BrokerRules) -> dict[str, Any]:
    """Return the value of each key of DAY_DEFAULTS, as the release takes it of this broker.conf."""
    texts = parse_properties(broker_conf) if broker_conf is not None else {}
    found = dict(DAY_DEFAULTS)
    for key in DAY_DEFAULTS.keys() & texts.keys():
        known = key in JVM_PROPERTIES or reads(key, rules.version)
        value = taken_value(key, texts[key], DAY_DEFAULTS[key], rules.trims_texts) if known else None
        found[key] = DAY_DEFAULTS[key] if value is None else value
    return found


def named_settings(broker_conf: str | None, rules: BrokerRules) -> dict[str, Any]:
    """Return the settings of the day that are not their defaults."""
    return {key: value for key, value in sorted(day_settings(broker_conf, rules).items()) if value != DAY_DEFAULTS[key]}
