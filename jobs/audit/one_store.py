"""One store of a run: its audit, the texts of its files, and a task that makes both.

To open a store, to fold its results, to judge and to render takes the driver a tenth of a second, store after store, while all
cores wait. If stores are many and small, one task does all of that for one store. A task that meets anything out of the
ordinary ends without an answer; its store is then audited like a large one, by rounds of tasks that the driver judges. So no
answer depends on the way that was taken.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jobs.audit.copy_at_rest import broker_signs, listing_problems
from jobs.audit.earlier_runs import Reading
from jobs.cli.stores import StoreArgument
from jobs.report.files.result_files import RunInfo, config_json, findings_jsonl, plan_parts
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts.commands import store_words
from jobs.runtime.jvm import is_local
from jobs.runtime.output import STORE_FILES
from schemas.advice import Cause
from schemas.outcome import Outcome
from schemas.rows import FurthestRun, MappedFile
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.audit.compared.compared_audit import ComparedAudit
from store_io.base.failed_reads import failed_reads
from store_io.base.paths import is_uri
from store_io.base.tasks import PartlyRead, run_task
from store_io.checks.changed_bytes import Seen
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.store_dir import StoreListing

if TYPE_CHECKING:
    from jobs.tasks.progress import Progress
    from jobs.tasks.runner import Runner

FEW_STORES = 8  # of fewer than this many the driver's part is not felt
SMALL_BYTES = 256 << 20  # read in less time than the driver's part of a store takes
# Of a store that is one task all the same: of so many stores no core waits for another's for long.
STORES_PER_CORE, MOST_BYTES = 3, 2 << 30
MOST_FILES = 10_000  # what a task holds of a store grows with its files
_TEXT_CHARACTERS = 16 << 20  # of a store's files
_FEW_ROWS = 20_000  # of an outcome that is sent to a task, or by one
_TOGETHER_PER_CORE = 16  # stores whose answers are under way to the driver together

Texts = tuple[tuple[str, bytes], ...]  # of a store's files, by name


def request_of(number: int, store: StoreArgument, reading: Reading) -> AuditRequest:
    """Return the request to audit the store with this number in its run."""
    return AuditRequest(
        store.name, reading.location(store), store.release, store.broker_conf, store.replica_group or "", number,
        level=reading.level, not_after=reading.not_after, earlier=reading.earlier.get(store.key), reuse=reading.reuse,
        release_from=store.release_from, releases=store.releases, perhaps_emptied=True,
        start=store.start.moment(reading.since),
    )  # fmt: skip


def opened_audit(request: AuditRequest) -> StoreAudit:
    """Return the audit with its first tasks. Raises RefusedSetting, and other errors of the request."""
    audit = ComparedAudit(request) if request.releases else StoreAudit(request)
    audit.first = audit.first_tasks()
    return audit


def page_context(store: StoreArgument, info: RunInfo) -> PageContext:
    """Return what a store's page shows of its run."""
    return PageContext(info, store_words(store), f"{info.out}/{store.name}/plan.json", index=True)


def store_files(outcome: Outcome, context: PageContext | None = None) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the name and the text, in pieces, of each of the store's files."""
    for name, text in zip(STORE_FILES, _texts(outcome, context), strict=True):
        if text is not None:
            yield name, text


def _texts(outcome: Outcome, context: PageContext | None) -> Iterator[Iterable[str] | None]:
    """Yield the text of each of `STORE_FILES`; None for a file that this store does not have."""
    yield plan_parts(outcome)
    yield findings_jsonl(outcome.found.findings)
    yield config_json(outcome.holds.config) if outcome.holds.config is not None else None
    yield report_html(outcome, context)


def packed_texts(files: Iterable[tuple[str, Iterable[str]]]) -> Texts:
    """Return the files, compressed; () if they are large: the driver then writes them piece by piece."""
    found, left = [], _TEXT_CHARACTERS
    for name, pieces in files:
        packer, parts = zlib.compressobj(1), []
        for piece in pieces:
            left -= len(piece)
            if left < 0:
                return ()
            parts.append(packer.compress(piece.encode("utf-8", "surrogatepass")))
        found.append((name, b"".join([*parts, packer.flush()])))
    return tuple(found)


