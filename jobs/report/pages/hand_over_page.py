"""The words of a hand-over after a repair, which its page and the terminal share.

They say what was done, what could not be saved, what consumers will see, which files go where, what to check after the start,
what to send again.

All of it follows from the repair's report. Lists are bounded; what is left out is counted, with the file that has all.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jobs.installation import ROOT
from jobs.report.pages.page import View, page
from jobs.report.texts.commands import RESEND, command_line, not_shown, shell_word
from jobs.report.texts.repair_text import (
    bridge_text,
    config_text,
    emptied_text,
    healed_text,
    healing_text,
    left_out_text,
    missing_text,
    moved_text,
    not_kept_text,
    offsets_text,
    shown_text,
    unserved_text,
)
from jobs.report.texts.step_words import step_text
from jobs.report.texts.text import printable
from schemas.answer import StepName
from schemas.finding_codes import CATALOGUE
from schemas.layouts.store_names import BRIDGE_TOPIC
from schemas.repair import ConfigFile, RepairReport, UnsavedMessages
from store_io.base.wording import clause, count_text, seen
from store_io.broker.settings.config_rules import TOPICS
from store_io.first_day.cleaning_rules import HOUR_MS, CleaningRules
from store_io.repair.repair_plan import SALVAGE
from store_io.repair.ways import RepairFigures

_PROGRAM = "examples/resend/Resend.java"
_RESEND = str(ROOT / _PROGRAM) if (ROOT / _PROGRAM).exists() else _PROGRAM
TRIED = ("4.9.7", "5.3.3", "5.5.0")  # on real brokers of these the checks passed after a good start, and failed after a cut
MOST_NAMED, MOST_STEPS, MOST_SEEN, MOST_ENTRIES = 100, 40, 20, 200
_SENTENCE = 300
_FOLDERS: Mapping[str, str] = {
    "storePathCommitLog": "commitlog",
    "storePathConsumeQueue": "consumequeue",
    "storePathIndex": "index",
}
_UNKNOWN = (
    "Headers, topics, tags and properties have no checksum: a message with a sound body may be wrong there. What contradicts its"
    " neighbours was reported.",
    "What was acknowledged and never reached this disk. A replica may have it.",
    "What consumers had done before the crash. Some messages come to them a second time.",
)


@dataclass(frozen=True)
class HandOverFiles:
    """The paths of a hand-over's files.

    page, resend, unsaved: "" without such a file.
    report: NEW.repair.json.  plan: that of the new store.
    """

    report: str
    page: str = ""
    unsaved: str = ""
    resend: str = ""
    plan: str = ""


@dataclass(frozen=True)
class NewDisk:
    """The disk on which the new store lies.

    used: percent of it, with the new store; copy_used: what the damaged copy takes of it; each None if it is not known.
    limits: those of this broker.
    """

    used: float | None
    copy_used: float | None
    limits: CleaningRules

    @property
    def deletes(self) -> bool:
        """Say whether a broker deletes something because of this disk."""
        return self.used is not None and self.limits.ratio(self.used) > self.least

    @property
    def least(self) -> float:
        """Return the ratio up to which it deletes nothing before its time."""
        return min(self.limits.expired_above, self.limits.forced_above)


@dataclass(frozen=True)
class HandOver(RepairFigures):
    """All that is known at the end of a repair.

    copy, target: paths of the damaged copy and of the new store.  command: the repair that was run, "" if it cannot be written.
    with_config: a repair that would also write files of config/, "" without one.
    words: as `commands.store_words` gives them for the copy.
    start_before: the moment from which on a start passes over timer messages; "" if none waits.
    disk: of the new store; None if nothing is known of it.
    conditions: sentences on what to see to, because of what a broker does to the new store by itself.
    port, name_server: of the broker, by broker.conf; "" if it names no name server.
    report: NEW.repair.json.
    named: the first MOST_NAMED of the messages that could not be saved, as the file `unsaved` has them; named_count: how many
    messages have a name; not_named: how many are known by their number alone.
    settings: (name, value, origin) of those that are no default.
    places: (name of a path in broker.conf, value).
    unsafe: clauses on the settings to change in broker.conf, and why.
    assumed: sentences, said first.
    ends: (topic, queue id, minimum, maximum) of queues of the new store; queues: of how many.
    answer, to_do: of the audit of the copy, as `RepairPlan` has them.
    """

    copy: str
    target: str
    words: tuple[str, ...]
    report: RepairReport
    files: HandOverFiles
    named: Sequence[UnsavedMessages] = ()
    named_count: int = 0
    not_named: int = 0
    settings: Sequence[tuple[str, str, str]] = ()
    places: Sequence[tuple[str, str]] = ()
    unsafe: Sequence[str] = ()
    assumed: Sequence[str] = ()
    ends: Sequence[tuple[str, int, int, int]] = ()
    queues: int = 0
    answer: str = ""
    to_do: Sequence[tuple[str, str]] = ()
    command: str = ""
    with_config: str = ""
    start_before: str = ""
    disk: NewDisk | None = None
    conditions: Sequence[str] = ()
    port: str = "10911"
    name_server: str = ""

    @property
    def release(self) -> str:
        return self.report.release

    @property
    def emptied(self) -> list[ConfigFile]:
        """Return tables of config/ that begin empty."""
        return [file for file in self.report.config if file.emptied]

    @property
    def left_out(self) -> list[ConfigFile]:
        """Return tables of config/ of which nothing could be read, and whose file stays as it is."""
        return [file for file in self.report.config if file.left_out]

    @property
    def style(self) -> str:
        """Return the page's colour.

        Green: all was saved, nothing was assumed or judged by a risk, and nothing stays wrong. Red: a table begins empty.
        """
        report = self.report
        open_ends: object = self.healed or report.topics_unknown or report.config and not report.config_written
        open_ends = open_ends or self.left_out or any(file.not_kept for file in report.config)
        open_ends = open_ends or self.conditions or self.disk is not None and self.disk.deletes
        loses = self.given_up or report.given_up.signs or report.moved or report.unserved
        if self.emptied:
            return "stop"
        return "care" if loses or open_ends or self.assumed or self.unsafe or report.kept else "safe"


@dataclass(frozen=True)
class Part:
    """A part of the page with a heading.

    lines: sentences; to_do: they are things to do, with a box to tick.
    details: short lines below them, under `about`.
    commands: to paste.
    """

    key: str
    title: str
    lines: Sequence[str]
    to_do: bool = False
    about: str = ""
    details: Sequence[str] = ()
    commands: Sequence[str] = ()


def headline(handed: HandOver) -> str:
    """Return the page's answer in one line."""
    report = handed.report
    holds = f"holds {count_text(report.messages_after, 'message')}"
    alone = sum(part.end - part.first for part in report.unserved)
    kinds = [(handed.healed, "of them healed"), (alone, "in no queue")]
    some = ", ".join(f"{count:,} {kind}" for count, kind in kinds if count)
    holds += f" ({some})" if some else ""
    gone = report.config and not report.config_in_copy and not report.config_written
    stays = ["config/"] if gone else handed.config_stays
    but = f" but for {', '.join(stays)}" if stays else ""
    holds = f"The new store is consistent{but} and {holds}"
    end = _config_end(handed)
    if handed.given_up:
        return f"{holds}; {count_text(handed.given_up, 'message')} could not be saved{end}"
    if report.given_up.signs:
        return f"{holds}; others are missing, how many is not known{end}"
    return f"{holds}, all that the copy shows{end}"


