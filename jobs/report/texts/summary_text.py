"""The short text at the end of a run: is a start safe, and what would it cut and lose.

It also says what differs, and what to do next. A fleet has one line per store, the most dangerous first, and a total.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from jobs.cli.stores import RESULT
from jobs.cli.terminal import BOLD, CODE_COLOUR, FAINT, GREEN, RED, YELLOW, Paint, code_colour, fold_width
from jobs.report.files.result_files import RunInfo, groups_of
from jobs.report.texts.commands import closer_look, closer_withheld, repair_commands, repair_withheld, words_of
from jobs.report.texts.comparison_words import (
    ComparedLine,
    choice_words,
    config_words,
    least_text,
    lost_text,
    pair_words,
    release_lines,
    setting_lines,
)
from jobs.report.texts.finding_words import finding_groups
from jobs.report.texts.next_steps import ShownStep, first_name, shown_steps
from jobs.report.texts.run_words import (
    assumed_words,
    broker_name_of,
    exit_words,
    note_kinds,
    store_title,
    would_be_lost,
)
from jobs.report.texts.safety_text import held, most_dangerous_first, timer_words, why_it_ends
from jobs.report.texts.step_words import deleted_files
from jobs.report.texts.text import name_text, not_read_texts, printable, seconds_text
from schemas.answer import Answer, StepName
from schemas.finding_codes import Code
from schemas.outcome import Outcome
from schemas.replicas import Relation
from schemas.rows import ASSUMED, DOUBT, LOSS, NOTE, NOTED, REBUILDABLE, TAKEN
from schemas.start_effect import StartEffect
from store_io.answer.answers import answer_of
from store_io.answer.headline import judge, recovery_cuts
from store_io.base.exit_codes import SEVERITIES, of_run, rank
from store_io.base.times import span_text
from store_io.base.wording import bytes_text, clause, count_text, names_text
from store_io.outcome.safety import (
    Safety,
    is_emptied,
    lacks_of,
    named_notes,
    settings_at_odds,
)

_SEVERITY_COLOUR = {LOSS: RED, REBUILDABLE: YELLOW, NOTE: FAINT}
_SEVERITY_WORDS = {LOSS: ("loss", "losses"), REBUILDABLE: ("rebuildable", "rebuildable"), NOTE: ("note", "notes")}
_PREMISE_WORDS = {TAKEN: "Settings", DOUBT: "Doubt", ASSUMED: "Assumed", NOTED: "Noted"}
_LINES = 5  # of a list: topics, groups, codes, next steps
_NAME = 40  # characters of a name
_HEADLINE = 300  # characters of a headline in a list of stores
_WIDTH = 120  # characters of a line of ours at most; paths and commands are never broken
_STORES = 50  # of a fleet with a line each; of those that are safe to start, fewer
_SAFE_STORES = 10
_INDENT = 13  # where a row's text begins
_STEP = 800  # characters of a step
_NUMBER = 11  # a count at the start of a line, with the gap after it


def summary_text(run: RunInfo, outcomes: Sequence[Outcome], out: str, colour: bool = False, words: Sequence[str] = ()) -> str:
    """Return the whole text, with its last line end.

    out: the folder of the results, as the user named it.
    colour: only if a terminal reads it and NO_COLOR is not set.
    words: those with which another command reads the one store (`commands.store_words`).
    """
    paint = Paint(colour)
    lines: list[str] = []
    if len(outcomes) == 1:
        plan = "" if outcomes[0].name in run.unwritten else f"{out}/{outcomes[0].name}/plan.json"
        lines += _store(outcomes[0], paint, words, plan)
    else:
        lines += _fleet(outcomes, paint)
        lines += [line for said in run.copies[:_LINES] for line in _rows("Replicas", printable(said), 2)]
        lines += _more(len(run.copies) - _LINES, "log with copies", "logs with copies")
        lines += _replicas(outcomes)
    for problem in run.problems:
        lines.append(_row("Problem", paint(YELLOW, printable(problem))))
    code = of_run((o.exit_code for o in outcomes), run.problems)
    folder, found = printable(out), "index.html to read; plan.json, findings.jsonl and report.html of each store in its folder"
    if len(outcomes) == 1:
        found = f"{printable(outcomes[0].name)}/report.html to read; plan.json and findings.jsonl beside it"
    if run.unwritten:
        missing = names_text([printable(name) for name in sorted(run.unwritten)])
        lines += _rows("Results", f"not all are in {folder} ({missing}): audit again with another --out before a repair")
    else:
        lines.append(_row("Results", f"{folder}/{found}"))
    if RESULT not in run.unwritten:
        lines.append(_row("", f"{folder}/{RESULT}"))
    if run.tables and not run.problems:
        lines.append(_row("", f"tables in {printable(run.tables)}, run {printable(run.run_id)}"))
    colour_of_run = code_colour(code, any(lacks_of(outcome)[1] for outcome in outcomes))
    lines.append(_row("Exit code", paint(colour_of_run, f"{code} ({exit_words(code, outcomes)})")))
    return "\n".join(lines) + "\n"


def _row(label: str, text: str) -> str:
    return f"  {label:<10} {text}".rstrip()


def _rows(label: str, text: str, indent: int = 0) -> list[str]:
    """Return a row whose text wraps; later lines are indented by `indent`."""
    further = " " * indent
    room = fold_width(_WIDTH) - _INDENT
    wrapped = textwrap.wrap(text, room, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
    return [_row(label if not i else "", line) for i, line in enumerate(wrapped or [""])]


def _store(outcome: Outcome, paint: Paint, words: Sequence[str], plan: str) -> list[str]:
    judgement = judge(outcome)
    head = f"{_title(outcome)}: {printable(judgement.headline)}"
    lines = [paint(BOLD + CODE_COLOUR[outcome.exit_code], head)]
    for premise in outcome.assumed.premises:
        lines += _rows(_PREMISE_WORDS[premise.kind], printable(premise.sentence))
    steps = shown_steps(outcome, words or words_of(outcome), plan)
    lines += [_row("Answer", answer_of(outcome)), *_next(steps)]
    lines += _optional_repair(outcome, words or words_of(outcome), plan)
    lines += [line for place, why in enumerate(judgement.why) for line in _rows("" if place else "Why", printable(why))]
    further = outcome.incomplete[1:]  # the headline or a reason has the first
    lines += [_row("Incomplete" if not i else "", printable(sentence)) for i, sentence in enumerate(further[:_LINES])]
    lines += _more(len(further) - _LINES, "reason")
    if not outcome.complete and not outcome.holds.segment_count:
        return lines
    if outcome.effect is not None:
        lines += _start(outcome, outcome.effect, paint)
    if outcome.started is not None:
        lines += _loss(outcome, paint)
    lines += _compared(outcome, paint)
    lines += _differences(outcome, paint)
    lines += _closer(outcome, words or words_of(outcome), steps)
    size = f"{count_text(outcome.holds.segment_count, 'segment')}, {held(outcome)}"
    if outcome.holds.messages:
        size += f" of {span_text(outcome.holds.first_store_time, outcome.holds.last_store_time)}"
    if outcome.covered.not_read.segments:
        size += " in what was read"
    if outcome.holds.damaged_extents:
        size += f", {count_text(outcome.holds.damaged_extents, 'damaged range')}"
    lines.append(_row("Copy", size))
    lines += [_row("Not read" if not i else "", part) for i, part in enumerate(not_read_texts(outcome))]
    fetched = f", {bytes_text(outcome.cost.bytes_fetched)} fetched" if outcome.cost.bytes_fetched else ""
    lines.append(_row("Read", f"{bytes_text(outcome.cost.bytes_read)} in {seconds_text(outcome.cost.seconds)}{fetched}"))
    return lines


def _start(outcome: Outcome, effect: StartEffect, paint: Paint) -> list[str]:
    release, started = f"RocketMQ {outcome.release}", effect.started
    after = "a clean stop" if effect.clean else "a crash (the abort file is there)"
    if started is None:
        return [_row("Starts", paint(RED, "no") + f", {release} refuses")]  # `Why` says the cause
    lines = [_row("Starts", paint(_sound(outcome), "yes") + f", {release}, as after {after}")]
    if started.start_segment is not None:
        lines.append(_row("Reads", f"from segment {printable(started.start_segment)}"))
    if not recovery_cuts(outcome):  # else `Why` says it
        ends = f"at physical offset {count_text(started.log_end)}"
        lines.append(_row("Ends", f"{ends}: {clause(why_it_ends(outcome, started))}"))
    for place, deleted in enumerate(deleted_files(outcome)):
        words = paint(RED if deleted.held else "", deleted.words)
        lines.append(_row("" if place else "Deletes", f"{words}: {_listed(deleted.files)}"))
    return lines


def _sound(outcome: Outcome) -> str:
    """Return the colour of good news: none for a copy of which nothing is left."""
    return "" if is_emptied(outcome) or not outcome.holds.messages else GREEN


def _loss(outcome: Outcome, paint: Paint) -> list[str]:
    messages, size = outcome.loss.messages, outcome.loss.bytes
    timers = [_row("Timers", words) for words in timer_words(outcome)]
    left_out = [finding.message for finding in settings_at_odds(outcome) if finding.code == Code.MESSAGES_NOT_READ]
    unread = [line for message in left_out[:_LINES] for line in _rows("Loses", printable(message))]
    loss = outcome.loss
    if not messages and not loss.groups and not loss.delay_levels:
        return [*unread, *timers] or [_row("Loses", "nothing")]
    lines = [*unread, _row("Loses", paint(RED, count_text(messages, "message")) + f", {bytes_text(size)}")]
    topics = sorted(loss.by_topic, key=lambda topic: (-topic.messages, topic.topic))
    for topic in topics[:_LINES]:
        when = span_text(topic.first_store_time, topic.last_store_time)
        lines.append(_row("", f"{topic.messages:>9,}  {name_text(topic.topic, _NAME)}, {when}"))
    lines += _more(len(topics) - _LINES, "topic")
    for group in loss.groups[:_LINES]:
        who = f"group {name_text(group.group, _NAME)} on {name_text(group.topic, _NAME)}/{group.queue_id}"
        lines.append(_row("", f"{who} is at {group.offset:,}, the queue would end at {group.new_max:,}"))
    lines += _more(len(loss.groups) - _LINES, "group")
    for level in loss.delay_levels[:_LINES]:
        lines.append(_row("", f"delay level {level.level} is at {level.offset:,}, its queue would end at {level.new_max:,}"))
    lines += _more(len(loss.delay_levels) - _LINES, "delay level")
    return lines + timers


def _compared(outcome: Outcome, paint: Paint) -> list[str]:
    """Return the lines of releases and settings beside one another; [] if nobody asked for them."""
    compared = outcome.comparison
    if compared is None:
        return []
    releases, settings = release_lines(compared), setting_lines(compared)
    width = max((len(line.what) for line in [*releases, *settings]), default=0)
    lines = [_row("Releases", f"{'':<{width}}  {'loses':>14}  {'the log ends at':>18}  {'deletes':>9}  code")]
    lines += _compared_lines(releases, width, paint, _sound(outcome))
    lines += _rows("", least_text(outcome, compared))
    if settings:
        lines.append(_row("Settings", f"RocketMQ {printable(outcome.release)} with another one of these:"))
        lines += _compared_lines(settings, width, paint, _sound(outcome))
    return lines


def _compared_lines(lines: Sequence[ComparedLine], width: int, paint: Paint, sound: str) -> list[str]:
    found = []
    notes: dict[str, None] = {}
    for line in lines:
        row, lost = line.row, f"{lost_text(line.row):>14}"
        numbers = f"{'':>18}  {'':>9}"
        if line.ends:
            numbers = f"{row.log_end:>18,}  {count_text(row.deleted_files or 0, 'file'):>9}"
        colour = sound if line.least else RED if line.ends and row.lost_messages else ""
        code = "" if line.exit_code is None else paint(CODE_COLOUR[line.exit_code], f"{line.exit_code:>4}")
        found.append(_row("", f"{line.what:<{width}}  {paint(colour, lost)}  {numbers}  {code}"))
        if line.note:
            notes[f"{line.what}: {line.note}"] = None
    for note in list(notes)[:_LINES]:
        found += _rows("", note, 2)
    return found + _more(len(notes) - _LINES, "reason")


def _differences(outcome: Outcome, paint: Paint) -> list[str]:
    counts = {severity: outcome.found.counts.get(severity, 0) for severity in SEVERITIES}
    if not any(counts.values()):
        return [_row("Differs", "nothing" if outcome.complete else "nothing in what was read")]
    found = [paint(_SEVERITY_COLOUR[s], count_text(number, *_SEVERITY_WORDS[s])) for s, number in counts.items() if number]
    notes = note_kinds([outcome])
    groups = [group for group in finding_groups(outcome) if group.severity != NOTE]
    others = sum(group.total for group in groups) != counts[LOSS] + counts[REBUILDABLE]
    unit = "; below: messages or entries" if others else ""
    lines = _rows("Differs", ", ".join(found) + (f": {notes}" if notes else "") + unit)
    for group in groups[:_LINES]:
        files = sorted({f.file for f in group.found if f.file})
        where = f" ({_listed(files)})" if files else ""
        lines += _rows("", f"{group.total:>{_NUMBER - 2},}  {group.code}: {clause(group.meaning or group.code)}{where}", _NUMBER)
    lines += _more(len(groups) - _LINES, "kind")
    return lines


def _next(steps: Sequence[ShownStep]) -> Iterator[str]:
    """Yield the steps in their order, each with its command."""
    for number, step in enumerate(steps, 1):
        yield from _rows("" if number > 1 else "Next", printable(f"{number}. {step.name}: {step.text}", _STEP), 3)
        if step.command:
            yield _row("Repair" if step.name == StepName.REPAIR else "", step.command)


def _optional_repair(outcome: Outcome, words: Sequence[str], plan: str) -> list[str]:
    """Return the lines of a repair that nobody needs, as a start mends what differs; or why no command is shown."""
    if answer_of(outcome) != Answer.START_MENDS or outcome.in_use:
        return []
    if withheld := repair_withheld(outcome):
        return _rows("Repair", printable(withheld))
    commands = [command for _, command in repair_commands(outcome, words, plan) if command]
    return [*_rows("", "A repair is optional: it leaves nothing to the start."), _row("Repair", commands[0])] if commands else []


def _closer(outcome: Outcome, words: Sequence[str], steps: Sequence[ShownStep]) -> list[str]:
    """Return the command that shows more of the most severe finding, or why there is none.

    A note that is a reason of the answer counts as well. A reason that a step gives is not repeated.
    """
    serious = [f for severity in (LOSS, REBUILDABLE) for f in outcome.found.findings if f.severity == severity]
    looks = ((closer_look(finding, words), closer_withheld(finding, words)) for finding in (*serious, *named_notes(outcome)))
    command, withheld = next(filter(any, looks), ("", ""))
    if command or not withheld or any(withheld in step.text for step in steps):
        return [_row("Closer", command)] if command else []
    return _rows("Closer", withheld)


def _listed(names: Sequence[str]) -> str:
    return names_text([printable(name, 80) for name in names], 2)


def _more(rest: int, noun: str, plural: str = "") -> list[str]:
    return [_row("", f"           and {count_text(rest, 'more ' + noun, plural and 'more ' + plural)}")] if rest > 0 else []


def _title(outcome: Outcome) -> str:
    return printable(store_title(outcome.name, broker_name_of(outcome), _NAME), _NAME)


def _fleet(outcomes: Sequence[Outcome], paint: Paint) -> Iterator[str]:
    judged = most_dangerous_first(outcomes)
    safe = accumulate(judgement.kind == Safety.SAFE for _, judgement in judged)
    most = min(_STORES, sum(1 for number in safe if number <= _SAFE_STORES))  # with a line of their own
    shown, folded = judged[:most], Counter(answer_of(outcome) for outcome, _ in judged[most:])
    width = min(_NAME, max((len(_title(outcome)) for outcome, _ in shown), default=4))
    answer = f"{'answer':<11}  {'first':<9}"
    yield paint(BOLD, f"{'code':>4}  {'store':<{width}}  {'release':<7}  {answer}  {'lost messages':>13}  headline")
    for outcome, judgement in shown:
        lost = count_text(outcome.loss.messages) if outcome.started is not None else "?"
        code = paint(code_colour(outcome.exit_code, lacks_of(outcome)[1]), f"{outcome.exit_code:>4}")
        name = f"{_title(outcome):<{width}}"
        answer = f"{answer_of(outcome):<11}  {first_name(outcome):<9}"
        start = f"{code}  {name}  {printable(outcome.release):<7}  {answer}  {lost:>13}"
        yield f"{start}  {printable(judgement.headline, _HEADLINE)}"
    for rest, number in folded.items():
        yield f"      and {count_text(number, 'more store')}: {rest}"
    kinds = Counter((-rank(o.exit_code), exit_words(o.exit_code, [o])) for o in outcomes)
    codes = ", ".join(f"{kinds[kind]:,} {kind[1]}" for kind in sorted(kinds, key=lambda kind: (kind[0], kind[1] != LOSS)))
    lost_total = sum(o.loss.messages for o in outcomes)
    unknown = sum(o.started is None for o in outcomes)
    lost_words = would_be_lost(count_text(lost_total, "message"), unknown)
    yield paint(BOLD, f"{count_text(len(outcomes), 'store')}: {codes or 'none'}; {lost_words}")
    if assumed := assumed_words(outcomes):
        yield _row("Assumed", assumed)


def _replicas(outcomes: Sequence[Outcome]) -> Iterator[str]:
    groups = groups_of(outcomes)
    for group in groups[:_LINES]:
        yield _row("Replicas", printable(f"{group.name}: {choice_words(group)}"))
        places = [f"{copy.store} is {copy.location}" for copy in group.copies if copy.location]
        yield from (line for place in places[:_LINES] for line in _rows("", printable(place), 2))
        yield from _more(len(places) - _LINES, "copy", "copies")
        different = [pair for pair in group.pairs if pair.relation != Relation.EQUAL]
        yield from (_row("", printable(pair_words(pair))) for pair in different[:_LINES])
        yield from _more(len(different) - _LINES, "pair of copies")
        tables = list(config_words(group))
        yield from (line for sentence in tables[:_LINES] for line in _rows("", printable(sentence), 2))
        yield from _more(len(tables) - _LINES, "table of config/", "tables of config/")
        yield from (_row("", printable(problem)) for problem in group.problems[:_LINES])
    yield from _more(len(groups) - _LINES, "group")
