"""index.html of a run: all its stores, the most dangerous first, each with a link to its own page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from jobs.report.files.result_files import RunInfo, groups_of
from jobs.report.pages.page import TOOLS_FROM, View, page, style_of
from jobs.report.texts import safety_text as answers
from jobs.report.texts.comparison_words import choice_words
from jobs.report.texts.next_steps import first_name
from jobs.report.texts.run_words import assumed_words, exit_words, note_kinds, title_of
from schemas.answer import Answer
from schemas.outcome import Outcome
from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.answer.answers import answer_of
from store_io.answer.headline import Judgement, short_text
from store_io.base.exit_codes import of_run
from store_io.base.times import span_text
from store_io.outcome.safety import Safety, lacks_of, timers_lost


@dataclass(frozen=True)
class StoreRow:
    """A store's row on the index page.

    name: as people call the store.
    condition: as `Judgement` has it.
    first: the name of the first step, "" without steps.
    folder: its page's, as a link needs it.
    starts: whether the loss of a start is known.
    lacks: None if it was compared with no copy.
    stored: the time of its messages, "" without one.
    headline: as `short_text` has it.
    sort: as `row` in macros.html takes it.
    """

    outcome: Outcome
    name: str
    condition: str
    answer: Answer
    first: str
    kind: Safety
    style: str
    folder: str
    starts: bool
    lost_messages: int
    lost_bytes: int
    lost_timers: int
    lacks: int | None
    stored: str
    headline: str
    notes: str
    counts: Mapping[str, int]
    sort: tuple[object, ...]


def index_html(run: RunInfo, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Return the page of a whole run, in pieces."""
    judged = answers.most_dangerous_first(outcomes)
    outcomes = [outcome for outcome, _ in judged]
    stores = [_row(*row, rank) for rank, row in zip(range(len(judged), 0, -1), judged, strict=True)]
    kinds: Counter[str] = Counter(store.kind for store in stores)
    worst = stores[0].kind if stores else Safety.SAFE
    lost = sum(store.lost_messages for store in stores)
    timers = sum(store.lost_timers for store in stores)
    unknown = sum(not store.starts for store in stores)
    assumed = assumed_words(outcomes)
    code = of_run((o.exit_code for o in outcomes), run.problems)
    conditions = [judgement.condition for _, judgement in judged if judgement.condition]
    copies = _copies(stores)
    chosen = {group.name: choice_words(group) for group in groups_of(outcomes)} if copies else {}
    view: View = {
        "title": "RocketMQ store audit",
        "run": run,
        "shape": answers.SHAPE_OF[worst],
        "style": stores[0].style if stores else style_of(worst, 0),
        "headline": answers.headline_of_all(kinds, len(stores))
        + (f", {conditions[0]}" if worst == Safety.SAFE and conditions else "")
        + (", if what is assumed holds" if assumed and worst == Safety.SAFE else ""),
        "kinds": [(kind, kinds[kind]) for kind in answers.KINDS if kinds[kind]],
        "kind_words": answers.MEANING,
        "assumed": assumed[:1].upper() + assumed[1:],
        "lost_messages": lost,
        "lost_bytes": sum(store.lost_bytes for store in stores),
        "losing": sum(1 for store in stores if store.lost_messages),
        "not_known": unknown,
        "lost_timers": timers,
        "lost_style": answers.lost_style(bool(lost or timers), unknown, kinds),
        "counts": _counts(outcomes),
        "notes": note_kinds(outcomes),
        "bytes_read": sum(outcome.cost.bytes_read for outcome in outcomes),
        "exit_code": code,
        "exit_words": exit_words(code, outcomes),
        "stores": stores,
        "tools": len(stores) >= TOOLS_FROM,
        "copies": copies,
        "choices": [
            (group, chosen[group]) for group in dict.fromkeys(s.outcome.replica_group for s in copies) if group in chosen
        ],
    }
    return page("index.html", view)


def _counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return findings by severity."""
    return {severity: sum(o.found.counts.get(severity, 0) for o in outcomes) for severity in (LOSS, REBUILDABLE, NOTE)}


def _row(outcome: Outcome, judgement: Judgement, danger: int) -> StoreRow:
    """Return the row of a store in the list of stores.

    danger: greater for a store that is listed earlier.
    """
    lost_messages, lost_bytes = outcome.loss.messages, outcome.loss.bytes
    starts, holds = outcome.started is not None, outcome.holds
    counts = _counts([outcome])
    return StoreRow(
        outcome=outcome,
        name=title_of(outcome),
        kind=judgement.kind,
        condition=judgement.condition,
        answer=answer_of(outcome),
        first=first_name(outcome),
        style=style_of(judgement.kind, outcome.exit_code),
        folder=quote(outcome.name, safe="", errors="surrogatepass"),
        starts=starts,
        lost_messages=lost_messages,
        lost_bytes=lost_bytes,
        lost_timers=timers_lost(outcome),
        lacks=lacks_of(outcome)[0] if outcome.replicas.copies else None,
        stored=span_text(holds.first_store_time, holds.last_store_time) if holds.messages else "",
        headline=short_text(outcome, judgement),
        notes=note_kinds([outcome]),
        counts=counts,
        sort=(
            None, danger, None, lost_messages if starts else "", " ".join(map(str, counts.values())),
            holds.first_store_time if holds.messages else "", outcome.release.replace(".", " "), outcome.exit_code,
        ),
    )  # fmt: skip


def _copies(stores: Sequence[StoreRow]) -> list[StoreRow]:
    """Return copies of one broker side by side, whatever their exit codes the one that a start harms least first."""
    groups: dict[str, list[StoreRow]] = defaultdict(list)
    for store in reversed(stores):
        if store.outcome.replica_group:
            groups[store.outcome.replica_group].append(store)
    several = [group for _, group in sorted(groups.items()) if len(group) > 1]
    return [store for group in several for store in sorted(group, key=lambda s: s.kind.danger)]
