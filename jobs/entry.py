"""Arguments in, the command's exit code out. Checks the command line first, then loads what the command needs: Spark comes last.

What an audit earns is decided in `store_io.base.exit_codes`. Whatever goes wrong ends with one sentence on standard error and,
once the arguments are sound, a result.json that says so.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from jobs import RULES_VERSION, VERSION
from jobs.cli import options
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.options import AuditOptions, Command
from jobs.installation import SPEAKER, module_name
from jobs.report.texts.text import printable
from jobs.runtime import interrupts
from jobs.runtime import setup as environment
from jobs.runtime.compiled_code import numba_cache
from jobs.runtime.faults import fault_sentence
from store_io.base import waiting
from store_io.base.errors import RefusedSetting, StoreError, UsageError
from store_io.base.failed_reads import every_read
from store_io.rules.releases import KNOWN_RELEASES
from store_io.source import storage_options

TRACEBACK = "STORE_AUDIT_TRACEBACK"


def main(words: Sequence[str]) -> int:
    """Run one command line; its exit code. Whatever a command does not expect ends here, in one sentence."""
    _stand_in_for_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of GBK or Latin-1 has not every letter that a store may hold
            stream.reconfigure(errors="backslashreplace")
    logging.getLogger().addHandler(logging.NullHandler())  # PySpark and py4j log what they raise: pages of it
    waiting.look_with(interrupts.check)
    with interrupts.heard():
        try:
            return _run(words)
        except BaseException as problem:
            sentence, code = _sentence_and_code(problem)
            if sentence:
                _complain(sentence)
            return code


def console() -> int:
    """The command rmq-audit of an installed wheel."""
    os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that it starts: a module in the folder where it is typed is not ours
    return interrupts.leave(main(sys.argv[1:]))


def _stand_in_for_closed_streams() -> None:
    """Have something at descriptors 0 to 2 (`<&-`, `>&-`): else the next files that are opened get these numbers."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            setattr(sys, name, open(number, mode, closefd=False))


def _run(words: Sequence[str]) -> int:
    if words[:1] == ["--submitted"]:  # the driver of cluster deploy mode: the options were checked before
        return run_in_cluster(options.from_word(words[1]))
    command = options.parse(words)
    options.hide(command.secrets())
    storage_options.use(command.storage)
    if options.needs_environment(command.name) and command.name != "test":  # before anything that compiles is loaded
        os.environ["NUMBA_CACHE_DIR"] = numba_cache()
    try:
        return _COMMANDS.get(command.name, run_other)(command)
    except RefusedSetting as problem:
        if "--broker-conf" not in command.options:
            raise
        raise UsageError(problem.within(f"--broker-conf {command.options['--broker-conf']!r}")) from None


def _sentence_and_code(problem: BaseException) -> tuple[str, int]:
    """Return (sentence, exit code) for the error that has ended a command.

    It is raised again if it is no Exception or interrupt.
    """
    if os.environ.get(TRACEBACK) and not isinstance(problem, KeyboardInterrupt | SystemExit):
        traceback.print_exception(problem)
    if isinstance(problem, BrokenPipeError):  # the reader of the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", StoreError.exit_code
    if interrupts.came() or isinstance(problem, KeyboardInterrupt):  # whatever the interrupted call made of it
        return "", interrupts.exit_code()
    if isinstance(problem, StoreError):
        return str(problem), problem.exit_code
    if isinstance(problem, Exception):
        return f"{fault_sentence(problem)} ({TRACEBACK}=1 shows where)", StoreError.exit_code
    raise problem


def run_other(command: Command) -> int:
    """A command of jobs/cli/command_table.py: its module's own exit code."""
    spec = COMMAND_TABLE[command.name]
    if spec.group:
        environment.ensure(spec.group)
    with every_read():
        code: int = importlib.import_module(module_name(spec.module)).run(command)
    return code


def audit_command(command: Command) -> int:
    """Audit on this machine or with the driver here, or submit it to a cluster. Files beside its results are written here."""
    from jobs.audit import cluster_mode, run_lock

    asked = command.audit
    assert asked is not None
    work = cluster_mode.submit if cluster_mode.is_cluster_mode(command.spark) else _audit_with_quick_start
    with run_lock.hold(asked.out, asked.run_id, _complain):
        _remove_beside(asked)
        code = _guarded(asked, lambda asked: work(asked, command.spark))
        if code != UsageError.exit_code:
            _write_beside(asked)
        return code


def run_in_cluster(asked: AuditOptions) -> int:
    """The driver's side of cluster deploy mode: 0 once result.json holds the outcome, so that no scheduler tries again.

    Whoever submitted it holds the lock on --out.
    """
    _guarded(asked, _audit_there)
    return 0


def _audit_there(asked: AuditOptions) -> int:
    try:
        storage_options.use(asked.storage)
        return _audit_here(asked, ())
    except UsageError as problem:  # whoever submitted it reads result.json alone, and a UsageError leaves none
        raise StoreError(str(problem)) from None


