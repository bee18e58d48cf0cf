"""The sections of a store's page about its outcome: findings, losses, steps, other copies, and what the audit rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import groupby

from jobs.report.pages.page import MAX_ROWS, MOST_SHOWN, View
from jobs.report.texts.commands import closer_look, closer_withheld, not_shown, queue_query, repair_commands, repair_withheld
from jobs.report.texts.comparison_words import (
    choice_words,
    config_words,
    lack_words,
    least_text,
    lost_text,
    pair_words,
    rejoin_words,
    release_lines,
    setting_lines,
)
from jobs.report.texts.finding_words import finding_groups
from jobs.report.texts.step_words import VERBS, numbers_text
from jobs.report.texts.text import not_read_texts, value_text
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from schemas.rows import DEFAULT, Comparison, PlanStep, Row
from schemas.start_effect import QueueLost
from store_io.base.times import iso_time
from store_io.base.wording import count_text
from store_io.repair.proposals import proposals

MAX_COMMANDS = 5
MAX_RUNS = 500
_QUEUE_FOLDERS = {"consumequeue", "batchconsumequeue"}


def findings_view(outcome: Outcome, words: Sequence[str]) -> View:
    """Return the data of findings.html.

    words: those that read the store (`commands.store_words`).
    """
    return {
        "groups": finding_groups(outcome),
        "closer": lambda finding: closer_look(finding, words),
        "withheld": lambda finding: closer_withheld(finding, ()),
    }


def lost_view(outcome: Outcome, words: Sequence[str]) -> View:
    """Return the data of lost.html: topics, queues, groups and delay levels, those that lose most first."""
    loss = outcome.loss
    lost = outcome.started.lost if outcome.started is not None else None
    by_queue = lost.by_queue if lost is not None else ()
    queues = nsmallest(MAX_ROWS, by_queue, key=lambda lost: (-lost.messages, lost.topic, lost.queue_id))
    listing = list(_commands(outcome, queues[:MAX_COMMANDS], words))
    return {
        "topics": sorted(loss.by_topic, key=lambda topic: (-topic.messages, topic.topic)),
        "queues": queues,
        "iso_time": iso_time,
        "queue_count": len(by_queue),
        "commands": [command for command, _ in listing if command],
        "withheld": list(dict.fromkeys(why for _, why in listing if why)),
        "groups": sorted(loss.groups, key=lambda group: (-group.beyond, group.group, group.topic)),
        "levels": loss.delay_levels,
    }


def _commands(outcome: Outcome, queues: Sequence[QueueLost], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the commands that show lost messages, as `queue_query` gives them."""
    wanted = {(queue.topic, queue.queue_id) for queue in queues}  # of all rows, which may be a million
    known = {key: row for row in outcome.rows.queues if (key := (row["topic"], row["queue_id"])) in wanted} if wanted else {}
    for queue in queues:
        row = known.get((queue.topic, queue.queue_id), {})
        end, first = row.get("log_end_offset"), row.get("dispatch_max_offset")
        if end is not None and first is not None and first < end:
            yield queue_query(words, queue.topic, queue.queue_id, first, end)


def compared_view(outcome: Outcome, compared: Comparison) -> View:
    """Return the data of compared.html: a line for neighbouring releases that do the same, and one for each effective setting."""
    return {
        "release": outcome.release,
        "releases": release_lines(compared),
        "settings": setting_lines(compared),
        "unchanged": compared.unchanged,
        "least": least_text(outcome, compared),
        "lost": lost_text,
    }


@dataclass(frozen=True)
class StepRun:
    """Neighbouring steps of one kind."""

    steps: Sequence[PlanStep]

    @property
    def messages(self) -> int:
        return sum(step.lost_messages for step in self.steps)

    @property
    def bytes(self) -> int:
        return sum(step.lost_bytes for step in self.steps)

    @property
    def actions(self) -> list[tuple[str, int]]:
        return sorted(Counter(step.action for step in self.steps).items())

    @property
    def things(self) -> tuple[str, str]:
        """Return the words for the files on which the steps act, one and many."""
        tops = {step.file.partition("/")[0] for step in self.steps}
        if tops == {"commitlog"}:
            return "segment", "segments"
        if tops <= _QUEUE_FOLDERS:
            return ("queue", "queues") if self.steps[0].action == "rebuild" else ("queue file", "queue files")
        return ("index file", "index files") if tops == {"index"} else ("file or queue", "files or queues")


def leaves_view(outcome: Outcome) -> View:
    """Return the data of leaves.html."""
    runs = [StepRun(list(run)) for _, run in groupby(outcome.plan.steps, _kind_of)]
    return {
        "all_kept": all(step.action == "keep" for step in outcome.plan.steps),
        "runs": runs[:MAX_RUNS],
        "not_shown": sum(len(run.steps) for run in runs[MAX_RUNS:]),
    }


