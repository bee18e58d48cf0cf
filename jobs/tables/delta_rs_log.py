"""A Delta table's log in a folder of this machine, in S3 or in HDFS, by delta-rs in this process.

Spark needs a second or more for each table, and as it is shipped it cannot reach S3.
`jobs.tables.delta_log` chooses.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from jobs.tables.file_statistics import counted_columns, is_partial, statistics_in
from jobs.tables.table_files import DataFile, LiveFile, delta_rs_options, is_remote, refuse_links
from schemas.tables import RUN_ID, Column, struct_of

_CHECKPOINT_VERSIONS = 10  # as Delta's own writers: readers need not open all versions
_VERSIONS_BETWEEN = 3  # of other writers, that may lie before the version that was written
_OLDEST_PROTOCOL = (1, 2)  # of a reader, of a writer: files have nothing that must be said again when they are added again


class Raced(Exception):
    """Another writer was quicker: try again on its version."""


def is_from_delta_rs(problem: Exception) -> bool:
    """Say whether delta-rs could not do its part, so that Spark may try.

    Such are a file system without hard links, by which it commits, and a feature that it does not write. It gives Python's own
    errors for files and texts that it cannot take.
    """
    from deltalake.exceptions import DeltaError

    return isinstance(problem, (DeltaError, OSError, ValueError))


class DeltaRsLog:
    """One table's log.

    place: the folder, or a URI of these.
    columns: all of them.
    partition: those that divide the files.
    about: the table's description.
    """

    def __init__(self, place: str, columns: Sequence[Column], partition: Sequence[str], about: str = ""):
        self.place = place
        self._columns = columns
        self._about = about
        self._partition = list(partition)
        self._known: Any = None  # the table, if it was opened and lies on another machine
        self.is_new = False  # whether the last commit has made it

    def exists(self) -> bool:
        """Say whether the table has a version."""
        return self.newest() is not None

    def files(self, run_id: str | None = None) -> list[LiveFile]:
        """Return the files of the newest version, without those that surely hold no row of the run.

        None exist without a table.
        """
        newest = self.newest()
        return [] if newest is None else live_files(newest, run_id)

    def commit(self, newest: Any, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's files by these, in the version after the newest; no version is written if nothing changes.

        Raises Raced, delta-rs' errors.
        """
        from deltalake import CommitProperties, Schema
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import RemoveAction, create_table_with_add_actions

        self.is_new = newest is None
        if newest is None:
            struct = struct_of(*self._columns)
            added = [_added(file, self._partition, struct) for file in files]
            schema = Schema.from_json(json.dumps(struct))
            options = delta_rs_options(self.place)
            if not is_remote(self.place):
                os.makedirs(self.place, exist_ok=True)
            try:
                create_table_with_add_actions(
                    self.place, schema, added, "error", self._partition, description=self._about, storage_options=options
                )
            except DeltaError as problem:
                if self.exists():
                    raise Raced from problem
                raise
            return
        partition = newest.metadata().partition_columns
        added = [_added(file, partition, struct_in(newest)) for file in files]
        live = live_files(newest, run_id)
        if any(file.run_id() != run_id for file in live):  # with other runs' rows: by a version of its own, if there are any
            newest = self._without(newest, run_id)
            live = live_files(newest, run_id)
        present = [file.path for file in live if file.run_id() == run_id]
        kept = {action.path for action in added} & set(present)  # of a commit whose answer was lost
        now = int(time.time() * 1000)
        removed = [RemoveAction(name, True, now) for name in present if name not in kept]
        actions = [*removed, *(action for action in added if action.path not in kept)]
        if not actions:
            return
        before = newest.version()
        # delta-rs does not see that a compaction has taken a file out, whose rows would then count twice: what removes files goes
        # into the next version or nowhere.
        once = CommitProperties(max_commit_retries=0) if removed else None
        try:
            newest.create_write_transaction(
                actions, "append", newest.schema(), partition,
                commit_properties=once, post_commithook_properties=no_cleaning(checkpoint=False),
            )  # fmt: skip
        except CommitFailedError as problem:  # also where the table needs a feature that delta-rs does not write
            now = self.newest()
            if now is None or now.version() == before:
                raise
            raise Raced from problem
        # Another writer's versions may lie between: the version that was written is not known.
        if before % _CHECKPOINT_VERSIONS >= _CHECKPOINT_VERSIONS - _VERSIONS_BETWEEN:
            with contextlib.suppress(Exception):  # it speeds up readers; the version itself is committed
                newest = self.newest()
                if newest.version() // _CHECKPOINT_VERSIONS > before // _CHECKPOINT_VERSIONS:
                    newest.create_checkpoint()
                    self.clean(newest)

    def mend_statistics(self, newest: Any, most: int) -> int:
        """Give files whose statistics leave columns out whole ones, in a version of its own, or none; return how many.

        most: so many files are read at most. One that cannot be read stays as it is. Raises delta-rs' errors: CommitFailedError
        if another writer was quicker, who may have taken files out.
        """
        from deltalake import CommitProperties
        from deltalake.fs import DeltaStorageHandler

        protocol, partition = newest.protocol(), newest.metadata().partition_columns
        if (protocol.min_reader_version, protocol.min_writer_version) > _OLDEST_PROTOCOL:
            return 0
        chosen = _partial_files(newest, most)
        if not chosen:
            return 0
        sizes = {path: size for path, size in newest._table.get_add_file_sizes().items() if path in {f["path"] for f in chosen}}
        place = fs.PyFileSystem(DeltaStorageHandler.from_table(newest._table, delta_rs_options(self.place), sizes))
        added = []
        for row in chosen:
            with contextlib.suppress(OSError, pa.ArrowException), place.open_input_file(row["path"]) as file:
                known = statistics_in(file).in_log(_counted(newest))
                values = {name: row[f"partition.{name}"] for name in partition}
                added.append(_add_action(row["path"], row["size_bytes"], values, row["modification_time"], known, is_new=False))
        once = CommitProperties(max_commit_retries=0)
        if added:
            newest.create_write_transaction(
                added, "append", newest.schema(), partition,
                commit_properties=once, post_commithook_properties=no_cleaning(checkpoint=False),
            )  # fmt: skip
        return len(added)

    def clean(self, newest: Any) -> None:
        """Remove versions that are over a month old: no reader needs them beside the checkpoint.

        Raises TablesFailed if a link is in the table's folder; OSError; delta-rs' errors.
        """
        refuse_links(self.place)
        newest.cleanup_metadata()

    def add_columns(self, columns: Sequence[Column]) -> None:
        """Give an existing table these columns. Raises delta-rs' errors."""
        from deltalake import Schema

        fields = list(Schema.from_json(json.dumps(struct_of(*columns))).fields)
        self.newest().alter.add_columns(fields, post_commithook_properties=no_cleaning())

    def describe(self, newest: Any) -> bool:
        """Give a table of an earlier version the description and the comments of this one; whether anything was changed.

        Raises delta-rs' errors.
        """
        comments = {field.name: field.metadata.get("comment") for field in newest.schema().fields}
        other = [c for c in self._columns if c.name in comments and comments[c.name] != c.comment]
        for column in other:
            newest.alter.set_column_metadata(column.name, {"comment": column.comment}, post_commithook_properties=no_cleaning())
        if newest.metadata().description != self._about:
            newest.alter.set_table_description(self._about, post_commithook_properties=no_cleaning())
            return True
        return bool(other)

    def newest(self) -> Any:
        """Return the newest version, or None if there is none yet.

        In S3 and HDFS, where each file of a log is a request, a table that was opened before is read on, and is the same object.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        if not is_remote(self.place) and not os.path.isdir(f"{self.place}/_delta_log"):
            return None
        known, self._known = self._known, None
        if known is not None:
            with contextlib.suppress(DeltaError, OSError):  # what it was made of may be gone
                known.update_incremental()
                self._known = known
                return known
        try:
            found = DeltaTable(self.place, storage_options=delta_rs_options(self.place))
        except TableNotFoundError:  # a writer has only made the folder
            return None
        self._known = found if is_remote(self.place) else None
        return found

    def _without(self, newest: Any, run_id: str) -> Any:
        """Return the newest version, once it has no rows of the run in files that it shares with others. Raises Raced."""
        from deltalake.exceptions import CommitFailedError

        before = newest.version()
        try:
            with panics_as_errors():
                condition = f"{RUN_ID.name} = '{run_id}'"
                newest.delete(condition, post_commithook_properties=no_cleaning())  # no version where it has no such row
        except CommitFailedError as problem:
            now = self.newest()
            if now is None or now.version() == before:
                raise
            raise Raced from problem
        return self.newest()


def no_cleaning(checkpoint: bool = True) -> Any:
    """Return commit hooks that remove no old versions: `DeltaRsLog.clean` does, which looks for links first."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=checkpoint, cleanup_expired_logs=False)


