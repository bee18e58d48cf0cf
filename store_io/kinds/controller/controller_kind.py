"""What controller mode keeps beside the store, as an audit asks for it (controller.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from schemas.advice import LeftOut, Refusal, RefusalKind
from schemas.layouts.store_names import IDENTITY_FILE
from schemas.rows import MappedFile
from schemas.start_effect import StartEffect
from store_io.base.tasks import Task
from store_io.kinds.controller.controller_files import FILES, BrokerIdentity, StoredEpochs, read_epochs, read_identity
from store_io.kinds.controller.epoch_starts import MOST_STARTS, EpochPlace, EpochStarts, EpochStartsResult, EpochStartsTask
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Moment, Opening, Refusals
from store_io.model.opened_copy import OpenedCopy


@dataclass(frozen=True)
class ControllerFiles:
    """The files of controller mode; empty without it. identity: None if no file holds one."""

    epochs: StoredEpochs = field(default_factory=StoredEpochs)
    identity: BrokerIdentity | None = None
    refused_mode: Refusal | None = None


class Controller(Kind[ControllerFiles, EpochStartsResult, EpochStarts]):
    """Controller mode: epochs, and the identity by which the controller knows the broker."""

    name = "controller"
    task_types = (EpochStartsTask,)
    left_out = ((EpochStartsTask, LeftOut.EPOCHS),)
    looks_again = (EpochStartsTask,)
    nothing_found = EpochStartsResult

    def open(self, opening: Opening) -> ControllerFiles:
        rules = opening.rules
        if not rules.controller_mode:
            return ControllerFiles()
        # Source: BrokerController.initialize of 5.1.2.
        refused = Refusal(RefusalKind.CONTROLLER_MODE, expected="5.1.3", actual=rules.release)
        epochs = read_epochs(opening.source, opening.listing)
        if epochs.problem:
            opening.gaps.add([epochs.problem])
        opening.epochs = epochs.epochs
        identity = read_identity(opening.source, opening.listing)
        return ControllerFiles(epochs, identity, refused if rules.controller_mode_throws else None)

    def refusals(self, facts: ControllerFiles) -> Refusals:
        return {Moment.BEFORE_LOAD: facts.refused_mode, Moment.IN_START: facts.epochs.refusal}

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterable[Task]:
        """Return a task that looks up the begins of the newest epochs, if any begins inside of the segments that were read."""
        request, copy = evidence.request, evidence.copy
        files = [MappedFile(s.path, s.base_offset, s.size) for s in evidence.segments]
        places = tuple(
            EpochPlace(epoch.start, file)
            for epoch in copy[self].epochs.epochs[-MOST_STARTS:]
            for file in files
            if file.start < epoch.start < file.start + file.size
        )
        if places:
            yield EpochStartsTask(request.store, request.location, copy.rules, places, request.not_after)

    def take(self, found: EpochStartsResult, result: EpochStartsResult) -> None:
        found.no_record = result.no_record

    def view(self, evidence: Evidence) -> EpochStarts:
        return EpochStarts(evidence.copy[self].epochs, frozenset(evidence.results(self).no_record))

    def plan_inputs(self, copy: OpenedCopy) -> Iterable[str]:
        return (*FILES, IDENTITY_FILE) if copy.rules.controller_mode else ()

    def add_to_effect(self, evidence: Evidence, effect: StartEffect) -> StartEffect:
        started = effect.started
        if started is None or started.controller is None:
            return effect
        controller = replace(started.controller, identity=evidence.copy[self].identity)
        return replace(effect, started=replace(started, controller=controller))


CONTROLLER = Controller()
