"""An earlier run's answers about this copy's segments: which are unchanged, which need not be read, which to read first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from schemas.layouts.store_names import INDEX
from schemas.rows import EarlierRun, EarlierSegment, MappedFile
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.model.audit_request import AuditRequest
from store_io.model.opened_copy import OpenedCopy


class ReadSoFar(Protocol):
    """Gives what this run has read so far, by path or queue."""

    @property
    def edges(self) -> Mapping[str, SegmentEdges]: ...
    def unchanged(self, copy: OpenedCopy, before: EarlierRun, gone: bool) -> bool:
        """Say whether all kinds hold the entries that the earlier run has compared."""


class EarlierSegments:
    """The earlier run of the request, held against the facts that this run has collected.

    Edges come first. Queues and index files come before the first question whether a segment may be left out.
    """

    def __init__(self, request: AuditRequest, copy: OpenedCopy, collected: ReadSoFar):
        self._request, self._copy, self._collected = request, copy, collected

    def unchanged(self, path: str) -> EarlierSegment | None:
        """Return the earlier run's facts on a segment whose length, time and edges are still the same."""
        known, entry = self._request.known(path), self._copy.listing.get(path)
        edges = self._collected.edges.get(path)
        if known is None or entry is None or edges is None or not known.edge_digest or not self._same_rules:
            return None
        same = (known.size, known.modified_ns, known.edge_digest) == (entry.size, entry.mtime_ns, edges.digest)
        return known if same else None

    def reused(self, path: str) -> bool:
        """Say whether a segment need not be read because an earlier run has verified it."""
        return self._request.reuse and self._verified(path) and self._derived_unchanged

    def reused_segment(self, path: str) -> EarlierSegment | None:
        """Return the earlier run's facts on a segment that need not be read; None for any other."""
        return self.unchanged(path) if self.reused(path) else None

    def chosen(self) -> list[MappedFile]:
        """Return the segments to read, the most needed first.

        They are damaged ones, the newest three, those that no run has verified, and then the one that was
        verified longest ago. At the quick level only those that the fold asks for later.
        """
        if self._request.quick:
            return []
        segments = self._copy.loaded.segments
        newest = {f.path for f in segments[self._copy.rules.first_recovered(len(segments)) :]}

        def rank(file: MappedFile) -> tuple[int, float, int, str]:
            known = self.unchanged(file.path)
            verified = known is not None and known.verified_run and known.verified_at
            since = known.verified_at.timestamp() if verified and known is not None and known.verified_at else 0.0
            order = 0 if self._request.was_damaged(file.path) else 1 if file.path in newest else 3 if verified else 2
            return order, since, file.start, file.path

        return sorted((f for f in self._copy.segment_files if not self.reused(f.path)), key=rank)

    def _verified(self, path: str) -> bool:
        known = self.unchanged(path)
        return known is not None and not known.damaged and bool(known.verified_run)

    @cached_property
    def _same_rules(self) -> bool:
        """Say whether the earlier run judged by the same rules. One by others may have taken for sound what is not."""
        before = self._request.earlier
        now = {key: str(setting.value) for key, setting in self._copy.rules.settings.items()}
        return before is not None and (before.release, before.settings) == (self._request.release, now)

    @cached_property
    def _derived_unchanged(self) -> bool:
        """Say whether the queue entries and index files that the earlier run has compared are still those.

        Added ones do not count. Only then are those of segments that are not read again known to be right.
        """
        before = self._request.earlier
        assert before is not None
        # Where a segment is gone, retention may have taken files of its queues and index as well.
        gone = any(self._copy.listing.get(path) is None for path in before.segments)
        found_again = all(self._found_again(*finding) for finding in before.derived)
        return found_again and self._collected.unchanged(self._copy, before, gone)

    def _found_again(self, file: str, phy_offset: int | None, count: int) -> bool:
        """Say whether a disagreement of derived data that the earlier run found is about a segment that is read again."""
        if phy_offset is None or count > 1 and not file.startswith(INDEX + "/"):
            return False
        segment = next((f for f in self._copy.segment_files if f.start <= phy_offset < f.start + f.size), None)
        return segment is not None and not self._verified(segment.path)
