"""A run of many stores in this process, without Spark: its tasks are pickled, run here, and their answers pickled."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from jobs.audit.earlier_runs import Reading
from jobs.audit.one_store import SmallStores, page_context
from jobs.audit.run_audit import StoresToAudit, audit_stores, write_store
from jobs.audit.store_batches import FoundCopies
from jobs.cli.stores import StoreArgument
from jobs.report.files.result_files import RunInfo
from jobs.runtime.output import OutputFolder
from jobs.tasks.progress import Progress
from jobs.tasks.runner import Runner
from jobs.tasks.task_process import run_pickled
from schemas.outcome import Outcome
from store_io.base.tasks import Task

READ_AT = 1_767_225_600_000_000_000  # ns: one moment, so that the starts that are meant are the same, too


def _no_path(_: str) -> None:
    raise RuntimeError("Spark's file systems are not here")


def _context() -> Any:
    path = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(Path=_no_path)))))
    conf = SimpleNamespace(hadoopConfiguration=lambda: None)
    return SimpleNamespace(defaultParallelism=2, master="local[2]", _jvm=path, _jsc=conf)


@dataclass
class HereRunner:
    """In the place of a Runner. ran: how many tasks of each kind. around: what each answer is made by, given what makes it."""

    around: Callable[[Callable[[], bytes]], bytes] = lambda run: run()
    context: Any = field(default_factory=_context)
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    ran: Counter[str] = field(default_factory=Counter)
    fetched: Counter[int] = field(default_factory=Counter)

    def answers(self, tasks: Sequence[Task], describe: str, plan: Any = None, stores: Sequence[str] = ()) -> list[Any]:
        """As a Runner gives them."""
        found = []
        for task in tasks:
            self.ran[type(task).__name__] += 1
            sent = pickle.dumps(task, protocol=5)
            answer = pickle.loads(self.around(lambda sent=sent: run_pickled(pickle.loads(sent), plan, stores)))  # type: ignore[misc]
            found.append(answer)
        return found


@dataclass
class Fleet:
    """What a run has given. copies: sentences about copies of one log that were found."""

    outcomes: list[Outcome]
    problems: list[str]
    copies: list[str]


def audited_fleet(
    stores: Sequence[StoreArgument],
    out: Path,
    runner: HereRunner | None = None,
    whole: bool = True,
    reading: Reading | None = None,
    compare: bool = False,
) -> Fleet:
    """Audit the stores and write their files. whole: small ones by one task each.  compare: as FoundCopies has it."""
    used, reading = cast(Runner, runner or HereRunner()), reading or Reading(since=READ_AT)
    info = RunInfo("run", "0", "0", datetime(2026, 1, 1, tzinfo=UTC), out="out")
    copies, problems = FoundCopies(compare), list[str]()
    output = OutputFolder(str(out))
    output.begin([store.name for store in stores])
    outcomes = []
    with Progress(None) as progress:
        small = SmallStores(used, progress, info, reading, len(stores)) if whole else None
        asked = StoresToAudit(used, stores, progress, reading, copies=copies, small=small)
        for store, outcome in zip(stores, audit_stores(asked), strict=True):
            problems += write_store(
                output, outcome, page_context(store, info), small.take_files(outcome.name) if small is not None else ()
            )
            outcomes.append(outcome)
    assert small is None or not small._rendered
    return Fleet(outcomes, problems, copies.sentences)
