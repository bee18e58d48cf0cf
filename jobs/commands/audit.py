"""audit STORE [STORE ...] --out DIR: on this machine, with the driver here, or submitted to a cluster.

Whatever ends an audit, once the arguments are sound a result.json says so. Files beside its results (`--prometheus` and the like)
are written here, wherever the driver ran.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from jobs.audit import results
from jobs.cli.options import AuditOptions, Command
from jobs.cli.parser import is_cluster_mode
from jobs.runtime import output
from jobs.runtime import setup as environment
from jobs.runtime.faults import say, sentence_and_code
from jobs.runtime.spark_start import LazySpark
from store_io.base.errors import StoreError, UsageError
from store_io.source import storage_options


def run(command: Command) -> int:
    """Audit, and return the exit code that the stores earn (`store_io.base.exit_codes`), or that of what stopped the run."""
    asked = command.audit
    assert asked is not None
    work = _audit_with_quick_start
    if is_cluster_mode(command.spark):
        from jobs.audit import cluster_mode

        work = cluster_mode.submit
    with output.hold(asked.out, asked.run_id, say):
        _remove_beside(asked)
        code = guarded(asked, lambda asked: work(asked, command.spark))
        if code != UsageError.exit_code:
            _write_beside(asked)
        return code


def run_in_cluster(asked: AuditOptions) -> int:
    """Run the driver's side of cluster deploy mode. Returns 0 once result.json holds the outcome, so that no scheduler tries
    again.

    Whoever submitted it holds the lock on --out.
    """
    guarded(asked, _audit_there)
    return 0


def _audit_there(asked: AuditOptions) -> int:
    try:
        storage_options.use(asked.storage)
        return _audit_here(asked, ())
    except UsageError as problem:  # whoever submitted it reads result.json alone, and a UsageError leaves none
        raise StoreError(str(problem)) from None


def _audit_with_quick_start(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    environment.class_archive(environment.java_runtime())  # the set-up made one, perhaps for another Java
    return _audit_here(asked, spark_words)


def _audit_here(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    with LazySpark(spark_words, asked.progress_json) as spark:
        spark.begin(lambda: _load_tasks(asked))
        # While Spark starts, for which this process only waits, a thread loads the driver's own part and opens the store.
        thread = ThreadPoolExecutor(1)
        opened = thread.submit(_open_ahead, asked)
        thread.shutdown(wait=False)
        session = spark.session
        from jobs.audit import run_audit

        return run_audit.run_with(session, asked, opened.result())


def _open_ahead(asked: AuditOptions) -> Any:
    from jobs.audit import run_audit

    return run_audit.open_ahead(asked)


def _load_tasks(asked: AuditOptions) -> None:
    """Load what tasks need, for all workers at once."""
    from jobs.tasks import runner  # noqa: F401
    from store_io.audit.rounds import store_rounds  # noqa: F401  all kinds of tasks

    if len(asked.stores) > 1:
        from jobs.audit import one_store  # noqa: F401  a task may be all of a store's audit
        from store_io.repair import plan_repair_section  # noqa: F401


# ---- files beside the results ----------------------------------------------------------------------------------------


def _remove_beside(asked: AuditOptions) -> None:
    """Remove the files that an earlier run wrote for CI. A run that is killed then leaves no result that could be taken for its
    own.

    The metrics stay until there are new ones: Prometheus would take a file that is missing for a store that is gone.
    """
    for path in filter(None, (asked.summary_markdown, asked.junit)):
        try:
            results.remove_earlier(path)
        except StoreError as problem:
            say(problem)


def _write_beside(asked: AuditOptions) -> None:
    """Write what result.json says for Prometheus and for CI. A failure changes no exit code: it is printed."""
    files = (
        (asked.prometheus, results.write_metrics),
        (asked.summary_markdown, results.write_markdown),
        (asked.junit, results.write_junit),
    )
    if not any(path for path, _ in files):
        return
    try:
        result = results.read_result(asked.out, asked.run_id)
    except StoreError as problem:
        say(problem)
        return
    for path, write in files:
        if path is not None and result is not None:
            try:
                write(path, result)
            except StoreError as problem:
                say(problem)


# ---- a run that is stopped -------------------------------------------------------------------------------------------


def guarded(asked: AuditOptions, work: Callable[[AuditOptions], int]) -> int:
    """Return the code that the work ends with, or that of what stopped it, with a result.json in any case."""
    started_at = datetime.now(UTC)
    try:
        results.remove_result(asked.out)
        return work(asked)
    except BaseException as problem:
        sentence, code = sentence_and_code(problem)
        if isinstance(problem, UsageError):  # found late, in what only the store's own files could show
            say(sentence)
            return code
        if isinstance(problem, BrokenPipeError):
            sentence = "standard output was closed"
        return _stopped(asked, sentence or "interrupted before it was done", code, started_at)


def _stopped(asked: AuditOptions, sentence: str, code: int, started_at: datetime) -> int:
    """Print why and write it to result.json. A whole result.json from before the stop is kept, and its code returned.

    The code in result.json is 3 even if the process ends with 130 or 143: the file holds only the contract's codes.
    """
    with contextlib.suppress(StoreError):
        if (result := results.read_result(asked.out, asked.run_id)) is not None:
            return int(result["exit_code"])
    say(sentence)
    try:
        results.write_stopped(asked, sentence, started_at, (datetime.now(UTC) - started_at).total_seconds())
    except StoreError as problem:  # nowhere to say it but here
        if not sentence.startswith(f"{asked.out}: cannot write there: "):  # else it is said already
            say(problem)
    return code
