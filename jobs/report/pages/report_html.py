"""report.html of one store: one self-contained page for people. It opens with the answer: safe to start or not, and why.

No script, no request to anywhere; a policy in the page forbids both. Its size is bounded: what is left out is counted, and where
it is found is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jobs.report.files.result_files import RunInfo
from jobs.report.pages.page import SEVERITY_STYLE, View, page, style_of
from jobs.report.pages.sections_on_kinds import config_view, controller_view, queues_view, timers_view
from jobs.report.pages.sections_on_outcome import (
    compared_view,
    findings_view,
    leaves_view,
    limits_view,
    lost_view,
    repair_view,
    replicas_view,
    settings_view,
)
from jobs.report.pages.segment_map import map_view
from jobs.report.pages.watermarks import marks_view
from jobs.report.texts.commands import repair_withheld, words_of
from jobs.report.texts.next_steps import shown_steps
from jobs.report.texts.run_words import exit_words, note_kinds, title_of
from jobs.report.texts.safety_text import SHAPE_OF, held, why_it_ends
from jobs.report.texts.step_words import deleted_files
from schemas.outcome import Outcome
from schemas.rows import ASSUMED, DOUBT, LOSS, NOTE, NOTED, REBUILDABLE
from store_io.answer.answers import answer_of
from store_io.answer.headline import judge
from store_io.base.exit_codes import SEVERITIES
from store_io.base.wording import count_text
from store_io.checks.missing_messages import missing_text
from store_io.outcome.safety import Safety, is_emptied, lacks_of, timers_lost

_PLURALS = {LOSS: "losses", REBUILDABLE: "rebuildable", NOTE: "notes"}


@dataclass(frozen=True)
class PageContext:
    """Holds what a page shows besides the store itself.

    run: None if the page belongs to no run.
    store_words: the words with which another command reads this store (`commands.store_words`).
    plan: the path of the store's plan.json.
    to: where a repair writes; "": beside the copy.
    index: whether ../index.html is there.
    """

    run: RunInfo | None = None
    store_words: tuple[str, ...] = ()
    plan: str = ""
    to: str = ""
    index: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading.

    key: its anchor and its template's name.
    view: returns the data that the template shows.
    """

    key: str
    title: str
    view: Callable[[], View]


def report_html(outcome: Outcome, context: PageContext | None = None) -> Iterator[str]:
    """Return the page of a store, in pieces."""
    context = context or PageContext()
    effect, started, judgement = outcome.effect, outcome.started, judge(outcome)
    words = context.store_words or words_of(outcome)
    lost_messages, lost_bytes = outcome.loss.messages, outcome.loss.bytes
    lacks, lost_timers = lacks_of(outcome)[0], timers_lost(outcome)
    acts = Counter(step.action for step in outcome.plan.steps if step.action != "keep")
    counts = [(severity, outcome.found.counts.get(severity, 0)) for severity in SEVERITIES]
    view: View = {
        "title": f"{title_of(outcome)}: RocketMQ store audit",
        "name": title_of(outcome),
        "context": context,
        "outcome": outcome,
        "effect": effect,
        "judgement": judgement,
        "shape": SHAPE_OF[judgement.kind],
        "style": style_of(judgement.kind, outcome.exit_code),
        "severity_style": SEVERITY_STYLE,
        "premises_head": _premises_head(outcome),
        "deletions": deleted_files(outcome),
        "answer_of_copy": answer_of(outcome),
        "steps": shown_steps(outcome, words, context.plan, context.to),
        "withheld": repair_withheld(outcome) or outcome.in_use,
        "acts": ""
        if judgement.kind == Safety.SAFE
        else ", ".join(f"{a} {count_text(acts[a], 'file or queue', 'files or queues')}" for a in sorted(acts)),
        "lost_messages": lost_messages,
        "lost_bytes": lost_bytes,
        "lost_timers": lost_timers,
        "lacks": lacks,
        "sound": "" if lost_messages or lost_timers or lacks or not outcome.holds.messages or is_emptied(outcome) else "c-safe",
        "missing": missing_text(outcome.whole.missing),
        "end_of_log": started.log_end if started is not None else None,
        "ends": why_it_ends(outcome, started) if started is not None else "",
        "counts": [(severity, number, count_text(number, severity, _PLURALS[severity])) for severity, number in counts],
        "notes": note_kinds([outcome]),
        "held": held(outcome),
        "exit_words": exit_words(outcome.exit_code, [outcome]),
        "diverged": lacks_of(outcome)[1] and not outcome.exit_code,
        "sections": list(_sections(outcome, judgement.kind, words, context)),
    }
    return page("report.html", view)


def _premises_head(outcome: Outcome) -> str:
    kinds = {premise.kind for premise in outcome.assumed.premises}
    if DOUBT in kinds:
        return "First: what was named does not fit this copy"
    if kinds == {NOTED}:
        return "Good to know"
    return "First: what is assumed" if ASSUMED in kinds else "First: what this release makes of broker.conf"


def _sections(outcome: Outcome, kind: str, words: tuple[str, ...], context: PageContext) -> Iterator[Section]:
    started = outcome.started
    if outcome.loss.by_topic or outcome.loss.groups or outcome.loss.delay_levels:
        yield Section("lost", "What would be lost", lambda: lost_view(outcome, words))
    compared = outcome.comparison
    if compared is not None:
        yield Section("compared", "Which release would lose least", lambda: compared_view(outcome, compared))
    timers = outcome.holds.timers
    if timers is not None and timers.units:
        yield Section("timers", "Timers", lambda: timers_view(outcome, timers))
    if outcome.holds.segment_count or outcome.rows.queues:
        yield Section("map", "Map of the CommitLog", lambda: map_view(outcome))
        if started is not None and (controller := started.controller) is not None:
            yield Section("controller", "Controller mode", lambda: controller_view(started, controller))
        yield Section("marks", "Where each file ends", lambda: marks_view(outcome))
        yield Section("queues", "ConsumeQueues and index files", lambda: queues_view(outcome))
        yield Section("findings", "Findings", lambda: findings_view(outcome, words))
    if outcome.replicas.copies:
        yield Section("replicas", "Other copies of this log", lambda: replicas_view(outcome))
    if kind != Safety.SAFE and outcome.plan.steps:
        leaves = leaves_view(outcome)
        yield Section("leaves", "What a start leaves of each file", lambda: leaves)
        if not leaves["all_kept"]:
            yield Section("repair", "What a repair does", lambda: repair_view(outcome, words, context.plan, context.to))
    tables, load = outcome.holds.config, outcome.effect.config if outcome.effect is not None else None
    if tables is not None and load is not None:
        yield Section("config", "What config/ holds", lambda: config_view(load, tables))
    if outcome.plan.settings:
        yield Section("settings", "Settings", lambda: settings_view(outcome))
    yield Section("limits", "What was read, and what no check can see", lambda: limits_view(outcome))
