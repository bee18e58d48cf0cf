"""The rows of the comparison, and which releases lose least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from schemas.advice import Gap
from schemas.outcome import Outcome
from schemas.rows import Comparison, Start
from store_io.audit.compared.variants import Variant
from store_io.base.exit_codes import of_store
from store_io.broker.releases import parse_known
from store_io.model.written_by import WrittenBy
from store_io.wording.gaps import gap_text


@dataclass(frozen=True)
class Answer:
    """The answer of one audit, kept as long as nothing else of the audit is.

    counts: findings by severity.
    """

    start: Start
    counts: Mapping[str, int]
    gaps: Sequence[Gap]

    def with_more(self, counts: Mapping[str, int], gaps: Sequence[Gap]) -> Start:
        """Return the row with findings that others have made about the copy since.

        counts: these findings by severity.
        """
        together = {key: self.counts.get(key, 0) + counts.get(key, 0) for key in {*self.counts, *counts}}
        complete = self.start.complete and not any(gap.exit_code for gap in gaps)
        return replace(self.start, complete=complete, exit_code=of_store(together, [*self.gaps, *gaps]))


def answer_of(outcome: Outcome, variant: Variant) -> Answer:
    """Return the row of an outcome."""
    effect, started = outcome.effect, outcome.started
    key, value = variant.changed or ("", None)
    row = Start(
        variant.release, effect is not None, outcome.exit_code, outcome.complete, setting=key, value=value,
        why="" if effect is not None else (outcome.incomplete or ["not everything that a start reads was read"])[0],
        not_judged=tuple(outcome.covered.not_judged),
    )  # fmt: skip
    if effect is not None:
        row = replace(row, starts=started is not None, refusal=effect.refusal)
    if effect is not None and started is not None:
        row = replace(
            row,
            truncate_at=started.truncate_at,
            log_end=started.log_end,
            lost_messages=started.lost.messages if started.lost is not None else 0,
            lost_bytes=started.lost.bytes if started.lost is not None else 0,
            deleted_files=len(started.deleted_files),
            timers_lost=effect.timers.lost.messages if effect.timers is not None and effect.timers.lost is not None else 0,
        )
    return Answer(row, dict(outcome.found.counts), outcome.gaps)


def not_known(variant: Variant, gap: Gap) -> Answer:
    """Return the row of a variant that cannot be tried."""
    key, value = variant.changed or ("", None)
    return Answer(Start(variant.release, False, gap.exit_code, False, gap_text(gap), setting=key, value=value), {}, [gap])


def older_than_its_writer(release: str, written: WrittenBy) -> str:
    """Say why the answer of a release older than the copy's writer is not known, else ""."""
    if not written.surely_since or parse_known(release) >= parse_known(written.surely_since):
        return ""
    traces = ", ".join(written.newer[:3])
    return (
        f"a broker of {written.surely_since} or newer wrote this copy ({traces}), and what an older one makes of it is not known"
    )


def comparison(releases: Sequence[Start], settings: Sequence[Start], own: Start) -> Comparison:
    """Return the rows, with those settings alone that change something. own: the row of the plan's own release."""
    changing = tuple(row for row in settings if row.result != own.result)
    unchanged = tuple(row.setting for row in settings if row.result == own.result)
    return Comparison(tuple(releases), changing, unchanged, least_loss(releases))


def least_loss(rows: Sequence[Start]) -> tuple[str, ...]:
    """Return the releases that lose the fewest messages, then the fewest timer messages that are never delivered.

    () if none is known to start, or all of those are in doubt.
    """
    sure = [row for row in rows if row.known and row.starts and not row.doubt]
    least = min((_loss(row) for row in sure), default=None)
    return tuple(row.release for row in sure if _loss(row) == least)


def _loss(row: Start) -> tuple[int, int]:
    return row.lost_messages or 0, row.timers_lost or 0
