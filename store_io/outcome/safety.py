"""Whether a copy is safe to start: the one decision. Pages and terminals only word it; table `runs` and result.json keep it.

It follows from an outcome alone: what a start does, its loss, its findings' severities, its group, and what it assumes.

A slave whose log ends earlier than its group's is normal, and no finding. But as master it loses what it lacks, so it is never
called safe to start. Nor is a copy that has diverged from another: each holds messages at the same physical offsets, and
whichever of them becomes master, the other's are lost. Nor is one of two copies with two forms of a message, while nothing shows
which is right. No start drops any of them from its own copy, so the exit code does not show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from schemas.advice import Advice, Step
from schemas.finding_codes import BY_A_START, CATALOGUE, STARTS_DISPATCH, Code, Part
from schemas.layouts.store_names import COMMITLOG
from schemas.outcome import Outcome
from schemas.replicas import Group, Rejoining, Relation
from schemas.rows import LOSS, NOTE, REBUILDABLE, Finding
from schemas.start_effect import Election
from store_io.base.wording import count_text, names_text, seen
from store_io.broker.settings.config_rules import TABLE_NOUNS


@dataclass(frozen=True)
class AsMaster:
    """A copy that lacks messages of its group.

    lacks: how many.
    holder, holds: the other copy that has most of these, and how many.
    diverged_from: the copy with other messages at the same offsets, "" without one.
    diverged_at: the physical offset of the first message that differs, None if it is not known.
    other_lacks: messages of this copy that the other lacks.
    undecided: messages of which the two hold two forms, and nothing shows which is right.
    best: no copy of the group would lose fewer.
    earlier: this copy is a clean earlier moment of the holder.
    refused: as slave of the holder it would never copy anything, by the epochs of both.
    """

    lacks: int
    holder: str
    holds: int
    diverged_from: str = ""
    diverged_at: int | None = None
    other_lacks: int = 0
    best: bool = False
    undecided: int = 0
    earlier: bool = False
    refused: bool = False

    def headline(self) -> str:
        """Return the answer, short."""
        if self.earlier:
            return self._start_the_holder()
        yet = " yet" if self.best else ""
        if self.undecided:
            return f"Do not start this copy as master yet: {self._two_forms()}"
        if self.diverged_from:
            return f"Do not start this copy as master{yet}: it and {self.diverged_from} each hold messages that the other lacks"
        though = ", though no other copy would lose fewer" if self.best else ""
        never = f", and can never join {self.holder} as it is" if self.refused else ""
        return f"Do not start this copy as master{yet}: it lacks {count_text(self.lacks, 'message')} of its group{though}{never}"

    def _start_the_holder(self) -> str:
        later = count_text(self.lacks, "later message")
        return f"Start {self.holder}, which holds {later}, as master: this copy is an earlier moment of it"

    def _two_forms(self) -> str:
        messages = count_text(self.undecided, "message")
        return f"it and {self.diverged_from} differ in {messages}, and nothing shows which copy is right"

    def clause(self) -> str:
        """Say what other copies hold that this one lacks."""
        if self.undecided:
            more = f"; other copies hold {count_text(self.lacks, 'message')} that this copy lacks" if self.lacks else ""
            return f"{self._two_forms()}{more}"
        lacks = count_text(self.lacks, "message")
        if self.holds == self.lacks:
            held = f"{self.holder} holds {lacks} that this copy lacks"
        else:
            held = f"other copies hold {lacks} that this copy lacks, {self.holder} {self.holds:,} of them"
        if self.diverged_from:
            since = f" from physical offset {self.diverged_at} on" if self.diverged_at is not None else ""
            held += (
                f"; it and {self.diverged_from} differ{since}, where this copy holds {count_text(self.other_lacks, 'message')}"
                f" that {self.diverged_from} lacks"
            )
        return (
            f"{held}; as slave of {self.holder} it would never copy anything, unless it is emptied first"
            if self.refused
            else held
        )


def as_master(group: Group, store: str) -> AsMaster | None:
    """Return the facts on messages that the copy lacks; None if it lacks nothing that another copy holds."""
    copy = group.copy(store)
    if copy is None or not (copy.lacks or copy.undecided):
        return None
    own = sorted(group.lacked_by(store), key=lambda lack: (-lack.messages, lack.holder))
    holder, holds = (own[0].holder, own[0].messages) if own else ("", 0)
    best = group.best == store
    for pair in group.pairs_of(store):
        if pair.relation == Relation.DIVERGED:
            other, first = pair.other(store), pair.first_difference
            theirs = sum(lack.messages for lack in group.lacked_by(other, store))
            return AsMaster(copy.lacks, holder or other, holds, other, first.message if first is not None else None, theirs, best)
    if copy.undecided:
        disputed = (pair.other(store) for pair in group.pairs_of(store) if pair.relation == Relation.DISPUTED)
        return AsMaster(copy.lacks, holder, holds, next(disputed, "another copy"), best=best, undecided=copy.undecided)
    earlier, refused = holds == copy.lacks and is_earlier(group, store, holder), never_joins(group, store, holder)
    return AsMaster(copy.lacks, holder, holds, best=best, earlier=earlier, refused=refused)


def never_joins(group: Group, store: str, master: str) -> bool:
    """Say whether this copy, as slave of the master, would neither cut nor copy, without end (controller.md 5)."""
    pair = group.pair(store, master)
    rows = pair.rejoin if pair is not None else None
    return any((row.slave, row.master, row.outcome) == (store, master, Rejoining.REFUSED) for row in rows or ())


def is_earlier(group: Group, store: str, holder: str) -> bool:
    """Say whether this copy is a clean earlier moment of the other: all that it holds, messages and tables, the other has too.

    A copy that could never join the other is none: it does not become the other by waiting. Nor is one if the other does not
    start, or if its start would cut messages: nobody should start that one in its place.
    """
    own, other, relation = group.copy(store), group.copy(holder), group.relation(store, holder)
    if other is None or other.cut != 0:
        return False
    empty = own is not None and own.start is None
    if not (relation == Relation.BEHIND or relation == Relation.APART and empty) or never_joins(group, store, holder):
        return False
    lacks = group.lacked_by(holder, store) or any(table.holder == store for table in group.ahead_of(holder))
    return any(lack.messages for lack in group.lacked_by(store, holder)) and not lacks


class Safety(StrEnum):
    """The meaning of a start of a copy by itself, or as master: the most dangerous first."""

    STOP = "stop"
    GONE = "gone"
    UNKNOWN = "unknown"
    REFUSES = "refuses"
    DIVERGED = "diverged"
    LACKS = "lacks"
    CARE = "care"
    REBUILD = "rebuild"
    EMPTY = "empty"
    SAFE = "safe"

    @property
    def danger(self) -> int:
        """Return the level's rank: a larger rank is more dangerous."""
        return -tuple(Safety).index(self)


