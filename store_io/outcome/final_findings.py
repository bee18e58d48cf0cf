"""Findings as an outcome has them: with severity, meaning and next step of the catalogue, each once, in a stable order.

A next step promises no repair for a kind of store that no repair is written for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from schemas.advice import Advice
from schemas.finding_codes import BY_A_REPAIR, CATALOGUE, WITHOUT_DONOR
from schemas.rows import Finding
from store_io.base.exit_codes import severity_rank
from store_io.base.packed import in_order
from store_io.kinds.all_kinds import KINDS
from store_io.model.evidence import Evidence
from store_io.model.facts.size_misfits import with_cause
from store_io.model.opened_copy import OpenedCopy
from store_io.source.store_dir import StoreListing

MAX_FINDINGS = 100_000


def final_findings(evidence: Evidence, findings: Iterable[Finding]) -> tuple[list[Finding], dict[str, int]]:
    """Return (those that are reported, how many of each code are only counted)."""
    dropped: dict[str, int] = defaultdict(int)
    listing = evidence.copy.listing
    told = (completed(_inside(finding, listing)) for finding in with_cause(findings, evidence.copy.misfits))
    refused = no_repair(evidence.copy)
    most_severe_first = _each_once(without_promise(finding, evidence, refused) for finding in told)
    final = sorted(islice(most_severe_first, MAX_FINDINGS), key=itemgetter(0))  # these are reported; the others are counted
    for _, finding in most_severe_first:
        dropped[finding.code] += finding.count + finding.more
    for _, finding in final:
        dropped[finding.code] += finding.more
    return [finding for _, finding in final], {code: number for code, number in sorted(dropped.items()) if number}


def _each_once(findings: Iterable[Finding]) -> Iterator[tuple[tuple[Any, ...], Finding]]:
    """Yield each with its place in their order, the most severe first."""
    rows = ((severity_rank(f.severity), _order(f), f.next, number, f) for number, f in enumerate(findings))
    for (_, place, _), equal in groupby(in_order(rows), key=itemgetter(0, 1, 2)):
        for finding in dict.fromkeys([row[-1] for row in equal]):
            yield place, finding


def _inside(finding: Finding, listing: StoreListing) -> Finding:
    """Keep a finding's range inside the file: a range beyond the file's end is moved to its end."""
    if finding.start is None or finding.end is None:
        return finding
    file = listing.get(finding.file)
    if file is None or file.kind != "file" or finding.start <= finding.end <= file.size:
        return finding
    return replace(finding, start=min(finding.start, file.size), end=file.size)


def completed(finding: Finding) -> Finding:
    """Return the finding with what it leaves to the catalogue."""
    entry = CATALOGUE[finding.code]
    severity = finding.weight
    next_step, message = finding.next or entry.next_at(severity), finding.message or entry.meaning
    return replace(finding, severity=severity, next=next_step, message=message)


def _order(finding: Finding) -> tuple[Any, ...]:
    def known(value: int | None) -> int:
        return -1 if value is None else value

    return (
        finding.file,
        known(finding.start),
        known(finding.end),
        finding.code,
        known(finding.phy_offset),
        finding.topic or "",
        known(finding.queue_id),
        known(finding.queue_offset),
        finding.expected or "",
        finding.actual or "",
        finding.message,
        finding.count,
    )


def no_repair(copy: OpenedCopy) -> Advice | None:
    """Return what to do if no repair can be made of a store of this kind; None if one can."""
    return next(filter(None, (kind.no_repair(copy) for kind in KINDS)), None)


def without_promise(finding: Finding, evidence: Evidence, refused: Advice | None) -> Finding:
    """Return the finding with a next step that can be done with a store of this kind. refused: `no_repair` of it, which reads the
    whole listing and so is asked once for all findings."""
    copy, step = evidence.copy, finding.next
    if step is not None and (copy.rules.value("enableDLegerCommitLog") or refused):  # and no donor is taken for a DLedger log
        step = Advice(WITHOUT_DONOR.get(step.step, step.step), step.values)
    if step in BY_A_REPAIR:
        step = refused or step
    return replace(finding, next=step) if step != finding.next else finding
