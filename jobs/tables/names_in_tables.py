"""The names of stores in the tables, which are the same in every run. In rows of earlier versions it is the folder under --out.

Three copies in folders named `store` are three stores. So a row of an earlier version counts to the place at which that copy lay,
unless a person gave the store its name: the name is not its folder's, or a newer run has it as a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from jobs.cli.argument_places import folder_name, last_part
from jobs.report.past_views import KnownRun, OfRun
from jobs.tables.delta_query import text
from schemas.tables import NAME


@dataclass(frozen=True, slots=True)
class StoredRun(KnownRun):
    """A row of `runs` as it is stored. month: None in tables of a version that put each run in a folder of its own."""

    month: str | None
    store_from: str | None
    location: str | None


R = TypeVar("R", bound=OfRun)


class StoreNames:
    """The stores of the rows of `runs`. runs: all of them."""

    def __init__(self, runs: Iterable[StoredRun]):
        old: list[tuple[str, str, str]] = []
        named: set[str] = set()
        for run in runs:
            if run.store_from is None:
                if run.location and _is_its_folder(run.store, run.location):
                    old.append((run.run_id, run.store, run.location))
            elif run.store_from == NAME:
                named.add(run.store)
        self._moved = {(run_id, store): place for run_id, store, place in old if store not in named}

    def of(self, run_id: str, store: str) -> str:
        """Return the store of a row of any table."""
        return self._moved.get((run_id, store), store)

    def named(self, rows: Iterable[R]) -> Iterator[R]:
        """Return the rows of any table, each with its store."""
        for row in rows:
            store = self.of(row.run_id, row.store)
            yield row if store == row.store else replace(row, store=store)

    def sql(self, rows: str, run_ids: Iterable[str] | None) -> str:
        """Return SQL for rows of any table, each with its store.

        rows: SQL for them as they are stored. run_ids: the runs that they are of; None is for all.
        """
        wanted = None if run_ids is None else set(run_ids)
        moved = [(*key, place) for key, place in self._moved.items() if wanted is None or key[0] in wanted]
        if not moved:
            return rows
        places = ", ".join(f"({', '.join(map(text, one))})" for one in moved)
        return f"""SELECT stored.* EXCEPT (store), coalesce(moved.place, stored.store) AS store
            FROM ({rows}) AS stored LEFT JOIN (VALUES {places}) AS moved (run_id, store, place)
            ON stored.run_id = moved.run_id AND stored.store = moved.store"""


def _is_its_folder(store: str, location: str) -> bool:
    """Say whether the store's name may be that of its folder; a run makes names unique with -2, -3."""
    folder = re.escape(folder_name(last_part(location)))
    return re.fullmatch(f"{folder}(-[0-9]+)?", store) is not None
