"""A repair as people read it on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from jobs.report.texts.step_words import step_text
from jobs.report.texts.text import printable
from schemas.finding_codes import CATALOGUE
from schemas.layouts.store_names import COMMITLOG
from schemas.repair import (
    BY_GROUP,
    Bridge,
    ConfigFile,
    DatabaseMade,
    DroppedMessage,
    FindingKept,
    FormLeft,
    GivenUp,
    HealReport,
    IndexMade,
    LeftMessages,
    LeftRange,
    LogRange,
    MovedRange,
    OtherPolicy,
    PositionBeyond,
    QueueMade,
    QueueRange,
    RepairReport,
    RepairStep,
    SearchedRecord,
    TablesMade,
    UnservedRange,
)
from schemas.rows import FROM_LOG, FROM_VERSION
from store_io.audit.healing.judgement import risk_text
from store_io.base.documents import document_of
from store_io.base.times import second_text
from store_io.base.wording import bytes_text, clause, count_text, seen
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, LMQ_OFFSETS
from store_io.repair.repair_plan import RepairPlan

MOST, MOST_STEPS = 12, 100
_SENTENCE, _LONG, _ENTRY = 300, 600, 60


def repair_text(report: RepairReport, store: str, target: str, dry: bool = False) -> str:
    """Return the text on a repair that was done, or with `dry` would be."""
    made = report.consistent
    verb = "would be made of it" if dry else "made of it"
    if not made:
        verb = "would not be made: the result would not be consistent" if dry else "not made: the result was not consistent"
    lines = [f"{printable(store)}: a store for RocketMQ {report.release}, policy {report.policy}, {verb}"]
    for title, items, sentence in _sections(report):
        most = _LONG if title in ("Healed", "Config", "Not kept") else _SENTENCE
        lines += [f"  {title:<10} {printable(sentence(item), most)}" for item in items[:MOST]]
        if len(items) > MOST:
            lines.append(f"             and {count_text(len(items) - MOST)} more")
    if dry:
        lines += _steps(report.steps)
    for title, text in _last(report, target, dry):
        lines.append(f"  {title:<10} {text}")
    return "\n".join(lines) + "\n"


def list_text(plan: RepairPlan) -> str:
    """Return the audit's answer and its steps, before a repair begins."""
    lines = [f"  {'Answer':<10} {printable(plan.answer, _SENTENCE)}, by the audit that made the plan"]
    for number, (name, text) in enumerate(plan.to_do, 1):
        lines.append(f"  {'Next' if number == 1 else '':<10} {number}. {printable(name, _ENTRY)}: {printable(text, _LONG)}")
    return "\n".join(lines) + "\n"