def unpacked_texts(texts: Texts) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the same as `store_files`."""
    for name, text in texts:
        yield name, [zlib.decompress(text).decode("utf-8", "surrogatepass")]


# A task of its own may have succeeded: the rounds of the driver try again.
_OF_THIS_PROCESS = (Cause.AUDIT_FAULT, Cause.TASK_FAULT, Cause.INDEX_SLOTS)


class NotOrdinary(Exception):
    """The store cannot be audited by one task: the driver must see to it."""


@dataclass
class WholeStore:
    """The audit of a store that one task has done.

    texts: as `packed_texts` gives them.
    addresses: as `StoreAudit.segment_addresses` gives them.
    """

    outcome: Outcome
    texts: Texts
    location: StoreLocation
    listing: StoreListing
    segment_files: list[MappedFile]
    addresses: list[tuple[str, str, int]]
    broker_signs: list[str]  # as they were before its bytes were read
    failed: bool = False  # its bytes could not be read again

    @property
    def name(self) -> str:
        return self.outcome.name

    @property
    def source(self) -> ByteSource:
        """Return the copy's bytes, opened anew."""
        return open_source(self.location)

    def segment_addresses(self) -> list[tuple[str, str, int]]:
        """Return the same as a StoreAudit does."""
        return self.addresses

    @contextlib.contextmanager
    def no_fault_beyond(self) -> Iterator[None]:
        """Do the same as a StoreAudit does: after a fault the store is one for the driver."""
        with failed_reads() as unread:
            try:
                yield
            except Exception:
                self.failed = True
        self.failed = self.failed or bool(unread)


Opened = StoreAudit | WholeStore | Outcome  # an outcome: of a store that could not be opened


@dataclass
class StoreTask:
    """Audit one store whole, and render its files. Picklable.

    request: the store belongs to no group of copies, and has no time limit.
    furthest: how far earlier audits saw the log reach.
    most_bytes: of the store's files; a larger store is for the driver.
    seen: what the last run says of its segments.
    bytes_to_read: known once the task has run.
    """

    request: AuditRequest
    argument: StoreArgument
    furthest: FurthestRun | None
    info: RunInfo
    most_bytes: int
    seen: Seen = field(default_factory=dict)
    not_after: float = 0
    bytes_to_read: int = 0

    @property
    def store(self) -> int:
        return self.request.store

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.request.location.root,)

    def run(self) -> WholeStore:
        """Audit the store. Raises NotOrdinary, or whatever went wrong."""
        from store_io.repair.plan_repair_section import repairs_of, steps_tasks

        audit = opened_audit(self.request)
        size = 0 if audit.failed else file_bytes(audit.copy.listing)
        if audit.failed or size > self.most_bytes or len(audit.copy.listing.files) > MOST_FILES:
            raise NotOrdinary("it is large, or it cannot be opened")
        signs = broker_signs(self.argument.path, audit.copy.listing.files).sentences()
        first, audit.first = audit.first, []
        run_rounds([(audit, first)], lambda tasks: [run_task(task) for task in tasks])
        if self.furthest is not None:
            audit.hold_against(self.furthest, self.argument.named, _for_the_driver)
            audit.hold_bytes_against(self.seen, self.argument.named)
        audit.settle()
        outcome = audit.outcome()
        steps = [run_task(task) for task in steps_tasks(outcome, self.request.location)]
        if audit.failed or any(isinstance(step, PartlyRead) for step in steps):
            raise NotOrdinary("not all of it could be read")
        if any(gap.cause in _OF_THIS_PROCESS for gap in outcome.gaps):
            raise NotOrdinary("this process failed, and not the copy")
        if not _is_short(outcome):
            raise NotOrdinary("its answer is large")
        outcome = replace(outcome, repairs=repairs_of(outcome, steps), key=self.argument.key)
        texts = packed_texts(store_files(outcome, page_context(self.argument, self.info)))
        copy, self.bytes_to_read = audit.copy, size
        return WholeStore(
            outcome, texts, self.request.location, copy.listing, copy.segment_files, audit.segment_addresses(), signs
        )


def file_bytes(listing: StoreListing) -> int:
    """Return the length of all files together."""
    return sum(file.size for file in listing.files if file.kind == "file")


def _is_short(outcome: Outcome) -> bool:
    """Say whether many such outcomes may be under way to the driver together."""
    return len(outcome.found.findings) + len(outcome.rows.queues) + len(outcome.plan.steps) <= _FEW_ROWS


def _for_the_driver(_: FurthestRun) -> Any:
    raise NotOrdinary("rows of the tables are asked for")


@dataclass(frozen=True)
class RenderTask:
    """Render the files of a store that the driver has judged. Picklable."""

    store: int
    outcome: Outcome
    argument: StoreArgument
    info: RunInfo
    not_after: float = 0
    bytes_to_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.argument.path,)

    def run(self) -> Texts:
        """Return the files as `packed_texts` packs them."""
        return packed_texts(store_files(self.outcome, page_context(self.argument, self.info)))


