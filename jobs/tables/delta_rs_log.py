"""A Delta table's log in a folder of this machine or in S3, by delta-rs in this process.

The first call to Delta's kernel in a JVM takes as long as all commits of a run here, and Spark as it is shipped cannot reach S3.
`jobs.tables.delta_log` chooses.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from jobs.tables.data_file import DataFile
from jobs.tables.table_address import delta_rs_options
from schemas.tables import RUN_ID, Column, struct_of
from store_io.base.paths import is_s3

_CHECKPOINT_VERSIONS = 10  # as Delta's own writers: readers need not open all versions


class Raced(Exception):
    """Another writer was quicker: try again on its version."""


def is_from_delta_rs(problem: Exception) -> bool:
    """Whether delta-rs could not do what it was asked, so that Delta's kernel may: a file system without hard links, by which
    it commits, a feature that it does not write. It gives Python's own errors for files and texts that it cannot take."""
    from deltalake.exceptions import DeltaError

    return isinstance(problem, (DeltaError, OSError, ValueError))


class DeltaRsLog:
    """One table's log. place: the folder, or an `s3://` URI.  columns: all of them.  partition: those that divide the files."""

    def __init__(self, place: str, columns: Sequence[Column], partition: Sequence[str]):
        self.place = place
        self._columns = columns
        self._partition = list(partition)

    def exists(self) -> bool:
        """Whether the table has a version."""
        return self.newest() is not None

    def files(self, run_id: str | None) -> dict[str, str | None]:
        """Path -> run, of one run alone where one is named; none where there is no table."""
        newest = self.newest()
        if newest is None:
            return {}
        runs = {name: re.match(f"{RUN_ID.name}=([^/]*)/", name) for name in _names(newest, run_id)}
        return {f"{self.place.rstrip('/')}/{name}": run[1] if run else None for name, run in runs.items()}

    def commit(self, newest: Any, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's files by these, in the version after the newest; none where nothing changes.

        Raises Raced, delta-rs' errors.
        """
        from deltalake import Schema
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import PostCommitHookProperties, RemoveAction, create_table_with_add_actions

        added = [self._added(run_id, file) for file in files]
        if newest is None:
            schema = Schema.from_json(json.dumps(struct_of(*self._columns)))
            options = delta_rs_options(self.place)
            if not is_s3(self.place):
                os.makedirs(self.place, exist_ok=True)
            try:
                create_table_with_add_actions(self.place, schema, added, "error", self._partition, storage_options=options)
            except DeltaError as problem:
                if self.exists():
                    raise Raced from problem
                raise
            return
        present = self._of_run(newest, run_id)
        kept = {action.path for action in added} & set(present)  # of a commit whose answer was lost
        now = int(time.time() * 1000)
        actions = [
            *(RemoveAction(name, True, now) for name in present if name not in kept),
            *(action for action in added if action.path not in kept),
        ]
        if not actions:
            return
        before = newest.version()
        later = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        try:
            newest.create_write_transaction(actions, "append", newest.schema(), self._partition, post_commithook_properties=later)
        except CommitFailedError as problem:  # also where the table needs a feature that delta-rs does not write
            now = self.newest()
            if now is None or now.version() == before:
                raise
            raise Raced from problem
        if newest.version() % _CHECKPOINT_VERSIONS == 0:
            with contextlib.suppress(Exception):  # it speeds up readers; the version itself is committed
                newest.create_checkpoint()

    def add_columns(self, columns: Sequence[Column]) -> None:
        """Give an existing table these columns. Raises delta-rs' errors."""
        from deltalake import Schema

        self.newest().alter.add_columns(list(Schema.from_json(json.dumps(struct_of(*columns))).fields))

    def newest(self) -> Any:
        """The newest version, None where there is none yet."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if not is_s3(self.place) and not os.path.isdir(f"{self.place}/_delta_log"):
            return None
        try:
            return DeltaTable(self.place, storage_options=delta_rs_options(self.place))
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

    def _of_run(self, newest: Any, run_id: str) -> list[str]:
        if not is_s3(self.place) and not os.path.isdir(f"{self.place}/run_id={run_id}"):
            return []
        return _names(newest, run_id)


def _names(newest: Any, run_id: str | None) -> list[str]:
    """Paths of a version's files below the table's folder, of one run alone where one is named."""
    of_run = [(RUN_ID.name, "=", run_id)] if run_id is not None else None
    folder = newest.table_uri.removeprefix("file://")  # without symbolic links, and encoded, as each file's path
    return [unquote(uri.removeprefix(folder)) for uri in newest.file_uris(file_pruning_predicate=of_run)]