def _sections(report: RepairReport) -> Iterator[tuple[str, Sequence[Any], Callable[[Any], str]]]:
    """Yield (title, items, how one is said), in the order in which they matter."""
    donor, given_up, healed, database = report.donor, report.given_up, report.healed, report.database
    yield "Messages", [report], _messages
    yield "Cut", [report.lost] if report.lost.messages else [], lambda lost: _cut(lost, report.log_end)
    whole = bool(given_up.missing or given_up.earlier or given_up.signs)
    yield "Missing", [given_up] if whole else [], _given_up
    yield "" if whole else "Missing", report.answered, missing_text
    yield "Choice", _known(report.other_policy), _other
    yield "Problem", report.problems, str
    yield "Start", report.unblocked, lambda why: f"the release would not have started on the copy: {why}"
    yield "Bridge", report.bridges, bridge_text
    if donor is not None:
        yield "Donor", [f"{donor.path}: {donor.sentence}"], str
        yield "Taken", donor.taken, _range
        yield "Not taken", donor.not_taken, _left
    if healed is not None:
        yield "Healing", [healed], healing_text
        yield "Healed", healed.records, healed_text
        yield "Not healed", healed.not_healed, _left
    yield "Left out", report.dropped, left_out_text
    yield "Left out", report.unserved, unserved_text
    yield "Removed", report.removed, _removed
    folder = database.folder if database is not None else None  # which holds all queues
    yield "Queue", [queue for queue in report.queues if queue.folder != folder], _queue
    yield "Queues", _known(database), _database
    yield "Tables", _known(report.tables), _tables
    yield "Index", [report.index] if report.index.reasons else [], _index
    yield "Timers", _known(report.timers), lambda timers: str(timers.sentence).removeprefix("timers: ")
    yield "Moved", report.moved, moved_text
    yield "Not copied", report.not_copied, str
    groups = [each for each in report.offsets if each.kind == BY_GROUP]
    yield "Offsets", [groups] if groups else [], lambda _: _groups(groups, bool(report.offsets_set_back))
    yield "", [each.sentence for each in groups], str
    yield "Offset", [each.sentence for each in report.offsets if each.kind != BY_GROUP], str
    yield "Set back", report.offsets_set_back, str
    names = ", ".join(report.topics_unknown[:MOST])
    yield "Topics", [names] if names else [], lambda text: f"not in config/topics.json, so clients do not find them: {text}"
    config = report.config
    yield "Config", config, lambda file: config_text(file, report.config_written)
    yield "Lost", [file for file in config if file.emptied], emptied_text
    yield "Not kept", [(file, form) for file in config for form in file.not_kept], not_kept_text
    waits = not all(file.left_out for file in config) and not report.config_written
    yield "", ["a repair with --fix-config writes these files; it needs another --to"] if waits else [], str
    yield "Kept", report.kept, _finding
    yield "Settings", [report.settings], str


def _known(value: Any) -> Sequence[Any]:
    return [] if value is None else [value]


def _steps(steps: Sequence[RepairStep]) -> Iterator[str]:
    """Yield the steps in their order, under the numbers that NEW.repair.json gives them."""
    for number, step in enumerate(steps[:MOST_STEPS], 1):
        yield f"  {f'Step {number}':<10} {printable(step_text(step), _SENTENCE)}"
    if len(steps) > MOST_STEPS:
        yield f"             and {count_text(len(steps) - MOST_STEPS, 'more step')}"


def _last(report: RepairReport, target: str, dry: bool) -> Iterator[tuple[str, str]]:
    if dry:
        yield "Space", f"{bytes_text(report.needed_bytes)} needed at most, {bytes_text(report.free_bytes or 0)} free there"
        yield "Result", f"nothing was written{'; a run does the same' if report.consistent else ''}"
    elif report.consistent:
        yield "Result", printable(target)
        yield "Report", printable(target) + ".repair.json"


# ---- sentences ---------------------------------------------------------------------------------------------------------


def _messages(report: RepairReport) -> str:
    return (
        f"{count_text(report.messages_before, 'valid message')} in the copy, {count_text(report.messages_after)} in the new store"
    )


def _given_up(given_up: GivenUp) -> str:
    look = "in another copy of the same broker before you use the new store."
    if given_up.earlier:
        number = count_text(given_up.earlier, "message")
        before = f"{number} {'was' if given_up.earlier == 1 else 'were'} given up by the repair that made this copy."
        return before + (f" {_given_up(replace(given_up, earlier=0))}" if given_up.missing else "")
    if not given_up.missing:
        signs = "; ".join(clause(CATALOGUE[code].meaning) for code in given_up.signs)
        return f"Messages are missing and given up; how many is not known ({signs}). Look for them {look}"
    be = "is" if given_up.missing == 1 else "are"
    return f"{count_text(given_up.missing, 'message')} {be} missing and given up: {shown_text(given_up.missing)} {look}"


def shown_text(missing: int) -> str:
    """Return the words on messages that the copy lacks, and their next step; the place to look follows."""
    was, whom = ("it was", "it") if missing == 1 else ("they were", "them")
    return f"the copy shows that {was} there, and does not hold {whom}. Look for {whom}"


def _removed(name: str) -> str:
    folder, _, file = name.rpartition("/")
    return f"{name}: a segment without a message that is kept" if folder == COMMITLOG and file.isdigit() else name


