"""index.html of a run: all its stores, the most dangerous first, each with a link to its own page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from jobs.report.files.replicas_json import groups_of
from jobs.report.files.result_json import RunInfo, run_exit_code
from jobs.report.pages.page import code_of, fact, hint, more, name_of, page, table
from jobs.report.pages.report_html import footer, icon, style_of
from jobs.report.texts.judgement import (
    CARE,
    DANGER,
    EMPTY,
    GONE,
    KINDS,
    LACKS,
    PARTED,
    REBUILD,
    REFUSES,
    SAFE,
    SHORT,
    STOP,
    UNKNOWN,
    Judgement,
    damaged_sentence,
    lacking_sentence,
    most_dangerous_first,
)
from jobs.report.texts.ranking import assumed_words, exit_words, lacks_of, lost_of, note_kinds
from jobs.report.texts.replicas_words import choice_words
from jobs.report.texts.text import bytes_text, count_text, markup, seconds_text, span_text
from schemas.rows import LOSS, NOTE, REBUILDABLE, AuditOutcome

MAX_STORES = 5000  # with a row
MAX_GROUPS = 500  # with a sentence


def index_html(run: RunInfo, outcomes: Sequence[AuditOutcome]) -> Iterator[str]:
    """The whole page, in pieces."""
    return page("RocketMQ store audit", _body(run, most_dangerous_first(outcomes), run_exit_code(run, outcomes)))


def _body(run: RunInfo, judged: Sequence[tuple[AuditOutcome, Judgement]], code: int) -> Iterator[str]:
    yield '<header><p class="kicker">RocketMQ store audit</p>\n'
    yield f"<h1>{count_text(len(judged), 'store')}, most dangerous first</h1></header>\n<main>\n"
    kinds = Counter(judgement.kind for _, judgement in judged)
    worst = judged[0][1].kind if judged else SAFE
    style = style_of(worst, judged[0][0].exit_code if judged else 0)
    yield f'<section class="answer a-{style}" aria-labelledby="answer">{icon(worst, style)}<div>\n'
    yield f'<h2 id="answer" class="c-{style}">{_sentence(kinds, len(judged))}</h2>\n<ul>'
    yield from (f"<li>{words}</li>" for words in _counts(kinds))
    told = assumed_words([outcome for outcome, _ in judged])
    yield f"<li>{told[:1].upper()}{told[1:]}.</li>" if told else ""
    yield from (f"<li>{markup(problem)}</li>" for problem in run.problems)
    yield "</ul></div></section>\n"
    lost = [lost_of(outcome) for outcome, _ in judged]
    yield '<dl class="facts">\n'
    messages = sum(m for m, _ in lost)
    affected = sum(1 for m, _ in lost if m)
    words = f"would be lost, {bytes_text(sum(b for _, b in lost))} in {count_text(affected, 'store')}"
    unsound = kinds[GONE] or kinds[PARTED] or kinds[LACKS]
    yield fact(count_text(messages, "message"), words, "c-stop" if messages else "" if unsound else "c-safe")
    counts: Counter[str] = Counter()
    for outcome, _ in judged:
        counts.update(outcome.counts)
    told = f"{counts[LOSS]:,} loss, {counts[REBUILDABLE]:,} rebuildable, {count_text(counts[NOTE], 'note')}"
    notes = note_kinds(outcome for outcome, _ in judged)
    yield fact(count_text(sum(counts.values()), "finding"), told + (f": {markup(notes)}" if notes else ""))
    yield fact(bytes_text(sum(o.bytes_read for o, _ in judged)), f"read in {seconds_text(run.seconds)}")
    yield fact(str(code), f"exit code of the run: {exit_words(code, [outcome for outcome, _ in judged])}")
    yield "</dl>\n"
    yield '<section aria-labelledby="stores"><h2 id="stores">Stores</h2>\n'
    yield hint(
        "A start changes a store for good: the broker cuts the log at the first record that it does not trust. Read a store's"
        " page before you start it. <b>Lost</b>: valid messages that consumers do not get after a start. <b>Findings</b>: loss /"
        " rebuildable / notes."
    )
    rows = (_row(outcome, judgement) for outcome, judgement in judged)
    heads = (
        "store",
        "safe to start?",
        "+verdict",
        "#lost",
        "#findings",
        "messages stored",
        "release",
        "#exit code",
    )
    yield from table("Stores", heads, rows, len(judged), MAX_STORES, "result.json has all", stack=True)
    yield "</section>\n"
    yield from _groups(judged)
    yield "</main>\n" + footer(run)


def _sentence(kinds: Counter[str], stores: int) -> str:
    unsafe = kinds[STOP] + kinds[GONE] + kinds[REFUSES]
    if unsafe:
        return f"{unsafe:,} of {count_text(stores, 'store')} {'is' if unsafe == 1 else 'are'} not safe to start"
    if kinds[CARE]:
        return damaged_sentence(kinds[CARE], stores)
    if kinds[UNKNOWN]:
        return f"For {kinds[UNKNOWN]:,} of {count_text(stores, 'store')} it is not known whether a start is safe"
    if stores and kinds[SAFE] == stores:
        return "All stores are safe to start" if stores > 1 else "The store is safe to start"
    if kinds[PARTED] or kinds[LACKS]:
        return lacking_sentence(kinds[PARTED] + kinds[LACKS], stores)
    return "No start loses a message, but some stores need care" if stores > 1 else "A start loses no message"


def _counts(kinds: Counter[str]) -> Iterator[str]:
    words = {
        STOP: "do not start yet: messages would be lost, or too much is damaged or could not be read",
        UNKNOWN: "not audited, or only in part",
        REFUSES: "the release does not start on the copy",
        GONE: "all messages are gone, or those at the log's end that an earlier audit saw",
        PARTED: "another copy of the group holds other messages: whichever becomes master, the other's are lost",
        LACKS: "another copy of the group holds messages that are missing here: do not start as master",
        CARE: "already damaged; a start makes nothing worse",
        REBUILD: "ConsumeQueues, index files or the checkpoint need a rebuild",
        EMPTY: "no message, and nothing shows that there ever was one",
        SAFE: "consistent",
    }
    yield from (f"{count_text(kinds[kind], 'store')}: {words[kind]}" for kind in KINDS if kinds[kind])


def _row(outcome: AuditOutcome, judgement: Judgement) -> tuple[str, ...]:
    messages, size = lost_of(outcome)
    known = bool((outcome.plan.get("broker") or {}).get("starts"))
    lost = f"{messages:,}" + (f"<br>{bytes_text(size)}" if messages else "") if known else "not known"
    counts = " / ".join(f"{outcome.counts.get(severity, 0):,}" for severity in (LOSS, REBUILDABLE, NOTE))
    link = f'<a href="{quote(outcome.name, safe="", errors="surrogatepass")}/report.html">{name_of(outcome.name)}</a>'
    group = f"<br>group {name_of(outcome.replica_group, 80)}" if outcome.replica_group else ""
    when = span_text(outcome.first_store_time, outcome.last_store_time) if outcome.messages else ""
    return (
        link + group,
        f'<span class="badge c-{style_of(judgement.kind, outcome.exit_code)}">{SHORT[judgement.kind]}</span>',
        markup(outcome.verdict, 400) + _notes(outcome),
        lost,
        counts,
        when,
        markup(outcome.release),
        str(outcome.exit_code),
    )


def _notes(outcome: AuditOutcome) -> str:
    """The kinds of a store's notes, of which its column has but the number."""
    notes = note_kinds([outcome])
    return f'<br><span class="where">{count_text(outcome.counts.get(NOTE, 0), "note")}: {markup(notes)}</span>' if notes else ""


