"""The comparison of releases and settings on one copy, in words and in the lines of a short table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from jobs.report.texts.text import count_text, printable
from schemas.rows import NOTED, TAKEN, AuditOutcome, Comparison, Start
from store_io.base.wording import names_text
from store_io.broker.releases import KNOWN_RELEASES, known_release, parse_known
from store_io.wording.refusals import refusal_sentence

WITHOUT_CHECKSUMS = "messages whose body fails its checksum stay in the log, and consumers get them"


@dataclass(frozen=True)
class ComparedLine:
    """A line of the table: neighbouring releases that do the same are one. note: why there are no numbers, or why they may not
    hold; else "". least: it loses least."""

    what: str
    row: Start
    note: str
    least: bool = False

    @property
    def ends(self) -> bool:
        """Whether it has an end of the log, and files that it deletes."""
        return is_judged(self.row) and bool(self.row.starts)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None if the loss is not known: the code would look like an answer."""
        return self.row.exit_code if is_judged(self.row) else None


def release_lines(compared: Comparison) -> list[ComparedLine]:
    """The releases, oldest first."""
    return [
        ComparedLine(span_of(rows), rows[0], _note(rows[0]) or _rules_of(rows[0]), rows[0].release in compared.least)
        for rows in _neighbours(compared.releases, lambda row: (row.result, row.log_end, bool(row.doubt), _rules_of(row)))
    ]


def _rules_of(row: Start) -> str:
    """By whose rules a release is judged that is not known; "" of any other."""
    known = known_release(row.release)
    return "" if known == row.release else f"not known: by the rules of {known}"


def setting_lines(compared: Comparison) -> list[ComparedLine]:
    """The settings that change something."""
    lines = []
    for row in compared.settings:
        note = _note(row) or (WITHOUT_CHECKSUMS if (row.setting, row.value) == ("checkCRCOnRecover", False) else "")
        lines.append(ComparedLine(f"{row.setting}={'true' if row.value else 'false'}", row, note))
    return lines


def _neighbours(rows: Sequence[Start], same: Callable[[Start], Hashable]) -> list[list[Start]]:
    """The rows by release, oldest first; neighbours among all known releases for which `same` is equal are together."""
    groups: list[list[Start]] = []
    for row in sorted(rows, key=lambda row: parse_known(row.release)):
        last = groups[-1][-1] if groups else None
        if last is not None and same(last) == same(row) and _follows(last.release, row.release):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _follows(before: str, release: str) -> bool:
    """Whether no known release is between these two."""
    return not any(parse_known(before) < parse_known(known) < parse_known(release) for known in KNOWN_RELEASES)


def span_of(rows: Sequence[Start]) -> str:
    """The releases of neighbouring rows."""
    first, last = rows[0].release, rows[-1].release
    return first if first == last else f"{first} to {last}" if len(rows) > 2 else f"{first}, {last}"


def is_judged(row: Start) -> bool:
    """Whether it is known what this start does, without a doubt."""
    return row.known and not row.doubt


def lost_text(row: Start) -> str:
    """Return the words on a start's loss; "not known" if nobody knows, or the number is in doubt."""
    if not is_judged(row):
        return "not known"
    if not row.starts:
        return "does not start"
    timers = f" + {count_text(row.timers_lost, 'timer')}" if row.timers_lost else ""
    return f"{row.lost_messages or 0:,}{timers}"


def least_text(outcome: AuditOutcome, compared: Comparison) -> str:
    """Return a sentence on the release that loses least, and whether that is enough to start it."""
    if not compared.least:
        return "It is not known of any of these releases that it starts on this copy."
    rows = [row for row in compared.releases if row.release in compared.least]
    judged = [row for row in compared.releases if is_judged(row)]
    names = ", ".join(map(span_of, _neighbours(rows, lambda _: None)))
    lost = [count_text(rows[0].lost_messages or 0, "message")]
    lost += [f"{count_text(rows[0].timers_lost, 'timer message')} never delivered"] if rows[0].timers_lost else []
    every, loses = len(judged) == len(compared.releases), " and ".join(lost)
    if len(rows) == len(judged) and not every:
        alone = "is the only one that can be judged: it" if len(rows) == 1 else "are the only ones that can be judged: each"
        text = f"RocketMQ {names} {alone} loses {loses}."
    elif len(rows) == len(judged) > 1:
        text = f"RocketMQ {names} all lose the same: {loses}."
    else:
        of_those = "" if every else " of those that can be judged"
        text = f"RocketMQ {names} {'loses' if len(rows) == 1 else 'lose'} least{of_those}: {loses}."
    why = []
    if any(premise.kind not in (TAKEN, NOTED) for premise in outcome.premises) or not outcome.complete:
        why.append("something was assumed, or not read")
    if unjudged := list(dict.fromkeys(name for row in rows for name in row.not_judged)):
        why.append(f"not judged: {printable(names_text(unjudged))}")
    return f"{text} That does not make a start safe: {'; '.join(why)}." if why else text


def _note(row: Start) -> str:
    if not row.known:
        return printable(row.why)
    if row.doubt:
        own = "it would not start" if not row.starts else f"{count_text(row.lost_messages or 0, 'message')} lost"
        return f"by its rules {own}; {printable(row.doubt)}"
    return printable(str(refusal_sentence(row.refusal))) if row.refusal is not None else ""
