"""The words on a finding's code or a stop reason, and the findings of one code and severity together."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.report.texts.safety_text import meaning_of
from schemas.advice import Advice, Step
from schemas.finding_codes import CATALOGUE, CURED, SETTING_OF_STOP, STOP_REASONS, FindingCode, Part, Stays
from schemas.outcome import Outcome
from schemas.rows import LOSS, NOTE, REBUILDABLE, Finding
from store_io.base.exit_codes import SEVERITIES
from store_io.wording.steps import advice_text

FINDING, STOP_REASON = "finding", "stop reason"
_FOLLOWS = {
    NOTE: "A healthy broker leaves this, too, or it has no effect. The exit code stays 0.",
    REBUILDABLE: "No message of the CommitLog is lost by it. Exit code 10.",
    LOSS: "Bytes of the CommitLog are damaged or missing, or a start would drop messages, or would fail. Exit code 20.",
}
_ABOUT = {
    Part.LOG: ("CommitLog", "The CommitLog holds the messages themselves: everything else can be made of it."),
    Part.QUEUE: (
        "ConsumeQueue",
        "Consumers find messages through ConsumeQueues: what has no right entry there is not delivered.",
    ),
    Part.INDEX: ("index", "Lookups by key go through the index. Consumers do not need it."),
    Part.CHECKPOINT: ("checkpoint, epochs", "These files decide where a recovery begins, or which log is continued."),
    Part.CONFIG: ("config/, settings", "These tables say which topics, groups and offsets the broker knows."),
    Part.START: ("start", "It is what a start of the audited release does with this copy."),
    Part.REPLICAS: ("copies of one log", "It compares this copy with others of its replica group."),
    Part.COPY: ("copy", "It is about how the copy was made, or about a file that belongs to no part of a broker."),
    Part.TIMER: ("timers", "Timer messages wait in the log for their time: they may come late, again, or never."),
}
_STAYS = {
    Stays.ALWAYS: "A repair keeps the message or file that it is about as it is, so the new store may still show it.",
    Stays.AS_BEFORE: "Where the copy shows it, the new store may still show it.",
    Stays.MOVED_MESSAGE: "The new store may show it for messages that the repair put at another queue offset.",
    Stays.PARTIAL_QUEUE: "The new store may show it for queues in which the repair left messages without an entry.",
    Stays.EMPTY_LOG: "The new store still shows it where the repair kept no message.",
}
_AS_A_NOTE = "By itself it leaves the exit code at 0."
_UNREAD = (
    "Where a broker would read the file, the audit is incomplete: exit code 3, or 20 beside a loss. Else the exit code stays 0."
)
_CURED = "Any repair of the copy cures it."
_NO_FILES = {  # stop reason -> what follows, what to do: there is nothing to read
    "no_commitlog": (
        "A start begins an empty log. Only a fresh broker has none: of any other one this copy is not whole.",
        "Look whether commitlog/ was left out of the copy, or lies elsewhere (--commitlog).",
    ),
    "empty": (
        "Nothing is read in this segment. A broker that died as it made the file leaves it like this.",
        "Compare its length with that of the broker's own file: the copying may have been broken off. What the release does with"
        " it is at the finding segment_empty.",
    ),
}
_NO_DAMAGE = {"filler", "unwritten", "end_of_last_file"}  # where a sound log ends, too
_ENDS = "A log that is sound ends like this, too: nothing is lost by it unless valid messages follow."
_CUTS = (
    "Where a start's recovery reads this record, it cuts the CommitLog here: valid messages after it would be lost, as"
    " broker_drops_messages says."
)
_LOOK = (
    "Read what the audit prints at Ends and Loses. explain with --phy-offset shows the record field by field; a repair with"
    " --policy salvage keeps every valid message after it."
)
_LATER_SETTING = (
    "{} If messages before this one have it, this record may be damaged instead: explain with --phy-offset shows it. A copy"
    " whose messages only lack what the setting asks for needs no repair. A repair with --policy salvage keeps every valid"
    " message, too; with the setting on, a start may still cut what is written without it."
)
_NO_ACT = "Nothing, unless the audit lists findings beside it."
_REASONS = (
    "Why the scan of a start's recovery ends. Valid messages after that place would be lost: `broker_drops_messages` says so."
)


@dataclass(frozen=True)
class CodeWords:
    """One code.

    kind: FINDING or STOP_REASON.
    severity, about: of a finding, else empty.

    The others are whole sentences.
    """

    code: str
    kind: str
    meaning: str
    consequence: str
    what_to_do: str
    severity: str = ""
    about: str = ""
    after_a_repair: str = ""

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield (label, sentence), those that there are."""
        yield "Meaning", self.meaning
        yield "Consequence", self.consequence
        yield "What to do", self.what_to_do
        if self.after_a_repair:
            yield "After a repair", self.after_a_repair

    def heading(self) -> str:
        """Return the words of the heading: the kind, and what a finding is about."""
        return f"{self.kind}, {self.severity}; {self.about}" if self.severity else self.kind


