"""A repair as people read it on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jobs.report.texts.step_words import step_text
from jobs.report.texts.text import bytes_text, count_text, printable, time_text
from schemas.finding_codes import CATALOGUE
from schemas.rows import FROM_LOG, FROM_VERSION, Row
from schemas.store_names import COMMITLOG
from store_io.audit.healing.judgement import risk_text
from store_io.base.wording import clause, seen
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, LMQ_OFFSETS
from store_io.repair.repair_plan import RepairPlan

MOST, MOST_STEPS = 12, 100
_SENTENCE, _LONG, _ENTRY = 300, 600, 60


def repair_text(report: Row, store: str, target: str, dry: bool = False) -> str:
    """Return the text on a repair that was done, or with `dry` would be."""
    made = report.get("consistent")
    verb = "would be made of it" if dry else "made of it"
    if not made:
        verb = "would not be made: the result would not be consistent" if dry else "not made: the result was not consistent"
    lines = [f"{printable(store)}: a store for RocketMQ {report['release']}, policy {report['policy']}, {verb}"]
    for title, items, sentence in _sections(report):
        most = _LONG if title in ("Healed", "Config", "Not kept") else _SENTENCE
        lines += [f"  {title:<10} {printable(sentence(item), most)}" for item in items[:MOST]]
        if len(items) > MOST:
            lines.append(f"             and {count_text(len(items) - MOST)} more")
    if dry:
        lines += _steps(report["steps"])
    for title, text in _last(report, target, dry):
        lines.append(f"  {title:<10} {text}")
    return "\n".join(lines) + "\n"


def list_text(plan: RepairPlan) -> str:
    """Return the audit's answer and its steps, before a repair begins."""
    lines = [f"  {'Answer':<10} {printable(plan.answer, _SENTENCE)}, by the audit that made the plan"]
    for number, (name, text) in enumerate(plan.to_do, 1):
        lines.append(f"  {'Next' if number == 1 else '':<10} {number}. {printable(name, _ENTRY)}: {printable(text, _LONG)}")
    return "\n".join(lines) + "\n"


def _sections(report: Row) -> Iterator[tuple[str, Sequence[Any], Callable[[Any], str]]]:
    """Yield (title, items, how one is said), in the order in which they matter."""
    lost, donor, index, offsets = report["lost"], report["donor"], report["index"], report.get("offsets", [])
    yield "Messages", [report], _messages
    yield "Cut", [lost] if lost["messages"] else [], lambda row: _cut(row, report["log_end"])
    given_up = report["given_up"]
    whole = bool(given_up["missing"] or given_up["earlier"] or given_up["signs"])
    yield "Missing", [given_up] if whole else [], _given_up
    yield "" if whole else "Missing", report["answered"], missing_text
    yield "Choice", [report["other_policy"]] if "other_policy" in report else [], _other
    yield "Problem", report.get("problems", []), str
    yield "Start", report["unblocked"], lambda why: f"the release would not have started on the copy: {why}"
    yield "Bridge", report["bridges"], bridge_text
    if donor is not None:
        yield "Donor", [donor], lambda row: f"{row['path']}: {row['sentence']}"
        yield "Taken", donor["taken"], _range
        yield "Not taken", donor["not_taken"], _left
    healed = report.get("healed")
    if healed is not None:
        yield "Healing", [healed], healing_text
        yield "Healed", healed["records"], healed_text
        yield "Not healed", healed["not_healed"], _left
    yield "Left out", report["dropped"], left_out_text
    yield "Left out", report["unserved"], unserved_text
    yield "Removed", report["removed"], _removed
    database = report.get("database")  # which holds all queues
    yield "Queue", [row for row in report["queues"] if not database or row["folder"] != database["folder"]], _queue
    yield "Queues", [database] if database else [], _database
    yield "Tables", [report["tables"]] if report.get("tables") else [], _tables
    yield "Index", [index] if index["reasons"] else [], _index
    yield "Timers", [report["timers"]] if report.get("timers") else [], lambda row: str(row["sentence"]).removeprefix("timers: ")
    yield "Moved", report["moved"], moved_text
    yield "Not copied", report["not_copied"], str
    groups = [row for row in offsets if row["kind"] == "group"]
    yield "Offsets", [groups] if groups else [], lambda rows: _groups(rows, report)
    yield "", groups, lambda row: str(row["sentence"])
    yield "Offset", [row for row in offsets if row["kind"] != "group"], lambda row: str(row["sentence"])
    yield "Set back", report.get("offsets_set_back", []), str
    names = ", ".join(report.get("topics_unknown", [])[:MOST])
    yield "Topics", [names] if names else [], lambda text: f"not in config/topics.json, so clients do not find them: {text}"
    config = report.get("config", [])
    yield "Config", config, lambda row: config_text(row, report["config_written"])
    yield "Lost", [row for row in config if row["emptied"]], emptied_text
    yield "Not kept", [(row, form) for row in config for form in row["not_kept"]], not_kept_text
    waits = not all(row["left_out"] for row in config) and not report["config_written"]
    yield "", ["a repair with --fix-config writes these files; it needs another --to"] if waits else [], str
    yield "Kept", report.get("kept", []), _finding
    yield "Settings", [report["settings"]], str


