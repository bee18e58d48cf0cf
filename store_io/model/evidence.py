"""The evidence of an audit at one moment: frozen facts, from which the checks and the outcome follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from schemas.rows import EXTENT_MESSAGE, MappedFile, QueueKey, QueueSummary, SegmentSummary
from store_io.broker.prediction import Prediction
from store_io.broker.settings.ledger_files import ledger_folder
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.model.audit_request import AuditRequest
from store_io.model.earlier_segments import EarlierSegments
from store_io.model.facts.unwritten import Unwritten, unwritten
from store_io.model.kind import Kind, Results, View
from store_io.model.log_map import LogMap, log_map
from store_io.model.loss import Loss
from store_io.model.opened_copy import OpenedCopy
from store_io.model.premises import heads_of
from store_io.model.queue_leftovers import LeftoverResult
from store_io.model.queue_views import QueueView
from store_io.model.written_by import WrittenBy, written_by
from store_io.source.store_dir import UNREAD_KINDS


@dataclass(frozen=True)
class Evidence:
    """Holds what an audit knows at one moment.

    request: what was asked for. copy: the copy as it was opened: listing, rules, small files.
    broken: something that a broker would read is unknown.
    segments: those that were read; unread: the others.
    queues: those from which consumers are served, with what their tasks found; other_queues: those of a double write that serve
        nobody.
    edges: first record and problems of segments of which both ends were looked at, by path.
    leftovers: entries that matched no message, by queue. views: queues seen from both sides, log and entries.
    late: files not read because the time limit was reached.
    earlier: what the run before says of unchanged segments.
    prediction: what a start would do. loss: the messages that it would lose. None: nothing can be said.
    bytes_read: by all tasks so far.
    found: what the tasks of each kind of files have found, by the kind's name. log_problem: a file of the log could not be read.
    """

    request: AuditRequest
    copy: OpenedCopy
    broken: bool
    segments: Sequence[SegmentSummary]
    queues: Mapping[QueueKey, QueueSummary]
    edges: Mapping[str, SegmentEdges]
    leftovers: Mapping[QueueKey, LeftoverResult]
    late: Set[str]
    unread: Sequence[MappedFile]
    views: Mapping[QueueKey, QueueView]
    earlier: EarlierSegments
    prediction: Prediction | None
    loss: Loss | None
    bytes_read: int
    found: Mapping[str, Any]
    log_problem: bool = False
    other_queues: Mapping[QueueKey, QueueSummary] = field(default_factory=dict)

    _views: dict[str, Any] = field(init=False, default_factory=dict, compare=False)

    def results(self, kind: Kind[Any, Results, Any]) -> Results:
        """Return what the tasks of a kind of files have found."""
        found: Results = self.found[kind.name]
        return found

    def __getitem__(self, kind: Kind[Any, Any, View]) -> View:
        """Return what is known of a kind of files: what its small files say, and what its tasks have found."""
        if kind.name not in self._views:
            self._views[kind.name] = kind.view(self)
        found: View = self._views[kind.name]
        return found

    @property
    def every_queue(self) -> Iterator[QueueSummary]:
        """Yield the summary of each queue that was read, of both kinds in a combined store. There may be a million of them."""
        return chain(self.queues.values(), self.other_queues.values())

    @cached_property
    def log(self) -> LogMap:
        """Return the CommitLog as a list of ranges."""
        return log_map(self.segments, self.copy.rules.segment_bytes, self.unread)

    @cached_property
    def holes(self) -> Unwritten:
        """Return parts of the log that were never written although messages follow."""
        return unwritten(self.segments, self.views, self.leftovers, self.log)

    @cached_property
    def log_whole(self) -> bool:
        """Say whether all of the log could be read: only then does it mean something that a thing is not there."""
        if self.copy.log_place.asked:
            return False
        if self.log_problem or any(segment.problem for segment in self.segments):
            return False
        return self.whole_below(COMMITLOG, ledger_folder(self.copy.rules))

    @cached_property
    def log_not_opened(self) -> bool:
        """Say whether something in a folder of the log was not opened, such as a link in place of a segment."""
        return self.not_opened_below(COMMITLOG, ledger_folder(self.copy.rules))

    @cached_property
    def index_not_opened(self) -> bool:
        """Say whether an index file was not opened."""
        return self.not_opened_below(INDEX)

    @cached_property
    def queues_not_opened(self) -> bool:
        """Say whether a folder of ConsumeQueues was not opened."""
        return self.not_opened_below(QUEUES, BATCH_QUEUES, EXT)

    @cached_property
    def queues_whole(self) -> bool:
        """Say whether the ConsumeQueues of every kind were read as a whole."""
        problems = chain((queue.problem for queue in self.queues.values()), (left.problem for left in self.leftovers.values()))
        return self.whole_below(QUEUES, BATCH_QUEUES, EXT) and not any(problems)

    def whole_below(self, *parts: str) -> bool:
        """Say whether all files in these folders could be read."""
        if self.broken or self.copy.unmodelled:
            return False
        return not self.not_opened_below(*parts)

    def was_not_opened(self, path: str) -> bool:
        """Say whether the content at this path is not known, as in place of a link, or of a folder that could not be listed."""
        entry = self.copy.listing.get(path)
        return entry is not None and entry.kind in UNREAD_KINDS

    def not_opened_below(self, *parts: str) -> bool:
        """Say whether the content of any file or folder in these folders is not known."""
        return not self._tops_not_opened.isdisjoint(parts)

    @cached_property
    def _tops_not_opened(self) -> Set[str]:
        """Return the first parts of the paths whose content is not known: one pass over all names, of which there may be many."""
        return {e.path.partition("/")[0] for e in self.copy.listing.files if e.kind in UNREAD_KINDS}

    @cached_property
    def held_back(self) -> int | None:
        """Return the physical offset from which on a replica's messages wait for confirmation, without entries on purpose. None:
        none do.

        It is confirmOffset, unless a queue reaches beyond it: as a lone master a broker does not keep the value up to date
        (controller.md 3).
        """
        confirmed = self.copy.checkpoint.confirm_phy_offset
        if not self.copy.rules.controlled or any(queue.max_phy_offset > confirmed for queue in self.queues.values()):
            return None
        return confirmed

    def puts_at_start(self, phy_first: int, phy_last: int) -> bool:
        """Say whether a start puts the entries of all messages in a range of physical offsets. The queue must take them."""
        prediction = self.prediction
        if prediction is None or not prediction.starts or prediction.start_segment is None:
            return False
        begin = max(int(prediction.start_segment), prediction.dispatches_after + 1)
        return begin <= phy_first and phy_last < prediction.truncate_at

    @property
    def all_read(self) -> bool:
        """Say whether every segment and all entries were read in this run."""
        return not self.unread and not self.request.quick

    @property
    def read_last(self) -> bool:
        """Say whether the newest message of the log was read: only then is it known what lies beyond it."""
        data = [s.base_offset for s in self.segments if any(e.kind == EXTENT_MESSAGE for e in s.extents)]
        return not self.unread or bool(data) and max(data) > max(f.start for f in self.unread)

    @property
    def end_is_known(self) -> bool:
        """Say whether the log's end is what this audit says it is."""
        return self.log_whole and self.read_last

    def written_by(self) -> WrittenBy:
        """Return the releases that can have written this copy."""
        magics = [s.first.magic for s in self.segments if s.first.check_ok and not s.first.blank]
        listing = self.copy.listing
        return written_by(listing.files, self.copy.checkpoint, heads_of(self.copy.source, listing), magics)