class Start(Enum):
    """The effect of a start of the copy by itself: the first of these that holds."""

    NOT_KNOWN_OF_DAMAGED = auto()  # the log is damaged, and what the release would do is not known
    NOT_KNOWN = auto()
    AGAINST_SETTINGS = auto()  # a setting keeps it, or consumers, from messages of the copy
    REFUSES = auto()
    CUTS = auto()  # valid messages, or it hangs at a gap
    LEAVES_UNSERVED = auto()  # valid messages, without a queue entry, or timer messages that are never delivered
    LOSES_CONFIG = auto()  # topics, groups or offsets that a form of their table in the copy shows
    NO_MESSAGE_LEFT = auto()  # damage, and no valid message
    MISSING = auto()  # messages that other files name; the others stay
    DAMAGED = auto()  # already; the start loses no valid message
    NOT_READ = auto()  # nothing of what was read is lost
    EMPTY = auto()
    CONFIG_LOST = auto()  # tables of config/ are lost, damaged or older; no message is
    REBUILD = auto()
    SAFE = auto()


_SAFETY_OF = {
    Start.NOT_KNOWN_OF_DAMAGED: Safety.STOP,
    Start.NOT_KNOWN: Safety.UNKNOWN,
    Start.AGAINST_SETTINGS: Safety.STOP,
    Start.REFUSES: Safety.REFUSES,
    Start.CUTS: Safety.STOP,
    Start.LEAVES_UNSERVED: Safety.STOP,
    Start.LOSES_CONFIG: Safety.STOP,
    Start.NO_MESSAGE_LEFT: Safety.STOP,
    Start.MISSING: Safety.CARE,
    Start.DAMAGED: Safety.CARE,
    Start.NOT_READ: Safety.UNKNOWN,
    Start.EMPTY: Safety.EMPTY,
    Start.CONFIG_LOST: Safety.REBUILD,
    Start.REBUILD: Safety.REBUILD,
    Start.SAFE: Safety.SAFE,
}
_CONFIG_CLAUSES = {
    Code.CONFIG_NOT_COPIED: "a start knows no topics, groups and offsets: {}/ is not in this copy",
    Code.CONFIG_TABLE_LOST: "a start begins without what was in {}",
    Code.CONFIG_BACKUP_TAKEN: "a start takes an older state of {} from its .bak",
    Code.CONFIG_OLDER: "{} is older than its own .bak",
    Code.CONSUMER_OFFSETS_EMPTY: "no group has an offset in {}",
    Code.CONFIG_DAMAGED: "{} does not hold what a broker writes",
}
AT_ODDS = (Code.MESSAGES_NOT_READ, Code.IDENTITY_DIFFERS, Code.COMPACTED_TOPIC_UNSERVED)
# What these say holds under every release.
OF_ANY_RELEASE = (Safety.GONE, Safety.DIVERGED, Safety.LACKS, Safety.EMPTY)