def _steps(steps: Sequence[Row]) -> Iterator[str]:
    """Yield the steps in their order, under the numbers that NEW.repair.json gives them."""
    for step in steps[:MOST_STEPS]:
        yield f"  {'Step ' + str(step['number']):<10} {printable(step_text(step), _SENTENCE)}"
    if len(steps) > MOST_STEPS:
        yield f"             and {count_text(len(steps) - MOST_STEPS, 'more step')}"


def _last(report: Row, target: str, dry: bool) -> Iterator[tuple[str, str]]:
    if dry:
        yield "Space", f"{bytes_text(report['needed_bytes'])} needed at most, {bytes_text(report['free_bytes'])} free there"
        yield "Result", f"nothing was written{'; a run does the same' if report.get('consistent') else ''}"
    elif report.get("consistent"):
        yield "Result", printable(target)
        yield "Report", printable(target) + ".repair.json"


# ---- sentences ---------------------------------------------------------------------------------------------------------


def _messages(report: Row) -> str:
    return (
        f"{count_text(report['messages_before'], 'valid message')} in the copy,"
        f" {count_text(report['messages_after'])} in the new store"
    )


def _given_up(row: Row) -> str:
    look = "in another copy of the same broker before you use the new store."
    if row["earlier"]:
        number = count_text(row["earlier"], "message")
        before = f"{number} {'was' if row['earlier'] == 1 else 'were'} given up by the repair that made this copy."
        return before + (f" {_given_up({**row, 'earlier': 0})}" if row["missing"] else "")
    if not row["missing"]:
        signs = "; ".join(clause(CATALOGUE[code].meaning) for code in row["signs"])
        return f"Messages are missing and given up; how many is not known ({signs}). Look for them {look}"
    be = "is" if row["missing"] == 1 else "are"
    return f"{count_text(row['missing'], 'message')} {be} missing and given up: {shown_text(row['missing'])} {look}"


def shown_text(missing: int) -> str:
    """Return the words on messages that the copy lacks, and their next step; the place to look follows."""
    was, whom = ("it was", "it") if missing == 1 else ("they were", "them")
    return f"the copy shows that {was} there, and does not hold {whom}. Look for {whom}"


def _removed(name: str) -> str:
    folder, _, file = name.rpartition("/")
    return f"{name}: a segment without a message that is kept" if folder == COMMITLOG and file.isdigit() else name


def _cut(lost: Row, end: int) -> str:
    left_out = f"{count_text(lost['messages'], 'message')}, {bytes_text(lost['bytes'])}"
    return f"{left_out}, that the new log, which ends at {end:,}, leaves out"


