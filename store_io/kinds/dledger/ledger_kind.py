"""The log of a DLedger group, as an audit asks for it (dledger.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from schemas.advice import Advice, Cause, Gap, LedgerRows, Refusal, Step
from schemas.finding_codes import Code
from schemas.layouts import dledger_layout as layout
from schemas.rows import Finding, MappedFile
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import parse_number
from store_io.base.tasks import Task
from store_io.broker.loading import Tree, is_folder, numbered_files
from store_io.broker.recovery import AskedRecovery
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.ledger_files import is_group, ledger_folder, settings_refusal
from store_io.kinds.dledger.entry_walk import DataTask
from store_io.kinds.dledger.ledger_fold import LedgerFold, LedgerRead
from store_io.kinds.dledger.ledger_walks import MAX_STRETCHES, DataWalk, LedgerTexts, UnitWalk
from store_io.kinds.dledger.unit_reader import UnitTask, read_texts
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.facts.named_files import size_finding, unrecognised
from store_io.model.kind import Kind, Moment, Opening, Refusals
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import name_of
from store_io.source.store_dir import UNREAD_KINDS


@dataclass(frozen=True)
class LedgerParts:
    """The small files of a DLedger group, and its index. Empty without a group.

    index: the group's own index files whose names are numbers.
    refusal: why the broker ends over its settings alone.
    """

    index: tuple[MappedFile, ...] = ()
    texts: LedgerTexts = field(default_factory=LedgerTexts)
    refusal: Refusal | None = None


@dataclass
class LedgerWalks:
    """Holds what was read of a group, by path: the headers of its data files, and its index files."""

    data: dict[str, DataWalk] = field(default_factory=dict)
    units: dict[str, UnitWalk] = field(default_factory=dict)

    @property
    def log_problem(self) -> bool:
        """Say whether a file of the log could not be read."""
        return any(walk.problem for walk in self.data.values())


class Ledger(Kind[LedgerParts, LedgerWalks, LedgerWalks]):
    """A DLedger group: data files, index files and two texts."""

    name = "dledger"
    task_types = (DataTask, UnitTask)
    nothing_found = LedgerWalks

    def open(self, opening: Opening) -> LedgerParts:
        ledger, refusal = opening.loaded.ledger, settings_refusal(opening.rules)
        if ledger is None or refusal is not None:
            return LedgerParts(refusal=refusal)
        index = tuple(numbered_files(opening.tree, f"{ledger.folder}/{layout.INDEX}"))
        try:
            return LedgerParts(index, read_texts(opening.source, opening.listing, ledger.folder, index))
        except StoreError as error:
            opening.gaps.cannot_read(error.gap())
            return LedgerParts(index)

    def refusals(self, facts: LedgerParts) -> Refusals:
        return {Moment.BY_SETTINGS: facts.refusal}

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        return Advice(Step.NO_LEDGER_REPAIR) if is_group(copy.rules.settings) else None

    def tasks_before_log(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        """Yield a task for each data file and index file. A start reads the headers whatever the time."""
        parts = copy[self]
        wanted = -1 if parts.texts.committed is None else parts.texts.committed
        for file in copy.ledger_data:
            yield DataTask(request.store, request.location, file, parts.index, wanted, request.window_bytes)
        for file in parts.index:
            yield UnitTask(request.store, request.location, file, copy.rules.segment_bytes)

    def take(self, found: LedgerWalks, result: object) -> None:
        if isinstance(result, DataWalk):
            found.data[result.path] = result
        elif isinstance(result, UnitWalk):
            found.units[result.path] = result

    def gaps_of(self, result: object) -> Iterator[Gap]:
        """Yield why the audit is incomplete after this result of a task, besides its `problem`."""
        if isinstance(result, DataWalk):
            yield from _dropped(result.path, LedgerRows.STRETCHES, result.stretches_dropped)
            yield from _dropped(result.path, LedgerRows.OTHER_UNITS, result.unequal_dropped)
        elif isinstance(result, UnitWalk):
            yield from _dropped(result.path, LedgerRows.UNIT_RUNS, result.runs_dropped)

    def start_is_unknown(self, copy: OpenedCopy, found: LedgerWalks, late: Set[str]) -> bool:
        return any(walk.problem or walk.stretches_dropped for walk in found.data.values())

    def add_to_recovery(self, copy: OpenedCopy, found: LedgerWalks, asked: AskedRecovery) -> None:
        if asked.loaded.ledger is not None:
            asked.made, asked.epochs = LedgerFold, ()
            asked.more["read"] = LedgerRead(found.data, copy[self].texts)

    def plan_inputs(self, copy: OpenedCopy) -> Iterable[str]:
        ledger = copy.loaded.ledger
        return (f"{ledger.folder}/{name}" for name in (layout.CHECKPOINT, layout.TERM)) if ledger is not None else ()

    def digests(self, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        yield from ((units.path, units.size, units.digest) for units in evidence.results(self).units.values())


def _dropped(path: str, rows: LedgerRows, dropped: int) -> Iterator[Gap]:
    if dropped:
        yield Gap(Cause.LEDGER_LARGE, path, (rows, MAX_STRETCHES + dropped, MAX_STRETCHES))


LEDGER = Ledger()


def ledger_names(tree: Tree, rules: BrokerRules) -> Iterator[Finding]:
    """Yield findings on index files that end the process of a node, or its load(). Data files are of the log."""
    folder = ledger_folder(rules)
    for entry in tree.children(f"{folder}/{layout.INDEX}") if folder else []:
        if entry.kind in UNREAD_KINDS:
            continue
        if is_folder(entry) or parse_number(name_of(entry.path), 64) is None:
            yield unrecognised(entry, "not an index file of DLedger: a start ends at it")
        elif entry.size != layout.INDEX_FILE_BYTES:
            yield size_finding(Code.LEDGER_INDEX_WRONG_SIZE, entry, layout.INDEX_FILE_BYTES)
