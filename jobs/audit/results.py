"""Writes result.json, which exists, whole, whenever a run has ended. Also files made of it, and outcomes that no audit made."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from jobs import RULES_VERSION, VERSION
from jobs.cli.options import AuditOptions
from jobs.cli.stores import RESULT, StoreArgument
from jobs.report.files.ci_files import junit_xml, prometheus_text, summary_markdown
from jobs.report.files.result_files import RunInfo, result_json
from jobs.runtime.faults import is_no_room
from jobs.runtime.output import OutputFailed, OutputFolder, write_local
from schemas.advice import Cause, Gap
from schemas.outcome import Assumed, Outcome
from store_io.base.errors import parsed
from store_io.base.packed import packed
from store_io.wording.gaps import gap_text

JOB_SUMMARY = "GITHUB_STEP_SUMMARY"


def write_stopped(asked: AuditOptions, sentence: str, started_at: datetime, seconds: float) -> dict[str, Any]:
    """Write, and return, the result of a run that was stopped: the keys of any other's, every store not audited.

    Raises OutputFailed.
    """
    info = RunInfo(asked.run_id, VERSION, RULES_VERSION, started_at, seconds, problems=(sentence,))
    stopped = Gap(Cause.STOPPED, values=(sentence,))
    gaps = [Gap(Cause.WRONG_ARGUMENTS, values=(s.problem,)) if s.problem else stopped for s in asked.stores]
    outcomes = [not_audited(store, gap) for store, gap in zip(asked.stores, gaps, strict=True)]
    text = result_json(info, outcomes)
    OutputFolder(asked.out).write(RESULT, text)
    return dict(json.loads(text))


def write_metrics(path: str, result: dict[str, Any]) -> None:
    """Write the result as Prometheus reads it from a file. Raises OutputFailed.

    node_exporter, another user, reads it under any umask: it holds stores' names and numbers alone.
    """
    _write("--prometheus", path, prometheus_text(result, time.time()), for_all=True)


def write_markdown(path: str, result: dict[str, Any]) -> None:
    """Write the result as the summary page of a CI job has it; to the job's own summary add it. Raises OutputFailed."""
    text = summary_markdown(result)
    if not _is_job_summary(path):
        _write("--summary-markdown", path, text)
        return
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        with open(handle, "ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as problem:
        raise OutputFailed(f"--summary-markdown {path}: cannot write: {problem.strerror or problem}") from None


def write_junit(path: str, result: dict[str, Any]) -> None:
    """Write the result as JUnit's XML. Raises OutputFailed."""
    _write("--junit", path, junit_xml(result))


def remove_earlier(path: str) -> None:
    """Remove an earlier run's file for CI, but not the summary of a job, which other steps write to. Raises OutputFailed."""
    try:
        if stat.S_ISREG(os.lstat(path).st_mode) and not _is_job_summary(path):
            os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as problem:
        raise OutputFailed(f"{path}: cannot remove the earlier one: {problem.strerror or problem}") from None


def _is_job_summary(path: str) -> bool:
    """Say whether a CI server, such as GitHub Actions, gave a job's steps this file for its summary."""
    named = os.environ.get(JOB_SUMMARY)
    return bool(named) and os.path.realpath(path) == os.path.realpath(named or "")


def _write(option: str, path: str, text: str, for_all: bool = False) -> None:
    try:
        write_local(path, [text.encode("utf-8", "backslashreplace")], for_all=for_all)
    except OSError as problem:
        raise OutputFailed(f"{option} {path}: cannot write: {problem.strerror or problem}") from None


def remove_result(folder: str) -> None:
    """Remove an earlier run's result.json, and make the folder if it is missing.

    Raises OutputFailed, also if nothing could be written there: better now than after hours of reading. Only a full disk may have
    room by then, and the terminal has all that matters.
    """
    output = OutputFolder(folder)
    with _room_or_not():
        output.try_to_write()
    with _room_or_not():
        output.begin(())


@contextlib.contextmanager
def _room_or_not() -> Iterator[None]:
    try:
        yield
    except OutputFailed as problem:
        if not is_no_room(problem):
            raise


def read_result(folder: str, run_id: str) -> dict[str, Any] | None:
    """Read that run's result; None while there is none. Raises OutputFailed."""
    content = OutputFolder(folder).read(RESULT)
    if content is None:
        return None
    try:
        result = parsed(json.loads, content)
    except ValueError as problem:
        raise OutputFailed(f"{folder}/{RESULT}: cannot read: {problem}") from None
    return result if isinstance(result, dict) and result.get("run_id") == run_id else None


def not_audited(store: StoreArgument, gap: Gap) -> Outcome:
    """Return an outcome with code 3 and the sentence as its reason."""
    return Outcome(
        store.name,
        store.path,
        store.release,
        gap.exit_code,
        [gap_text(gap)],
        [gap],
        key=store.key,
        replica_group=store.replica_group or "",
        assumed=Assumed(store.release_from),
    )


def put_away(outcome: Outcome) -> Outcome:
    """Pack the lists of an outcome whose own files are written. Tables, and the pages of a run, read them once more."""
    found = replace(outcome.found, findings=packed(outcome.found.findings))
    return replace(outcome, found=found, plan=replace(outcome.plan, steps=packed(outcome.plan.steps)))
