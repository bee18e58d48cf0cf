"""The check for a copy without config/ of a broker whose log shows that it had tables there."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.base.wording import count_text, names_text, seen
from store_io.model.evidence import Evidence

# Topics into which a broker puts a message when a group has consumed: retries, dead letters, acknowledgements of pop.
_OF_CONSUMERS = ("%RETRY%", "%DLQ%", "rmq_sys_REVIVE_LOG")


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
