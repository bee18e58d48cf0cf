"""Lists the kinds of files that an audit knows, each with its checks. A new kind is a folder beside this module, and a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from schemas.rows import Finding
from store_io.broker.loading import Tree
from store_io.broker.releases import BrokerRules
from store_io.kinds.checkpoint.checkpoint_kind import CHECKPOINT, checkpoint_times
from store_io.kinds.compaction.compacted_topics import compacted_topics
from store_io.kinds.compaction.compaction_kind import COMPACTION
from store_io.kinds.compaction.unserved_topics import unserved_topics
from store_io.kinds.config.against_queues import against_queues
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.consumer_groups import config_not_copied, consumer_groups
from store_io.kinds.config.lost_tables import damaged_files, files_not_judged, lost_tables, offsets_after_start
from store_io.kinds.controller.controller_kind import CONTROLLER
from store_io.kinds.controller.epoch_findings import epoch_findings
from store_io.kinds.controller.identity_names import identity_names
from store_io.kinds.delays.delay_kind import DELAYS
from store_io.kinds.dledger.ledger_checks import entry_chain, ledger_index, ledger_terms
from store_io.kinds.dledger.ledger_kind import LEDGER, ledger_names
from store_io.kinds.index.index_kind import INDEX, index_names
from store_io.kinds.index.unindexed import unindexed
from store_io.kinds.queues.queue_entries import queue_entries
from store_io.kinds.queues.queue_kind import QUEUES
from store_io.kinds.queues.queue_names import topic_names
from store_io.kinds.rocksdb_queues.rocksdb_queue_checks import queue_database, queue_twins
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.kinds.rocksdb_tables.rocksdb_tables import passed_over, rocksdb_tables, tables_not_judged, unnamed_tables
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.tiered.tiered_store import TIERED, tiered_store
from store_io.kinds.timers.timer_findings import timer_entry_findings, timer_findings, timers_not_judged
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.kinds.transactions.half_kind import TRANSACTIONS
from store_io.kinds.unread.unread_kind import UNREAD, unread_findings
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind

Check = Callable[[Evidence], Iterable[Finding]]
NameCheck = Callable[[Tree, BrokerRules], Iterable[Finding]]


@dataclass(frozen=True)
class Room:
    """A kind, and what follows from the evidence on it.

    name_checks: checks of names and lengths alone. A name that was not opened has no finding.
    log_checks: checks whose findings may show that a message of the log is wrong. checks: all others.
    start_checks: checks of the effect of a start; they run if a start is predicted and nothing ends it.
    not_judged: takes the names of files that a start reads and no check judges, and returns them with what this kind knows.
    """

    kind: Kind[Any, Any, Any]
    name_checks: tuple[NameCheck, ...] = ()
    log_checks: tuple[Check, ...] = ()
    checks: tuple[Check, ...] = ()
    start_checks: tuple[Check, ...] = ()
    not_judged: Callable[[Evidence, list[str]], list[str]] | None = None


# Their order is that of opening, of a broker's refusals, and of asking for tasks. What loading and
# recovery need to know of topics is in config/, so it comes first. The tables of rocksdbstore/ ask what the timers found there.
ROOMS = (
    Room(
        CONFIG,
        checks=(damaged_files, config_not_copied, lost_tables, against_queues, consumer_groups),
        start_checks=(offsets_after_start,),
        not_judged=files_not_judged,
    ),
    Room(LEDGER, name_checks=(ledger_names,), log_checks=(entry_chain, ledger_index, ledger_terms)),
    Room(UNREAD, checks=(unread_findings,)),
    Room(QUEUES, name_checks=(topic_names,), log_checks=(queue_entries,)),
    Room(ROCKS_QUEUES, log_checks=(queue_database, queue_twins)),
    Room(INDEX, name_checks=(index_names,), checks=(unindexed,)),
    Room(COMPACTION, checks=(compacted_topics,), start_checks=(unserved_topics,)),
    Room(TIERED, checks=(tiered_store,)),
    Room(CHECKPOINT, checks=(checkpoint_times,)),
    Room(CONTROLLER, checks=(epoch_findings, identity_names)),
    Room(TIMERS, checks=(timer_findings, timer_entry_findings), not_judged=timers_not_judged),
    Room(TRANSACTIONS),
    Room(DELAYS),
    Room(TABLES, checks=(rocksdb_tables, passed_over, unnamed_tables), not_judged=tables_not_judged),
)
KINDS = tuple(room.kind for room in ROOMS)
