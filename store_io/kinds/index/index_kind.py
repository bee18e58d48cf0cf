"""The index files, as an audit asks for them (formats.md 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from schemas.finding_codes import Code
from schemas.layouts.store_names import INDEX as FOLDER
from schemas.rows import EarlierRun, Finding, IndexFileSummary, MappedFile, PlanStep
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import parse_number
from store_io.base.packed import PackedList, PackedWhenMany
from store_io.base.tasks import Task
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import Tree, is_folder
from store_io.broker.releases import BrokerRules
from store_io.kinds.index.index_merge import IndexFollower
from store_io.kinds.index.index_reader import IndexTask, without_header_echoes
from store_io.log.entries.index_entries import IndexFileRef, read_header
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.facts.named_files import name_fault, size_finding, unrecognised
from store_io.model.kind import Kind, Opening, rebuilt
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import name_of
from store_io.source.store_dir import UNREAD_KINDS

Summaries = Mapping[str, IndexFileSummary]  # by path


@dataclass
class IndexResults:
    """Holds what was read of the index files, by path. Many findings are packed."""

    files: dict[str, IndexFileSummary] = field(default_factory=dict)
    findings: PackedWhenMany[Finding] = field(default_factory=PackedWhenMany)


class IndexKind(Kind[Sequence[MappedFile], IndexResults, Summaries]):
    """The index files: every file below index/ whose name is a number, as the broker maps it. An empty file reads as zeros."""

    name = "index"
    task_types = (IndexTask,)
    nothing_found = IndexResults

    def open(self, opening: Opening) -> Sequence[MappedFile]:
        """Return the files. Their headers, which recovery asks for, go to `opening.headers`."""
        numbered = [(e, parse_number(name_of(e.path), 64)) for e in opening.tree.children(FOLDER) if e.kind == "file"]
        files = [MappedFile(e.path, number or 0, e.size) for e, number in numbered if number is not None]
        for file in files:
            try:
                opening.headers[file.path] = read_header(opening.source, file.path)
            except StoreError as error:
                opening.gaps.cannot_read(error.gap())
        return files

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan hold messages against all files of the index.

        It does not if one cannot be read: messages would lack the entries of that file. The quick level reads headers alone, as a
        broker does.
        """
        files = copy[self]
        if request.quick or not files or len(files) != len(copy.headers):
            return task
        return replace(task, index=IndexFollower(tuple(_ref(copy, files, number) for number in range(len(files)))))

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        files = copy[self] if not request.quick else ()
        slots, most = copy.rules.index_slots, copy.rules.index_max
        before: IndexHeader | None = None
        for file in files:
            end = (before.end_timestamp, before.end_phy_offset) if before is not None else None
            newest = file is files[-1]
            place = request.store, request.location, slots, most, file.path, file.size
            yield IndexTask(*place, newest=newest, unclean=copy.unclean, previous_end=end, not_after=request.not_after)
            before = copy.headers.get(file.path)

    def unchanged(self, copy: OpenedCopy, found: IndexResults, before: EarlierRun, gone: bool) -> bool:
        newest, index = max(before.index, default=""), found.files
        return all(
            (path in index and (path == newest or index[path].digest == digest)) or gone and path not in copy.tree.by_path
            for path, digest in before.index.items()
        )

    def take(self, found: IndexResults, result: IndexFileSummary) -> None:
        result.findings = found.findings.of(result.findings)
        found.files[result.path] = result

    def view(self, evidence: Evidence) -> Summaries:
        return evidence.results(self).files

    def left_by_start(self, evidence: Evidence, serious: Sequence[Finding]) -> Iterator[PlanStep]:
        """Yield a step for each index file that has to be rebuilt, or that a start makes anew in part."""
        steps = rebuilt(serious, lambda file: file if file.partition("/")[0] == FOLDER else "")
        why = "newer than the checkpoint's index time: a start deletes it and rebuilds a part of it"
        for path in evidence.prediction.deleted_files if evidence.prediction is not None else ():
            if path.startswith(FOLDER + "/"):
                steps[path] = PlanStep.whole("rebuild", path, why)
        yield from (steps[path] for path in sorted(steps))

    def digests(self, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        """Yield each file, one that was not read without a digest."""
        yield from ((file.path, file.size, "") for file in evidence.copy[self])
        yield from ((index.path, index.size, index.digest) for index in evidence[self].values())


INDEX = IndexKind()


def index_names(tree: Tree, rules: BrokerRules) -> Iterator[Finding]:
    """Yield findings on names below index/ that no broker makes, and on wrong lengths."""
    for entry in tree.children(FOLDER):
        if entry.kind in UNREAD_KINDS:
            continue
        if parse_number(name_of(entry.path), 64) is None:
            yield unrecognised(entry, name_fault(None), skipped=True)
        elif is_folder(entry):
            yield unrecognised(entry, "a directory where an index file is expected")
        elif entry.size != rules.index_file_bytes:
            yield size_finding(Code.INDEX_FILE_WRONG_SIZE, entry, rules.index_file_bytes)


def index_whole(evidence: Evidence) -> bool:
    """Say whether the index files were read as a whole."""
    return evidence.whole_below(FOLDER) and not any(summary.problem for summary in evidence[INDEX].values())


def without_echoes(evidence: Evidence, findings: PackedList[Finding]) -> PackedList[Finding]:
    """Leave out findings on an index file's header if the comparison with messages blames an entry for the same fault."""
    blamed = {finding.file for finding in findings if finding.code == Code.INDEX_HEADER_WRONG}  # only of these anything may go
    by_file: dict[str, list[Finding]] = {path: [] for path in evidence[INDEX] if path in blamed}
    for finding in findings if by_file else ():
        if finding.file in by_file:
            by_file[finding.file].append(finding)
    kept = {}
    for path, own in by_file.items():
        left = without_header_echoes(own, evidence[INDEX][path], evidence.copy.rules.index_slots)
        if len(left) != len(own):
            kept[path] = left
    return PackedList(chain((f for f in findings if f.file not in kept), *kept.values())) if kept else findings


def _ref(copy: OpenedCopy, files: Sequence[MappedFile], number: int) -> IndexFileRef:
    file = files[number]
    header = copy.headers[file.path]
    return IndexFileRef(
        path=file.path,
        size=file.size,
        begin_phy_offset=header.begin_phy_offset,
        end_phy_offset=header.end_phy_offset,
        begin_timestamp=header.begin_timestamp,
        index_count=header.index_count,
        slots=copy.rules.index_slots,
        max_entries=copy.rules.index_max,
        previous_end_timestamp=copy.headers[files[number - 1].path].end_timestamp if number else 0,
        end_timestamp=header.end_timestamp,
        may_be_torn=copy.unclean and number == len(files) - 1,
    )
