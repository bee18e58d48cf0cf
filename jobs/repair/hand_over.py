"""Writes the files that go beside a new store, before it is put in its place.

They are NEW.repair.json with the report, NEW.handover.html, NEW.plan.json with what a start on the new store leads to,
NEW.unsaved.jsonl with the names of messages that could not be saved, and NEW.resend.jsonl with those that the copy still holds,
for a producer to send again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from jobs.cli.stores import StoreArgument
from jobs.report.files.json_text import document_parts, row_line
from jobs.report.files.result_files import plan_parts
from jobs.report.pages.hand_over_page import MOST_NAMED, HandOver, HandOverFiles, NewDisk, hand_over_html
from jobs.report.texts.commands import command_line, repair_words, store_words
from jobs.report.texts.text import value_text
from jobs.runtime.output import OutputFailed, write_local
from schemas.advice import Step
from schemas.layouts.store_names import PAGE_SUFFIX, PLAN_SUFFIX, REPORT_SUFFIX, RESEND_SUFFIX, UNSAVED_SUFFIX
from schemas.outcome import Outcome
from schemas.repair import RepairProposal, UnsavedMessages
from store_io.answer.day_steps import day_conditions, timers_passed_over
from store_io.base.documents import document_of
from store_io.base.java.java_properties import parse_properties
from store_io.base.times import minute_text
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.read_settings import given_settings
from store_io.broker.settings.unsafe_settings import unsafe_settings
from store_io.model.facts.odd_settings import odd_settings
from store_io.repair.proposals import FIX_CONFIG
from store_io.repair.repair_copy import mode_beside
from store_io.repair.repair_documents import report_document
from store_io.repair.repair_report import written_files
from store_io.repair.repair_work import RepairOutcome, RepairRequest
from store_io.repair.unsaved import cut_messages, missing_messages, name_of_cut
from store_io.wording.steps import advice_text

_NAMED = "broker.conf"
_PLACES = "storePathRootDir", "storePathCommitLog", "storePathConsumeQueue", "storePathIndex"


def hand_over(
    store: StoreArgument,
    request: RepairRequest,
    outcome: RepairOutcome,
    plan_file: str,
    folder: str,
    assumed: Sequence[str] = (),
) -> HandOver:
    """Write the files of a repair that is done, and return their content. Raises StoreError if a file cannot be written.

    plan_file: the path of plan.json.
    folder: of this machine, where the files wait under their final names.
    assumed: sentences, besides those that follow from the plan.
    """
    beside = _Beside(f"{folder}/{os.path.basename(request.target)}", request.place, mode_beside(request.location))
    named = beside.write_names(outcome)
    beside.write(REPORT_SUFFIX, document_parts(report_document(outcome.report)))
    assert outcome.audited is not None
    beside.write(PLAN_SUFFIX, plan_parts(outcome.audited))
    files = HandOverFiles(
        request.place + REPORT_SUFFIX,
        request.place + PAGE_SUFFIX,
        beside.written(UNSAVED_SUFFIX),
        beside.written(RESEND_SUFFIX),
        request.place + PLAN_SUFFIX,
    )
    unsaved, ends = outcome.unsaved, outcome.ends
    plan = request.plan
    origins = {**{key: origin for key, origin in plan.origins.items() if origin != "default"}, **dict.fromkeys(plan.day, _NAMED)}
    values = {**plan.settings, **plan.day}
    conf = parse_properties(store.broker_conf or "")
    servers = conf.get("namesrvAddr", "").strip()
    given = given_settings(store.broker_conf or "", plan.release)
    texts = {key: setting.text for key, setting in given.items()}
    settings = {key: Setting(value, plan.origins[key], texts.get(key)) for key, value in plan.settings.items()}
    rules = broker_rules(plan.release, settings)
    written = outcome.report.config_written or not written_files(outcome.report.config)

    def command(target: str, *more: str) -> str:
        done = RepairProposal(request.policy, options=(*request.options, *more))
        return command_line("repair", repair_words(done, store_words(store), plan_file, target), [])

    handed = HandOver(
        copy=store.path,
        command=command(request.place),
        with_config="" if written else command(f"{request.place}-2", FIX_CONFIG),
        target=request.place,
        words=store_words(store),
        report=outcome.report,
        files=files,
        named=named,
        named_count=unsaved.messages if unsaved is not None else 0,
        not_named=unsaved.not_named if unsaved is not None else 0,
        settings=[(key, value_text(values[key]), origin) for key, origin in sorted(origins.items())],
        unsafe=unsafe_settings(rules, conf),
        places=[(name, conf[name].strip()) for name in _PLACES if conf.get(name)],
        port=conf["listenPort"].strip() if re.fullmatch(r"\s*\d{1,5}\s*", conf.get("listenPort", ""), re.ASCII) else "10911",
        name_server=servers if re.fullmatch(r"[\w.-]+:\d{1,5}(;[\w.-]+:\d{1,5})*", servers, re.ASCII) else "",
        assumed=[*assumed, *(f"{odd}." for odd in odd_settings(store.broker_conf, rules)), *_assumed(request)],
        ends=ends.shown if ends is not None else (),
        queues=ends.count if ends is not None else 0,
        answer=plan.answer,
        to_do=plan.to_do,
        start_before=_start_before(outcome),
        disk=_disk(request, outcome),
        conditions=_conditions(outcome.audited),
    )
    beside.write(PAGE_SUFFIX, hand_over_html(handed))
    return handed


def _start_before(outcome: RepairOutcome) -> str:
    """Return the moment from which on a start of the new store passes over timer messages; "" if none waits, or it is over."""
    day = outcome.audited.first_day if outcome.audited is not None else None
    timers = day.timers if day is not None else None
    moment = timers.start_before_ms if timers is not None and not timers.never else None
    return minute_text(moment) if moment is not None else ""


def _conditions(audited: Outcome) -> list[str]:
    """Return what to see to before the start, but for the moment that `_start_before` gives."""
    said = (advice for advice in day_conditions(audited) if advice.step is not Step.START_BEFORE or timers_passed_over(audited))
    return [*map(advice_text, said)]


def _disk(request: RepairRequest, outcome: RepairOutcome) -> NewDisk:
    """Return the disk of the new store, as its broker looks at it."""
    day = outcome.audited.first_day if outcome.audited is not None else None
    moment = day.moment if day is not None else None
    used, copy = (moment.disk_used, moment.copy_used) if moment is not None else (None, None)
    return NewDisk(used, copy, request.plan.cleaning)


def _assumed(request: RepairRequest) -> Iterator[str]:
    plan = request.plan
    if "broker.conf" not in plan.origins.values():
        inferred = [
            f"{key} = {value_text(plan.settings[key])}" for key, origin in sorted(plan.origins.items()) if origin == "inferred"
        ]
        sizes = f"{', '.join(inferred)} are from the files, " if inferred else ""
        yield f"No broker.conf was named: {sizes}all else has RocketMQ's defaults. Other settings change what a start does."


class _Beside:
    """The files that go beside a new store.

    waiting: the path at which they are written, without their suffixes.
    place: the final place of the store.
    mode: their permissions at most.
    """

    def __init__(self, waiting: str, place: str, mode: int):
        self._waiting, self._place, self._mode = waiting, place, mode
        self._written: set[str] = set()

    def write(self, suffix: str, chunks: Iterable[str]) -> None:
        try:
            write_local(self._waiting + suffix, (text.encode("utf-8", "backslashreplace") for text in chunks), mode=self._mode)
        except OSError as problem:
            why = problem.strerror or problem
            raise OutputFailed(f"{self._place}{suffix}: cannot write: {why}; so the new store is not put in place") from problem
        self._written.add(suffix)

    def written(self, suffix: str) -> str:
        """Return the path of a file; "" if it was not written."""
        return self._place + suffix if suffix in self._written else ""

    def write_names(self, outcome: RepairOutcome) -> list[UnsavedMessages]:
        """Write the list of all messages that could not be saved, and the lines of those that the copy holds.

        Returns the first names.
        """
        unsaved, first = outcome.unsaved, list[UnsavedMessages]()
        if unsaved is None:
            return first
        if unsaved.cut:
            self.write(RESEND_SUFFIX, (row_line(vars(message)) for message in cut_messages(unsaved)))

        def lines() -> Iterator[str]:
            for one in chain(missing_messages(unsaved), map(name_of_cut, cut_messages(unsaved))):
                if len(first) < MOST_NAMED:
                    first.append(one)
                yield row_line(document_of(one))

        if unsaved.missing or unsaved.cut:
            self.write(UNSAVED_SUFFIX, lines())
        return first
