"""One table's versions, by delta-rs: rows of runs taken out, small files put together, its log kept short.

Each change is one version, and it is committed only if nobody else has committed in the meantime: else it is made anew on what
the other writer left. Readers keep the version that they opened: its files stay until `TableCare.vacuum` finds them old enough.

Only files of the table's folder are removed, and only those that it does not need. On this machine no link is followed: what a
link names is not the table's, whatever its name. In S3 keys below the table's prefix are its files, in HDFS the files below its
folder.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Protocol

import pyarrow as pa

from jobs.report.past_views import KnownRun
from jobs.runtime.faults import reason
from jobs.runtime.remote_files import HdfsFiles, S3Files
from jobs.tables.delta_query import DeltaQuery, one_of
from jobs.tables.delta_rs_log import DeltaRsLog, live_files, no_cleaning, panics_as_errors
from jobs.tables.past_runs import began, by_store
from jobs.tables.table_files import (
    LiveFile,
    TablesFailed,
    hadoop_path,
    is_local,
    is_remote,
    of_table,
    refuse_links,
    refuse_misread,
)
from schemas.tables import DATASETS, MONTH, RUN_ID, TABLES
from store_io.base.paths import is_hdfs, is_s3

TARGET_BYTES = 64 << 20  # of a file that small ones are put together to
MANY_FILES = 32  # small ones of a month: an audit then puts them together by itself
MOST_BYTES = 256 << 20  # of them together: more is left to `tables compact`
_GROUP_ROWS = 100_000  # of a Parquet row group: bounds what a writer of many months holds
_IDS = 500  # of one statement
_MENDED_TOGETHER = 500  # files whose statistics go into one version
_ATTEMPTS = 10
_HOUR = 3600
LOG = "_delta_log"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TableCare:
    """One table. uri: a folder of this machine, an `s3://` or an `hdfs://` URI. All methods raise TablesFailed.

    log: of the table, if it is open already.
    """

    def __init__(self, uri: str, name: str, log: DeltaRsLog | None = None):
        place = hadoop_path(uri) if is_local(uri) else uri
        if not (is_local(uri) or is_remote(uri)):
            raise TablesFailed(
                f"table {uri}: only tables in a folder of this machine, in s3:// and in hdfs:// can be changed by this command"
            )
        refuse_misread(uri)
        self.uri, self.name = uri, name
        self._log = log or DeltaRsLog(place, (), ())
        self._dataset = name in DATASETS

    @cached_property
    def _folder(self) -> TableFolder:
        return table_folder(self.uri)

    def exists(self) -> bool:
        """Say whether the table has a version."""
        return of_table(self.uri, self._log.exists)

    def live(self) -> list[LiveFile]:
        """Return the files of the newest version."""
        return of_table(self.uri, self._log.files)

    def stored(self) -> list[StoredFile]:
        """Return all files in the folder, those of the log too."""
        return of_table(self.uri, self._folder.files)

    def rows_of(self, run_ids: Sequence[str]) -> int:
        """Return how many rows these runs have."""
        groups = [run_ids[start : start + _IDS] for start in range(0, len(run_ids), _IDS)]
        query = DeltaQuery(self.uri)
        return sum(query.ask(["count(*) AS n"], f"WHERE {one_of(RUN_ID.name, ids)}")[0]["n"] for ids in groups)

    def refuse_links(self) -> None:
        """Raise TablesFailed if a link is in the table's folder, or the folder is one: changes could be made elsewhere."""
        of_table(self.uri, lambda: refuse_links(self._log.place))

    # ---- runs --------------------------------------------------------------------------------------------------

    def unfinished(self, whole: frozenset[str], before: float) -> list[str]:
        """Return runs of stopped writers: they have rows here and none in `runs`, though their files are older.

        whole: the runs that are in `runs`.
        before: seconds since 1970.
        """
        found = {row["run_id"] for row in DeltaQuery(self.uri).ask(["DISTINCT run_id"])} - whole - {None}
        recent = [file for file in self.live() if file.modified_ms > before * 1000] if found else []
        return sorted(run_id for run_id in found if not any(file.may_hold(run_id) for file in recent))

    def remove_runs(self, run_ids: Sequence[str], months: Sequence[str] = ()) -> None:
        """Take the rows of these runs out. months: of which all runs go; none may have a run that is still being written."""
        partition = of_table(self.uri, lambda: self._log.newest().metadata().partition_columns)
        if months and MONTH.name in partition:  # whole files, without a look into them
            self._change(partial(_delete, one_of(MONTH.name, months)))
            left = {file.values.get(MONTH.name) for file in self.live()}
            run_ids = run_ids if left else ()
        for start in range(0, len(run_ids), _IDS):
            condition = one_of(RUN_ID.name, run_ids[start : start + _IDS])
            self._change(partial(_delete, condition))

    # ---- files -------------------------------------------------------------------------------------------------

    def can_compact(self) -> bool:
        """Say whether the table's small files can be put together: a dataset's are by run and store, and large."""
        return not self._dataset

    def compact(self, months: Mapping[str, str]) -> None:
        """Put the small files of each month together. A table that is partitioned by run gets months first.

        months: run -> month, by `runs`.
        """
        if of_table(self.uri, lambda: self._log.newest().metadata().partition_columns) == [RUN_ID.name]:
            self._change(lambda table: _by_month(table, months))
        self._change(_compact)
        self.mend_statistics()
        self._change(lambda table: table.create_checkpoint())

    def mend_statistics(self) -> None:
        """Give all files whose statistics leave columns out whole ones: readers would skip rows of theirs."""
        mended = [1]
        while mended.pop():
            self._change(lambda table: mended.append(self._log.mend_statistics(table, _MENDED_TOGETHER)))

    def compact_month(self, month: str) -> bool:
        """Put the small files of one month together if there are many; whether that was done.

        For the end of an audit: one try, which another writer's commit ends without a change, and bounded work.
        """
        if not self.can_compact():
            return False
        newest = of_table(self.uri, self._log.newest)
        if newest.metadata().partition_columns != [MONTH.name]:
            return False
        small = [f for f in live_files(newest) if f.values.get(MONTH.name) == month and f.size_bytes < TARGET_BYTES]
        if len(small) < MANY_FILES or sum(file.size_bytes for file in small) > MOST_BYTES:
            return False
        self.refuse_links()
        with panics_as_errors():
            _compact(newest, [(MONTH.name, "=", month)])
        return True

    def unneeded(self, hours: float) -> list[StoredFile]:
        """Return files that no version of the last so many hours has, and that are older than that.

        hours: a week at most, as Delta's log forgets then which files it has taken out (`delta.deletedFileRetentionDuration`).
        """
        listed = of_table(
            self.uri, lambda: self._log.newest().vacuum(int(hours), dry_run=True, enforce_retention_duration=False, full=True)
        )
        before, names = time.time() - hours * _HOUR, set(listed)
        return [
            file
            for file in self.stored()
            if file.path in names
            and file.path.endswith(".parquet")
            and not file.path.startswith(f"{LOG}/")
            and file.modified <= before
        ]

    def vacuum(self, files: Sequence[StoredFile]) -> None:
        """Remove these files, and versions of the log that are over 30 days old (`delta.logRetentionDuration`)."""
        self.refuse_links()
        of_table(self.uri, lambda: self._folder.remove([file.path for file in files]))
        self._change(lambda table: table.create_checkpoint())
        of_table(self.uri, lambda: self._log.clean(self._log.newest()))

    # ---- calls -------------------------------------------------------------------------------------------------

    def _change(self, change: Callable[[Any], object]) -> None:
        """Make a change on the newest version, and anew if another writer was quicker."""
        from deltalake.exceptions import CommitFailedError

        self.refuse_links()
        for attempt in range(_ATTEMPTS):
            newest = of_table(self.uri, self._log.newest)
            before = newest.version()
            try:
                with panics_as_errors():
                    change(newest)
                return
            except CommitFailedError as problem:
                if of_table(self.uri, self._log.newest).version() == before:
                    raise TablesFailed(f"table {self.uri}: {reason(problem)}") from None
                time.sleep(0.05 * (attempt + 1) * random.uniform(0.5, 1))
            except Exception as problem:  # its library's errors have no common kind
                raise TablesFailed(f"table {self.uri}: {reason(problem)}") from None
        raise TablesFailed(f"table {self.uri}: other writers were quicker {_ATTEMPTS} times: repeat the command once fewer write")


