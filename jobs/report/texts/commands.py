"""The commands that look closer at a finding or repair a store, ready for any POSIX shell.

They are quoted, and nothing in them steers a terminal or cannot be seen: a sentence takes the place of such a word.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from jobs.cli.start_options import AskedStart
from jobs.installation import ENTRY
from jobs.report.texts.text import name_text, printable
from schemas.advice import Advice, Lack, NotWhole, Step
from schemas.finding_codes import CATALOGUE, Code, Part
from schemas.layouts.store_names import COMMITLOG
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from schemas.rows import DEFAULT, NAMED, Finding
from store_io.answer.headline import judge
from store_io.answer.repairs import acts, going, in_place_of_repair, more_than_a_start
from store_io.audit.healing.judgement import risk_text
from store_io.base.paths import is_hdfs, is_s3, is_uri
from store_io.base.wording import count_text
from store_io.outcome.safety import Safety
from store_io.repair.proposals import FIX_CONFIG, FIX_OFFSETS, LATE_TIMERS, MOST_RISK, WITH_EARLIER
from store_io.wording import not_whole
from store_io.wording.steps import next_text

if TYPE_CHECKING:
    from jobs.cli.stores import StoreArgument

_NEW = "new"  # a folder of this machine: a rescue of a store elsewhere asks for one
RESCUE_FIRST = "Work out a repair by each policy, and see which one keeps more"
_RANGE = 100  # queue offsets that a query begins with
_TOPIC, _ONLY_HERE = "--topic", "--only-here"
_PARTS = ("--commitlog", "--consumequeue", "--index")  # of the one copy that they were named for
_SETTINGS = ("--release", "--broker-conf")
RESEND = "Resend.java"
_BROKER = "rocketmq@BROKER"  # in a command: the user and the machine of the broker
_FILES = frozenset({"--broker-conf", "--plan", RESEND})
_LONGEST = 100  # letters of a name in a sentence


def shell_word(text: str) -> str:
    """Return one word of a POSIX shell's command line, or "" if the text holds invisible characters.

    Only some shells know escapes for these.
    """
    return shlex.quote(text) if printable(text) == text else ""


def not_shown(words: Sequence[str], options: Sequence[tuple[str, object]] = ()) -> str:
    """Say why `command_line` gives no command for these words, and the next step; "" if it gives one."""
    for option, value in options:
        if not _option_word(value) and option == _TOPIC:
            return (
                f"No command line can show the topic {name_text(value, _LONGEST)}: write its name into a file, as UTF-8, and name"
                " that with query --topic-file."
            )
    before = ""
    for word in (*words, *(text for option, value in options for text in (option, str(value)))):
        if not shell_word(word):
            return _path_not_shown(word, before in _FILES)
        before = word
    return ""


def _path_not_shown(path: str, is_file: bool) -> str:
    advice = (
        "copy the file to a path without such letters, and name that."
        if is_file
        else "name the folder in a file for audit --fleet, where TOML has escapes, and for other commands give it another name."
    )
    return f"No command line can show the path {name_text(path, _LONGEST)}: {advice}"


def _option_word(value: object) -> str:
    return shell_word(str(value)) if str(value).strip() not in ("", "--") else ""  # which no option takes


def store_words(store: StoreArgument) -> tuple[str, ...]:
    """Return the words with which another command reads the same store in the same way."""
    words = [store.path, *_release_words(store.release, store.release_from)]
    if store.broker_conf is not None:
        file = store.broker_conf_file or ""
        lasting = file and not file.startswith(("/dev/fd/", "/dev/stdin", "/proc/"))  # a shell's pipe (<(...)) no longer exists
        words += ["--broker-conf", file if lasting else "broker.conf"]
    for part, paths in store.parts:
        words += [f"--{part}", ",".join(paths)]
    return tuple(words)


def command_line(command: str, words: Sequence[str], options: Sequence[tuple[str, object]]) -> str:
    """Return `spark-submit.sh COMMAND STORE ... --option value`, which works in any folder.

    "" if a word cannot be written: see `not_shown`.
    """
    shown = [shell_word(ENTRY), command, *map(shell_word, words)]
    for option, value in options:
        text = _option_word(value)
        # A value that begins with a dash would be taken for an option of its own.
        shown += [f"{option}={text}"] if text and str(value).startswith("-") else [option, text]
    return "" if "" in shown else " ".join(shown)


def closer_look(finding: Finding, words: Sequence[str]) -> str:
    """Return the command for one finding; "" if none would show more, or `closer_withheld` gives the reason.

    words: as `store_words` gives them.
    """
    look = _look(finding)
    return "" if look is None else command_line(look[0], words, look[1])


def closer_withheld(finding: Finding, words: Sequence[str]) -> str:
    """Say why no command looks closer at a finding although one would show more, else ""."""
    look = _look(finding)
    return "" if look is None else not_shown(words, look[1])


def queue_query(words: Sequence[str], topic: str, queue_id: int, first: int, end: int) -> tuple[str, str]:
    """Return (the command that lists a queue's messages from one queue offset up to another, why there is none)."""
    options = _range_options(topic, queue_id, first, end)
    return command_line("query", words, options), not_shown(words, options)


def _range_options(topic: str, queue_id: int, first: int, end: int) -> list[tuple[str, object]]:
    queue = [("--queue", queue_id)] if queue_id >= 0 else []  # damage makes others, which the option does not take
    return [(_TOPIC, topic.replace(",", "\\,")), *queue, ("--from-queue-offset", first), ("--to-queue-offset", end)]


def _look(finding: Finding) -> tuple[str, list[tuple[str, object]]] | None:
    """Return (the command that looks closer, its options); None if none would show more."""
    topic, queue_id, offset = finding.topic, finding.queue_id, finding.queue_offset
    if finding.code == Code.QUEUE_BEGINS_AGAIN and topic is not None and finding.phy_offset is not None:  # what lies before it
        of_queue: list[tuple[str, object]] = [(_TOPIC, topic.replace(",", "\\,")), ("--queue", queue_id)]
        return "query", [*of_queue, ("--to-phy-offset", finding.phy_offset)]
    if topic is not None and queue_id is not None and offset is not None and _about_queue(finding):
        first = max(0, offset)
        options = _range_options(topic, queue_id, first, first + max(1, min(finding.count, _RANGE)))
        if not not_shown((), options) or finding.phy_offset is None:
            return "query", options
    if finding.phy_offset is not None and finding.phy_offset >= 0:
        return "explain", [("--phy-offset", finding.phy_offset)]
    return None


def _about_queue(finding: Finding) -> bool:
    return CATALOGUE[finding.code].about is Part.QUEUE or finding.phy_offset is None


def words_of(outcome: Outcome) -> tuple[str, ...]:
    """Return the words with which a command reads the store, if only the outcome is known."""
    return (outcome.location_text, *_release_words(outcome.release, outcome.assumed.release_from))


def _release_words(release: str, release_from: str) -> tuple[str, ...]:
    """Return the option that names the release as it was named, also one that is not known."""
    return () if release_from == DEFAULT else ("--release", release if release_from == NAMED else release_from)


def repair_withheld(outcome: Outcome) -> str:
    """Say why no command repairs this store although there is something to do. "" if one is shown or nothing is to be done."""
    return next_text(in_place_of_repair(outcome))


def _has_place_beside(store: str) -> bool:
    """Say whether `repair` writes to a name beside the store's. It does not to other kinds of URI, nor to another bucket."""
    return store.startswith("/") or (is_s3(store) or is_hdfs(store)) and bool(urlsplit(store).path.strip("/"))


def copied_again(lack: NotWhole, words: Sequence[str], unclean: bool) -> tuple[str, str]:
    """Return (what to copy again or to use instead, a command that does it) for what shows that the copy is not whole.

    The command is "" if none can be written: for a copy that lies elsewhere, or names that no shell can show.
    words: as `store_words` gives them.
    unclean: the broker was not stopped cleanly.
    """
    copy, said = words[0].rstrip("/"), not_whole.step(lack)
    if lack.kind == Lack.OTHER_COPY:
        with_donor: list[tuple[str, object]] = [("--donor", copy)] if lack.own else []
        if lack.own and set(_PARTS) & set(words):  # a donor has all its parts in one folder
            return f"{said}.", ""
        return f"{said}:", command_line("rescue", (lack.place, *_settings(words)), with_donor)
    log = lack.place or f"store/{COMMITLOG}"
    whole = lack.kind in (Lack.ZEROS, Lack.QUEUES_LATER) or lack.kind == Lack.SEGMENTS_AT_END and unclean
    if whole:  # its other files are of other moments, too
        source, target = f"{log.removesuffix(f'/{COMMITLOG}') if log.endswith(f'/{COMMITLOG}') else 'store'}/", f"{copy}-again/"
    elif lack.kind == Lack.LOG_ELSEWHERE:
        source, target = f"{log}/", f"{copy}-commitlog/"
    elif lack.kind == Lack.NO_CONFIG:
        source, target = f"{lack.place or 'store/config'}/", f"{copy}/config/"
    elif lack.kind == Lack.SEGMENTS_BETWEEN and lack.files == 1:
        source, target = f"{log}/{lack.file.rpartition('/')[2]}", f"{copy}/{COMMITLOG}/"
    else:
        source, target = f"{log}/", f"{copy}/{COMMITLOG}/"
    in_parts = "--commitlog" in words and not whole
    keeps = "--ignore-existing" if target == f"{copy}/{COMMITLOG}/" else ""  # what this copy holds may be better by now
    line = "" if lack.kind == Lack.STORES_MERGED or in_parts else _rsync(source, target, keeps)
    return (f"{said}:", line) if line else (f"{said}.", "")


def copy_of_config(advice: Advice, words: Sequence[str]) -> str:
    """Return the command that copies what is absent of config/ from the broker; "" if none can be written."""
    absent = str(advice.values[0])
    return _rsync(f"store/{absent}", f"{words[0].rstrip('/')}/config/")


def only_here(advice: Advice, words: Sequence[str]) -> tuple[str, str]:
    """Return (the command that saves what one copy alone holds, why there is none). words: those of the audited copy."""
    sender = str(advice.values[0])
    master = str(advice.values[2]) if advice.step == Step.SEND_ONLY_OTHERS else words[0]
    settings = _settings(words)
    local = sender.rstrip("/") if not is_uri(sender) else sender.rstrip("/").rpartition("/")[2]
    options = [(_ONLY_HERE, master), ("--format", "resend"), ("--out", f"{local}.only-here.jsonl")]
    asked = sender, *settings
    return command_line("query", asked, options), not_shown(asked, options)


def _settings(words: Sequence[str]) -> list[str]:
    """Return the words of a command that say how a store is read, whichever store it is."""
    return [word for option, value in pairwise(words) if option in _SETTINGS for word in (option, value)]


def _rsync(source: str, target: str, more: str = "") -> str:
    """Return the command that copies from the broker's machine to a folder of this one; "" if none can be written.

    The shell of the broker's machine reads the source once more, so that only plain paths are written.
    """
    line = ["rsync", "-a", shell_word(f"{_BROKER}:{source}"), shell_word(target), *([more] if more else [])]
    return "" if is_uri(target) or "" in line or not re.fullmatch(r"[\w./~-]+", source, re.ASCII) else " ".join(line)


def repair_words(proposal: RepairProposal, words: Sequence[str], plan: str, to: str) -> tuple[str, ...]:
    """Return the command line of a proposed repair, word by word, without `repair` itself."""
    return (*words, "--plan", plan, "--to", to, "--policy", proposal.policy, *proposal.options)


def repair_commands(outcome: Outcome, words: Sequence[str], plan: str, to: str = "") -> list[tuple[str, str]]:
    """Return (what it keeps, the command) for each way to repair this store, the recommended one first.

    None if nothing is to be done or a repair would refuse. A command is "" if `not_shown` of these words and the plan says why.
    words: as `store_words` gives them.
    plan: the path of plan.json.
    to: the new store; "": beside the copy.
    If an audit did not work the repairs out, the one command is `rescue`, which does.
    """
    if outcome.effect is None or not outcome.complete or not acts(outcome) or repair_withheld(outcome):
        return []
    if not plan or not (to or _has_place_beside(words[0])):
        return []
    if judge(outcome).kind == Safety.SAFE:
        return []
    found, words = going(outcome), (*words, *_start_words(outcome, words))
    if not found:
        return [(RESCUE_FIRST, command_line("rescue", words, [("--to", to or _NEW)] if is_uri(words[0]) else []))]
    to = to or words[0].rstrip("/") + "-repaired"
    return [
        (f"Repair with {_asked(one)}: {_effect(outcome, one)}", command_line("repair", repair_words(one, words, plan, to), []))
        for one in found
    ]


def _start_words(outcome: Outcome, words: Sequence[str]) -> tuple[str, ...]:
    """Return the options for the start that somebody named for the audit, unless the words have them."""
    moment = None if outcome.first_day is None else outcome.first_day.moment
    if moment is None or not moment.decided or moment.at_ms == moment.now_ms or "--start-at" in words:
        return ()
    return AskedStart(moment.at_ms, False, moment.timezone, moment.disk_used, moment.disk_size).words()


def _asked(proposal: RepairProposal) -> str:
    return " ".join(("--policy", proposal.policy, *(word for word in proposal.options if word.startswith("--"))))


def _effect(outcome: Outcome, proposal: RepairProposal) -> str:
    """Return the words on a repair's effect, for the line above its command."""
    kept = f"keeps {count_text(proposal.messages_after, 'message')}" if proposal.messages_after else ""
    more = more_than_a_start(outcome, proposal)
    if more:
        kept += f", {more:,} more than a start would"
    else:
        kept = f"{kept} and {_mends(outcome)}" if kept else _mends(outcome)
    return "; ".join([kept, *effect_clauses(proposal)])


def _mends(outcome: Outcome) -> str:
    return "mends what differs" if outcome.started is not None else "removes what stops the release"


def effect_clauses(proposal: RepairProposal) -> list[str]:
    """Return a clause for each further effect of a repair, and for each that it leaves out."""
    found = []
    if proposal.healed:
        whole = f"--heal makes {count_text(proposal.healed, 'damaged record')} whole"
        found.append(f"{whole} (risk of a wrong change: {risk_text(proposal.risk)})")
    if proposal.risk_left:
        left = f"risks of {risk_text(proposal.risk_left)} in all, not below {risk_text(MOST_RISK)}"
        found.append(f"damaged records that one change makes whole stay as they are ({left}): decide on repair --heal yourself")
    if proposal.unserved:
        found.append(f"{proposal.unserved:,} of an earlier life of their queue get no entry without {WITH_EARLIER}")
    if FIX_CONFIG in proposal.options:
        found.append(f"{FIX_CONFIG} writes files of config/ from what can be read of them in the copy and what the log shows")
    if proposal.config_left:
        found.append(f"files of config/ stay as they are: {proposal.config_left}")
    if FIX_OFFSETS in proposal.options:
        number = count_text(proposal.offsets, "offset") if proposal.offsets else "offsets"
        found.append(f"{FIX_OFFSETS} sets back {number} beyond the new ends of the queues")
    if LATE_TIMERS in proposal.options:
        found.append(f"{LATE_TIMERS} has a start within seven days of the repair deliver timer messages that were due long ago")
    return found
