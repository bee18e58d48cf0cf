"""report: the latest run of each store, unsafe copies first, and how each store came to be so.

Of the findings only the latest runs' are looked at, summed up by code; a trend is made of rows of `runs` alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from jobs.cli.argument_places import absolute
from jobs.cli.options import Command
from jobs.report.pages.fleet_html import fleet_html
from jobs.report.texts.history_text import fleet_text
from jobs.report.texts.run_words import says_nothing, short_names
from jobs.report.texts.safety_text import KINDS, danger_key
from jobs.tables import past_runs
from jobs.tables.past_runs import History, Pages, link_to, micros_of, time_of
from schemas.finding_codes import Code
from schemas.rows import LOSS, Row
from store_io.base.errors import StoreError
from store_io.base.exit_codes import GAP_CODES, severity_rank
from store_io.base.paths import is_uri
from store_io.outcome.safety import Safety, is_unsafe

TREND_RUNS = 1000  # of one store, the newest: bounds what a long history takes
_SHOWN_RUNS = {"text": 20, "html": 100, "json": TREND_RUNS}
_TREND_COLUMNS = (
    "run_id started_at exit_code complete verdict starts lost_messages lost_bytes losses rebuildable notes messages "
    "segment_count damaged_extents bytes_read seconds truncate_at location release tool_version rules_version"
).split()
_LATEST_COLUMNS = (
    "safety answer steps replica_group folder out refusal exit_kind stop_reason min_phy_offset lacks_messages diverged "
    "findings_dropped"
).split()
_OF_STORE = ("store", "safety", "answer", "steps", "broker_name")  # beside `latest` in a store's part of the view
COLUMNS = [*_TREND_COLUMNS[2:], *_LATEST_COLUMNS]


def run(command: Command) -> int:
    """Run the command. Returns 0 once the report is written."""
    past_runs.no_arguments(command)
    uri, kind = past_runs.tables_of(command), past_runs.format_of(command)
    now = datetime.now(UTC)
    history = History(uri)
    view = read_fleet(history, now, command.options.get("--since"), command.options.get("--store"), _SHOWN_RUNS[kind])
    if kind == "html":
        view = _with_links(view, command.options.get("--out"))
    text_of = fleet_text if kind == "text" else lambda view, _: "".join(fleet_html(view))
    past_runs.write_view(command, view, text_of, (store["latest"]["location"] or "" for store in view["stores"]))
    return 0


def _with_links(view: Row, out: str | None) -> Row:
    """Return the view with `link` in each run: to its page, relative to the report's page.

    It is None if that page does not exist.
    """
    page = absolute(out) if out is not None and not is_uri(out) else None
    if out is not None and page is None:  # in a bucket: no page of this machine can be linked from there
        return view

    def linked(store: Row) -> Row:
        trend = [{**run, "link": link_to(run["page"], page) if run["page"] else None} for run in store["trend"]]
        return {**store, "trend": trend, "latest": {**store["latest"], "link": trend[-1]["link"]}}

    return {**view, "stores": [linked(store) for store in view["stores"]]}


def read_fleet(
    history: History, now: datetime, since: datetime | None = None, store: str | None = None, trend_runs: int = TREND_RUNS
) -> Row:
    """Read the tables into the rows of `fleet_view`, with at most `trend_runs` of each store.

    Raises StoreError if no run falls into that time.
    """
    # All runs by their names and times alone; what is said of them is read of those that are shown: one partition is one run.
    store, known = history.runs_of(store, [])
    after = micros_of(since) if since is not None else None
    within = [row for row in known if after is None or row["started_at"] >= after]
    if not within:
        when = f" since {time_of(after)}" if after is not None else ""
        raise StoreError(f"no run{when} in {history.uri}")
    by_store: defaultdict[str, list[Row]] = defaultdict(list)
    for row in within:
        by_store[row["store"]].append(row)
    shown = {(row["run_id"], row["store"]) for trend in by_store.values() for row in trend[-trend_runs:]}
    rows = history.runs(COLUMNS, sorted({run_id for run_id, _ in shown}), store)
    rows = [row for row in rows if (row["run_id"], row["store"]) in shown]
    latest = {row["store"]: row["run_id"] for row in rows}
    shown_as = short_names(latest)
    names = _broker_names(history, {name: run_id for name, run_id in latest.items() if says_nothing(shown_as[name])})
    rows = [{**row, "broker_name": names.get((row["run_id"], row["store"]))} for row in rows]
    codes = history.codes(sorted(set(latest.values())), store)
    codes = [row for row in codes if latest.get(row["store"]) == row["run_id"]]
    return fleet_view(rows, codes, known, history.uri, now, since)


def _broker_names(history: History, latest: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return (run, store) -> brokerName in its broker.conf. latest: each store's run."""
    rows = history.runs(["settings"], sorted(set(latest.values()))) if latest else []
    return {
        (row["run_id"], row["store"]): setting["value"]
        for row in rows
        if latest.get(row["store"]) == row["run_id"]
        for setting in row["settings"] or ()
        if setting["key"] == "brokerName" and setting["value"]
    }