def _delete(condition: str, table: Any) -> None:
    table.delete(condition, _writer(), commit_properties=_once(), post_commithook_properties=no_cleaning())


def _compact(table: Any, partition: Sequence[tuple[str, str, str]] | None = None) -> None:
    table.optimize.compact(
        partition, target_size=TARGET_BYTES, max_concurrent_tasks=2, writer_properties=_writer(),
        commit_properties=_once(), post_commithook_properties=no_cleaning(),
    )  # fmt: skip


def _by_month(table: Any, months: Mapping[str, str]) -> None:
    """Write all rows of a table anew, partitioned by month.

    A run that is not in `runs` is being written, so it gets this month.
    """
    from deltalake import write_deltalake

    dataset = table.to_pyarrow_dataset()
    order = [RUN_ID.name, *(name for name in dataset.schema.names if name != RUN_ID.name)]  # see `jobs.tables.delta_log`
    rows = dataset.scanner(order, batch_readahead=2, fragment_readahead=1)
    this = datetime.now(UTC).strftime("%Y-%m")
    month = pa.field(MONTH.name, pa.string(), metadata={"comment": MONTH.comment})
    schema = pa.schema([*(dataset.schema.field(name) for name in order), month])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches():
            runs = batch.column(RUN_ID.name).dictionary_encode()
            named = pa.array([months.get(run_id, this) for run_id in runs.dictionary.to_pylist()], pa.string())
            yield pa.RecordBatch.from_arrays([*batch.columns, named.take(runs.indices)], schema=schema)

    write_deltalake(
        table, pa.RecordBatchReader.from_batches(schema, batches()), mode="overwrite", schema_mode="overwrite",
        partition_by=[MONTH.name], writer_properties=_writer(), commit_properties=_once(),
        post_commithook_properties=no_cleaning(),
    )  # fmt: skip