def _config_end(handed: HandOver) -> str:
    """Return the headline's clause on tables that begin empty."""
    lost = sum(file.lost for file in handed.emptied)
    end = f"; tables begin empty: {', '.join(file.file for file in handed.emptied)}" if handed.emptied else ""
    return end + (f", {count_text(lost, 'entry', 'entries')} lost" if lost else "")


def parts(handed: HandOver) -> list[Part]:
    """Return the page's parts but the table of messages that could not be saved, which comes after the first part."""
    again, commands = _send_again(handed)
    steps = handed.report.steps
    settings = [f"{name}={value} ({origin})" for name, value, origin in handed.settings]
    asked = (handed.command, _audit_again(handed), _after_start(handed))
    done, audit, after = (tuple(filter(None, [command])) for command in asked)
    start = list(_start(handed))
    start += [] if audit else [not_shown((handed.target, *handed.words[1:]))]
    return [
        Part("done", "What was done", list(_done(handed)), False, count_text(len(steps), "step"), list(_steps(handed)), done),
        *_whole_list(handed),
        Part("seen", "What consumers will see", list(_seen(handed))),
        *_not_kept(handed),
        Part("places", "Which files go where", list(_places(handed)), True, commands=tuple(filter(None, [handed.with_config]))),
        Part("settings", "Which release, which settings", list(_settings(handed)), True, "Settings of this store", settings),
        Part("start", "The start", start, True, commands=audit),
        Part("checks", "What to check after the start", list(_checks(handed)), True, "Queues", list(_ends(handed)), after),
        Part("again", "What to send again", again, bool(handed.files.resend), commands=commands),
        Part("unknown", "What no check can see", _UNKNOWN),
    ]