def _other(other: Row) -> str:
    if "refused" in other:
        return f"--policy {other['policy']} would be refused: {other['refused']}"
    if not other["more"]:
        return f"--policy {other['policy']} would keep the same messages"
    word = "more" if other["more"] > 0 else "fewer"
    return f"--policy {other['policy']} would keep {count_text(abs(other['more']), f'{word} message')}"


def _range(row: Row) -> str:
    return f"{row['file']} {row['start']:,} to {row['end']:,}"


def _left(row: Row) -> str:
    """Return a damaged range that a repair left as it is, and why."""
    return f"{_range(row)}: {row['reason']}"


def bridge_text(bridge: Row) -> str:
    """Return one bridge."""
    if bridge["kind"] == "segment":
        return f"Added a segment with a bridge, a placeholder record ({_range(bridge)})."
    if bridge["kind"] == "filler":
        return f"Ended a segment early with a filler ({_range(bridge)})."
    if bridge["kind"] == "property":
        size = count_text(bridge["end"] - bridge["start"], "damaged byte")
        return f"Lengthened a record by {size} after it, as a property without a value, which no client sees ({_range(bridge)})."
    time = f", {time_text(bridge['store_time'])} UTC" if "store_time" in bridge else ""
    size = count_text(bridge["end"] - bridge["start"], "damaged byte")
    return f"Wrote a bridge, a placeholder record, over {size} ({_range(bridge)}{time})."


def healed_text(row: Row) -> str:
    """Return one row of a repair's report."""
    where = f"{row['file']} {row['position']:,}, {row['field']}: {row['old']} becomes {row['new']}"
    queue = (
        f" ({seen(row['topic'])}, queue {row['queue_id']}, offset {row['queue_offset']:,})" if row["topic"] is not None else ""
    )
    return f"risk {risk_text(row['risk'])}: {where}{queue}, as {row['reason']}"


def healing_text(healed: Row) -> str:
    """Return the figures of --heal.

    healed: of a repair's report.
    """
    made = count_text(len(healed["records"]), "damaged record")
    text = f"{made} made whole (one change a record, each at a risk below {healed['risk']:g})"
    if healed["records"]:
        text += f"; the risks together are {risk_text(healed['total_risk'])}"
    left, listed = healed["not_healed_count"], len(healed["not_healed"])
    text += f". {left:,} searched and left as they are" if left else ""
    text += f", of which the report lists the first {listed:,}" if left > listed else ""
    return f"{text}. {count_text(healed['more'], 'more damaged place')} not searched" if healed["more"] else text


def _queue(queue: Row) -> str:
    return f"{queue['folder']}: {_rebuilt(queue)}"


def _database(database: Row) -> str:
    return f"{database['folder']}: a database of {count_text(database['queues'], 'queue')} with {_rebuilt(database)}"


def _tables(tables: Row) -> str:
    entries = ", ".join(f"{tables[name]} of {name}" for name in ("index", "timers", "transactions"))
    return f"{tables['folder']}: a database with entries {entries} ({', '.join(tables['reasons'])})"


def _index(index: Row) -> str:
    return f"{count_text(index['files'], 'file')} with {_rebuilt(index)}"


def _rebuilt(row: Row) -> str:
    return f"{count_text(row['entries'], 'entry', 'entries')} from the CommitLog ({', '.join(row['reasons'])})"


def offsets_text(first: int, end: int) -> str:
    """Return queue offsets from first to before end."""
    return f"offset {first:,}" if end - first == 1 else f"offsets {first:,} to {end - 1:,}"


def missing_text(row: Row) -> str:
    """Return queue offsets without a message."""
    whom = "it" if row["end"] - row["first"] == 1 else "them"
    where = f"{seen(row['topic'])}, queue {row['queue_id']}, {offsets_text(row['first'], row['end'])}"
    return f"No message at {where}: consumers skip {whom} or see the next message twice."


def left_out_text(row: Row) -> str:
    """Return a message that a repair had to leave out, and why."""
    return f"{_range(row)}, {seen(row['topic'])}, queue {row['queue_id']}, offset {row['queue_offset']:,}: {row['reason']}"