def _once() -> Any:
    """Commit as the very next version, or not at all."""
    from deltalake import CommitProperties

    return CommitProperties(max_commit_retries=0)


def _writer() -> Any:
    from deltalake import WriterProperties

    return WriterProperties(compression="ZSTD", max_row_group_size=_GROUP_ROWS)


def tables_under(uri: str) -> list[TableCare]:
    """Return the known tables that exist, `runs` first. Raises TablesFailed."""
    names = ["runs", *(name for name in (*TABLES, *DATASETS) if name != "runs")]
    return [care for care in (TableCare(f"{uri.rstrip('/')}/{name}", name) for name in names) if care.exists()]


@dataclass(frozen=True)
class StoredFile:
    """One file.

    path: below the table's folder.
    modified: seconds since 1970.
    """

    path: str
    size_bytes: int
    modified: float


class TableFolder(Protocol):
    """One table's folder."""

    def files(self) -> list[StoredFile]:
        """Return all regular files in it, those of its log too. Raises OSError."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove these files, and folders that are empty then. One that is gone already is no error. Raises OSError."""


class LocalTableFolder:
    """A folder of this machine."""

    def __init__(self, path: str):
        """Take a folder. Raises TablesFailed if it is a link or has one below it: then some of its files lie elsewhere."""
        self._root = path.rstrip("/")
        refuse_links(self._root)

    def files(self) -> list[StoredFile]:
        """See `TableFolder`."""
        return list(self._below(""))

    def _below(self, folder: str) -> Iterator[StoredFile]:
        with os.scandir(f"{self._root}/{folder}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(f"{folder}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield StoredFile(f"{folder}{entry.name}", found.st_size, found.st_mtime)

    def remove(self, paths: Sequence[str]) -> None:
        """See `TableFolder`."""
        folders: set[str] = set()
        for path in paths:
            folder, _, name = path.rpartition("/")
            with contextlib.suppress(FileNotFoundError), self._opened(folder) as handle:
                if stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=handle)
            folders.add(folder)
        for folder in folders - {""}:
            above, _, name = folder.rpartition("/")
            with contextlib.suppress(OSError), self._opened(above) as handle:
                os.rmdir(name, dir_fd=handle)

    @contextlib.contextmanager
    def _opened(self, folder: str) -> Iterator[int]:
        """Give a folder below the table's, reached without any link. Raises OSError."""
        handle = os.open(self._root, _FOLDER)
        try:
            for name in filter(None, folder.split("/")):
                if name == "..":
                    raise FileNotFoundError(folder)
                handle, above = os.open(name, _FOLDER, dir_fd=handle), handle
                os.close(above)
            yield handle
        finally:
            os.close(handle)


