"""Arguments in, exit code out. Checks the command line first, then loads what the command needs: Spark comes last.

Exit codes are contract.md's: whatever goes wrong ends with one sentence on standard error and, once the arguments are
sound, a result.json that says so.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import FrameType

from jobs import environment, options
from jobs.command_table import COMMAND_TABLE
from jobs.options import AuditOptions, Command
from jobs.report.text import printable
from store_io.errors import StoreError, UsageError

INTERRUPTED = 130
_CHECKS = (
    ("ruff", ["-m", "ruff", "check"]),
    ("format", ["-m", "ruff", "format", "--check"]),
    ("mypy", ["-m", "mypy"]),
)


def main(words: Sequence[str]) -> int:
    """Run one command line; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of GBK or Latin-1 has not every letter that a store may hold
            stream.reconfigure(errors="backslashreplace")
    if words[:1] == ["--submitted"]:  # the driver of cluster deploy mode: jobs.cluster has checked and packed the options
        return run_in_cluster(options.from_word(words[1]))
    try:
        command = options.parse(words)
    except UsageError as problem:
        _complain(problem)
        return problem.exit_code
    return _COMMANDS.get(command.name, run_other)(command)


def run_other(command: Command) -> int:
    """A command of jobs/command_table.py: its module's own exit code, or that of what stopped it."""
    spec = COMMAND_TABLE[command.name]
    try:
        if spec.group:
            environment.ensure(spec.group)
        code: int = importlib.import_module(spec.module).run(command)
        return code
    except StoreError as problem:
        _complain(problem)
        return problem.exit_code
    except BrokenPipeError:  # whoever read the output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return StoreError.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def run_audit(command: Command) -> int:
    """Audit on this machine or with the driver here, or submit it to a cluster. Metrics are written here in any case."""
    from jobs import cluster, run_lock

    asked = command.audit
    assert asked is not None
    work = cluster.submit if cluster.is_cluster_mode(command.spark) else _audit_with_quick_start
    try:
        with run_lock.hold(asked.out, asked.run_id, _complain):
            code = _guarded(asked, lambda asked: work(asked, command.spark))
            if asked.prometheus is not None and code != UsageError.exit_code:
                _write_metrics(asked, asked.prometheus)
            return code
    except UsageError as problem:
        _complain(problem)
        return problem.exit_code


def run_in_cluster(asked: AuditOptions) -> int:
    """The driver's side of cluster deploy mode: 0 once result.json tells the rest, so that no scheduler tries again.

    Whoever submitted it holds the lock on --out.
    """
    _guarded(asked, lambda asked: _audit_here(asked, ()))
    return 0


def _audit_with_quick_start(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    environment.class_archive(environment.java_runtime())  # made by the set-up, but for another Java than today's
    return _audit_here(asked, spark_words)


def _audit_here(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    from jobs import audit

    return audit.run(asked, spark_words)


def _write_metrics(asked: AuditOptions, path: str) -> None:
    """What result.json says, for Prometheus. That it cannot be written does not change what was found: the old time in the
    old file tells."""
    from jobs import results

    try:
        if (result := results.read_result(asked.out, asked.run_id)) is not None:
            results.write_metrics(path, result)
    except StoreError as problem:
        _complain(problem)


def _guarded(asked: AuditOptions, work: Callable[[AuditOptions], int]) -> int:
    """The code that the work ends with, or that of what stopped it, with a result.json in any case."""
    from jobs import results

    interrupts: list[int] = []
    started_at = datetime.now(UTC)

    def interrupt(number: int, _: FrameType | None) -> None:
        interrupts.append(128 + number)
        raise KeyboardInterrupt

    # A scheduler's SIGTERM ends a run as ctrl-C does.
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs what it raises: an interrupt would print pages
    try:
        results.remove_result(asked.out)
        return work(asked)
    except BaseException as problem:
        if isinstance(problem, BrokenPipeError):  # whoever read the summary has left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sentence, code = "standard output was closed", StoreError.exit_code
        elif interrupts:  # whatever the interrupted call, or the cleaning up behind it, made of it
            sentence, code = "interrupted before it was done", interrupts[0]
        elif isinstance(problem, UsageError):  # found late, in what only the store's own files could show
            _complain(problem)
            return problem.exit_code
        elif isinstance(problem, StoreError):
            sentence, code = str(problem), problem.exit_code
        elif isinstance(problem, Exception):
            traceback.print_exc()
            sentence = f"stopped by a fault of this program: {type(problem).__name__}: {problem}"
            code = StoreError.exit_code
        else:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return _stopped(asked, sentence, code, started_at)


def _stopped(asked: AuditOptions, sentence: str, code: int, started_at: datetime) -> int:
    """Say why, and leave a result.json that says so; one that was written whole before the stop stands, and its code.

    In result.json the code is 3, not or not wholly audited, also where the process ends as the shell expects of an interrupted
    one (130, 143): whoever reads the file knows the contract's codes, and no others.
    """
    from jobs import results

    with contextlib.suppress(StoreError):
        if (result := results.read_result(asked.out, asked.run_id)) is not None:
            return int(result["exit_code"])
    _complain(sentence)
    try:
        results.write_stopped(asked, sentence, started_at, (datetime.now(UTC) - started_at).total_seconds())
    except StoreError as problem:  # nowhere to say it but here
        _complain(problem)
    return code


def run_bench(command: Command) -> int:
    """Measure. Its own options are jobs.bench's."""
    from jobs import bench

    try:
        return bench.main(list(command.rest), list(command.spark))
    except StoreError as problem:
        _complain(problem)
        return problem.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def run_pack(command: Command) -> int:
    """Write the executors' environment archive."""
    from jobs import packaging

    assert command.out is not None
    try:
        size = packaging.pack_environment(command.out)
    except StoreError as problem:
        _complain(problem)
        return problem.exit_code
    print(f"{command.out}: {size / 1e6:.0f} MB; use it with --archives {command.out}#environment (see README.md, Clusters)")
    return 0


def run_test(command: Command) -> int:
    """Lint, types and tests; with arguments only pytest, with these. All are run; the first failure's code counts."""
    try:
        environment.ensure("dev")
    except StoreError as problem:
        _complain(problem)
        return problem.exit_code
    tests: list[tuple[str, list[str]]] = [("pytest", ["-m", "pytest", *command.rest])]
    codes = []
    try:
        for name, words in tests if command.rest else [*_CHECKS, *tests]:
            print(f"== {name}", flush=True)
            codes.append(subprocess.run([sys.executable, *words], cwd=environment.ROOT).returncode)
    except KeyboardInterrupt:
        return INTERRUPTED
    return next((code for code in codes if code), 0)


def show_help(command: Command) -> int:
    """Print the usage, of the whole or of one command."""
    print(COMMAND_TABLE[command.arguments[0]].usage if command.arguments else options.usage(), end="")
    return 0


def _complain(problem: object) -> None:
    print(f"spark-submit.sh: {printable(problem)}", file=sys.stderr, flush=True)


_COMMANDS: dict[str, Callable[[Command], int]] = {
    "audit": run_audit,
    "bench": run_bench,
    "pack": run_pack,
    "test": run_test,
    "help": show_help,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