def is_unsafe(safety: str) -> bool:
    """Say whether a store with this answer counts as not safe to start, on every page and in the metrics."""
    return safety in (Safety.STOP, Safety.GONE, Safety.REFUSES)


@dataclass(frozen=True)
class Decision:
    """The answer to whether a copy may be started, with its reasons.

    safety: the answer.
    start, alone: the outcome of a start, and the answer, for the copy by itself.
    lacking: the messages that its group holds and it lacks.
    in_group: the graver of `alone` and `lacking`.
    other_release: the release was assumed and cannot have written the copy, so that the answer can only warn.
    """

    safety: Safety
    start: Start
    alone: Safety
    lacking: AsMaster | None
    in_group: Safety
    other_release: bool


def decide(outcome: Outcome) -> Decision:
    """Return how safe a start of the copy is, and what decides it."""
    start = start_of(outcome)
    alone = _SAFETY_OF[start]
    if (
        start != Start.AGAINST_SETTINGS
        and is_emptied(outcome)
        and (not outcome.holds.messages or start in (Start.MISSING, Start.DAMAGED, Start.LOSES_CONFIG))
    ):
        alone = Safety.GONE
    lacking = as_master(outcome.replicas, outcome.name)
    in_group = alone
    if lacking is not None:
        in_group = max(alone, Safety.DIVERGED if lacking.diverged_from else Safety.LACKS, key=lambda safety: safety.danger)
    other_release = bool(outcome.assumed.written_by) and outcome.effect is not None and in_group not in OF_ANY_RELEASE
    safety = Safety.UNKNOWN if other_release and in_group != Safety.STOP else in_group
    return Decision(safety, start, alone, lacking, in_group, other_release)


def election_of(outcome: Outcome) -> Election | None:
    """Return the election as master in controller mode; None without one."""
    controller = outcome.started.controller if outcome.started is not None else None
    return controller.election if controller is not None else None


def election_hangs(outcome: Outcome) -> bool:
    """Say whether what never ends is the election in controller mode. If start() itself never ends, there is no election."""
    return bool(counted(outcome, Code.BROKER_HANGS)) and election_of(outcome) is not None


def setting_at_fault(outcome: Outcome) -> Advice | None:
    """Return the next step if a line of broker.conf stops the start, which no repair changes; else None."""
    return outcome.refusal.correct_line if outcome.refusal is not None else None


def setting_that_cuts(outcome: Outcome) -> str:
    """Return the setting for which a start seems to cut sound messages that lack the property it asks for, or ""."""
    steps = (f.next for f in outcome.found.findings if f.code == Code.BROKER_DROPS_MESSAGES and f.has_step(Step.SWITCH_OFF))
    return next((str(step.values[0]) for step in steps if step is not None), "")


