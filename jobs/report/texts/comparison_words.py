"""The words of two comparisons: of releases and settings on one copy, and of copies of one log.

Names come as they are: escape the result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from jobs.report.texts.text import printable
from schemas.outcome import Outcome
from schemas.replicas import LOGS_APART, Group, Pair, Rejoining, Relation, TableAhead
from schemas.rows import NOTED, TAKEN, Comparison, Start
from store_io.base.wording import bytes_text, count_text, names_text, seen
from store_io.broker.releases import KNOWN_RELEASES, known_release, parse_known
from store_io.outcome.safety import never_joins
from store_io.wording.refusals import refusal_sentence
from store_io.wording.steps import EMPTIED

WITHOUT_CHECKSUMS = "messages whose body fails its checksum stay in the log, and consumers get them"
_NAMES = 3  # of topics and groups in a sentence
_OTHER_HAS = {
    "missing": "has no file there",
    "unwritten": "has zeros there",
    "damaged": "is damaged there",
    "filler": "has a filler there",
    "disputed": "has the same message with other bytes",
    "other": "has other messages from there on",
}


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
        """Say whether the start is known to succeed: then it has an end of the log, and deletes files."""
        return is_judged(self.row) and bool(self.row.starts)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None if the loss is not known: the code would look like an answer."""
        return self.row.exit_code if is_judged(self.row) else None


def release_lines(compared: Comparison) -> list[ComparedLine]:
    """Return the releases, oldest first."""
    return [
        ComparedLine(span_of(rows), rows[0], _note(rows[0]) or _rules_of(rows[0]), rows[0].release in compared.least)
        for rows in _neighbours(compared.releases, lambda row: (row.result, row.log_end, bool(row.doubt), _rules_of(row)))
    ]


def _rules_of(row: Start) -> str:
    """Say by whose rules a release is judged that is not known; "" of any other."""
    known = known_release(row.release)
    return "" if known == row.release else f"not known: by the rules of {known}"


def setting_lines(compared: Comparison) -> list[ComparedLine]:
    """Return the settings that change something."""
    lines = []
    for row in compared.settings:
        note = _note(row) or (WITHOUT_CHECKSUMS if (row.setting, row.value) == ("checkCRCOnRecover", False) else "")
        lines.append(ComparedLine(f"{row.setting}={'true' if row.value else 'false'}", row, note))
    return lines


def _neighbours(rows: Sequence[Start], same: Callable[[Start], Hashable]) -> list[list[Start]]:
    """Return the rows by release, oldest first; neighbours among all known releases for which `same` is equal are together."""
    groups: list[list[Start]] = []
    for row in sorted(rows, key=lambda row: parse_known(row.release)):
        last = groups[-1][-1] if groups else None
        if last is not None and same(last) == same(row) and _follows(last.release, row.release):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _follows(before: str, release: str) -> bool:
    """Say whether no known release is between these two."""
    return not any(parse_known(before) < parse_known(known) < parse_known(release) for known in KNOWN_RELEASES)


def span_of(rows: Sequence[Start]) -> str:
    """Return the releases of neighbouring rows."""
    first, last = rows[0].release, rows[-1].release
    return first if first == last else f"{first} to {last}" if len(rows) > 2 else f"{first}, {last}"


def is_judged(row: Start) -> bool:
    """Say whether it is known what this start does, without a doubt."""
    return row.known and not row.doubt


def lost_text(row: Start) -> str:
    """Return the words on a start's loss; "not known" if nobody knows, or the number is in doubt."""
    if not is_judged(row):
        return "not known"
    if not row.starts:
        return "does not start"
    timers = f" + {count_text(row.timers_lost, 'timer')}" if row.timers_lost else ""
    return f"{row.lost_messages or 0:,}{timers}"


def least_text(outcome: Outcome, compared: Comparison) -> str:
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
    if any(premise.kind not in (TAKEN, NOTED) for premise in outcome.assumed.premises) or not outcome.complete:
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


def choice_words(group: Group) -> str:
    """Return a sentence on the copy to start as master."""
    best = group.copy(group.best or "")
    if best is None:
        return group.why
    choice = f"each would lose messages as master, {best.store} the fewest" if best.loses else f"start {best.store} as master"
    shut = [copy.store for copy in group.copies if never_joins(group, copy.store, best.store)]
    if shut:
        them = "it" if len(shut) == 1 else "them"
        as_is = "it is" if len(shut) == 1 else "they are"
        choice += f"; {names_text(shut)} can never join it as {as_is}: empty {them} first ({EMPTIED}), then let {them} copy"
    return f"{choice}: {group.why}"


