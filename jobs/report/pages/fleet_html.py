"""The page of `report`: each store's latest run, the most dangerous first, and how it came to be so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobs.report.pages.page import SEVERITY_STYLE, TOOLS_FROM, View, page, style_of
from jobs.report.past_views import FleetView, StoreInFleet, TrendRun
from jobs.report.texts.history_text import answer_text
from jobs.report.texts.run_words import EXIT_CODES, store_title
from jobs.report.texts.safety_text import KINDS, SHAPE_OF, SHORT, headline_of_all, lost_style
from schemas.answer import Answer
from schemas.finding_codes import CATALOGUE
from store_io.base.exit_codes import CONSISTENT, DERIVED, GAP_CODES, LOST
from store_io.outcome.safety import Safety

_RUNS = 100  # of a store's table, the newest
_STRIP = 60  # runs in the strip of a store's row
_CODE_STYLE = {CONSISTENT: "safe", DERIVED: "care", **dict.fromkeys(GAP_CODES, "unknown"), LOST: "stop"}
_PLACES: dict[str | None, int] = {answer: place for place, answer in enumerate(Answer)}
_HEIGHT = 22  # of a strip, in pixels


@dataclass(frozen=True, slots=True)
class _Bar:
    run: TrendRun
    height: int


@dataclass(frozen=True, slots=True)
class _Store:
    """A store on the page: its number, title and colour, links by run, the runs of its table, its bars and sort keys."""

    of: StoreInFleet
    place: int
    name: str
    style: str
    links: dict[str, str | None]
    newest: Sequence[TrendRun]
    bars: Sequence[_Bar]
    sort: tuple[object, ...]


def fleet_html(view: FleetView, link: Callable[[str], str | None] = lambda page: None) -> Iterator[str]:
    """Return the whole page of a fleet's view, in pieces. link: makes the link to a page of a run."""
    totals = view.totals
    stores = [_store(place, store, link) for place, store in enumerate(view.stores)]
    worst = view.stores[0].safety if stores else Safety.SAFE
    lost, unknown = totals["lost_messages"] or totals["lost_timers"], sum(not store.latest.starts for store in view.stores)
    shown: View = {
        "title": "RocketMQ store audits",
        "lost_style": lost_style(bool(lost), unknown, totals),
        "not_known": unknown,
        "fleet": view,
        "totals": totals,
        "shape": SHAPE_OF[worst],
        "style": stores[0].style if stores else style_of(worst, 0),
        "headline": headline_of_all(totals, totals["stores"]),
        "kinds": KINDS,
        "exit_codes": EXIT_CODES,
        "short": SHORT,
        "answer_text": answer_text,
        "severity_style": SEVERITY_STYLE,
        "code_style": lambda run: _CODE_STYLE.get(run.exit_code, "unknown"),
        "stores": stores,
        "explained_codes": sorted({code.code for store in view.stores for code in store.latest.codes} & set(CATALOGUE)),
        "tools": len(stores) >= TOOLS_FROM,
    }
    return page("fleet.html", shown)


def _store(place: int, store: StoreInFleet, link: Callable[[str], str | None]) -> _Store:
    return _Store(
        of=store,
        place=place,
        name=store_title(store.name, store.broker_name),
        style=style_of(store.safety, store.latest.exit_code),
        links={run.run_id: link(run.page) for run in store.trend if run.page},
        newest=store.trend[: -_RUNS - 1 : -1],
        bars=_bars(store.trend[-_STRIP:]),
        sort=_sort(place, store),
    )


def _sort(place: int, store: StoreInFleet) -> tuple[object, ...]:
    """Return the sort keys of a store as `row` in macros.html takes them."""
    latest = store.latest
    return (
        None,
        -_PLACES.get(store.answer, len(_PLACES)),
        -place,
        None,
        latest.lost_messages if latest.starts and latest.lost_messages is not None else "",
        latest.exit_code,
        store.age_seconds,
        store.runs,
    )


def _bars(trend: Sequence[TrendRun]) -> list[_Bar]:
    """Return a bar per run, as high as the loss of a start. All bars have half of the height if no run lost anything."""
    most = max((run.lost_messages or 0 for run in trend), default=0)
    heights = (max(4, _HEIGHT * (run.lost_messages or 0) // most) if most else _HEIGHT // 2 for run in trend)
    return [_Bar(run, height) for run, height in zip(trend, heights, strict=True)]