def _whole_list(handed: HandOver) -> Iterator[Part]:
    """Yield the audit's list of steps, of which the repair is one."""
    lines = [
        f"{number}. {name}: {'done, as above.' if name == StepName.REPAIR else text}"
        for number, (name, text) in enumerate(handed.to_do, 1)
    ]
    if lines:
        yield Part("list", f"The steps of the audit's answer, {seen(handed.answer)}", lines)


def unsaved_lines(handed: HandOver) -> list[str]:
    """Return the lines before the table of unsaved messages: how many there are, and the file with all their names."""
    given_up, lines = handed.report.given_up, list[str]()
    if given_up.missing:
        lines.append(
            f"{count_text(given_up.missing, 'message')}: {shown_text(given_up.missing)} in another copy of the same broker"
            " before you use the new store."
        )
    if given_up.cut:
        lines.append(
            f"{count_text(given_up.cut, 'valid message')} of the copy that the new log leaves out: see below, send again."
        )
    if given_up.earlier:
        lines.append(f"{count_text(given_up.earlier, 'message')} were given up by the repair that made the copy.")
    if given_up.signs:
        signs = "; ".join(clause(CATALOGUE[code].meaning) for code in given_up.signs)
        lines.append(f"Messages are missing, and nothing says how many: {signs}.")
    lines += [f"{emptied_text(file)}." for file in handed.emptied]
    if not lines:
        return ["Nothing: every message that the copy holds or shows is in the new store."]
    if handed.not_named:
        lines.append(f"Only counted, as nothing shows where they were: {count_text(handed.not_named, 'message')} of these.")
    if handed.files.unsaved:
        lines.append(f"All names: {handed.files.unsaved}")
    return lines


def named_text(one: UnsavedMessages) -> str:
    """Return messages that could not be saved, in a line."""
    offsets = offsets_text(one.queue_offset, one.queue_offset + one.messages)
    at = f", physical offset {one.phy_offset:,}" if one.phy_offset is not None else ""
    return f"{seen(one.topic)}, queue {one.queue_id}, {offsets}{at}, key hash {hashes_text(one)} ({one.why})"


def hashes_text(one: UnsavedMessages) -> str:
    """Return the known hashes of a message's keys."""
    return ", ".join(map(str, one.key_hashes[:4])) if one.key_hashes else "not known"


def hand_over_text(handed: HandOver) -> str:
    """Return, for a terminal, what has a box on the page. The repair's own text comes before and says what was done."""
    lines = [f"{printable(handed.target)}: {headline(handed)}"]
    if handed.assumed:
        lines += ["  First: what is assumed", *(f"    {printable(text, _SENTENCE)}" for text in handed.assumed)]
    lines += _unsaved_text(handed)
    for part in filter(lambda part: part.to_do, parts(handed)):
        lines += [f"  {part.title}", *(f"    [ ] {printable(text, 600)}" for text in part.lines)]
        lines += [f"        {printable(text, _SENTENCE)}" for text in part.details]
        lines += [f"        {command}" for command in part.commands]
    return "\n".join(lines) + "\n" + next_text(handed)


