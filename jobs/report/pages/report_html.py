"""report.html of one store: one self-contained page for people. It opens with the answer: safe to start or not, and why.

No script, no request to anywhere; a policy in the page forbids both. Its size is bounded: what is left out is counted, and where
it is found is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from jobs.report.files.result_json import RunInfo
from jobs.report.pages.page import code_of, command_of, fact, fold, hint, more, name_of, page, table
from jobs.report.pages.replicas_html import replicas_section
from jobs.report.pages.segment_map import log_map
from jobs.report.pages.watermarks import watermarks
from jobs.report.texts.commands import closer_look, command_line, repair_commands, repair_withheld, words_of
from jobs.report.texts.deleted_files import deleted_files
from jobs.report.texts.judgement import (
    CARE,
    EMPTY,
    GONE,
    LACKS,
    PARTED,
    REBUILD,
    REFUSES,
    SAFE,
    STOP,
    UNKNOWN,
    Judgement,
    held,
    judge,
    meaning_of,
    verdict_alone,
    why_it_ends,
)
from jobs.report.texts.next_steps import next_steps
from jobs.report.texts.ranking import SEVERITIES, exit_words, is_emptied, lacks_of, lost_of, note_kinds
from jobs.report.texts.text import bytes_text, count_text, markup, not_read_texts, span_text
from schemas.rows import DOUBT, LOSS, NOTE, REBUILDABLE, AuditOutcome, Finding, Row

MAX_EXAMPLES = 20  # findings shown of one code and severity
FIRST_EXAMPLES = 5  # of these, the ones that are not folded
MAX_ROWS = 300  # of any table
MAX_COMMANDS = 5  # below a table
MAX_NEXT = 4  # of what the findings say about what to do next
MAX_STEPS = 500  # of the plan, without those that keep a file

STYLE_OF = {
    STOP: "stop",
    GONE: "stop",
    UNKNOWN: "unknown",
    REFUSES: "stop",
    PARTED: "care",
    LACKS: "care",
    CARE: "care",
    REBUILD: "care",
    EMPTY: "unknown",
    SAFE: "safe",
}
_CODE_STYLE = {20: "stop", 3: "unknown"}
SEVERITY_STYLE = {LOSS: "stop", REBUILDABLE: "care", NOTE: "unknown"}
_SEVERITY_WORDS = {
    LOSS: "bytes or messages that this copy lacks or would lose, or what keeps the release from starting",
    REBUILDABLE: "derived data that can be rebuilt from the CommitLog",
    NOTE: "normal after a healthy broker, or without effect",
}

# Shapes that tell the answer without colour: an octagon, a triangle, a ring with a question mark, a tick.
ICONS = {
    "stop": ("stop", '<path d="M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9z"/><path class="i" d="M12 6v7M12 16v2"/>'),
    "care": ("caution", '<path d="M12 2 23 22H1z"/><path class="i" d="M12 9v6M12 17v2"/>'),
    "unknown": ("not known", '<circle cx="12" cy="12" r="11"/><path class="i" d="M8.5 9.5a3.5 3.5 0 1 1 3.5 4v1.5M12 17v2"/>'),
    "safe": ("safe", '<circle cx="12" cy="12" r="11"/><path class="i" d="M6.5 12.5l4 4 7.5-8.5"/>'),
}

_WORDS = (
    ("CommitLog", "The one log with every message of the broker, in files of a fixed size, the segments. All else can be "
     "rebuilt from it; what is lost here is lost."),
    ("physical offset", "A byte's place in the whole CommitLog, counted from the first byte ever written."),
    ("ConsumeQueue", "The list of a queue's messages: one entry for each, with its place in the CommitLog. Consumers read "
     "through it."),
    ("index file", "Leads from a message's key to its place in the CommitLog, for lookups by key."),
    ("checkpoint", "A small file that says up to which time each part was on the disk. After a crash, recovery begins there."),
    ("abort file", "Exists while a broker runs. In a copy it says that the broker crashed or was killed."),
    ("recovery, cut", "When a broker starts, it reads the end of the CommitLog, stops at the first record that it does not "
     "trust, and drops everything after it. The place where it stops is the cut."),
    ("filler, unwritten", "A filler closes a full segment. After the last message a segment is unwritten: all zero."),
    ("finding", "One disagreement in the copy: file, byte range, what was expected, what is there."),
)  # fmt: skip


@dataclass(frozen=True)
class PageContext:
    """What a page tells besides the store itself. run: None where the page belongs to no run.  store_words: the words with which
    another command reads this store (`commands.store_words`).  plan: the path of its plan.json.  index: whether ../index.html is
    there."""

    run: RunInfo | None = None
    store_words: tuple[str, ...] = ()
    plan: str = ""
    index: bool = False


def report_html(outcome: AuditOutcome, context: PageContext | None = None) -> Iterator[str]:
    """The whole page, in pieces."""
    return page(f"{outcome.name}: RocketMQ store audit", _body(outcome, context or PageContext()))


def _body(outcome: AuditOutcome, context: PageContext) -> Iterator[str]:
    broker, judgement = outcome.plan.get("broker"), judge(outcome)
    words = context.store_words or words_of(outcome)
    sections: list[tuple[str, str, Callable[[], Iterator[str]]]] = []
    if outcome.loss.get("by_topic") or outcome.loss.get("groups") or outcome.loss.get("delay_levels"):
        sections.append(("lost", "What would be lost", lambda: _loss(outcome, broker, words)))
    if outcome.segment_count or outcome.queues:
        sections.append(("map", "Map of the CommitLog", lambda: log_map(outcome, broker)))
        sections.append(("marks", "Where each file ends", lambda: watermarks(outcome, broker)))
        sections.append(("queues", "ConsumeQueues and index files", lambda: _derived(outcome, words)))
        sections.append(("findings", "Findings", lambda: _findings(outcome, words)))
    if outcome.replicas:
        sections.append(("replicas", "Other copies of this log", lambda: replicas_section(outcome)))
    if judgement.kind != SAFE and outcome.plan.get("steps"):
        sections.append(("plan", "Plan", lambda: _steps(outcome, repair_commands(outcome, words, context.plan))))
    if outcome.plan.get("settings"):
        sections.append(("settings", "Settings", lambda: _settings(outcome)))
    sections.append(("limits", "What was read, and what no check can see", lambda: _limits(outcome)))
    yield from _head(outcome, context)
    yield from _premises(outcome)
    yield from _answer(outcome, judgement, words, context.plan)
    yield from _facts(outcome, broker)
    if len(sections) > 2:
        yield '<nav aria-label="On this page"><ul>'
        yield from (f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in sections)
        yield "</ul></nav>\n"
    yield from fold("Words used on this page", _glossary(), style="words")
    for key, title, content in sections:
        yield f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{title}</h2>\n'
        yield from content()
        yield "</section>\n"
    yield "</main>\n" + footer(context.run, outcome.release)


def _head(outcome: AuditOutcome, context: PageContext) -> Iterator[str]:
    back = ' · <a href="../index.html">all stores of this run</a>' if context.index else ""
    yield f'<header><p class="kicker">RocketMQ store audit{back}</p>\n<h1>{name_of(outcome.name)}</h1>\n'
    group = f", replica group {name_of(outcome.replica_group)}" if outcome.replica_group else ""
    rules = f"judged by the rules of RocketMQ {markup(outcome.release)}{group}"
    yield f'<p class="where">{code_of(outcome.location_text)}, {rules}</p></header>\n<main>\n'


def style_of(kind: str, exit_code: int) -> str:
    """The colour of an answer: no store is in a milder one than another of a better exit code."""
    return _CODE_STYLE.get(exit_code, STYLE_OF[kind])


def icon(kind: str, style: str) -> str:
    """The sign of an answer of this kind, in this colour."""
    words, shape = ICONS[STYLE_OF[kind]]
    return f'<svg class="icon c-{style}" viewBox="0 0 24 24" role="img" aria-label="{words}"><title>{words}</title>{shape}</svg>'


def _premises(outcome: AuditOutcome) -> Iterator[str]:
    """What the answer rests on, before the answer."""
    if outcome.premises:
        doubtful = any(premise.kind == DOUBT for premise in outcome.premises)
        title = "First: what was named does not fit this copy" if doubtful else "First: what is assumed"
        yield f'<section class="answer a-care" aria-labelledby="premises">{icon(CARE, "care")}<div>\n'
        yield f'<h2 id="premises" class="c-care">{title}</h2>\n<ul>'
        yield from (f"<li>{markup(premise.sentence)}.</li>" for premise in outcome.premises)
        yield "</ul></div></section>\n"


def _answer(outcome: AuditOutcome, judgement: Judgement, words: Sequence[str], plan: str) -> Iterator[str]:
    style = style_of(judgement.kind, outcome.exit_code)
    yield f'<section class="answer a-{style}" aria-labelledby="answer">{icon(judgement.kind, style)}<div>\n'
    yield f'<h2 id="answer" class="c-{style}">{markup(judgement.headline)}</h2>\n'
    yield f'<p class="verdict">{markup(verdict_alone(outcome))}.</p>\n<ul>'
    untold = (w for w in judgement.why if w.removeprefix("It refuses: ").rstrip(".") not in outcome.verdict)
    yield from (f"<li>{markup(sentence)}</li>" for sentence in untold)
    for deleted in deleted_files(outcome):
        rest = f" and {len(deleted.files) - 3:,} more" if len(deleted.files) > 3 else ""
        shown = ", ".join(code_of(name, 100) for name in deleted.files[:3]) + rest
        yield f"<li>A start deletes {deleted.words}: {shown}</li>"
    yield "</ul>\n"
    yield from _next(outcome, words, plan)
    yield "</div></section>\n"


def _next(outcome: AuditOutcome, words: Sequence[str], plan: str) -> Iterator[str]:
    """What to do: first what keeps most, then what a start does and loses, then what the findings say."""
    steps = next_steps(outcome, words, plan)
    if steps.nothing:
        yield f"<p><b>What to do next</b></p><p>{steps.nothing}</p>"
        return
    items = [markup(sentence) for sentence in (steps.withheld, steps.start) if sentence]
    items += [markup(step) for step, _ in steps.others[:MAX_NEXT]]
    acts = Counter(str(s["action"]) for s in outcome.plan.get("steps", ()) if s["action"] != "keep")
    if acts:
        told = ", ".join(f"{action} {count_text(acts[action], 'file or queue', 'files or queues')}" for action in sorted(acts))
        what = "all repair commands and every step" if steps.repairs else "every step of what a start changes"
        items.append(f'The <a href="#plan">plan</a> has {what}: {markup(told)}.')
    if items:
        yield "<p><b>What to do next</b></p>"
        yield from (f"<p>{markup(what)}:</p>{command_of(command)}" for what, command in steps.repairs[:1])
        yield '<ul class="plain">'
        yield from (f"<li>{item}</li>" for item in items)
        yield "</ul>"


def _facts(outcome: AuditOutcome, broker: Row | None) -> Iterator[str]:
    yield '<dl class="facts">\n'
    if broker is None:
        yield fact("not known", "whether this release would start", "c-unknown")
    elif not broker.get("starts"):
        yield fact("no", f"would RocketMQ {markup(outcome.release)} start?", "c-stop")
    else:
        after = "after a clean stop" if broker.get("exit") == "clean" else "after a crash: the abort file is there"
        messages, size = lost_of(outcome)
        lacks = lacks_of(outcome)[0]
        style = "" if messages or lacks or not outcome.messages or is_emptied(outcome) else "c-safe"
        yield fact("yes", f"would RocketMQ {markup(outcome.release)} start? It starts as {after}", style)
        lost = f"would be lost, {bytes_text(size)}" if messages else "would be lost"
        yield fact(count_text(messages, "message"), lost, "c-stop" if messages else style)
        if lacks:
            yield fact(count_text(lacks, "message"), "of its group that this copy lacks: lost if it becomes master", "c-care")
        ends = f"physical offset where the CommitLog would end. {markup(why_it_ends(outcome, broker))}"
        yield fact(f"{int(broker.get('truncate_at') or 0):,}", ends)
    if outcome.segment_count or outcome.findings:
        told = ", ".join(_count_of(severity, outcome.counts.get(severity, 0)) for severity in SEVERITIES)
        notes = note_kinds([outcome])
        yield fact(count_text(sum(outcome.counts.values()), "finding"), told + (f": {markup(notes)}" if notes else ""))
        when = f", stored {span_text(outcome.first_store_time, outcome.last_store_time)}" if outcome.messages else ""
        where = f"in {count_text(outcome.segment_count, 'segment')}{when}"
        yield fact(held(outcome), where)
    style = {0: "c-safe", 20: "c-stop"}.get(outcome.exit_code, "c-care")
    yield fact(str(outcome.exit_code), f"exit code: {exit_words(outcome.exit_code, [outcome])}", style)
    yield "</dl>\n"
    if outcome.incomplete:
        yield '<section aria-labelledby="unread"><h2 id="unread">What could not be audited</h2><ul class="plain">'
        yield from (f"<li>{markup(sentence, 500)}</li>" for sentence in outcome.incomplete[:MAX_ROWS])
        yield "</ul>"
        if len(outcome.incomplete) > MAX_ROWS:
            yield more(len(outcome.incomplete) - MAX_ROWS, "sentence", "they are in result.json")
        yield "</section>\n"


def _count_of(severity: str, number: int) -> str:
    plural = severity if severity == REBUILDABLE else {LOSS: "losses", NOTE: "notes"}[severity]
    words = count_text(number, severity, plural)
    return f'<span class="c-{SEVERITY_STYLE[severity]}">{words}</span>' if number else words


def _glossary() -> Iterator[str]:
    yield "<dl>"
    yield from (f"<dt>{word}</dt><dd>{meaning}</dd>" for word, meaning in _WORDS)
    yield "</dl>"


# ---- what would be lost --------------------------------------------------------------------------------------------


def _loss(outcome: AuditOutcome, broker: Row | None, words: Sequence[str]) -> Iterator[str]:
    topics = sorted(outcome.loss.get("by_topic", ()), key=lambda t: (-t["messages"], t["topic"]))
    if topics:
        yield hint(
            "These messages are valid in this copy, but consumers do not get them after a start of this release: it cuts them off"
            " with the end of the CommitLog, or leaves them there without an entry in their queue."
        )
        rows = (
            (name_of(t["topic"]), f"{t['messages']:,}", span_text(t["first_store_time"], t["last_store_time"])) for t in topics
        )
        yield from table(
            "Lost messages by topic",
            ("topic", "#messages", "~stored"),
            rows,
            len(topics),
            MAX_ROWS,
            "plan.json has all",
            stack=True,
        )
        yield from _lost_queues(outcome, broker, words)
    groups = sorted(outcome.loss.get("groups", ()), key=lambda g: (-(g["offset"] - g["new_max"]), g["group"], g["topic"]))
    if groups:
        yield "<h3>Consumer groups beyond a queue's new end</h3>\n"
        yield hint(
            "These groups have consumed beyond their queue's new end. New messages get offsets that the group counts as consumed:"
            " it skips them, or starts over, depending on its settings. Repair with --fix-offsets to set these offsets back."
        )
        rows3 = (
            (name_of(g["group"]), f"{name_of(g['topic'])} / {g['queue_id']}", f"{g['offset']:,}", f"{g['new_max']:,}",
             f"{g['offset'] - g['new_max']:,}")
            for g in groups
        )  # fmt: skip
        heads = ("group", "topic / queue", "#consumed to", "#new end", "#beyond by")
        yield from table(
            "Consumer groups beyond a queue's new end", heads, rows3, len(groups), MAX_ROWS, "findings.jsonl has all", stack=True
        )
    levels: Sequence[Row] = outcome.loss.get("delay_levels", ())
    if levels:
        yield "<h3>Delay levels beyond their queue's new end</h3>\n"
        rows4 = ((f"level {v['level']}", f"{v['offset']:,}", f"{v['new_max']:,}") for v in levels)
        names = ("delay level", "#delivered to", "#new end")
        yield from table("Delay levels beyond their queue's new end", names, rows4, len(levels), MAX_ROWS)


def _lost_queues(outcome: AuditOutcome, broker: Row | None, words: Sequence[str]) -> Iterator[str]:
    lost = (broker or {}).get("lost") or {}
    queues = sorted(lost.get("by_queue", ()), key=lambda q: (-q["messages"], q["topic"], q["queue_id"]))
    if not queues:
        return
    rows = (
        (f"{name_of(q['topic'])} / {q['queue_id']}", f"{q['messages']:,}", markup(q.get("first_store_time") or ""),
         markup(q.get("last_store_time") or ""))
        for q in queues
    )  # fmt: skip
    heads = ("topic / queue", "#messages", "~first stored", "~last stored")
    inner = list(table("Lost messages by queue", heads, rows, len(queues), MAX_ROWS, "plan.json has all", stack=True))
    yield from fold(f"By queue: {count_text(len(queues), 'queue')}", inner, opened=len(queues) <= 12)
    known = {(q["topic"], q["queue_id"]): q for q in outcome.queues}
    commands = []
    for queue in queues[:MAX_COMMANDS]:
        row = known.get((queue["topic"], queue["queue_id"]), {})
        end, first = row.get("log_end_offset"), row.get("dispatch_max_offset")
        if end is not None and first is not None and first < end:
            options = [("--topic", queue["topic"]), ("--queue", queue["queue_id"])]
            options += [("--from-queue-offset", first), ("--to-queue-offset", end)]
            commands.append(command_line("query", words, options))
    yield from _commands("List the messages after the new end of a queue:", commands)


def _commands(words: str, commands: Sequence[str]) -> Iterator[str]:
    commands = [command for command in commands if command]
    if commands:
        yield f'<p class="hint">{words}</p>\n'
        yield from map(command_of, commands)


# ---- queues and index files ----------------------------------------------------------------------------------------


def _derived(outcome: AuditOutcome, words: Sequence[str]) -> Iterator[str]:
    yield hint(
        "A <b>ConsumeQueue</b> leads from a topic's queue to its messages, an <b>index file</b> from a key to its message. Both"
        " are derived from the CommitLog. A repair rebuilds those that differ from it."
    )
    blamed: Counter[tuple[str, int]] = Counter()
    for finding in outcome.findings:
        if finding.topic is not None and finding.severity != NOTE and finding.code.startswith(("queue_", "broker_skips")):
            blamed[finding.topic, finding.queue_id or 0] += finding.count

    def weight(queue: Row) -> int:
        return sum(int(queue.get(name) or 0) for name in _COUNTS) + blamed[queue["topic"], queue["queue_id"]]

    differing = [q for q in outcome.queues if weight(q) or q.get("lost_messages") or q.get("problem")]
    differing.sort(key=lambda q: (-int(q.get("lost_messages") or 0), -weight(q), q["topic"], q["queue_id"]))
    agree = len(outcome.queues) - len(differing)
    yield "<h3>ConsumeQueues</h3>\n"
    if not outcome.queues:
        yield "<p>None.</p>\n"
    elif not differing:
        yield f"<p>All {len(outcome.queues):,} agree with the CommitLog and lose no message.</p>\n"
    else:
        verb = "differs or loses messages" if len(differing) == 1 else "differ or lose messages"
        yield f"<p>{len(differing):,} of {len(outcome.queues):,} {verb}; {agree:,} agree.</p>\n"
        yield from _differing(differing, blamed)
    files = [f for f in outcome.index_files if f.get("findings") or f.get("problem") or f.get("kept") is False]
    yield "<h3>Index files</h3>\n"
    if not outcome.index_files:
        yield "<p>None.</p>\n"
    elif not files:
        yield f"<p>All {len(outcome.index_files):,} agree with the CommitLog.</p>\n"
    else:
        of = f"{len(files):,} of {len(outcome.index_files):,}"
        verb = "has findings or is deleted by a start" if len(files) == 1 else "have findings or are deleted by a start"
        yield f"<p>{of} {verb}.</p>\n"
        rows2 = (
            (code_of(f["file"]), _number(f.get("entries")), _number(f.get("findings")),
             f"{int(f.get('begin_phy_offset') or 0):,} to {int(f.get('end_phy_offset') or 0):,}",
             span_text(int(f.get("begin_time_ms") or 0), int(f.get("end_time_ms") or 0)),
             markup(f["problem"], 200) if f.get("problem") else _STAYS[f.get("kept")])
            for f in files
        )  # fmt: skip
        heads = ("index file", "#entries", "#findings", "#physical offsets", "~stored", "kept by a start")
        yield from table(
            "Index files that differ", heads, rows2, len(files), MAX_ROWS, "the table index_files has all", stack=True
        )


_STAYS = {True: "yes", False: "no, deleted", None: "not known"}
_COUNTS = {"missing": "entry missing", "wrong": "entry wrong", "shifted": "entry shifted", "unexpected": "entry unexpected"}


def _differing(queues: Sequence[Row], blamed: Mapping[tuple[str, int], int]) -> Iterator[str]:
    """The table, without columns in which nothing stands."""
    shown = {**_COUNTS, "lost_messages": "would be lost"}
    shown = {name: words for name, words in shown.items() if any(q.get(name) for q in queues)}
    unread = any(q.get("problem") for q in queues)
    rows = (
        (f"{name_of(q['topic'])} / {q['queue_id']}{' (batch)' if q.get('batch') else ''}", _number(q.get("log_messages")),
         *(_number(q.get(name)) for name in shown), _number(blamed.get((q["topic"], q["queue_id"]))), _span_of(q),
         *([markup(q.get("problem") or "", 200)] if unread else []))
        for q in queues
    )  # fmt: skip
    heads = [
        "topic / queue",
        "#messages in the log",
        *(f"#{words}" for words in shown.values()),
        "#findings",
        "#offsets after a start",
    ]
    heads += ["not read"] if unread else []
    yield from table("ConsumeQueues that differ", heads, rows, len(queues), MAX_ROWS, "the table queues has all", stack=True)


def _number(value: object) -> str:
    return f"{int(value):,}" if value else "0"  # type: ignore[call-overload]


def _span_of(queue: Row) -> str:
    low, high = queue.get("dispatch_min_offset"), queue.get("dispatch_max_offset")
    return "none" if low is None or high is None else f"{low:,} to {high:,}"


# ---- findings ------------------------------------------------------------------------------------------------------


def _findings(outcome: AuditOutcome, words: Sequence[str]) -> Iterator[str]:
    if not outcome.findings:
        yield "<p>None: all parts of this copy agree with each other.</p>\n"
        return
    yield hint("By severity: " + "; ".join(f"<b>{s}</b>, {_SEVERITY_WORDS[s]}" for s in SEVERITIES) + ".")
    groups: dict[tuple[int, str], list[Finding]] = {}
    for finding in outcome.findings:
        groups.setdefault((SEVERITIES.index(finding.severity), finding.code), []).append(finding)
    counted: set[str] = set()
    for (rank, code), found in sorted(groups.items(), key=lambda item: item[0]):
        # What was dropped has no severity of its own left: it is told once, where the gravest of the code are.
        dropped = 0 if code in counted else outcome.findings_dropped.get(code, 0)
        counted.add(code)
        yield from _group(SEVERITIES[rank], code, meaning_of(outcome, code), found, dropped, words)


def _group(severity: str, code: str, meaning: str, found: Sequence[Finding], dropped: int, words: Sequence[str]) -> Iterator[str]:
    total = sum(f.count for f in found) + dropped
    badge = f'<span class="badge c-{SEVERITY_STYLE[severity]}">{severity}</span>'
    head = f"{badge} <b>{total:,}</b> {code_of(code)} {markup(meaning)}"
    yield f"<details{'' if severity == NOTE else ' open'}><summary>{head}</summary>\n"
    files = dict.fromkeys(f.file for f in found)
    if len(files) > 1:
        yield f'<p class="where">In {len(files):,} files.</p>\n'
    yield from (f'<p class="next">{markup(step)}</p>\n' for step in list(dict.fromkeys(f.next for f in found if f.next))[:3])
    yield '<ul class="findings">\n'
    yield from (_finding(finding, meaning, words) for finding in found[:FIRST_EXAMPLES])
    yield "</ul>\n"
    others = found[FIRST_EXAMPLES:MAX_EXAMPLES]
    if others:
        inner = ['<ul class="findings">\n', *(_finding(finding, meaning, words) for finding in others), "</ul>\n"]
        yield from fold(f"{len(others):,} more of these", inner)
    left = len(found) - min(len(found), MAX_EXAMPLES)
    if left:
        yield more(left, "finding", f"{code_of('findings.jsonl')} beside this page has all of them")
    if dropped:
        yield f'<p class="more">{dropped:,} more were counted but are not listed.</p>\n'
    yield "</details>\n"


def _finding(finding: Finding, meaning: str, words: Sequence[str]) -> str:
    where = code_of(finding.file, 600)
    if finding.start is not None and finding.end is not None:
        where += f" bytes {finding.start:,} to {finding.end:,}"
    if finding.phy_offset is not None:
        where += f", physical offset {finding.phy_offset:,}"
    if finding.topic is not None:
        where += f", topic {name_of(finding.topic)}"
        where += f" queue {finding.queue_id}" if finding.queue_id is not None else ""
        where += f" offset {finding.queue_offset:,}" if finding.queue_offset is not None else ""
    parts = [f'<li><span class="at">{where}</span>']
    if finding.message and finding.message != meaning:
        parts.append(markup(finding.message, 600))
    if finding.count > 1 and not finding.code.startswith("broker_"):  # those say their number themselves
        parts.append(f" ({finding.count:,} in a row, listed as one)")
    if finding.expected is not None or finding.actual is not None:
        expected = f"expected {code_of(finding.expected, 300)}" if finding.expected is not None else ""
        actual = f"found {code_of(finding.actual, 300)}" if finding.actual is not None else ""
        parts.append(f'<span class="values">{", ".join(part for part in (expected, actual) if part)}</span>')
    parts.append(command_of(closer_look(finding, words)) + "</li>\n")
    return "".join(parts)


# ---- plan, settings, limits ----------------------------------------------------------------------------------------


def _steps(outcome: AuditOutcome, repairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    steps = list(enumerate(outcome.plan.get("steps", ()), 1))
    yield hint(
        "The release's own cut made consistent, step by step: the CommitLog first, then what is made from it. Nothing was carried"
        " out; the copy was only read. <b>Lost messages</b> are those that a step gives up; a repair with --policy salvage keeps"
        " them."
    )
    runs = [list(run) for _, run in groupby(steps, lambda pair: _kind_of(pair[1]))]
    if all(step["action"] == "keep" for _, step in steps):
        yield "<p>No file has to change.</p>\n"
    yield '<ol class="steps">\n'
    for run in runs[:MAX_STEPS]:
        yield from _run_of_steps(run)
    yield "</ol>\n"
    if len(runs) > MAX_STEPS:
        yield more(sum(map(len, runs[MAX_STEPS:])), "step", "plan.json has all")
    withheld = repair_withheld(outcome)
    if withheld:
        yield f"<p>{withheld}</p>\n"
    if repairs:
        yield hint("A repair writes a new store, on which the release starts as after a clean stop. The copy is not changed.")
    for what, command in repairs:
        yield f"<p>{what}:</p>\n{command_of(command)}"


def _kind_of(step: Row) -> tuple[str, str, str]:
    """Neighbouring steps of one kind are told as one: of segments those that do the same, of queue files all that a cut takes."""
    top = str(step["file"]).partition("/")[0]
    return top, str(step["reason"]), "" if top in _QUEUE_FOLDERS and step["action"] != "rebuild" else str(step["action"])


def _run_of_steps(steps: Sequence[tuple[int, Row]]) -> Iterator[str]:
    """Neighbouring steps of one kind."""
    messages = sum(int(s.get("lost_messages") or 0) for _, s in steps)
    size = sum(int(s.get("lost_bytes") or 0) for _, s in steps)
    lost = f', <span class="c-stop">gives up {count_text(messages, "message")}, {bytes_text(size)}</span>' if messages else ""
    (first, step), (last, _) = steps[0], steps[-1]
    why = f'<span class="why">{markup(step["reason"], 600)}</span>'
    if len(steps) == 1:
        yield f"<li>{first}. <b>{markup(step['action'])}</b> {code_of(step['file'], 600)}{_range_of(step)}{lost}{why}</li>\n"
        return
    actions = Counter(str(s["action"]) for _, s in steps)
    what = ", ".join(
        f"<b>{markup(action)}</b> {count_text(number, *_things(steps))}" for action, number in sorted(actions.items())
    )
    heads = ("file", "step", "bytes", "#lost messages", "#lost bytes")
    rows = (
        (code_of(s["file"], 600), markup(s["action"]), _range_of(s).removeprefix(", bytes "), _number(s.get("lost_messages")),
         _number(s.get("lost_bytes")))
        for _, s in steps
    )  # fmt: skip
    yield "<li>"
    inner = table(f"Steps {first} to {last}", heads, rows, len(steps), MAX_ROWS, "plan.json has all")
    yield from fold(f"{first} to {last}. {what}{lost}{why}", inner)
    yield "</li>\n"


_QUEUE_FOLDERS = {"consumequeue", "batchconsumequeue"}


def _things(steps: Sequence[tuple[int, Row]]) -> tuple[str, str]:
    """What the steps act on, one and many."""
    tops = {str(step["file"]).partition("/")[0] for _, step in steps}
    if tops == {"commitlog"}:
        return "segment", "segments"
    if tops <= _QUEUE_FOLDERS:
        return ("queue", "queues") if steps[0][1]["action"] == "rebuild" else ("queue file", "queue files")
    return ("index file", "index files") if tops == {"index"} else ("file or queue", "files or queues")


def _range_of(step: Row) -> str:
    return "" if step.get("start") is None or step.get("end") is None else f", bytes {step['start']:,} to {step['end']:,}"


def _settings(outcome: AuditOutcome) -> Iterator[str]:
    settings = sorted(outcome.plan["settings"].items())
    yield hint(
        "These settings decide how the broker reads this store. <b>broker.conf</b>: from the file that you passed;"
        " <b>inferred</b>: from the sizes of the files; <b>default</b>: the release's default."
    )
    own = [(k, s) for k, s in settings if s["from"] != "default"]
    rest = [(k, s) for k, s in settings if s["from"] == "default"]
    heads = ("setting", "value", "from")
    if own:
        yield from table("Settings other than the release's defaults", heads, map(_setting, own), len(own), MAX_ROWS)
    else:
        yield "<p>All are the release's defaults: no broker.conf was passed, or it sets nothing that matters here.</p>\n"
    if rest:
        inner = list(table("Default settings", heads, map(_setting, rest), len(rest), MAX_ROWS))
        yield from fold(f"{count_text(len(rest), 'default')}", inner)


def _setting(row: tuple[str, Row]) -> tuple[str, ...]:
    key, setting = row
    return code_of(key), markup(_plain(setting["value"]), 300), markup(setting["from"])


def _plain(value: object) -> object:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def _limits(outcome: AuditOutcome) -> Iterator[str]:
    segments = outcome.segments
    queue_files = sum(int(q.get("file_count") or 0) for q in outcome.queues)
    rows = [
        ("CommitLog", segments, count_text(outcome.segment_count, "segment"), _bytes_of(segments)),
        ("ConsumeQueues", outcome.queues, f"{count_text(len(outcome.queues), 'queue')}, {count_text(queue_files, 'file')}", None),
        ("index", outcome.index_files, count_text(len(outcome.index_files), "file"),
         _bytes_of(outcome.index_files)),
    ]  # fmt: skip
    cells = (
        (part, what, bytes_text(sum(int(r.get("bytes_read") or 0) for r in of)), "" if size is None else bytes_text(size),
         f"{sum(1 for r in of if r.get('problem')):,}")
        for part, of, what, size in rows
    )  # fmt: skip
    if outcome.segment_count or outcome.queues:
        heads = ("part", "what was found", "#read", "#size", "#not fully read")
        yield from table("What was read", heads, cells, len(rows), len(rows))
        inputs = outcome.plan.get("inputs", ())
        if inputs:
            yield f"<p>plan.json names {count_text(len(inputs), 'file')} with digests: a repair refuses if one has changed.</p>\n"
    dropped = sum(outcome.findings_dropped.values())
    if dropped:
        yield f"<p>{dropped:,} more disagreements were counted but are not listed: the list has a limit.</p>\n"
    if outcome.not_read:
        yield "<p>Not read, as you asked:</p>\n<ul>"
        yield from (f"<li>{markup(told)}</li>" for told in not_read_texts(outcome))
        yield "</ul>\n"
    if outcome.incomplete:
        yield f"<p>The audit is <b>not complete</b>: {count_text(len(outcome.incomplete), 'reason')}, listed at the top.</p>\n"
    yield '<h3>What no check of a copy can see</h3>\n<ul class="plain">'
    yield from (f"<li>{words}</li>" for words in _BLIND)
    yield "</ul>\n<h3>What is not modelled</h3>\n"
    yield (
        "<p>ConsumeQueues in RocksDB, a DLedger CommitLog, controller mode, tiered storage and compacted topics are recognised"
        " but not judged: the answer for such a store is not known, never damaged. The audit does not look at the machine: its"
        " heap, disk or network.</p>\n"
    )


def _bytes_of(rows: Sequence[Row]) -> int:
    return sum(int(row.get("size_bytes") or 0) for row in rows)


_BLIND = (
    "A message's <b>header and properties have no checksum</b>, unless the broker is set to append one. A changed topic,"
    " queue, tag or key shows only where a ConsumeQueue or index entry contradicts it. The body's checksum finds accidents,"
    " not intent.",
    "<b>What the copy does not hold leaves no trace</b>. If the newest segments are missing, the log seems to end before"
    " them. Messages that retention deleted cannot be checked.",
    "A copy <b>taken from a running broker</b> has parts of different moments. Differences from that are not damage.",
    "Whether <b>producers and consumers</b> agree with this store. Group offsets are compared with the queues' ends; nothing else"
    " in config/ is judged.",
)


def footer(run: RunInfo | None, release: str = "") -> str:
    """What the page comes from; markup."""
    parts = ["Made from the files alone. No broker was started, and the copy was only read."]
    if run is not None:
        when = run.started_at.strftime("%Y-%m-%d %H:%M:%S")
        parts.append(
            f"Run {code_of(run.run_id)}, begun {when} UTC, version {markup(run.tool_version)}, rules {markup(run.rules_version)}."
        )
    parts.append(
        "Topics and file names are shown as stored, invisible characters as escapes. Message keys and bodies are not shown."
    )
    return f"<footer><p>{' '.join(parts)}</p></footer>\n"