def _cut(lost: LeftMessages, end: int) -> str:
    left_out = f"{count_text(lost.messages, 'message')}, {bytes_text(lost.bytes)}"
    return f"{left_out}, that the new log, which ends at {end:,}, leaves out"


def _other(other: OtherPolicy) -> str:
    if other.refused:
        return f"--policy {other.policy} would be refused: {other.refused}"
    if not other.more:
        return f"--policy {other.policy} would keep the same messages"
    word = "more" if other.more > 0 else "fewer"
    return f"--policy {other.policy} would keep {count_text(abs(other.more), f'{word} message')}"


def _range(part: LogRange | DroppedMessage | SearchedRecord) -> str:
    return f"{part.file} {part.start:,} to {part.end:,}"


def _left(part: LeftRange | SearchedRecord) -> str:
    """Return a damaged range that a repair left as it is, and why."""
    return f"{_range(part)}: {part.reason}"


def bridge_text(bridge: Bridge) -> str:
    """Return one bridge."""
    if bridge.kind == "segment":
        return f"Added a segment with a bridge, a placeholder record ({_range(bridge)})."
    if bridge.kind == "filler":
        return f"Ended a segment early with a filler ({_range(bridge)})."
    size = count_text(bridge.end - bridge.start, "damaged byte")
    if bridge.kind == "property":
        return f"Lengthened a record by {size} after it, as a property without a value, which no client sees ({_range(bridge)})."
    time = f", {second_text(bridge.store_time)} UTC" if bridge.store_time is not None else ""
    return f"Wrote a bridge, a placeholder record, over {size} ({_range(bridge)}{time})."


def healed_text(record: SearchedRecord) -> str:
    """Return one record that was made whole."""
    where = f"{record.file} {record.position:,}, {record.field}: {record.old} becomes {record.new}"
    queue = (
        f" ({seen(record.topic)}, queue {record.queue_id}, offset {record.queue_offset:,})" if record.topic is not None else ""
    )
    return f"risk {risk_text(record.risk or 0.0)}: {where}{queue}, as {record.reason}"


def healing_text(healed: HealReport) -> str:
    """Return the figures of --heal."""
    made = count_text(len(healed.records), "damaged record")
    text = f"{made} made whole (one change a record, each at a risk below {risk_text(healed.risk)})"
    if healed.records:
        text += f"; the risks together are {risk_text(healed.total_risk)}"
    left, listed = healed.not_healed_count, len(healed.not_healed)
    text += f". {left:,} searched and left as they are" if left else ""
    text += f", of which the report lists the first {listed:,}" if left > listed else ""
    return f"{text}. {count_text(healed.more, 'more damaged place')} not searched" if healed.more else text


def _queue(queue: QueueMade) -> str:
    return f"{queue.folder}: {_rebuilt(queue)}"


def _database(database: DatabaseMade) -> str:
    return f"{database.folder}: a database of {count_text(database.queues, 'queue')} with {_rebuilt(database)}"


def _tables(tables: TablesMade) -> str:
    entries = f"{tables.index} of index, {tables.timers} of timers, {tables.transactions} of transactions"
    return f"{tables.folder}: a database with entries {entries} ({', '.join(tables.reasons)})"


def _index(index: IndexMade) -> str:
    return f"{count_text(index.files, 'file')} with {_rebuilt(index)}"


def _rebuilt(made: QueueMade | DatabaseMade | IndexMade) -> str:
    return f"{count_text(made.entries, 'entry', 'entries')} from the CommitLog ({', '.join(made.reasons)})"


def offsets_text(first: int, end: int) -> str:
    """Return queue offsets from first to before end."""
    return f"offset {first:,}" if end - first == 1 else f"offsets {first:,} to {end - 1:,}"


def missing_text(part: QueueRange) -> str:
    """Return queue offsets without a message."""
    whom = "it" if part.end - part.first == 1 else "them"
    where = f"{seen(part.topic)}, queue {part.queue_id}, {offsets_text(part.first, part.end)}"
    return f"No message at {where}: consumers skip {whom} or see the next message twice."