def next_text(handed: HandOver) -> str:
    """Return the line with the next step after a repair."""
    return f"  {'Next':<10} before a start, go through {printable(handed.files.page)}, box by box\n"


def _unsaved_text(handed: HandOver) -> Iterator[str]:
    yield "  What could not be saved"
    yield from (f"    {printable(text, 600)}" for text in unsaved_lines(handed))
    shown = handed.named[:MOST_SEEN]
    yield from (f"      {printable(named_text(one), _SENTENCE)}" for one in shown)
    left = handed.named_count - sum(one.messages for one in shown)
    if left > 0:
        yield f"      and {count_text(left, 'more message')}, in {printable(handed.files.unsaved)}"


# ---- the parts -------------------------------------------------------------------------------------------------------


def _done(handed: HandOver) -> Iterator[str]:
    report = handed.report
    before = count_text(report.messages_before, "valid message")
    yield (f"A new store was made of {handed.copy} by policy {report.policy}. The copy, which holds {before}, was only read.")
    if report.donor is not None:
        yield f"Donor {report.donor.path}: {report.donor.sentence}"
    if report.healed is not None:
        yield f"Healing: {healing_text(report.healed)}{':' if handed.healed else '.'}"
        yield from _some(report.healed.records, healed_text, "record", handed, 2 * _SENTENCE)
    for why in report.unblocked[:MOST_SEEN]:
        yield f"Removed what would have kept the release from starting: {why}"
    yield from _some(report.dropped, lambda message: f"Left out: {left_out_text(message)}", "message", handed)
    yield "The new store was audited by the same checks: nothing above a note" + (
        f" but {count_text(len(report.kept), 'finding')} that may stay, below." if report.kept else "."
    )
    yield from _some(report.kept, lambda finding: f"Stays: {finding.file}: {finding.message}", "finding", handed)


def _steps(handed: HandOver) -> Iterator[str]:
    steps = handed.report.steps
    yield from (f"{number}. {step_text(step)}" for number, step in enumerate(steps[:MOST_STEPS], 1))
    yield from _more(len(steps) - MOST_STEPS, "step", handed)


def _seen(handed: HandOver) -> Iterator[str]:
    report = handed.report
    if report.policy == SALVAGE and report.bridges:
        yield "Messages after the damage, which a plain start cuts away, are there in their old order: consumers get them late."
    if report.lost.messages:
        gone = count_text(report.lost.messages, "message")
        yield f"{gone} that the new log leaves out are gone; new messages may get their queue offsets."
    yield from _some(report.answered, missing_text, "range", handed)
    yield from _some(report.moved, moved_text, "range", handed)
    for part in report.unserved[:MOST_SEEN]:
        yield "In the log, but in no queue: " + unserved_text(part)
    offsets, set_back = report.offsets, bool(report.offsets_set_back)
    if offsets and set_back:
        number = count_text(report.positions_set_back, "offset")
        yield f"Set back to the new ends of their queues: {number}. These groups continue with the first new message."
    elif offsets:
        yield "These offsets lie ahead of the new ends: groups would skip new messages. repair --fix-offsets sets them back."
    yield from _some(offsets, lambda each: f"{'Was: ' if set_back else ''}{each.sentence}", "offset", handed)
    if report.timers is not None:
        yield report.timers.sentence.removeprefix("timers: ")
    if report.bridges:
        number = count_text(len(report.bridges), "placeholder record")
        yield f"{number} of topic {BRIDGE_TOPIC} in place of damaged bytes, in no queue: no consumer gets them."
        yield from _some(report.bridges, bridge_text, "bridge", handed)
    if report.topics_unknown:
        lacking = count_text(len(report.topics_unknown), "topic")
        yield f"Clients do not find {lacking} that config/topics.json lacks: see The start, below."
    written = report.config_written
    if report.config and not written:
        yield "Files of config/ that clients and consumers need are missing or damaged, and were left as they are:"
    yield from _some(report.config, lambda file: config_text(file, written), "file of config/", handed, 2 * _SENTENCE)
    yield "Some messages come twice, as after any crash: what was consumed after the last stored offset is delivered again."