def _by_start(pair: tuple[AuditOutcome, Judgement]) -> int:
    """Of copies of one broker the most dangerous to start first, whatever their exit codes."""
    return -DANGER[pair[1].kind]


def _groups(judged: Sequence[tuple[AuditOutcome, Judgement]]) -> Iterator[str]:
    """Copies of one broker side by side, the one that a start harms least first, and what their comparison says."""
    groups: dict[str, list[tuple[AuditOutcome, Judgement]]] = defaultdict(list)
    for pair in judged:
        if pair[0].replica_group:
            groups[pair[0].replica_group].append(pair)
    several = {name: sorted(pairs, key=_by_start) for name, pairs in sorted(groups.items()) if len(pairs) > 1}
    if not several:
        return
    yield '<section aria-labelledby="groups"><h2 id="groups">Copies of one broker</h2>\n'
    yield hint(
        "Stores with the same replica group, the one that a start harms least first. <b>Lost</b>: messages that its start"
        " would cut. <b>Lacks</b>: messages that other copies hold and this one does not; as master it would lose them."
    )
    chosen = {str(group["group"]): choice_words(group) for group in groups_of([outcome for outcome, _ in judged])}
    told = [f"<li><b>{name_of(name, 80)}</b>: {markup(chosen[name], 600)}</li>" for name in several if name in chosen]
    if told:
        yield f'<ul class="plain">{"".join(told[:MAX_GROUPS])}</ul>\n'
    if len(told) > MAX_GROUPS:
        yield more(len(told) - MAX_GROUPS, "group", "replicas.json has all")
    rows = [
        (
            name_of(name, 80),
            name_of(outcome.name),
            SHORT[judgement.kind],
            f"{lost_of(outcome)[0]:,}",
            f"{lacks_of(outcome)[0]:,}" if outcome.replicas else "not known",
            span_text(outcome.first_store_time, outcome.last_store_time) if outcome.messages else "no message",
            code_of(outcome.release),
        )
        for name, pairs in several.items()
        for outcome, judgement in reversed(pairs)
    ]
    heads = ("replica group", "store", "safe to start?", "#lost", "#lacks", "messages stored", "release")
    yield from table("Copies of one broker", heads, rows, len(rows), MAX_STORES, "result.json has all", stack=True)
    yield "</section>\n"