def left_out_text(message: DroppedMessage) -> str:
    """Return a message that a repair had to leave out, and why."""
    queue = f"{seen(message.topic)}, queue {message.queue_id}, offset {message.queue_offset:,}"
    return f"{_range(message)}, {queue}: {message.reason}"


def unserved_text(part: UnservedRange) -> str:
    """Return the words on messages of the log to which no queue entry leads, and why."""
    return ", ".join(f"{key} {seen(str(value))}" for key, value in document_of(part).items())


def moved_text(part: MovedRange) -> str:
    """Return messages at other queue offsets than they store."""
    count, where = part.end - part.first, offsets_text(part.first, part.end)
    stored = offsets_text(part.stored, part.stored + count)
    queue = f"{seen(part.topic)}, queue {part.queue_id}"
    return f"{count_text(count, 'message')} of {queue}: at {where}, as {stored} is taken or too far away"


def config_text(file: ConfigFile, written: bool) -> str:
    """Return one file of config/ that --fix-config replaces."""
    if file.left_out:
        return f"{file.file} is not mended: {file.reason}. Not known: {file.unproven}"
    verb = f"{'' if written else 'could be '}{'removed' if file.removed else 'written'}"
    taken = ["the log" if name == FROM_LOG else name for name in file.taken_from]
    if taken and file.time_ms is not None:
        taken[0] += f" ({_form_time(file)})"
    source = f" from {' and '.join(taken)}" if taken else ""
    held = f", with {count_text(file.entries, 'entry', 'entries')}" if file.entries else ""
    open_end = f". Not proven: {file.unproven}" if file.unproven else ""
    head, end = f"{file.file} {verb}{source}{held}", f", as {file.reason}{open_end}"
    if not file.added:
        return head + end
    new = f", {count_text(file.added_count)} of them new: "
    names = _names(file.added[:MOST], file.added_count, _SENTENCE - len(head + new + end) - len(" and 000,000 more"))
    return f"{head}{new}{names}{end}"


def _form_time(form: ConfigFile | FormLeft) -> str:
    """Return when a form of a table was written, by what the copy says."""
    return f"{'of' if form.time_from == FROM_VERSION else 'last changed'} {second_text(form.time_ms or 0)} UTC"


def emptied_text(file: ConfigFile) -> str:
    """Return a table that begins empty, as was asked for."""
    noun = "offset" if file.file.removesuffix(".bak") in (CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS) else "entry"
    lost = f": {count_text(file.lost, noun, 'offsets' if noun == 'offset' else 'entries')} lost" if file.lost else ""
    return f"{file.file} begins empty, by --empty-config{lost}"


def not_kept_text(pair: tuple[ConfigFile, FormLeft]) -> str:
    """Return the entries that a form of a table shows and the new store does not have."""
    file, form = pair
    time = f" ({_form_time(form)})" if form.time_ms is not None else ""
    head = f"{count_text(form.count, 'entry', 'entries')} of {form.file}{time}, not in the new {file.file}: "
    return head + _names(form.entries, form.count, _SENTENCE - len(head))


def _names(entries: Iterable[str], count: int, room: int) -> str:
    """Name entries in about that many characters, and how many more there are: the list is cut, never what follows it."""
    names = [printable(name, _ENTRY) for name in entries]
    while len(names) > 1 and len(", ".join(names)) > room:
        names.pop()
    left = count - len(names)
    return ", ".join(names) + (f" and {left:,} more" if left > 0 else "")


def _finding(finding: FindingKept) -> str:
    where = finding.file if finding.start is None else f"{finding.file} {finding.start:,}"
    return f"{where}: {finding.message}"


def _groups(beyond: Sequence[PositionBeyond], set_back: bool) -> str:
    groups = len({each.group for each in beyond})
    which = f"{count_text(len(beyond), 'offset')} of {count_text(groups, 'group')}"
    if set_back:
        return f"{which} lay past the new queue ends and were set back to them."
    lie = "lies" if len(beyond) == 1 else "lie"
    return f"{which} {lie} past the new queue ends: repair with --fix-offsets."