def has_other_losses(outcome: Outcome) -> bool:
    """Say whether more is wrong than that a start cuts the log."""
    return bool(outcome.holds.damaged_extents) or any(
        finding.severity == LOSS and finding.code != Code.BROKER_DROPS_MESSAGES for finding in outcome.found.findings
    )


def start_of(outcome: Outcome) -> Start:
    """Return the effect of a start on the copy by itself. Facts that an earlier audit saw are left out here."""
    return Start.AGAINST_SETTINGS if settings_at_odds(outcome) else start_beside_settings(outcome)


def start_beside_settings(outcome: Outcome) -> Start:
    """Return the effect of a start, whatever settings are at odds with the copy."""
    damaged = is_damaged(outcome)
    if outcome.effect is None:
        return Start.NOT_KNOWN_OF_DAMAGED if damaged or entries_lost(outcome) else Start.NOT_KNOWN
    if outcome.started is None:
        return Start.REFUSES
    if counted(outcome, Code.BROKER_HANGS) or counted(outcome, Code.BROKER_DROPS_MESSAGES):
        return Start.CUTS
    if counted(outcome, Code.BROKER_SKIPS_MESSAGES) or outcome.loss.messages or timers_lost(outcome):
        return Start.LEAVES_UNSERVED
    if entries_lost(outcome):
        return Start.LOSES_CONFIG
    if damaged:
        if not outcome.holds.messages:
            return Start.NO_MESSAGE_LEFT
        missing = any(f.severity == LOSS and f.code in (Code.SEGMENT_MISSING, Code.MESSAGE_LOST) for f in outcome.found.findings)
        return Start.MISSING if missing else Start.DAMAGED
    if outcome.incomplete:
        return Start.NOT_READ
    if counted(outcome, Code.COMMITLOG_EMPTY):
        return Start.EMPTY
    if config_losses(outcome) or tables_behind(outcome):
        return Start.CONFIG_LOST
    return Start.REBUILD if differs_alone(outcome) else Start.SAFE


def differs_alone(outcome: Outcome) -> bool:
    """Say whether something in the copy itself differs that is no loss. What only another copy has is none of it."""
    elsewhere = sum(1 for f in outcome.found.findings if f.code == Code.COPY_IS_BEHIND)
    return outcome.found.counts.get(REBUILDABLE, 0) > elsewhere


def tables_behind(outcome: Outcome) -> list[str]:
    """Return a clause for each table of config/ that is newer in another copy of the group."""
    return [f.message for f in outcome.found.findings if f.code == Code.COPY_IS_BEHIND and f.file != COMMITLOG]


def changed_alone(outcome: Outcome) -> bool:
    """Say whether the only losses are bytes that changed under the same modification time."""
    return {f.code for f in outcome.found.findings if f.severity == LOSS} == {Code.SEGMENT_CHANGED}


def is_damaged(outcome: Outcome) -> bool:
    """Say whether something is lost besides a refused start, entries of config/ and settings at odds with the copy."""
    others = len(config_entries_lost(outcome)) + len(settings_at_odds(outcome))
    return outcome.found.counts.get(LOSS, 0) > counted(outcome, Code.BROKER_REFUSES) + others


def settings_at_odds(outcome: Outcome) -> list[Finding]:
    """Return the findings on settings with which the copy must not be started; those on the most messages first."""
    found = [f for f in outcome.found.findings if f.code in AT_ODDS and f.severity == LOSS]
    return sorted(found, key=lambda f: (-f.count, f.file))


def config_entries_lost(outcome: Outcome) -> list[Finding]:
    """Return the findings on entries of config/ that the copy shows and a start does not hold."""
    return [
        f for f in outcome.found.findings if f.severity == LOSS and f.code in (Code.CONFIG_TABLE_LOST, Code.TOPIC_NOT_IN_TABLE)
    ]