def _not_kept(handed: HandOver) -> Iterator[Part]:
    """Yield the part on entries that one form of a table of config/ has and the new store has not."""
    pairs = [(file, form) for file in handed.report.config for form in file.not_kept]
    if pairs:
        lines = list(_some(pairs, not_kept_text, "form", handed, 2 * _SENTENCE))
        names = [f"{form.file}: {name}" for _, form in pairs for name in form.entries]
        count = sum(form.count for _, form in pairs)
        more = [*names[:MOST_ENTRIES], *_more(count - min(len(names), MOST_ENTRIES), "entry", handed)]
        yield Part("tables", "What only other forms of config/ have", lines, False, count_text(count, "entry", "entries"), more)


def _places(handed: HandOver) -> Iterator[str]:
    named = dict(handed.places)
    if handed.disk is not None:
        yield _disk(handed.disk, handed.target)
    yield f"Keep the damaged directory and its copy: {handed.copy}"
    root = named.get("storePathRootDir")
    where = f"storePathRootDir, by broker.conf {root}" if root else "the broker's store directory (storePathRootDir)"
    yield f"Put {handed.target} in the place of {where}: the same path, owner and permissions of the broker's user."
    for name, path in handed.places:
        folder = _FOLDERS.get(name)
        if folder and not (root and posixpath.normpath(path) == posixpath.normpath(f"{root}/{folder}")):  # the usual place
            yield f"broker.conf keeps {folder} elsewhere ({name}): put {handed.target}/{folder} in the place of {path}."
    yield "Put no abort file there: the new store has none, so the broker starts as after a clean stop."
    left = {file.file for file in handed.left_out}
    config = [file.file for file in handed.report.config if file.file not in left]
    if config and not handed.report.config_written:
        names = ", ".join(config[:MOST_SEEN])
        yield (
            f"Put the broker's own {names} into it, from another copy, or have repair --fix-config write what the log"
            f" shows{': the command below makes such a store' if handed.with_config else ''}."
        )
    if TOPICS in handed.config_stays and TOPICS not in config and TOPICS not in left:
        yield "Copy config/ of this broker into it, with the topics: else they must be made again, see The start."
    if left:
        names = ", ".join(sorted(left))
        why = "this copy's file could not be read" if handed.report.config_in_copy else "config/ is not in this copy"
        yield f"Put the broker's own {names} into it, from another copy: {why}."
    folder = (root or "").rstrip("/").rpartition("/")[2]
    name = f"as {folder}.repair.json" if folder else "as store.repair.json if its folder is called store"
    yield f"Put {handed.files.report} beside the store, {name}: later audits then know of this repair."
    not_copied = handed.report.not_copied
    if not_copied:
        yield f"Not copied, as they are no files: {', '.join(not_copied[:MOST_SEEN])}"
        yield from _more(len(not_copied) - MOST_SEEN, "name", handed)