@contextlib.contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise a panic inside of delta-rs as its own error. Folder names that it takes for addresses may cause one."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":  # which no module exports
            raise
        raise DeltaError(str(problem)) from None


def live_files(newest: Any, run_id: str | None = None) -> list[LiveFile]:
    """Return the files of a version (`DeltaTable`), without those that surely hold no row of the run."""
    added = pa.RecordBatchReader.from_stream(newest.get_add_actions(flatten=True)).read_all()  # pa.table() would import pandas
    partition = newest.metadata().partition_columns
    names = {"path", "size_bytes", "modification_time", "num_records", f"min.{RUN_ID.name}", f"max.{RUN_ID.name}"}
    names |= {f"partition.{name}" for name in partition}
    rows = added.select([name for name in added.column_names if name in names])
    found = [_live_file(row, partition) for row in rows.to_pylist()]
    return [file for file in found if run_id is None or file.may_hold(run_id)]


def _live_file(row: dict[str, Any], partition: Sequence[str]) -> LiveFile:
    values = {name: row[f"partition.{name}"] for name in partition}
    low, high = (row.get(f"{end}.{RUN_ID.name}") for end in ("min", "max"))
    return LiveFile(unquote(row["path"]), values, low, high, row["size_bytes"], row["modification_time"], row.get("num_records"))


