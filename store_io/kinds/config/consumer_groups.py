"""Checks groups and their offsets, whether this is a slave's copy, and whether config/ was left out of it (config.md 8).

Source: ConsumerOffsetManager; SubscriptionGroupManager.deleteSubscriptionGroupConfig, which leaves offsets;
DefaultMQPushConsumerImpl.sendMessageBack (a group gives a message back only after it has consumed).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.layouts.store_names import CONFIG as CONFIG_FOLDER
from schemas.rows import Finding
from store_io.base.wording import count_text, names_text, seen
from store_io.broker.settings.built_in_topics import SYSTEM_GROUPS, group_of
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, GROUPS, LMQ_OFFSETS
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import StoreConfig
from store_io.model.evidence import Evidence

# Topics into which a broker puts a message when a group has consumed: retries, dead letters, acknowledgements of pop.
_OF_CONSUMERS = ("%RETRY%", "%DLQ%", "rmq_sys_REVIVE_LOG")


def consumer_groups(evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings on groups that only offsets name, on groups without any offset, and on a slave's copy."""
    config = evidence.copy[CONFIG].tables
    if config.is_taken(GROUPS):
        yield from _not_in_table(evidence, config)
        yield from _without_offsets(evidence, config)
    yield from _slave(evidence)


def _not_in_table(evidence: Evidence, config: StoreConfig) -> Iterator[Finding]:
    groups = {group for group, _, _ in config.offsets} - config.groups.keys() - config.built_in_groups
    names = sorted(group for group in groups if not group.startswith(SYSTEM_GROUPS))
    if names:
        named = names_text([seen(name) for name in names])
        message = f"{count_text(len(names), 'group')} with offsets that the table of groups does not name: {named}"
        yield Finding(Code.GROUP_NOT_IN_TABLE, GROUPS, *evidence.copy.entry_range(GROUPS), count=len(names), message=message)


def _without_offsets(evidence: Evidence, config: StoreConfig) -> Iterator[Finding]:
    """Yield the finding on a table of offsets without an entry, beside groups whose messages to be retried the log holds."""
    path = LMQ_OFFSETS if LMQ_OFFSETS in config.loads else CONSUMER_OFFSETS
    done = config.loads[path]
    if config.offsets or done.left_out or not config.is_taken(path) or path in evidence.copy[CONFIG].other_forms.fuller:
        return
    own = config.groups.keys() - config.built_in_groups
    topics = {key[0] for key, view in evidence.views.items() if len(view.runs)}
    names = sorted({group for topic in topics for group in group_of(topic) if group in own})
    if names:
        yield Finding(
            Code.CONSUMER_OFFSETS_EMPTY, path, *evidence.copy.entry_range(path), count=len(names),
            message=f"no group has an offset although {names_text([seen(name) for name in names])} consumed",
        )  # fmt: skip


def _slave(evidence: Evidence) -> Iterator[Finding]:
    """Yield the note on a copy that its own broker.conf makes a slave's. A controller or DLedger elects masters by itself."""
    rules = evidence.copy.rules
    if not rules.is_slave or rules.controlled or rules.value("enableDLegerCommitLog"):
        return
    lines = f"brokerRole={rules.value('brokerRole')} and brokerId={rules.value('brokerId')}"
    yield Finding(
        Code.COPY_OF_SLAVE, CONFIG_FOLDER, message=f"this copy is a slave's ({lines}): it may end before its master's",
        next=Advice(Step.MAKE_MASTER, (lines,)),
    )  # fmt: skip


def config_not_copied(evidence: Evidence) -> Iterator[Finding]:
    """Yield the finding on config/ that is missing although the log shows that groups consumed.

    A slave gets the tables from its master, so it loses none.
    """
    if evidence.copy.listing.has_config or evidence.copy.rules.is_slave:
        return
    topics = {key[0] for segment in evidence.segments for key in segment.queues if key[0].startswith(_OF_CONSUMERS)}
    topics |= {key[0] for key in evidence.queues if key[0].startswith(_OF_CONSUMERS) and evidence.queues[key].used_end > 0}
    shown = sorted(topics)
    if shown:
        names = names_text([seen(topic) for topic in shown], 1)
        message = (
            f"config/ is missing, and {count_text(len(shown), 'topic')} of consumers' own show that groups consumed: {names}"
        )
        yield Finding(Code.CONFIG_NOT_COPIED, "config", expected="a folder", actual="nothing", message=message)