def _disk(disk: NewDisk, target: str) -> str:
    """Say how full the disk is, what this broker deletes above which ratio, and how to get below it."""
    limits, used, hours = disk.limits, disk.used, disk.limits.reserved_ms // HOUR_MS
    expired, forced = limits.expired_above, limits.forced_above
    clauses = []  # a limit that no disk reaches says nothing
    if expired < math.inf:
        which = f"older than {hours} hours at once" if expired != forced else "of any age at once, all but the last"
        clauses.append(f"above {_percent(expired)} this broker deletes segments {which}")
    if expired != forced < math.inf:
        clauses.append(
            f"above {_percent(forced)} {'those' if clauses else 'this broker deletes segments'} of any age"
            f"{' at deleteWhen' if forced < expired else ''}, all but the last"
        )
    limit_text = ", ".join(clauses)
    if limits.full_above < math.inf:
        limit_text += f"{'; ' if clauses else ''}above {_percent(limits.full_above)} it takes no message"
    limit_text = f"{limit_text[:1].upper()}{limit_text[1:]}." if limit_text else "This broker deletes nothing for a full disk."
    if used is None:
        return f"Look at how full the disk of the new store will be. {limit_text} Keep the damaged copy on another disk."
    parts = [f"With the new store on it, the disk of {target} is {_percent(used / 100)} full."]
    parts += [f"The damaged copy takes {_percent(disk.copy_used / 100)} of it."] if disk.copy_used else []
    parts.append(limit_text)
    if not disk.deletes:
        return " ".join([*parts, f"Keep it at {_percent(disk.least)} or less, with what is written from now on."])
    left = used - disk.copy_used if disk.copy_used else used
    moved = (
        f"Move the damaged copy to another disk before the start: that leaves {_percent(left / 100)}" if disk.copy_used else ""
    )
    room = f"Make room before the start, to {_percent(disk.least)} or less"
    enough = limits.ratio(left) <= disk.least
    return " ".join([*parts, f"{moved}." if moved and enough else f"{moved}. {room}." if moved else f"{room}."])


def _percent(ratio: float) -> str:
    return f"{round(100 * ratio, 2):g} %"


def _settings(handed: HandOver) -> Iterator[str]:
    yield from (f"{change}." for change in handed.unsafe)
    same = "For all else use the same broker.conf" if handed.unsafe else "Use the same broker.conf"
    yield f"{same}. Settings: {handed.report.settings}."
    if any(name == "enableControllerMode" and value.lower() == "true" for name, value, _ in handed.settings):
        yield (
            "If the broker joins a new controller, one that does not know it: remove brokerIdentity from the new store before the"
            " start. With it the controller refuses the broker, which stays fenced."
        )
    yield "Compare it with the settings below. Settings that recovery reads and that are not listed had the release's defaults."


def _start(handed: HandOver) -> Iterator[str]:
    yield "Audit the new store once more, with the command below: it must find nothing that this page does not say."
    yield from handed.conditions
    yield (
        f"Start RocketMQ {handed.release}, no other release: the new store was made and checked by its rules. Start it without"
        " traffic of clients first, if you can: brokerPermission=4 in broker.conf refuses writes."
    )
    if handed.start_before:
        yield f"Start it before {handed.start_before}: from then on it never delivers timer messages that wait in it now."
    unknown = handed.report.topics_unknown
    if unknown:
        names = ", ".join(map(seen, unknown[:MOST_SEEN]))
        yield f"Create these topics, if config/topics.json still lacks them, by mqadmin updateTopic before clients come: {names}"
        yield from _more(len(unknown) - MOST_SEEN, "topic", handed)


def _checks(handed: HandOver) -> Iterator[str]:
    end = f"{handed.report.log_end}"
    yield (
        "First the command below, also while the broker runs: its first line says whether the store is what was predicted. Code 0"
        " or 10 is good; 20 means that something was cut, is missing or was changed: stop the broker then. Name the folder in"
        " which the store lies by now."
    )
    yield (
        f"mqadmin brokerStatus -b BROKER:{handed.port} | grep commitLogMaxOffset must show no less than {end}: less means that"
        " the start has cut the log. More is right: a broker delivers waiting timer messages and delay levels, and asks about"
        " open transactions, as soon as it runs, and writes to the log by that. If it shows an error, as some releases do while"
        " the log's first message is one that came over IPv6, after-start says where the log ends."
    )
    yield (
        'A line in ~/logs/rocketmqlogs/store.log that ends in "truncate dirty logic files" is no bad sign by itself: every clean'
        " start may write it, with two equal numbers. Only if its first number is above the second was something cut."
    )
    yield (
        "mqadmin topicStatus must show these minimum offsets, higher ones only if retention has deleted segments, and maximum"
        " offsets no lower than these; the broker adds to queues of timer messages, delay levels and transactions, and of their"
        " targets, by itself."
    )
    if handed.report.offsets and not handed.report.offsets_set_back:
        yield "mqadmin consumerProgress shows no other groups beyond these ends than What consumers will see, above, has named."
    else:
        yield "mqadmin consumerProgress must show no group beyond the ends of its queues."
    if handed.release not in TRIED:
        yield f"These checks were tried on real brokers of {', '.join(TRIED)}, and not on {handed.release}."
    yield "Slaves: make new ones from this store, or empty. Do not start a slave that holds other bytes at the same offsets."


