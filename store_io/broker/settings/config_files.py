"""The files in config/ that a broker reads when it starts, and those without which it does not start.

Source: BrokerController.initialize (the order of the loaders), ConfigManager.load, TimerMessageStore.load (config.md 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas.timer_layout import TIMER_CHECK
from store_io.broker.releases import KNOWN_RELEASES, BrokerRules
from store_io.broker.settings.config_rules import config_rules


@dataclass(frozen=True)
class ConfigFile:
    """One file that a broker reads from release `since` on.

    stops: a broker ends if neither the file nor its .bak can be parsed; late: only after recovery.
    timers: only a broker with timers reads it.
    """

    path: str
    since: str = KNOWN_RELEASES[0]
    stops: bool = True
    late: bool = False
    timers: bool = False


TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"
DELAY_OFFSETS = "config/delayOffset.json"
CONSUMER_OFFSETS = "config/consumerOffset.json"
LMQ_OFFSETS = "config/lmqConsumerOffset.json"
CONFIG_FILES = (  # in the order in which they are loaded
    ConfigFile(TOPICS),
    ConfigFile("config/topicQueueMapping.json", since="5.0.0"),
    ConfigFile(CONSUMER_OFFSETS),
    ConfigFile(GROUPS),
    ConfigFile("config/consumerFilter.json"),
    ConfigFile("config/consumerOrderInfo.json", since="5.0.0"),
    ConfigFile("config/timermetrics", since="5.0.0", late=True, timers=True),
    ConfigFile(DELAY_OFFSETS, late=True),
    ConfigFile(TIMER_CHECK, since="5.0.0", stops=False, timers=True),
    ConfigFile("config/messageRequestMode.json", since="5.0.0", stops=False),
    ConfigFile("config/transactionMetrics", since="5.3.0", stops=False),
)


def config_files(rules: BrokerRules) -> list[ConfigFile]:
    """Return the files that a broker with these rules reads."""
    known = [file for file in CONFIG_FILES if rules.at_least(file.since) and (rules.timers or not file.timers)]
    if not config_rules(rules).clamps_delay_offsets:  # it reads them before the CommitLog
        known = [replace(file, late=False) if file.path == DELAY_OFFSETS else file for file in known]
    if rules.lmq_offsets:
        return [replace(file, path=LMQ_OFFSETS) if file.path == CONSUMER_OFFSETS else file for file in known]
    return known