def repair_view(outcome: Outcome, words: Sequence[str], plan: str, to: str) -> View:
    """Return what repair.html shows. words, plan, to: as `repair_commands` takes them."""
    repairs = [] if outcome.in_use else repair_commands(outcome, words, plan, to)
    return {
        "withheld": repair_withheld(outcome) or outcome.in_use,
        "unshown": not_shown(words, [("--plan", plan)]) if repairs else "",
        "repairs": repairs,
        "policies": [ShownProposal(one) for one in proposals(outcome) if repairs],
    }


@dataclass(frozen=True)
class ShownProposal:
    """What a repair by one policy would do, for repair.html."""

    proposal: RepairProposal

    @property
    def steps(self) -> list[View]:
        """Return the steps with their words."""
        return [
            {
                "step": step, "number": number, "verb": VERBS[step.action], "kept": numbers_text(step.kept),
                "lost": numbers_text(step.lost), "gives_up": not step.lost.keys().isdisjoint(("messages", "positions")),
            }
            for number, step in enumerate(self.proposal.steps, 1)
        ]  # fmt: skip

    @property
    def keeps(self) -> str:
        """Return how many messages it keeps, against those that are valid in the copy; healed ones are not."""
        healed, before = self.proposal.healed, self.proposal.messages_before
        kept = self.proposal.messages_after - healed
        valid = count_text(before, "valid message")
        own = (
            f"all {valid}"
            if kept == before
            else f"{kept:,} of {valid}"
            if kept < before
            else f"{valid} and {kept - before:,} of a donor"
        )
        return f"{own} and {healed:,} healed" if healed else own


def _kind_of(step: PlanStep) -> tuple[str, str, str]:
    """Return the key by which steps are put together.

    Segments with the same key have the same action, queue files are all those that a cut takes.
    """
    top = step.file.partition("/")[0]
    return top, step.reason, "" if top in _QUEUE_FOLDERS and step.action != "rebuild" else step.action


def replicas_view(outcome: Outcome) -> View:
    """Return the data of replicas.html.

    outcome: one with `replicas`.
    """
    group = outcome.replicas
    choice, pairs = choice_words(group), list(group.pairs_of(outcome.name))
    return {
        "choice": choice[:1].upper() + choice[1:],
        "stores": group.copies,
        "pairs": [words for pair in pairs[:MOST_SHOWN] for words in (pair_words(pair), *rejoin_words(pair))],
        "of_pairs": len(pairs),
        "lacks": list(lack_words(group, outcome.name))[:MOST_SHOWN],
        "config": list(config_words(group, outcome.name))[:MOST_SHOWN],
        "problems": group.problems[:MOST_SHOWN],
        "parts": [(lack.holder, part) for lack in group.lacked_by(outcome.name) for part in lack.ranges],
    }


@dataclass(frozen=True)
class ShownSetting:
    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class AuditedPart:
    """Files of one kind.

    read: bytes. problems: how many could not be read. size: in bytes, None if it is not known.
    """

    name: str
    found: str
    read: int
    problems: int
    size: int | None


def _audited(name: str, found: str, rows: Sequence[Row], sized: bool = True) -> AuditedPart:
    """Return the part of these rows of a table."""
    size = sum(row.get("size_bytes") or 0 for row in rows) if sized else None
    return AuditedPart(
        name, found, sum(row.get("bytes_read") or 0 for row in rows), sum(bool(row.get("problem")) for row in rows), size
    )


def settings_view(outcome: Outcome) -> View:
    """Return the data of settings.html: the release's defaults apart."""
    own: list[ShownSetting] = []
    defaults: list[ShownSetting] = []
    for name, setting in sorted(outcome.plan.settings.items()):
        (defaults if setting.origin == DEFAULT else own).append(ShownSetting(name, _value(setting.value), setting.origin))
    return {"own": own, "defaults": defaults}


def _value(value: object) -> str:
    """Return a value as broker.conf has it; a large number as people read it, too."""
    read = f" ({value:,})" if isinstance(value, int) and abs(value) >= 10_000 else ""
    return value_text(value) + read


def limits_view(outcome: Outcome) -> View:
    """Return the data of limits.html."""
    segments, queues, files = outcome.rows.segments, outcome.rows.queues, outcome.rows.index_files
    queue_files = count_text(sum(int(q.get("file_count") or 0) for q in queues), "file")
    return {
        "parts": [
            _audited("CommitLog", count_text(outcome.holds.segment_count, "segment"), segments),
            _audited("ConsumeQueues", f"{count_text(len(queues), 'queue')}, {queue_files}", queues, sized=False),
            _audited("index", count_text(len(files), "file"), files),
        ],
        "inputs": len(outcome.plan.inputs),
        "dropped": sum(outcome.found.dropped.values()),
        "not_read": not_read_texts(outcome),
    }