def _ends(handed: HandOver) -> Iterator[str]:
    shown = handed.ends[:MOST_SEEN]
    yield from (f"{seen(topic)}, queue {queue}: {low:,} to {high:,}" for topic, queue, low, high in shown)
    if handed.queues > len(shown):
        left = count_text(handed.queues - len(shown), "more queue")
        yield f"and {left}: plan.json of the audit before the start lists all."


def _send_again(handed: HandOver) -> tuple[list[str], list[str]]:
    """Return (sentences, commands)."""
    if handed.files.resend:
        number = count_text(handed.report.lost.messages, "message")
        file, withheld = shell_word(handed.files.resend), not_shown((RESEND, handed.files.resend))
        said = [
            f"{handed.files.resend} has the {number} that the copy holds and the new store does not, as lines that a producer can"
            " send. Look at them, then send them with examples/resend, once each; consumers may know some of them already.",
            *([] if handed.name_server else ["Put the address of your name server in the place of HOST."]),
            "The repaired broker must have started and be known to the name server.",
        ]
        if handed.report.timers is not None:
            said.append(
                "Lines with TIMER_DEQUEUE_MS under not_sent are delivered copies of timer messages. Do not send a copy whose"
                " timer message still waits in the new store: the broker delivers it once more, and consumers would get it twice."
            )
        if withheld:
            return [*said, withheld], []
        send = f'java -cp "$ROCKETMQ_HOME/lib/*" {shell_word(_RESEND)} --namesrv {shell_word(handed.name_server or "HOST:9876")}'
        return said, [f"{send} {more}{file}" for more in ("--dry-run ", "")]
    if handed.report.given_up.missing or handed.report.given_up.signs:
        return ["Nothing from this copy: what is missing is not in it. Producers, or another copy, may still have it."], []
    return ["Nothing."], []


def _some(rows: Sequence[Any], said: Callable[[Any], str], noun: str, handed: HandOver, most: int = _SENTENCE) -> Iterator[str]:
    yield from (printable(said(row), most) for row in islice(rows, MOST_SEEN))
    yield from _more(len(rows) - MOST_SEEN, noun, handed)


def _more(number: int, noun: str, handed: HandOver) -> Iterator[str]:
    if number > 0:
        many = f"more {noun[:-1]}ies" if noun.endswith("y") else ""
        yield f"and {count_text(number, f'more {noun}', *filter(None, [many]))}: {handed.files.report}"


def _audit_again(handed: HandOver) -> str:
    """Return the audit that looks at the new store again, under the same release and settings."""
    return command_line("audit", (handed.target, *handed.words[1:]), [("--out", f"{handed.target}.audit")])


def _after_start(handed: HandOver) -> str:
    """Return the command that holds the started store against the plan of the new one."""
    return command_line("after-start", [handed.target], [("--plan", handed.files.plan)]) if handed.files.plan else ""


def hand_over_html(handed: HandOver) -> Iterator[str]:
    """Return the hand-over page, in pieces."""
    named = handed.named[:MOST_NAMED]
    first, *others = parts(handed)
    view: View = {
        "title": f"{printable(handed.target.rpartition('/')[2], 100)}: hand-over of a repaired RocketMQ store",
        "handed": handed,
        "headline": headline(handed),
        "emptied": [emptied_text(file) for file in handed.emptied],
        "first": first,
        "parts": others,
        "unsaved": unsaved_lines(handed),
        "named": named,
        "hashes": hashes_text,
        "named_left": handed.named_count - sum(one.messages for one in named),
    }
    return page("hand_over.html", view)