def entries_lost(outcome: Outcome) -> str:
    """Return the numbers of topics, groups and offsets that the copy shows and a start does not hold. "" without any."""
    found, more = dict.fromkeys(TABLE_NOUNS.values(), 0), False
    for f in config_entries_lost(outcome):
        if f.code == Code.CONFIG_TABLE_LOST:
            found[TABLE_NOUNS[f.file.removesuffix(".bak")]] += f.count
        else:  # its count is that of messages
            found[TABLE_NOUNS[f.file]] += f.topic is not None
            more = more or f.topic is None
    words = [count_text(number, noun) for noun, number in found.items() if number]
    return ("over " if more else "") + " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def entries_lost_clauses(outcome: Outcome) -> list[str]:
    """Return a clause for each table of which the copy shows more than a start holds, and one for all topics with messages."""
    tables = [f.message for f in config_entries_lost(outcome) if f.code == Code.CONFIG_TABLE_LOST]
    return [*tables, *topics_lost(outcome)]


def topics_lost(outcome: Outcome) -> Iterator[str]:
    """Yield a clause on topics with messages that a table lacks which a start takes; none without any."""
    return _topics_clause([f for f in config_entries_lost(outcome) if f.code == Code.TOPIC_NOT_IN_TABLE])


def _topics_clause(topics: Sequence[Finding]) -> Iterator[str]:
    """Yield a clause on topics that clients cannot find; none without any."""
    if topics:
        number = sum(f.count for f in topics)
        there = f"{count_text(number, 'message')} {'is' if number == 1 else 'are'} there"
        named = names_text(["other topics" if f.topic is None else seen(f.topic) for f in topics])
        yield f"clients cannot find {named}, although {there}"


def left_to_a_start(outcome: Outcome) -> bool:
    """Say whether something differs that is no loss, and the next step of all of it is a start."""
    steps = {finding.next for finding in outcome.found.findings if finding.severity == REBUILDABLE}
    return bool(steps) and steps <= set(BY_A_START) and not outcome.found.counts.get(LOSS)


def mended_by_a_start(outcome: Outcome) -> bool:
    """Say whether a start even puts all of it right: entries of queues and of the index, which are missing."""
    steps = {finding.next for finding in outcome.found.findings if finding.severity == REBUILDABLE}
    return left_to_a_start(outcome) and steps == {STARTS_DISPATCH} and not index_shrinks(outcome)


def remade_index_files(outcome: Outcome) -> set[str]:
    """Return the index files that a start deletes, to make those of the last segments again."""
    return {step.file for step in outcome.plan.steps if step.action == "rebuild" and step.file.startswith("index/")}


def index_shrinks(outcome: Outcome) -> bool:
    """Say whether a start deletes index files and makes those of earlier messages of the log not again."""
    remade, started = remade_index_files(outcome), outcome.started
    if not remade or started is None or not started.after_dispatch.index:
        return False
    first = min(made.begin_phy_offset for made in started.after_dispatch.index)
    start = max(0, started.min_phy_offset)
    before = (row for row in outcome.rows.index_files if row.get("file") in remade and row.get("entries"))
    return any(max(row.get("begin_phy_offset") or 0, start) < min(first, row["end_phy_offset"]) for row in before)


def config_losses(outcome: Outcome) -> list[str]:
    """Return a clause for each loss in tables of config/; the most severe first. [] if they are as a broker left them."""
    found = [f for f in outcome.found.findings if f.severity == REBUILDABLE and CATALOGUE[f.code].about == Part.CONFIG]
    topics = [f for f in found if f.code == Code.TOPIC_NOT_IN_TABLE]
    again = [f for f in found if f.code == Code.DELAYED_MESSAGES_AGAIN]
    files = {code: sorted({f.file for f in found if f.code == code}) for code in _CONFIG_CLAUSES}
    said = {name for code, names in files.items() if code != Code.CONFIG_DAMAGED for name in names}
    files[Code.CONFIG_DAMAGED] = [name for name in files[Code.CONFIG_DAMAGED] if name.removesuffix(".bak") not in said]
    clauses = [clause.format(names_text(files[code])) for code, clause in _CONFIG_CLAUSES.items() if files[code]]
    clauses = [*_topics_clause(topics), *clauses]
    if again:
        come = count_text(sum(f.count for f in again), "delayed message")
        clauses.append(f"up to {come} of {count_text(len(again), 'level')} are delivered again")
    return clauses


