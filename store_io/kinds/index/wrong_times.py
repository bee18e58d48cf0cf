"""Index entries whose time difference is wrong: each by itself, or all of a file's because its begin time is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas import index_layout as layout
from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.log.entries.index_entries import SECONDS_POSITION, IndexFileRef
from store_io.log.scan.segment_findings import MAX_FINDINGS, Findings

LEAST_LATE = 3  # so many wrong time differences, if they are most of a file's, have their cause in its header


class WrongTimes:
    """Gathers them; neighbouring ones are one finding."""

    def __init__(self, files: Sequence[IndexFileRef]):
        self._refs = files
        self._late: tuple[int, int, int, int, int, int] | None = None  # the open finding
        self._lates: dict[int, list[Finding]] = {}  # per file, those that are closed
        self._late_counts: dict[int, int] = {}  # per file, the entries concerned, also of those that were too many to keep

    def add(self, file: int, number: int, phy_offset: int, expected: int, actual: int) -> None:
        """Entry `number` of file `file` belongs to the message at `phy_offset`. expected, actual: its time difference, s."""
        if self._late and self._late[:2] == (file, number):
            self._late = (file, number + 1, *self._late[2:])
            return
        self.close()
        self._late = file, number + 1, number, phy_offset, expected, actual

    def close(self) -> None:
        """End the range of late entries that is being collected. The next entry is no neighbour."""
        if self._late:
            file, end, first, phy, expected, actual = self._late
            ref, one = self._refs[file], end - first == 1
            self._late_counts[file] = self._late_counts.get(file, 0) + end - first
            lates = self._lates.setdefault(file, [])
            if len(lates) < MAX_FINDINGS:
                lates.append(
                    Finding(
                        Code.INDEX_ENTRY_WRONG,
                        ref.path,
                        ref.position(first) + (SECONDS_POSITION if one else 0),
                        ref.position(end) - (layout.ENTRY_BYTES - SECONDS_POSITION - 4 if one else 0),
                        phy_offset=phy,
                        expected=f"{expected} s",
                        actual=f"{actual} s",
                        message="the time difference of index entries does not fit their messages",
                        count=end - first,
                        only_time=True,
                    )
                )
        self._late = None

    def judge(self, compared: Mapping[int, int], findings: Findings) -> None:
        """Add the findings on time differences, and blame the header's begin time if most differences of a file are wrong.

        The message of that begin time need not be in the copy.
        compared: file -> the number of its entries that were compared.
        """
        for file, lates in self._lates.items():
            count, ref = self._late_counts[file], self._refs[file]
            if count < LEAST_LATE or 2 * count <= compared.get(file, 0):
                for finding in lates:
                    findings.add(finding)
                rest = count - sum(finding.count for finding in lates)
                if rest:
                    findings.dropped[Code.INDEX_ENTRY_WRONG] = findings.dropped.get(Code.INDEX_ENTRY_WRONG, 0) + rest
                continue
            findings.add(
                Finding(
                    Code.INDEX_HEADER_WRONG,
                    ref.path,
                    layout.BEGIN_TIMESTAMP_POSITION,
                    layout.BEGIN_TIMESTAMP_POSITION + 8,
                    expected=f"a time that the entries count from, as {lates[0].expected} in place of {lates[0].actual}",
                    actual=str(ref.begin_timestamp),
                    message=f"{count:,} time differences do not count from the header's begin time",
                )
            )
