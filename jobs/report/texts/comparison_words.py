"""What releases and settings would make of one copy, in words and in the lines of a short table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from jobs.report.texts.text import count_text, printable
from schemas.rows import AuditOutcome, Comparison, Start

WITHOUT_CHECKSUMS = "messages whose body fails its checksum stay in the log, and consumers get them"


@dataclass(frozen=True)
class ComparedLine:
    """A line of the table: neighbouring releases that do the same are one. note: why there are no numbers, or why they may not
    hold; else "". least: it loses least."""

    what: str
    row: Start
    note: str
    least: bool = False


def release_lines(compared: Comparison) -> list[ComparedLine]:
    """The releases, oldest first."""
    lines = []
    for _, same in groupby(compared.releases, lambda row: (row.result, bool(row.doubt))):
        rows = list(same)
        lines.append(ComparedLine(span_of(rows), rows[0], _note(rows[0]), rows[0].release in compared.least))
    return lines


def setting_lines(compared: Comparison) -> list[ComparedLine]:
    """The settings that change something."""
    lines = []
    for row in compared.settings:
        note = _note(row) or (WITHOUT_CHECKSUMS if (row.setting, row.value) == ("checkCRCOnRecover", False) else "")
        lines.append(ComparedLine(f"{row.setting}={'true' if row.value else 'false'}", row, note))
    return lines


def span_of(rows: Sequence[Start]) -> str:
    """The releases of neighbouring rows."""
    first, last = rows[0].release, rows[-1].release
    return first if first == last else f"{first} to {last}" if len(rows) > 2 else f"{first}, {last}"


def lost_text(row: Start) -> str:
    """What a start loses; "not known" where nobody knows, or the number is in doubt."""
    if not row.known or row.doubt:
        return "not known"
    if not row.starts:
        return "does not start"
    timers = f" + {count_text(row.timers_lost, 'timer')}" if row.timers_lost else ""
    return f"{row.lost_messages or 0:,}{timers}"


def least_text(outcome: AuditOutcome, compared: Comparison) -> str:
    """Which release loses least, in a sentence, and whether that is enough to start it."""
    if not compared.least:
        return "It is not known of any of these releases that it starts on this copy."
    rows = [row for row in compared.releases if row.release in compared.least]
    groups: list[list[Start]] = []
    for number, row in enumerate(compared.releases):
        if row.release in compared.least:
            if number and groups and compared.releases[number - 1] is groups[-1][-1]:
                groups[-1].append(row)
            else:
                groups.append([row])
    names = ", ".join(span_of(group) for group in groups)
    one, row = len(rows) == 1, rows[0]
    lost = [count_text(row.lost_messages or 0, "message")]
    lost += [f"{count_text(row.timers_lost, 'timer message')} never delivered"] if row.timers_lost else []
    all_known = len(rows) == len(compared.releases)
    words = "all lose the same" if all_known and not one else "loses least" if one else "lose least"
    text = f"RocketMQ {names} {words}: {' and '.join(lost)}."
    if outcome.premises or not outcome.complete:
        return f"{text} That does not make a start safe: something was assumed, or not read."
    return text


def _note(row: Start) -> str:
    if not row.known:
        return printable(row.why)
    if row.doubt:
        own = "it would not start" if not row.starts else f"{count_text(row.lost_messages or 0, 'message')} lost"
        return f"by its rules {own}; {printable(row.doubt)}"
    return printable(row.refusal) if not row.starts and row.refusal else ""
