"""Names and lengths of the log's files: what no broker makes, wrong lengths, gaps. Each kind looks at its own.

Source of the rules: pitfalls.md, audits A to D.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from schemas.finding_codes import Code
from schemas.layouts.dledger_layout import DATA
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import Finding, StoreFile
from schemas.severity_cases import Case, severity_in
from store_io.base.java.java_compat import parse_number
from store_io.base.wording import count_text
from store_io.broker.loading import Tree, is_folder, is_skipped
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.ledger_files import ledger_folder
from store_io.kinds.all_kinds import ROOMS
from store_io.model.evidence import Evidence
from store_io.model.facts.named_files import name_fault, size_finding, unrecognised
from store_io.model.log_map import MISSING
from store_io.model.lost_entries import lost_places
from store_io.source import store_dir
from store_io.source.byte_source import folder_of, name_of
from store_io.source.store_dir import UNREAD_KINDS

MAX_MISSING_NAMES = 100


def file_names(evidence: Evidence) -> list[Finding]:
    """Return the findings that names and lengths alone show; each file is blamed by one rule."""
    copy = evidence.copy
    found = name_findings(copy.tree, copy.rules) if not copy.unmodelled else []
    found = [f for f in found if evidence.log_whole or f.code != Code.SEGMENT_MISSING]
    found = _with_messages(found, evidence)
    blamed = {f.file for f in found}
    return found + [f for f in store_dir.listing_notes(copy.listing) if f.file not in blamed]


def _with_messages(found: list[Finding], evidence: Evidence) -> list[Finding]:
    """Return the findings, those of segments that are missing with how many of their messages queue entries know."""
    if not any(f.code == Code.SEGMENT_MISSING for f in found):
        return found
    places = lost_places(evidence.leftovers.values(), evidence.log, (MISSING,))
    begins = [place for _, place in places]
    for place, f in enumerate(found):
        if f.code != Code.SEGMENT_MISSING or f.phy_offset is None:
            continue
        end = f.phy_offset + f.count * evidence.copy.rules.segment_bytes  # one finding may be of several
        own = [places[MISSING, begin] for begin in begins[bisect_left(begins, f.phy_offset) : bisect_left(begins, end)]]
        if own:
            number, least = sum(at.count for at in own), "" if all(at.exact for at in own) else "at least "
            messages = f"queue entries lead to {least}{count_text(number, 'message')} of {'it' if f.count == 1 else 'them'}"
            found[place] = replace(f, count=number, message=f"{f.message}: {messages}")
    return found


def name_findings(tree: Tree, rules: BrokerRules) -> list[Finding]:
    """Return files and folders that no broker makes, wrong lengths, gaps in the files' names (pitfalls C6 to C10, I6, I7).

    A name that was not opened, such as a link that leads out of the store, counts as a file of the right length: only
    `store_dir.listing_notes` speaks of it.
    """
    return [*_log_names(tree, rules), *(found for room in ROOMS for check in room.name_checks for found in check(tree, rules))]


def _length_fault(segment: StoreFile, size: int) -> str:
    """Return a clause on the bytes that a segment has beyond its configured length, or lacks."""
    if segment.size > size:
        return f"it is too long: a repair cuts off its last {count_text(segment.size - size, 'byte')}, which no start reads"
    return f"it is too short: its last {count_text(size - segment.size, 'byte')} are missing"


def _log_names(tree: Tree, rules: BrokerRules) -> list[Finding]:
    found: list[Finding] = []
    size = rules.segment_bytes
    expected: int | None = None
    seen: set[int] = set()
    folder = ledger_folder(rules)
    data = tree.children(f"{folder}/{DATA}") if folder else []
    for entry, start, in_order in [*_by_number(tree.children(COMMITLOG)), *_by_number(data)]:
        name = name_of(entry.path)
        unread = entry.kind in UNREAD_KINDS
        if unread and (start is None or start < 0):
            continue
        if is_folder(entry) or start is None or start < 0:
            why = "a directory among the segments" if is_folder(entry) else name_fault(start)
            found.append(unrecognised(entry, why, is_skipped(entry, rules) and folder_of(entry.path) == COMMITLOG))
            continue
        if entry.size == 0 and not unread:
            found.append(size_finding(Code.SEGMENT_EMPTY, entry, size, severity_in(Code.SEGMENT_EMPTY, Case.IN_THE_WAY)))
            continue
        if entry.size != size and not unread:
            found.append(replace(size_finding(Code.SEGMENT_WRONG_SIZE, entry, size), message=_length_fault(entry, size)))
        if start % size:
            found.append(Finding(Code.SEGMENT_MISNAMED, entry.path, expected=f"a multiple of {size}", actual=name))
        elif name != f"{start:020d}":
            severity = severity_in(Code.SEGMENT_MISNAMED, Case.IN_ORDER, in_order)
            message = "a broker takes this name for the same number, and its place among the segments by the name's text"
            found.append(
                Finding(
                    Code.SEGMENT_MISNAMED, entry.path, severity=severity, expected=f"{start:020d}", actual=name, message=message
                )
            )
        if start in seen:
            found.append(Finding(Code.SEGMENT_TWICE, entry.path, message="two files of this number"))
            continue
        seen.add(start)
        if expected is not None and start > expected:
            found += _missing_segments(range(expected, start, size), folder_of(entry.path))
        elif expected is not None and start < expected:
            found.append(
                Finding(Code.SEGMENT_MISNAMED, entry.path, expected=f"{expected:020d}", actual=name, message="segments overlap")
            )
        expected = max(expected or 0, start + size)
    return found


def _by_number(entries: Sequence[StoreFile]) -> list[tuple[StoreFile, int | None, bool]]:
    """Return (file, its number, whether all files are in the order of their numbers) of each file, by number.

    A broker sorts files by their names' text.
    """
    numbered = [(entry, parse_number(name_of(entry.path), 64)) for entry in entries]
    starts = [start for _, start in numbered if start is not None]
    in_order = starts == sorted(starts)
    return [(entry, start, in_order) for entry, start in sorted(numbered, key=lambda one: one[1] or 0)]


def _missing_segments(bases: range, folder: str) -> Iterator[Finding]:
    """Yield a finding for each of the first; one for all others, which names the last of them."""
    for base in bases[:MAX_MISSING_NAMES]:
        yield Finding(Code.SEGMENT_MISSING, f"{folder}/{base:020d}", phy_offset=base, message="a gap in the log")
    others = bases[MAX_MISSING_NAMES:]
    if others:
        gap = f"a gap in the log of {count_text(len(others), 'segment')}, up to {others[-1]:020d}"
        yield Finding(Code.SEGMENT_MISSING, f"{folder}/{others[0]:020d}", phy_offset=others[0], message=gap, count=len(others))
