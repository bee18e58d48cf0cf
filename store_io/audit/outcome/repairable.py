"""Kinds of store that no repair is written for, and next steps of findings that depend on the kind of store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from schemas.advice import Advice, Step
from schemas.finding_codes import BY_A_REPAIR, STARTS_DISPATCH, WITHOUT_DONOR, Code
from schemas.rows import Finding
from schemas.store_names import COMPACTED_LOG, COMPACTED_QUEUE
from store_io.broker.queues.combination import combination
from store_io.broker.settings.ledger_files import ledger_peers
from store_io.source.store_dir import StoreListing

if TYPE_CHECKING:  # a repair asks here before it loads what audits
    from store_io.model.evidence import Evidence
    from store_io.model.opened_copy import OpenedCopy


def no_repair(copy: OpenedCopy) -> Advice | None:
    """Return what to do if no repair can be made of a store of this kind; None if one can."""
    if copy.rules.value("enableDLegerCommitLog"):
        return Advice(Step.NO_LEDGER_REPAIR) if len(ledger_peers(copy.rules.value("dLegerPeers"))) > 1 else None
    stopping = next((state for state in copy.start_files.databases if state.stops), None)
    if stopping is not None:
        return stopping.next_step
    beside = _beside_twins(copy)
    if beside:
        return Advice(Step.NO_DOUBLE_WRITE_REPAIR, (beside,))
    return Advice(Step.NO_COMPACTED_REPAIR) if compacted_log(copy.listing) else None


def _beside_twins(copy: OpenedCopy) -> str:
    """Name a feature in use whose effect on a double write of queues no repair knows, or ""."""
    rules = copy.rules
    if not rules.combined_queues:
        return ""
    if copy.batch_topics:
        return "topics of type BatchCQ"
    if rules.value("duplicationEnable"):
        return "duplicationEnable"
    loads, light_alone = combination(rules).loads, combination(rules).light_in_rocksdb
    if rules.lmq_in_files != rules.lmq_in_rocksdb and not light_alone:
        return f"light queues in {'files' if rules.lmq_in_files else 'RocksDB'} alone"
    return (
        f"queues of one kind alone (combineCQLoadingCQTypes={rules.value('combineCQLoadingCQTypes')})" if len(loads) == 1 else ""
    )


def compacted_log(listing: StoreListing) -> str:
    """A file of a compacted topic's own log; "" without one."""
    folders = f"{COMPACTED_LOG}/", f"{COMPACTED_QUEUE}/"
    return next((f.path for f in listing.files if f.kind == "file" and f.size and f.path.startswith(folders)), "")


def without_promise(finding: Finding, evidence: Evidence, refused: Advice | None) -> Finding:
    """The finding with a next step that can be done with a store of this kind. refused: `no_repair` of it, which reads the whole
    listing and so is asked once for all findings."""
    copy, step = evidence.copy, finding.next
    if step is not None and (copy.rules.value("enableDLegerCommitLog") or refused):  # and no donor is taken for a DLedger log
        step = Advice(WITHOUT_DONOR.get(step.step, step.step), step.values)
    if copy.queue_table is not None and copy.twins is None and _is_dispatched(finding, evidence):
        step = STARTS_DISPATCH
    elif step in BY_A_REPAIR:
        step = refused or step
    return replace(finding, next=step) if step != finding.next else finding


def _is_dispatched(finding: Finding, evidence: Evidence) -> bool:
    """Say whether a start puts the entries that are missing: if it loses no message, it does."""
    if finding.code != Code.QUEUE_ENTRY_MISSING:
        return False
    starts = evidence.prediction is not None and evidence.prediction.starts
    return starts and evidence.loss is not None and not evidence.loss.messages