def struct_in(newest: Any) -> dict[str, Any]:
    """Return the columns of a version as Delta's log has them."""
    found: dict[str, Any] = json.loads(newest.schema().to_json())
    return found


def _counted(newest: Any) -> dict[str, str]:
    return counted_columns(struct_in(newest), newest.metadata().partition_columns)


def _partial_files(newest: Any, most: int) -> list[dict[str, Any]]:
    """Return the rows of the first files whose statistics leave columns out."""
    added = pa.RecordBatchReader.from_stream(newest.get_add_actions(flatten=True)).read_all()
    said = {name: kind for name, kind in _counted(newest).items() if f"null_count.{name}" in added.column_names}
    found: list[dict[str, Any]] = []
    for batch in added.to_batches(max_chunksize=most):  # a table may have thousands of files
        rows = batch.to_pylist()
        # a name with a coded character: not sure to be the same name when it is written again
        found += [row for row in rows if "%" not in row["path"] and is_partial(_statistics_in(row, said), said)]
        if len(found) >= most:
            break
    return found[:most]


def _statistics_in(row: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Return a file's statistics as a log has them, out of its row in delta-rs' list."""
    parts = (("null_count", "nullCount"), ("min", "minValues"), ("max", "maxValues"))
    known = {key: {c: v for c in columns if (v := row.get(f"{part}.{c}")) is not None} for part, key in parts}
    return {"numRecords": row["num_records"], **known}


def _added(file: DataFile, partition: Sequence[str], struct: Mapping[str, Any]) -> Any:
    values = {name: file.values[name] for name in partition}
    known = file.statistics.in_log(counted_columns(struct, partition))
    return _add_action(file.path, file.size_bytes, values, file.modified_ms, known)


def _add_action(
    path: str, size: int, values: Mapping[str, str | None], modified_ms: int, known: Mapping[str, Any], is_new: bool = True
) -> Any:
    """Return the action that puts a file into a version. is_new: its rows are; else what is said of it alone."""
    from deltalake.transaction import AddAction

    text = json.dumps(known, ensure_ascii=False)  # delta-rs takes some characters for others if they are written as \\u
    return AddAction(path, size, values, modified_ms, is_new, text)