def fleet_view(
    rows: Sequence[Row], codes: Sequence[Row], known: Sequence[Row], uri: str, now: datetime, since: datetime | None
) -> Row:
    """Return the report as the JSON holds it.

    rows: of `runs`, by store and time; a store's last row has its broker_name if that is known.
    codes: those of the latest runs' findings.
    known: run_id, store and started_at of all runs, also those before `since` and those that no trend shows.
    """
    trends: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        trends[row["store"]].append(row)
    by_store: defaultdict[str, list[Row]] = defaultdict(list)
    for row in codes:
        by_store[row["store"]].append({key: value for key, value in row.items() if key not in ("store", "run_id")})
    within = [row for row in known if since is None or row["started_at"] >= micros_of(since)]
    runs = Counter(row["store"] for row in within)
    pages = Pages()
    last = {row["store"]: row["started_at"] for row in known}  # by time: the latest stays
    shown_as = short_names(last)
    stores = [_store_view(name, trend, by_store[name], runs[name], now, pages) for name, trend in trends.items()]
    stores = [{"store": store["store"], "name": shown_as[store["store"]], **store} for store in stores]
    stores.sort(key=_rank)
    safety = Counter(store["safety"] for store in stores)
    return {
        "schema_version": past_runs.SCHEMA_VERSION,
        "tables": uri,
        "made_at": time_of(micros_of(now)),
        "since": None if since is None else time_of(micros_of(since)),
        "runs": len({row["run_id"] for row in within}),
        "totals": {
            "stores": len(stores),
            **{kind: safety[kind] for kind in KINDS},
            "unsafe": sum(safety[kind] for kind in KINDS if is_unsafe(kind)),
            "lost_messages": sum(store["latest"]["lost_messages"] or 0 for store in stores),
            "lost_bytes": sum(store["latest"]["lost_bytes"] or 0 for store in stores),
            "lost_timers": sum(store["lost_timers"] for store in stores),
        },
        "stores": stores,
        "not_audited_since": [
            {"store": name, "name": shown_as[name], "last": time_of(when)}
            for name, when in sorted(last.items())
            if name not in trends
        ],
    }


def safety_of(row: Row) -> str:
    """Return the audit's own answer. A run that kept none shows only that a start loses messages; else it is not known."""
    if row["safety"] in KINDS:
        return str(row["safety"])
    return Safety.STOP if row["lost_messages"] else Safety.UNKNOWN


def _store_view(name: str, trend: Sequence[Row], codes: Sequence[Row], runs: int, now: datetime, pages: Pages) -> Row:
    latest = {key: value for key, value in trend[-1].items() if key not in _OF_STORE}
    ranked = sorted(codes, key=lambda row: (severity_rank(row["severity"]), -row["count"], row["code"]))
    latest["codes"] = ranked
    latest["started_at"] = time_of(trend[-1]["started_at"])
    return {
        "store": name,
        "broker_name": trend[-1].get("broker_name"),
        "safety": safety_of(trend[-1]),
        "answer": trend[-1]["answer"],
        "steps": trend[-1]["steps"],
        "why": _why(trend[-1], ranked),
        "lost_timers": sum(
            code["count"] for code in codes if code["code"] == Code.TIMER_MESSAGE_LOST and code["severity"] == LOSS
        ),
        "age_seconds": max(0, (micros_of(now) - (trend[-1]["started_at"] or 0)) // 1_000_000),
        "latest": latest,
        "runs": runs,
        "trend": [
            {**{key: row[key] for key in _TREND_COLUMNS}, "started_at": time_of(row["started_at"]), "page": pages.page_of(row)}
            for row in trend
        ],
    }


def _why(row: Row, codes: Sequence[Row]) -> str:
    """Return one line on the reason for the store's state.

    It is the refusal, the codes of the most severe findings, or the verdict.
    """
    if row["refusal"]:
        return str(row["refusal"])
    grave = [f"{code['code']} {code['count']:,}" for code in codes if code["severity"] != "note"]
    if not grave or row["exit_code"] in GAP_CODES:
        return str(row["verdict"])
    return ", ".join(grave[:3]) + (f" and {len(grave) - 3} more" if len(grave) > 3 else "")


def _rank(store: Row) -> tuple[object, ...]:
    latest = store["latest"]
    counts = (latest[key] or 0 for key in ("lost_messages", "lacks_messages", "losses", "rebuildable"))
    return danger_key(latest["exit_code"], store["safety"], counts, store["store"])
