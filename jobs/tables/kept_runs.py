"""Chooses the runs that a pruning takes out, and those that it keeps whatever their age. Rows of `runs` in, run ids out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.rows import Row

COLUMNS = ("level", "log_end", "messages", "month")


@dataclass(frozen=True)
class Choice:
    """Run ids by time.

    gone: to be taken out.
    needed: those that age or number would take out, but of which the next audits or reports need a row.
    """

    gone: tuple[str, ...]
    needed: tuple[str, ...]


def choose(rows: Sequence[Row], keep_since: int | None, keep_runs: int | None) -> Choice:
    """Choose the runs that a pruning takes out.

    rows: of `runs`, a row for each store of each run, with COLUMNS.
    keep_since: µs since 1970; runs that began then or later stay.
    keep_runs: the number of newest runs of each store that stay.
    A run stays if one of the two keeps it. A run goes as a whole: it stays as long as one of its stores needs it.
    """
    by_store: defaultdict[str, list[Row]] = defaultdict(list)
    began: dict[str, int] = {}
    for row in sorted(rows, key=_began):
        by_store[row["store"]].append(row)
        began[row["run_id"]] = max(_began(row), began.get(row["run_id"], 0))
    wanted: set[str] = set()
    needed: set[str] = set()
    for own in by_store.values():
        if keep_since is not None:
            wanted |= {row["run_id"] for row in own if _began(row) >= keep_since}
        if keep_runs is not None:
            wanted |= {row["run_id"] for row in own[-keep_runs:]}
        needed |= _needed(own)
    in_time = sorted(began, key=lambda run_id: (began[run_id], run_id))
    gone = tuple(run_id for run_id in in_time if run_id not in wanted | needed)
    return Choice(gone, tuple(run_id for run_id in in_time if run_id in needed - wanted))


def _needed(rows: Sequence[Row]) -> set[str]:
    """Return the runs that one store needs.

    They are its latest run, which `report` shows; the latest full one, from which an audit takes segments that have not changed;
    and the one that saw its log reach furthest, by which an audit notices that messages are gone.
    rows: the store's, by time.
    """
    found = {rows[-1]["run_id"]}
    full = [row for row in rows if row.get("level") != "quick"]
    if full:
        found.add(full[-1]["run_id"])
    filled = [row for row in rows if row.get("messages")]
    if filled:
        found.add(max(reversed(filled), key=_reach)["run_id"])
    return found


def _reach(row: Row) -> tuple[int, bool]:
    return -1 if row["log_end"] is None else row["log_end"], row.get("level") != "quick"


def months_gone(rows: Sequence[Row], gone: Sequence[str]) -> list[str]:
    """Months of which every run goes. A row without a month makes none."""
    going = set(gone)
    stays = {row["month"] for row in rows if row["run_id"] not in going}
    return sorted({row["month"] for row in rows if row["month"]} - stays)


def _began(row: Row) -> int:
    return row["started_at"] or 0