def pair_words(pair: Pair) -> str:
    """Return how two copies differ, in a sentence."""
    both = f"{pair.left} and {pair.right}"
    match pair.relation:
        case Relation.EQUAL if pair.same_until is None:
            return f"{both} are equal: neither has a message that the other lacks"
        case Relation.APART:
            return f"{both} have no physical offset in common"
        case Relation.UNKNOWN:
            return f"{both} could not be compared completely"
    text, first = f"{both} are equal up to physical offset {pair.same_until:,}", pair.first_difference
    if pair.relation == Relation.BEHIND:
        return f"{text}, where one of them ends"
    if pair.relation == Relation.EQUAL or first is None:
        return text
    place = f"{seen(first.topic)}/{first.queue_id} at queue offset {first.queue_offset:,}"
    where = f"in {first.field} of the message of {place}" if first.field else f"at the message of {place}"
    return f"{text}: {where}; {first.other} {_OTHER_HAS.get(first.other_has, 'differs there')}"


def rejoin_words(pair: Pair) -> Iterator[str]:
    """Yield a sentence for each of two replicas in controller mode: its acts as slave of the other."""
    for row in pair.rejoin or ():
        text = f"as slave of {row.master}, {row.slave} would "
        match row.outcome:
            case Rejoining.CUTS:
                text += f"cut its log at physical offset {row.consistent_point:,}, as the epochs say, and lose"
                text += f" {count_text(row.messages, 'message')} that {row.master} does not hold" if row.messages else " nothing"
            case Rejoining.COPIES:
                text += "cut nothing and copy what it lacks"
            case Rejoining.KEEPS:
                text += "keep its own log, as it has no epochs, whatever the master's log holds"
            case Rejoining.REFUSED:
                text += "neither cut nor copy: the epochs lead to no place between two of its records. Empty it first"
        if row.differs_before and row.outcome in (Rejoining.CUTS, Rejoining.COPIES):
            text += "; both differ before that place, and this stays"
        yield text


def lack_words(group: Group, store: str) -> Iterator[str]:
    """Yield a sentence for each other copy that has messages which this one lacks."""
    for lack in group.lacked_by(store):
        if lack.messages:
            queues = count_text(len(lack.by_queue), "queue")
            said = f"{lack.holder} holds {count_text(lack.messages, 'message')} of {queues} that {store} lacks"
            first = next((part.start for part in lack.ranges), None)
            yield said + (f" ({bytes_text(lack.bytes)}, from physical offset {first:,} on)" if first is not None else "")


def config_words(group: Group, store: str = "") -> Iterator[str]:
    """Say of each table of config/ which copy has more of it, a sentence for each. store: only of pairs that it belongs to."""
    for ahead in group.config:
        if store and store not in (ahead.store, ahead.holder):
            continue
        own, holder = ahead.store, ahead.holder
        if not ahead.of_offsets:
            names = ", ".join(seen(str(entry.group if entry.topic is None else entry.topic)) for entry in ahead.entries[:_NAMES])
            more = f" and {ahead.lacks - _NAMES:,} more" if ahead.lacks > _NAMES else ""
            what = count_text(ahead.lacks, ahead.table.removesuffix("s"))
            yield f"{holder} has {what} in {ahead.holder_file} that {own} lacks: {names}{more}"
            continue
        noun = "consumer offset" if ahead.table == "offsets" else "delay level's offset"
        parts = []
        if ahead.behind:
            be = "is" if ahead.behind == 1 else "are"
            by = f", by {count_text(ahead.messages, 'message')} in all" if ahead.behind > 1 else f", by {ahead.messages:,}"
            parts.append(f"{count_text(ahead.behind, noun)} of {own} {be} smaller than those of {holder}{by}")
        if ahead.lacks:
            parts.append(f"{holder} has {count_text(ahead.lacks, noun)} that {own} lacks")
        yield "; ".join([*parts, _which_offsets(group, ahead)])


def _which_offsets(group: Group, ahead: TableAhead) -> str:
    """Say which offsets of two copies to take, a clause."""
    own, holder = group.copy(ahead.store), ahead.holder
    if group.relation(ahead.store, holder) in LOGS_APART:
        return "their logs differ, so neither table fits the other log as it is"
    if any((other.holder, other.table) == (ahead.store, ahead.table) for other in group.ahead_of(holder)):
        return f"{ahead.store} in turn has others that are greater or that {holder} lacks, so take the greatest of each from both"
    if own is not None and own.lacks:
        return f"{holder} has the greater ones, and the longer log to which they belong"
    whose = f"take {_holders_table(ahead)} before {ahead.store} is started as master"
    return f"{holder} has the greater ones: {whose}; a slave takes smaller ones of its master over"


def _holders_table(ahead: TableAhead) -> str:
    """Name what to take from the copy that has more of a table: the file, or what a database shows."""
    name = f"{ahead.holder_file} of {ahead.holder}"
    return f"what {name} shows" if ahead.holder_file.endswith("/") else name
