"""A Delta table's log in a folder of this machine, by delta-rs in this process.

The first call to Delta's kernel in a JVM takes as long as all commits of a run here. `jobs.tables.delta_log` chooses.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from jobs.tables.data_file import DataFile
from schemas.tables import RUN_ID, Column, struct_of

_CHECKPOINT_VERSIONS = 10  # as Delta's own writers: readers need not open all versions


class Raced(Exception):
    """Another writer was quicker: try again on its version."""


class LocalLog:
    """One table's log. place: the folder.  columns, partition: all columns, and those that divide the files."""

    def __init__(self, place: str, columns: Sequence[Column], partition: Sequence[str]):
        self.place = place
        self._columns = columns
        self._partition = list(partition)

    def exists(self) -> bool:
        """Whether the table has a version."""
        return self.newest() is not None

    def files(self, run_id: str | None) -> list[str]:
        """Paths, of one run alone where one is named; none where there is no table."""
        newest = self.newest()
        if newest is None:
            return []
        of_run = [(RUN_ID.name, "=", run_id)] if run_id is not None else None
        return [unquote(uri) for uri in newest.file_uris(file_pruning_predicate=of_run)]

    def commit(self, newest: Any, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's files by these, in the version after the newest; none where nothing changes.

        Raises Raced, delta-rs' errors.
        """
        from deltalake import Schema
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import PostCommitHookProperties, create_table_with_add_actions

        added = [self._added(run_id, file) for file in files]
        if newest is None:
            schema = Schema.from_json(json.dumps(struct_of(*self._columns)))
            os.makedirs(self.place, exist_ok=True)
            try:
                create_table_with_add_actions(self.place, schema, added, "error", self._partition)
            except DeltaError as problem:
                if self.exists():
                    raise Raced from problem
                raise
            return
        actions = [*self._removed(newest, run_id), *added]
        if not actions:
            return
        later = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        try:
            newest.create_write_transaction(actions, "append", newest.schema(), self._partition, post_commithook_properties=later)
        except CommitFailedError as problem:
            raise Raced from problem
        if newest.version() % _CHECKPOINT_VERSIONS == 0:
            with contextlib.suppress(Exception):  # it speeds up readers; the version itself is committed
                newest.create_checkpoint()

    def newest(self) -> Any:
        """The newest version, None where there is none yet."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if not os.path.isdir(f"{self.place}/_delta_log"):
            return None
        try:
            return DeltaTable(self.place)
        except TableNotFoundError:  # a writer has only made the folder
            return None

    def _added(self, run_id: str, file: DataFile) -> Any:
        from deltalake.transaction import AddAction

        least = {name: low for name, low, _ in file.bounds}
        most = {name: high for name, _, high in file.bounds}
        statistics = {"numRecords": file.rows, "minValues": least, "maxValues": most, "nullCount": {}}
        values = dict(zip(self._partition, (run_id, *file.partition), strict=True))
        path = f"run_id={run_id}/{file.uri.rpartition('/')[2]}"
        return AddAction(path, file.size_bytes, values, file.modified_ms, True, json.dumps(statistics))

    def _removed(self, newest: Any, run_id: str) -> list[Any]:
        from deltalake.transaction import RemoveAction

        if not os.path.isdir(f"{self.place}/run_id={run_id}"):
            return []
        now, folder = int(time.time() * 1000), f"run_id={run_id}/"
        names = [
            unquote(uri).partition(f"/{folder}")[2]
            for uri in newest.file_uris(file_pruning_predicate=[(RUN_ID.name, "=", run_id)])
        ]
        return [RemoveAction(f"{folder}{name}", True, now) for name in names]