def _audit_with_quick_start(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    environment.class_archive(environment.java_runtime())  # made by the set-up, but for another Java than today's
    return _audit_here(asked, spark_words)


def _audit_here(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    from jobs.runtime.jvm import Jvm

    jvm = Jvm(spark_words)  # it starts while this process loads what the audit needs
    try:
        _load_tasks(asked)
        from jobs.runtime import session
        from jobs.runtime.python_workers import WarmWorkers

        with contextlib.closing(WarmWorkers(jvm.workers_place)):
            # While Spark starts, for which this process only waits, a thread loads the driver's own part and opens the store.
            thread = ThreadPoolExecutor(1)
            opened = thread.submit(_open_ahead, asked)
            thread.shutdown(wait=False)
            with session.on(jvm, asked.progress_json) as started:
                from jobs.audit import run_audit as audit

                return audit.run_with(started, asked, opened.result())
    finally:
        jvm.end()


def _open_ahead(asked: AuditOptions) -> Any:
    from jobs.audit import run_audit as audit

    return audit.open_ahead(asked)


def _load_tasks(asked: AuditOptions) -> None:
    """Load what tasks need, for all workers at once."""
    from jobs.tasks import runner  # noqa: F401
    from jobs.tasks.spark_start import leave_pandas_out
    from store_io.audit.rounds import store_rounds  # noqa: F401  all kinds of tasks

    if len(asked.stores) > 1:
        from jobs.audit import add_repair_sections, one_store  # noqa: F401  a task may be all of a store's audit
    leave_pandas_out()


def _remove_beside(asked: AuditOptions) -> None:
    """Remove the files that an earlier run wrote for CI. A run that is killed then leaves no result that could be taken for its
    own.

    The metrics stay until there are new ones: Prometheus would take a file that is missing for a store that is gone.
    """
    from jobs.audit import results

    for path in filter(None, (asked.summary_markdown, asked.junit)):
        try:
            results.remove_earlier(path)
        except StoreError as problem:
            _complain(problem)


def _write_beside(asked: AuditOptions) -> None:
    """Write what result.json says for Prometheus and for CI. A failure changes no exit code: it is printed."""
    from jobs.audit import results

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
        _complain(problem)
        return
    for path, write in files:
        if path is not None and result is not None:
            try:
                write(path, result)
            except StoreError as problem:
                _complain(problem)


def _guarded(asked: AuditOptions, work: Callable[[AuditOptions], int]) -> int:
    """The code that the work ends with, or that of what stopped it, with a result.json in any case."""
    from jobs.audit import results

    started_at = datetime.now(UTC)
    try:
        results.remove_result(asked.out)
        return work(asked)
    except BaseException as problem:
        sentence, code = _sentence_and_code(problem)
        if isinstance(problem, UsageError):  # found late, in what only the store's own files could show
            _complain(sentence)
            return code
        if isinstance(problem, BrokenPipeError):
            sentence = "standard output was closed"
        return _stopped(asked, sentence or "interrupted before it was done", code, started_at)


def _stopped(asked: AuditOptions, sentence: str, code: int, started_at: datetime) -> int:
    """Print why and write it to result.json. A whole result.json from before the stop is kept, and its code returned.

    The code in result.json is 3 even if the process ends with 130 or 143: the file holds only the contract's codes.
    """
    from jobs.audit import results

    with contextlib.suppress(StoreError):
        if (result := results.read_result(asked.out, asked.run_id)) is not None:
            return int(result["exit_code"])
    _complain(sentence)
    try:
        results.write_stopped(asked, sentence, started_at, (datetime.now(UTC) - started_at).total_seconds())
    except StoreError as problem:  # nowhere to say it but here
        if not sentence.startswith(f"{asked.out}: cannot write there: "):  # else it is said already
            _complain(problem)
    return code


def show_help(command: Command) -> int:
    """Print the usage, of the whole or of one command."""
    print(options.usage_of(command.arguments[0]) if command.arguments else options.usage(), end="")
    return 0


def show_version(_: Command) -> int:
    """Print the versions of this program, of its rules, and the releases that it knows."""
    print(f"rocketmq-store-audit {VERSION}, rules {RULES_VERSION}, RocketMQ {KNOWN_RELEASES[0]} to {KNOWN_RELEASES[-1]}")
    return 0


def _complain(problem: object) -> None:
    print(f"{SPEAKER}: {printable(problem)}", file=sys.stderr, flush=True)


_COMMANDS: dict[str, Callable[[Command], int]] = {"audit": audit_command, "help": show_help, "version": show_version}


if __name__ == "__main__":
    code = main(sys.argv[1:])
    gc.freeze()  # nothing is looked for in memory that goes as a whole
    sys.exit(interrupts.leave(code))
