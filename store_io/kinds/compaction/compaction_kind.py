"""The effect of a start on the logs of compacted topics, from their names and the entries that were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.advice import Refusal
from schemas.rows import QueueKey
from store_io.broker.releases import BrokerRules
from store_io.kinds.compaction.compacted_file import CompactedFileSummary
from store_io.kinds.compaction.compacted_queues import CompactedStore
from store_io.kinds.compaction.sparse_recovery import SparseRecovery, recovered


@dataclass
class CompactedStart:
    """The effect of compacted topics on a start.

    refusals: why load() ends, by the first name; which of several a broker meets first is the file system's order.
    deleted: files that load() removes.
    queues: recovery of each queue that load() opens and none refuses.
    """

    refusals: list[Refusal] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    queues: Mapping[QueueKey, SparseRecovery] = field(default_factory=dict)

    @property
    def refusal(self) -> Refusal | None:
        return self.refusals[0] if self.refusals else None


def compacted_start(store: CompactedStore, read: Iterable[CompactedFileSummary], rules: BrokerRules) -> CompactedStart:
    """Return the effect of load() on the logs of compacted topics.

    read: at least the last three files of each queue.
    """
    ends = {summary.entries_path: summary.ends for summary in read if summary.ends is not None}
    start = CompactedStart([store.refusal] if store.refusal else [])
    queues = {}
    for key, queue in sorted(store.queues.items()):
        start.deleted += queue.deleted
        if queue.refusal:
            start.refusals.append(queue.refusal)
        elif queue.loaded and not queue.not_loaded:
            queues[key] = recovered(queue, ends, rules)
            start.deleted += queues[key].deleted
            if refusal := queues[key].refusal:
                start.refusals.append(refusal)
    start.queues = queues
    return start