def refused_by_config(outcome: Outcome) -> str:
    """Return the file of config/ at which a start ends, by its own name; "" without one."""
    loads = outcome.effect.config if outcome.effect is not None else None
    return loads.refused_by if loads is not None else ""


def config_absent(outcome: Outcome) -> str:
    """Return what a start needs of config/ and a copy with messages lacks, if no finding says so; else ""."""
    loads, tables = outcome.effect.config if outcome.effect is not None else None, outcome.holds.config
    holds_messages = outcome.holds.messages or counted(outcome, Code.MESSAGES_NOT_READ)
    if tables is None or loads is None or loads.refused_by or not holds_messages:
        return ""
    return "" if entries_lost(outcome) or config_losses(outcome) else tables.absent


def no_config(outcome: Outcome) -> str:
    """Return what is absent of config/ and must be restored before a start, if the start loses no message. Else ""."""
    return config_absent(outcome) if outcome.complete and not outcome.found.counts.get(LOSS) else ""


def config_unknown(outcome: Outcome) -> str:
    """Name what a start does not know without config/, for a sentence; "" if nothing of config/ is absent."""
    absent = config_absent(outcome)
    return absent and ("topics, groups and offsets" if absent.endswith("/") else "topics")


def differs_from_log(outcome: Outcome) -> bool:
    """Say whether something above a note is wrong besides config/ and what only other copies have."""
    besides = (Part.CONFIG, Part.REPLICAS)
    return any(f.severity != NOTE and CATALOGUE[f.code].about not in besides for f in outcome.found.findings)


def named_notes(outcome: Outcome) -> list[Finding]:
    """Return the notes that leave the exit code as it is and that a reader must know: reasons of the answer."""
    return [f for f in outcome.found.findings if f.severity == NOTE and f.code in CATALOGUE and CATALOGUE[f.code].named]


def named_sentences(outcome: Outcome) -> list[str]:
    """Return clauses on these notes. For many of one code it is the first message, and how many more there are."""
    found: dict[str, list[Finding]] = {}
    for note in named_notes(outcome):
        found.setdefault(note.code, []).append(note)
    return [
        notes[0].message.rstrip(".") + (f" (and {len(notes) - 1:,} more findings {code})" if len(notes) > 1 else "")
        for code, notes in found.items()
    ]


def counted(outcome: Outcome, code: str) -> int:
    """Return how many there are of a code, the folded ones too."""
    return sum(f.count for f in outcome.found.findings if f.code == code) + outcome.found.dropped.get(code, 0)


def timers_lost(outcome: Outcome) -> int:
    """Return the number of timer messages that a start would never deliver.

    Messages whose copies were just left out of the copy are not counted.
    """
    codes = (Code.TIMER_MESSAGE_LOST, Code.TIMERS_PASSED_OVER)
    return sum(f.count for f in outcome.found.findings if f.code in codes and f.severity == LOSS)


def unqueueable(outcome: Outcome) -> int:
    """Return lost messages that no repair brings back to consumers either."""
    return sum(
        finding.count for finding in outcome.found.findings if finding.severity == LOSS and finding.has_step(Step.NO_QUEUE)
    )


def lacks_of(outcome: Outcome) -> tuple[int, bool]:
    """Return (messages that other copies of its group hold and it does not, whether it has diverged from one of them)."""
    lacking = as_master(outcome.replicas, outcome.name)
    return (0, False) if lacking is None else (lacking.lacks, bool(lacking.diverged_from))


def is_emptied(outcome: Outcome) -> bool:
    """Say whether something proves that the copy's log held messages that it holds no more, at its end or altogether."""
    return any(f.severity == LOSS and f.code in (Code.COMMITLOG_EMPTIED, Code.COMMITLOG_SHRUNK) for f in outcome.found.findings)


def shows_gone(outcome: Outcome) -> bool:
    """Say whether other files of a copy without messages still show which messages existed: a start deletes them."""
    return holds_nothing(outcome) and (
        bool(outcome.rows.index_files) or any(queue.get("disk_entries") for queue in outcome.rows.queues)
    )


def holds_nothing(outcome: Outcome) -> bool:
    """Say whether the copy provably held messages once, and holds none now. A repair would make an empty store of it."""
    return not outcome.holds.messages and is_emptied(outcome)