class RemoteFolder:
    """A prefix of a bucket, or a folder in HDFS: there are no links there."""

    def __init__(self, files: S3Files | HdfsFiles):
        self._files = files

    def files(self) -> list[StoredFile]:
        """See `TableFolder`."""
        return [StoredFile(name, size, modified) for name, size, modified in self._files.names()]

    def remove(self, paths: Sequence[str]) -> None:
        """See `TableFolder`."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(path)
        for folder in {path.rpartition("/")[0] for path in paths} - {""}:
            with contextlib.suppress(OSError):
                self._files.remove_empty(folder)


def table_folder(uri: str) -> TableFolder:
    """Return the folder at a table's address. Raises TablesFailed."""
    if is_s3(uri) or is_hdfs(uri):
        return RemoteFolder(S3Files(uri) if is_s3(uri) else HdfsFiles(uri))
    return LocalTableFolder(hadoop_path(uri))


# ---- the runs that stay --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptRun(KnownRun):
    """A row of `runs`, by which is chosen what stays."""

    level: str | None
    log_end: int | None
    messages: int | None
    month: str | None


@dataclass(frozen=True)
class Choice:
    """Run ids by time.

    gone: to be taken out.
    needed: those that age or number would take out, but of which the next audits or reports need a row.
    """

    gone: tuple[str, ...]
    needed: tuple[str, ...]


def choose(runs: Sequence[KeptRun], keep_since: int | None, keep_runs: int | None) -> Choice:
    """Choose the runs that a pruning takes out.

    runs: a value for each store of each run.
    keep_since: µs since 1970; runs that began then or later stay.
    keep_runs: the number of newest runs of each store that stay.
    A run stays if one of the two keeps it. A run goes as a whole: it stays as long as one of its stores needs it.
    """
    times: dict[str, int] = {}
    for run in runs:
        times[run.run_id] = max(began(run), times.get(run.run_id, 0))
    wanted: set[str] = set()
    needed: set[str] = set()
    for own in by_store(sorted(runs, key=began)).values():
        if keep_since is not None:
            wanted |= {run.run_id for run in own if began(run) >= keep_since}
        if keep_runs is not None:
            wanted |= {run.run_id for run in own[-keep_runs:]}
        needed |= _needed(own)
    in_time = sorted(times, key=lambda run_id: (times[run_id], run_id))
    gone = tuple(run_id for run_id in in_time if run_id not in wanted | needed)
    return Choice(gone, tuple(run_id for run_id in in_time if run_id in needed - wanted))


def _needed(runs: Sequence[KeptRun]) -> set[str]:
    """Return the runs that one store needs.

    They are its latest run, which `report` shows; the latest full one, from which an audit takes segments that have not changed;
    and the one that saw its log reach furthest, by which an audit notices that messages are gone.
    runs: the store's, by time.
    """
    full = [run for run in runs if run.level != "quick"][-1:]
    furthest = max((run for run in reversed(runs) if run.messages), key=_reach, default=runs[-1])
    return {run.run_id for run in (runs[-1], *full, furthest)}


def _reach(run: KeptRun) -> tuple[int, bool]:
    return -1 if run.log_end is None else run.log_end, run.level != "quick"


def months_gone(runs: Sequence[KeptRun], gone: Sequence[str]) -> list[str]:
    """Return months of which every run goes. A run without a month makes none."""
    going = set(gone)
    stays = {run.month for run in runs if run.run_id not in going}
    return sorted({run.month for run in runs if run.month} - stays)
