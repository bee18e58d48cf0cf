"""Kinds of store that no repair is written for, and the next steps of their findings, which promise none."""

from __future__ import annotations

from dataclasses import replace

from schemas.finding_codes import (
    BY_A_REPAIR,
    CATALOGUE,
    NO_COMPACTED_REPAIR,
    NO_KEYED_REPAIR,
    NO_REPAIR,
    NO_TWIN_REPAIR,
    REBUILD_BY_START,
    STARTS_DISPATCH,
    WITHOUT_DONOR,
    Part,
)
from schemas.rows import Finding
from schemas.store_names import COMPACTED_LOG, COMPACTED_QUEUE
from store_io.audit.evidence import Evidence
from store_io.audit.opened_copy import OpenedCopy
from store_io.rules.dledger.ledger_files import ledger_peers
from store_io.rules.releases import BrokerRules
from store_io.rules.rocksdb.place import database_folder
from store_io.source.store_dir import StoreListing


def no_repair(copy: OpenedCopy) -> str:
    """Why no repair can be made of a store of this kind, a sentence or two; "" where one can."""
    if copy.rules.value("enableDLegerCommitLog"):
        return NO_REPAIR if len(ledger_peers(copy.rules.value("dLegerPeers"))) > 1 else ""
    if copy.twins is not None:
        return NO_TWIN_REPAIR
    if copy.queue_table is not None:
        return rebuild_by_start(copy.rules, len(copy.segment_files))
    return NO_COMPACTED_REPAIR if compacted_log(copy.listing) else ""


def compacted_log(listing: StoreListing) -> str:
    """A file of a compacted topic's own log; "" without one."""
    folders = f"{COMPACTED_LOG}/", f"{COMPACTED_QUEUE}/"
    return next((f.path for f in listing.files if f.kind == "file" and f.size and f.path.startswith(folders)), "")


def rebuild_by_start(rules: BrokerRules, segments: int) -> str:
    """How a start of the release rebuilds queues in RocksDB from so many CommitLog files (docs/rocksdb.md 3)."""
    steps = [f"move all files, and no folder, out of {database_folder(rules)}/", "create an empty file named abort"]
    if rules.start_by_record_check:  # earlier releases look at every file
        steps.append(f"put commitLogRecoverMaxNum={max(1, segments)} into its broker.conf for this one start")
    listed = f"{', '.join(steps[:-1])}, and {steps[-1]}"
    return f"On a copy of the store let a start of RocketMQ {rules.release} rebuild the queues: {listed}. No repair does it."


def without_promise(finding: Finding, evidence: Evidence, refused: str) -> Finding:
    """The finding with a next step that can be done with a store of this kind. refused: `no_repair` of it, which reads the whole
    listing and so is asked once for all findings."""
    copy, step = evidence.copy, finding.next
    if copy.rules.value("enableDLegerCommitLog") or refused:  # and no donor is taken for a DLedger log
        step = WITHOUT_DONOR.get(step, step)
    if step in BY_A_REPAIR and copy.queue_table is not None and copy.twins is None:
        step = _keyed_step(finding, evidence)
    elif step in BY_A_REPAIR:
        step = refused or step
    if step == REBUILD_BY_START:
        step = rebuild_by_start(copy.rules, len(copy.segment_files))
    return replace(finding, next=step) if step != finding.next else finding


def _keyed_step(finding: Finding, evidence: Evidence) -> str:
    """Of a store with queues in RocksDB, where the catalogue's step is a repair."""
    starts = evidence.prediction is not None and evidence.prediction.starts
    loses = evidence.loss is None or evidence.loss.messages
    if starts and not loses and finding.code == "queue_entry_missing":
        return STARTS_DISPATCH
    derived = CATALOGUE[finding.code].about == Part.QUEUE or finding.code in ("broker_refuses", "broker_skips_messages")
    return REBUILD_BY_START if derived else NO_KEYED_REPAIR