def unserved_text(row: Row) -> str:
    """Return the words on messages of the log to which no queue entry leads. The reason is added if it is known."""
    return ", ".join(f"{key} {seen(str(value))}" for key, value in row.items())


def moved_text(row: Row) -> str:
    """Return messages at other queue offsets than they store."""
    count, where = row["end"] - row["first"], offsets_text(row["first"], row["end"])
    stored = offsets_text(row["stored"], row["stored"] + count)
    queue = f"{seen(row['topic'])}, queue {row['queue_id']}"
    return f"{count_text(count, 'message')} of {queue}: at {where}, as {stored} is taken or too far away"


def config_text(row: Row, written: bool) -> str:
    """Return one file of config/ that --fix-config replaces."""
    if row["left_out"]:
        return f"{row['file']} is not mended: {row['reason']}. Not known: {row['unproven']}"
    verb = f"{'' if written else 'could be '}{'removed' if row['removed'] else 'written'}"
    taken = ["the log" if name == FROM_LOG else name for name in row["taken_from"]]
    if taken and row["time_ms"] is not None:
        taken[0] += f" ({_form_time(row)})"
    source = f" from {' and '.join(taken)}" if taken else ""
    held = f", with {count_text(row['entries'], 'entry', 'entries')}" if row["entries"] else ""
    open_end = f". Not proven: {row['unproven']}" if row["unproven"] else ""
    head, end = f"{row['file']} {verb}{source}{held}", f", as {row['reason']}{open_end}"
    if not row["added"]:
        return head + end
    new = f", {count_text(row['added_count'])} of them new: "
    return f"{head}{new}{_names(row, _SENTENCE - len(head + new + end))}{end}"


def _form_time(row: Row) -> str:
    """Return when a form of a table was written, by what the copy says."""
    return f"{'of' if row['time_from'] == FROM_VERSION else 'last changed'} {time_text(row['time_ms'])} UTC"


def emptied_text(row: Row) -> str:
    """Return a table that begins empty, as was asked for."""
    noun = "offset" if row["file"].removesuffix(".bak") in (CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS) else "entry"
    lost = f": {count_text(row['lost'], noun, 'offsets' if noun == 'offset' else 'entries')} lost" if row["lost"] else ""
    return f"{row['file']} begins empty, by --empty-config{lost}"


def not_kept_text(pair: tuple[Row, Row]) -> str:
    """Return the entries that a form of a table shows and the new store does not have."""
    row, form = pair
    time = f" ({_form_time(form)})" if form["time_ms"] is not None else ""
    count = count_text(form["count"], "entry", "entries")
    head = f"{count} of {form['file']}{time}, not in the new {row['file']}: "
    names = [printable(name, _ENTRY) for name in form["entries"]]
    while len(names) > 1 and len(", ".join(names)) > _SENTENCE - len(head):
        names.pop()
    left = int(form["count"]) - len(names)
    return head + ", ".join(names) + (f" and {left:,} more" if left > 0 else "")


def _names(row: Row, room: int) -> str:
    """Name new entries of one file of config/ in about that many characters: the list is cut, never what follows it."""
    names = [printable(name, _ENTRY) for name in row["added"][:MOST]]
    while len(names) > 1 and len(", ".join(names)) > room - len(" and 000,000 more"):
        names.pop()
    left = int(row["added_count"]) - len(names)
    return ", ".join(names) + (f" and {left:,} more" if left > 0 else "")


def _finding(row: Row) -> str:
    where = row["file"] if row["start"] is None else f"{row['file']} {row['start']:,}"
    return f"{where}: {row['message']}"


def _groups(rows: Sequence[Row], report: Row) -> str:
    groups = len({row["group"] for row in rows})
    which = f"{count_text(len(rows), 'offset')} of {count_text(groups, 'group')}"
    if report.get("offsets_set_back"):
        return f"{which} lay past the new queue ends and were set back to them."
    lie = "lies" if len(rows) == 1 else "lie"
    return f"{which} {lie} past the new queue ends: repair with --fix-offsets."