def all_codes() -> dict[str, CodeWords]:
    """Return every finding, then every stop reason, by its code."""
    return {**{code: _of_finding(row) for code, row in CATALOGUE.items()}, **_stop_reasons(STOP_REASONS)}


def _of_finding(row: FindingCode) -> CodeWords:
    parts = [_ABOUT[part] for part in row.about]
    own = f"{row.follows} {_AS_A_NOTE}" if row.follows and row.severity == NOTE else row.follows
    follows = [_UNREAD if row.unread else own or _FOLLOWS[row.severity]]
    follows += [sentence for _, sentence in parts]
    act = [advice_text(row.next)]
    if row.raised_step:
        follows.append("Some findings with this code are graver than a note: findings.jsonl has the severity of each.")
        act.append(f"Above a note: {advice_text(row.next_at(LOSS))}")
    if row.wrong_size_of:
        act.append("First compare the file sizes in broker.conf with the copy's: a wrong one causes this finding, too.")
    after = [_CURED] if row.code in CURED else []
    after += [_STAYS[stays] for stays in row.stays]
    return CodeWords(
        row.code,
        FINDING,
        row.meaning,
        " ".join(follows),
        " ".join(act),
        row.severity,
        ", ".join(name for name, _ in parts),
        " ".join(after),
    )


def _stop_reasons(reasons: Mapping[str, str]) -> dict[str, CodeWords]:
    others = {code: (_ENDS, _NO_ACT) if code in _NO_DAMAGE else (_CUTS, _LOOK) for code in reasons}
    others |= {
        code: (_CUTS, _LATER_SETTING.format(advice_text(Advice(Step.SWITCH_OFF, (setting,)))))
        for code, setting in SETTING_OF_STOP.items()
    }
    return {code: CodeWords(code, STOP_REASON, meaning, *{**others, **_NO_FILES}[code]) for code, meaning in reasons.items()}


# ---- as a document -----------------------------------------------------------------------------------------------------

_HEAD = f"""\
# Findings and stop reasons

Every code that an audit writes: in `findings.jsonl`, on its pages, in the tables, and as `stop_reason` in `plan.json`. Codes are
stable, sentences are not ([versioning.md](versioning.md)). `./spark-submit.sh explain-code CODE` says what follows from a code
and what to do; so do the step `next` of each finding, the report page, and the page of each code on the site.

| severity | what follows |
|---|---|
| `note` | {_FOLLOWS[NOTE]} |
| `rebuildable` | {_FOLLOWS[REBUILDABLE]} |
| `loss` | {_FOLLOWS[LOSS]} |

The severity after a code is the usual one; a finding may have a higher one. The exit code of an audit follows from the highest
severity ([contract.md 2](contract.md#2)).
"""


def page(codes: Mapping[str, CodeWords]) -> str:
    """Return the document of these codes, in Markdown: for each subject a list of codes with their meaning.

    Anchors are the codes.
    """
    groups: dict[str, list[CodeWords]] = {}
    for words in codes.values():
        groups.setdefault(words.about, []).append(words)
    lines = [_HEAD]
    for about, members in groups.items():
        parts = CATALOGUE[members[0].code].about if about else ()
        lines += [
            f"## {_title(about or STOP_REASON + 's')}\n",
            *_wrapped(" ".join(_ABOUT[part][1] for part in parts) or _REASONS),
            "",
        ]
        for words in members:
            kind = f", {words.severity}" if words.severity else ""
            lines += _wrapped(f'* <a id="{words.code}"></a>`{words.code}`{kind}: {words.meaning}', "  ")
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 130, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _title(about: str) -> str:
    """Return the text with a capital, but for the name of a folder."""
    return about if about.split(",")[0].endswith("/") else f"{about[0].upper()}{about[1:]}"


def section(words: CodeWords, level: str = "##") -> str:
    """Return one code in Markdown. level: of its heading."""
    facts = [f"* **{label}**: {sentence}" for label, sentence in words.facts()]
    return "\n".join([f"{level} {words.code}\n", f"{words.heading()[0].upper()}{words.heading()[1:]}.\n", *facts, ""])


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
        """Return the sentences on what to do next, at most three."""
        steps = dict.fromkeys(finding.next for finding in self.found if finding.next is not None)
        return [advice_text(step) for step in steps][:3]


def finding_groups(outcome: Outcome) -> list[Group]:
    """Return all findings, by severity and code."""
    found: dict[tuple[int, str], list[Finding]] = {}
    for finding in outcome.found.findings:
        found.setdefault((SEVERITIES.index(finding.severity), finding.code), []).append(finding)
    groups: list[Group] = []
    left = dict(outcome.found.dropped)
    for rank, code in sorted(found):
        # Dropped findings have no severity: they are counted once, in their code's most severe group.
        dropped = left.pop(code, 0)
        groups.append(Group(SEVERITIES[rank], code, meaning_of(outcome, code), found[rank, code], dropped))
    return groups
