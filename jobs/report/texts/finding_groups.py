"""The findings of one code and severity together, the most severe first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report.texts.judgement import meaning_of
from schemas.rows import AuditOutcome, Finding
from store_io.base.exit_codes import SEVERITIES
from store_io.wording.steps import advice_text


@dataclass(frozen=True)
class Group:
    """Findings of one code and severity.

    dropped: those that were counted and are in no list.
    total: both, by their counts.
    """

    severity: str
    code: str
    meaning: str
    found: Sequence[Finding]
    dropped: int

    @property
    def total(self) -> int:
        return sum(finding.count for finding in self.found) + self.dropped

    @property
    def files(self) -> int:
        return len({finding.file for finding in self.found})

    @property
    def next(self) -> list[str]:
        """At most three sentences."""
        steps = dict.fromkeys(finding.next for finding in self.found if finding.next is not None)
        return [advice_text(step) for step in steps][:3]


def finding_groups(outcome: AuditOutcome) -> list[Group]:
    """All findings, by severity and code."""
    found: dict[tuple[int, str], list[Finding]] = {}
    for finding in outcome.findings:
        found.setdefault((SEVERITIES.index(finding.severity), finding.code), []).append(finding)
    groups: list[Group] = []
    left = dict(outcome.findings_dropped)
    for rank, code in sorted(found):
        # Dropped findings have no severity: they are counted once, in their code's most severe group.
        dropped = left.pop(code, 0)
        groups.append(Group(SEVERITIES[rank], code, meaning_of(outcome, code), found[rank, code], dropped))
    return groups
