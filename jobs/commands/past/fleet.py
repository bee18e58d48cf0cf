"""report: the latest run of each store, unsafe copies first, and how each store came to be so.

Of the findings only the latest runs' are looked at, summed up by code; a trend is made of rows of `runs` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from jobs.cli.argument_places import absolute
from jobs.cli.options import Command
from jobs.report.pages.fleet_html import fleet_html
from jobs.report.past_views import CodeCount, FleetView, KnownRun, LatestRun, NotSeen, StoreInFleet, TrendRun
from jobs.report.texts.history_text import fleet_text
from jobs.report.texts.run_words import says_nothing, short_names
from jobs.report.texts.safety_text import KINDS, danger_key
from jobs.report.values_as_rows import columns_of, micros_of, time_of
from jobs.tables import past_runs
from jobs.tables.past_runs import History, Pages, began, by_store, link_to
from schemas.finding_codes import Code
from schemas.rows import LOSS
from store_io.base.errors import StoreError
from store_io.base.exit_codes import severity_rank
from store_io.base.paths import is_uri
from store_io.outcome.safety import Safety, is_unsafe

TREND_RUNS = 1000  # of one store, the newest: bounds what a long history takes
_SHOWN_RUNS = {"text": 20, "html": 100, "json": TREND_RUNS}
_LATEST = f"SELECT {', '.join(columns_of(LatestRun))} FROM runs_latest ORDER BY store"
_CODES = """SELECT store, severity, code, sum("count") AS count, count(*) AS findings, min(file) AS file
    FROM findings_latest GROUP BY store, severity, code"""


def run(command: Command) -> int:
    """Run the command. Returns 0 once the report is written."""
    past_runs.no_arguments(command)
    uri, kind = past_runs.tables_of(command), past_runs.format_of(command)
    now = datetime.now(UTC)
    history = History(uri)
    view = read_fleet(history, now, command.options.get("--since"), command.options.get("--store"), _SHOWN_RUNS[kind])
    link = links_from(command.options.get("--out"))
    text_of = fleet_text if kind == "text" else lambda view, _: "".join(fleet_html(view, link))
    past_runs.write_view(command, view, text_of, (store.latest.location for store in view.stores))
    return 0


def links_from(out: str | None) -> Callable[[str], str | None]:
    """Return what makes links to pages of runs, relative to the report's page. None links to nothing: no place to link from."""
    if out is not None and is_uri(out):  # in a bucket: no page of this machine can be linked from there
        return lambda path: None
    return partial(link_to, page=None if out is None else absolute(out))


def read_fleet(
    history: History, now: datetime, since: datetime | None = None, store: str | None = None, trend_runs: int = TREND_RUNS
) -> FleetView:
    """Read the latest run of each store, and at most `trend_runs` before it.

    Raises StoreError if no run falls into that time.
    """
    # All runs by their names and times alone; what is said of them is read of those that are shown: one partition is one run.
    store, known = history.runs_of(store)
    after = micros_of(since) if since is not None else None
    shown = {
        (run.run_id, run.store)
        for runs in by_store(run for run in known if after is None or began(run) >= after).values()
        for run in runs[-trend_runs:]
    }
    if not shown:
        when = f" since {time_of(after)}" if after is not None else ""
        raise StoreError(f"no run{when} in {history.uri}")
    trend = history.runs(TrendRun, sorted({run_id for run_id, _ in shown}), store)
    trend = [run for run in trend if (run.run_id, run.store) in shown]
    newest = sorted({runs[-1].run_id for runs in by_store(trend).values()})
    stores = None if store is None else [store]
    latest = [run for run in history.query(LatestRun, _LATEST, newest, stores) if (run.run_id, run.store) in shown]
    latest = with_codes(latest, history.query(CodeCount, _CODES, newest, stores))
    return fleet_view(trend, latest, known, history.uri, now, after)


def with_codes(latest: Sequence[LatestRun], codes: Sequence[CodeCount]) -> list[LatestRun]:
    """Return each store's latest run with its findings by code, the most severe first."""
    ranked = by_store(sorted(codes, key=lambda one: (severity_rank(one.severity), -one.count, one.code)))
    return [replace(run, codes=ranked[run.store]) for run in latest]


def fleet_view(
    trend: Sequence[TrendRun],
    latest: Sequence[LatestRun],
    known: Sequence[KnownRun],
    uri: str,
    now: datetime,
    after: int | None,
) -> FleetView:
    """Return the report.

    trend: by store and time. latest: each store's latest run.
    known: all runs by store and time, also those before `after` and those that no trend shows.
    """
    within = [run for run in known if after is None or began(run) >= after]
    runs = Counter(run.store for run in within)
    pages = Pages()
    last = {run.store: run.started_at for run in known}  # by time: the latest stays
    names, trends = short_names(last), by_store(trend)
    unnamed = {name for name, shown_as in short_names(trends).items() if says_nothing(shown_as)}
    stores = []
    for run in latest:
        name, timers = run.store, (code for code in run.codes if code.code == Code.TIMER_MESSAGE_LOST and code.severity == LOSS)
        stores.append(
            StoreInFleet(
                store=name,
                name=names[name],
                broker_name=run.settings.get("brokerName") or None if name in unnamed else None,
                safety=safety_of(run),
                answer=run.answer,
                steps=run.steps,
                lost_timers=sum(code.count for code in timers),
                age_seconds=max(0, (micros_of(now) - began(run)) // 1_000_000),
                latest=run,
                runs=runs[name],
                trend=[replace(one, page=pages.page_of(one)) for one in trends[name]],
            )
        )
    stores.sort(key=_rank)
    safety = Counter(store.safety for store in stores)
    totals = {
        "stores": len(stores),
        **{kind: safety[kind] for kind in KINDS},
        "unsafe": sum(safety[kind] for kind in KINDS if is_unsafe(kind)),
        "lost_messages": sum(store.latest.lost_messages or 0 for store in stores),
        "lost_bytes": sum(store.latest.lost_bytes or 0 for store in stores),
        "lost_timers": sum(store.lost_timers for store in stores),
    }
    gone = [NotSeen(name, names[name], when) for name, when in sorted(last.items()) if name not in trends]
    return FleetView(uri, micros_of(now), after, len({run.run_id for run in within}), totals, stores, gone)


def safety_of(run: LatestRun) -> str:
    """Return the audit's own answer. A run that kept none shows only that a start loses messages; else it is not known."""
    if run.safety in KINDS:
        return str(run.safety)
    return Safety.STOP if run.lost_messages else Safety.UNKNOWN


def _rank(store: StoreInFleet) -> tuple[object, ...]:
    run = store.latest
    counts = (count or 0 for count in (run.lost_messages, run.lacks_messages, run.losses, run.rebuildable))
    return danger_key(run.exit_code, store.safety, counts, store.store)