class SmallStores:
    """Audits the small stores of a run, each by one task, and holds the files that tasks have rendered.

    stores: the number of stores in the run.
    """

    def __init__(self, runner: Runner, progress: Progress, info: RunInfo, reading: Reading, stores: int):
        self._runner, self._progress, self._info, self._reading = runner, progress, info, reading
        self._cores = max(1, runner.context.defaultParallelism)
        self._most_bytes = MOST_BYTES if stores >= STORES_PER_CORE * self._cores else SMALL_BYTES
        # Workers of a cluster need not have what pages are made with.
        self._many = stores >= FEW_STORES and is_local(str(runner.context.master))
        self._rendered: dict[str, Texts] = {}

    def audits(
        self, stores: Sequence[tuple[int, StoreArgument]], keep: Callable[[StoreArgument, WholeStore], None] | None
    ) -> list[WholeStore | None]:
        """Return the audit of each of these numbered stores; None for a store that is for the driver.

        keep: takes each audit soon after it has ended, so that a run that is killed has not lost it.
        """
        asked = [self._many and not self._reading.not_after and _can_be_whole(store) for _, store in stores]
        if not any(asked):
            return [None] * len(stores)
        past = self._reading.past.result() if self._reading.past is not None else None
        tasks = [
            StoreTask(
                request_of(number, store, self._reading),
                store,
                past.of(store) if past is not None else None,
                self._info,
                self._most_bytes,
                past.seen(store) if past is not None else {},
            )
            for (number, store), wanted in zip(stores, asked, strict=True)
            if wanted
        ]
        self._progress.expect("auditing small stores", 0, 0)
        sound: dict[str, WholeStore] = {}
        together = _TOGETHER_PER_CORE * self._cores
        for part in (tasks[at : at + together] for at in range(0, len(tasks), together)):
            answers = self._runner.answers(part, f"{len(part)} small stores")
            done = [answer for answer in answers if isinstance(answer, WholeStore)]
            for one, changed in zip(done, listing_problems(self._runner.context, done), strict=True):
                if not changed:
                    sound[one.name] = one
            for task in part:
                if keep is not None and task.argument.name in sound:
                    keep(task.argument, sound[task.argument.name])
        sizes = {n: file_bytes(sound[store.name].listing) for n, store in stores if store.name in sound}
        self._progress.expect("reading", sum(sizes.values()), 0, sizes)
        return [sound.get(store.name) for _, store in stores]

    def render(self, stores: Sequence[tuple[int, StoreArgument]], audits: Sequence[Opened], outcomes: Sequence[Outcome]) -> None:
        """Have tasks render the files of these stores, if that is worth their start. stores, audits, outcomes: side by side."""
        tasks = []
        for (number, store), audit, outcome in zip(stores, audits, outcomes, strict=True):
            if isinstance(audit, WholeStore):
                self._rendered[store.name] = audit.texts
            elif _is_short(outcome):
                tasks.append(RenderTask(number, outcome, store, self._info))
        if self._many and len(tasks) >= FEW_STORES:
            found = zip(tasks, self._runner.answers(tasks, f"files of {len(tasks)} stores"), strict=True)
            self._rendered |= {task.outcome.name: texts for task, texts in found if isinstance(texts, tuple)}

    def take_files(self, name: str) -> Texts:
        """Return the rendered files of the store with this name, and hold them no longer. () if no task has rendered them."""
        return self._rendered.pop(name, ())


def _can_be_whole(store: StoreArgument) -> bool:
    """Say whether the store lies on this machine, in which case no task waits, and needs no other store."""
    return not store.problem and not store.replica_group and not any(map(is_uri, store.roots))


def with_repair_sections(
    runner: Runner, stores: Sequence[StoreArgument], outcomes: Sequence[Outcome], reading: Reading
) -> list[Outcome]:
    """Return each outcome with what a repair would do, worked out in one job. stores, outcomes: side by side."""
    from store_io.repair.plan_repair_section import repairs_of, steps_tasks

    tasks = [
        steps_tasks(outcome, reading.location(store), reading.not_after) for store, outcome in zip(stores, outcomes, strict=True)
    ]
    answers = iter(runner.answers([task for own in tasks for task in own], "steps of a repair"))
    return [
        replace(outcome, repairs=repairs_of(outcome, [next(answers) for _ in own]))
        for outcome, own in zip(outcomes, tasks, strict=True)
    ]
