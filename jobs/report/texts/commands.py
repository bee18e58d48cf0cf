"""The commands that look closer at a finding, or repair a store, ready for any POSIX shell: quoted, and with nothing in them that
steers a terminal, or that cannot be seen. Where a word holds such letters there is a sentence instead."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from jobs.environment.installation import COMMAND
from jobs.report.texts.judgement import judge
from jobs.report.texts.text import count_text, name_text, printable
from schemas.finding_codes import BEGINS_AGAIN, CATALOGUE, CURED, NO_LIGHT_OFFSETS, NO_QUEUE, Part
from schemas.rows import DEFAULT, DOUBT, NAMED, NOTE, AuditOutcome, Finding
from store_io.audit.outcome.safety import Safety, counted, is_emptied, lost_of, setting_at_fault, unqueueable
from store_io.base.paths import is_hdfs, is_s3
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_steps import COPY, CORRECT_OFFSETS
from store_io.rules.config.databases import DATABASE_TABLES
from store_io.rules.config.files import CONFIG_FILES

if TYPE_CHECKING:
    from jobs.command_line.stores import StoreArgument

_UNNAMED = "Name the release with --release; no repair command is shown for an assumed one."
_UNKNOWN = "Name a known release with --release; no repair command is shown for one that is not known."
_MISFIT = "Audit again with this store's own release and broker.conf; no repair command is shown for those that do not fit it."
_FIX_CONFIG = "--fix-config"
_CONFIG_CODES = frozenset(
    {
        "config_damaged", "config_backup_taken", "config_table_lost", "config_older", "topic_not_in_table",
        "delayed_messages_again",
    }
)  # fmt: skip
NOTHING_MENDS = "No repair changes what was found here."
_RANGE = 100  # queue offsets that a query begins with
_TOPIC = "--topic"
_LONGEST = 100  # letters of a name in a sentence


def shell_word(text: str) -> str:
    """One word of a POSIX shell's command line; "" where the text holds what cannot be seen: only some shells know escapes."""
    return shlex.quote(text) if printable(text) == text else ""


def not_shown(words: Sequence[str], options: Sequence[tuple[str, object]] = ()) -> str:
    """Why `command_line` gives none for these, and what to do; "" where it gives one."""
    for option, value in options:
        if not _option_word(value) and option == _TOPIC:
            return (
                f"No command line can show the topic {name_text(value, _LONGEST)}: write its name into a file, as UTF-8, and name"
                " that with query --topic-file."
            )
    for word in (*words, *(str(value) for _, value in options)):
        if not shell_word(word):
            return (
                f"No command line can show the path {name_text(word, _LONGEST)}: name the folder in a file for audit --fleet,"
                " where TOML has escapes, and for other commands give it another name."
            )
    return ""


def _option_word(value: object) -> str:
    return shell_word(str(value)) if str(value).strip() not in ("", "--") else ""  # which no option takes


def store_words(store: StoreArgument) -> tuple[str, ...]:
    """The words with which another command reads the same store in the same way."""
    words = [store.path, *_release_words(store.release, store.release_from)]
    if store.broker_conf is not None:
        file = store.broker_conf_file or ""
        lasting = file and not file.startswith(("/dev/", "/proc/"))  # a shell's pipe (<(...)) no longer exists
        words += ["--broker-conf", file if lasting else "broker.conf"]
    for part, paths in store.parts:
        words += [f"--{part}", ",".join(paths)]
    return tuple(words)


def command_line(command: str, words: Sequence[str], options: Sequence[tuple[str, object]]) -> str:
    """`./spark-submit.sh COMMAND STORE ... --option value`; "" where a word cannot be written: see `not_shown`."""
    shown = [COMMAND, command, *map(shell_word, words)]
    for option, value in options:
        text = _option_word(value)
        # A value that begins with a dash would be taken for an option of its own.
        shown += [f"{option}={text}"] if text and str(value).startswith("-") else [option, text]
    return "" if "" in shown else " ".join(shown)


def closer_look(finding: Finding, words: Sequence[str]) -> str:
    """The command for one finding; "" where none would show more, or `closer_withheld` says why there is none. words: as
    `store_words` gives them."""
    look = _look(finding)
    return "" if look is None else command_line(look[0], words, look[1])


def closer_withheld(finding: Finding, words: Sequence[str]) -> str:
    """Why no command looks closer at a finding although one would show more; "" where there is one, or none is needed."""
    look = _look(finding)
    return "" if look is None else not_shown(words, look[1])


def queue_query(words: Sequence[str], topic: str, queue_id: int, first: int, end: int) -> tuple[str, str]:
    """(the command that lists a queue's messages from one queue offset up to another, why there is none)."""
    options = _range_options(topic, queue_id, first, end)
    return command_line("query", words, options), not_shown(words, options)


def _range_options(topic: str, queue_id: int, first: int, end: int) -> list[tuple[str, object]]:
    queue = [("--queue", queue_id)] if queue_id >= 0 else []  # damage makes others, which the option does not take
    return [(_TOPIC, topic.replace(",", "\\,")), *queue, ("--from-queue-offset", first), ("--to-queue-offset", end)]


def _look(finding: Finding) -> tuple[str, list[tuple[str, object]]] | None:
    """(the command that looks closer, its options); None where none would show more."""
    topic, queue_id, offset = finding.topic, finding.queue_id, finding.queue_offset
    if finding.code == BEGINS_AGAIN and topic is not None and finding.phy_offset is not None:  # what lies before it
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


def words_of(outcome: AuditOutcome) -> tuple[str, ...]:
    """The same where no more is known than the outcome."""
    return (outcome.location_text, *_release_words(outcome.release, outcome.release_from))


def _release_words(release: str, release_from: str) -> tuple[str, ...]:
    """The option that names the release as it was named, also one that is not known."""
    return () if release_from == DEFAULT else ("--release", release if release_from == NAMED else release_from)


def repair_withheld(outcome: AuditOutcome) -> str:
    """Why no command repairs this store although there is something to do; "" where one is shown or nothing is to be done."""
    if not (_acts(outcome) or config_helps(outcome)):
        return NOTHING_MENDS if _worked_out(outcome) else ""
    if setting_at_fault(outcome) or outcome.no_repair:
        return setting_at_fault(outcome) or outcome.no_repair
    if outcome.release_from != NAMED:
        return _UNNAMED if outcome.release_from == DEFAULT else _UNKNOWN
    return _MISFIT if any(premise.kind == DOUBT for premise in outcome.premises) else ""


def _worked_out(outcome: AuditOutcome) -> bool:
    """Whether the plan has the steps of a repair: an audit works them out for a store that is not consistent."""
    return any(part["refused"] is None for part in (outcome.plan.get("repair") or {}).values())


def left_out(outcome: AuditOutcome, policy: str) -> int:
    """How many messages that a start loses are left out by a repair, too: those of an earlier life of their queue."""
    return ((outcome.plan.get("repair") or {}).get(policy) or {}).get("unserved") or 0


def _acts(outcome: AuditOutcome) -> bool:
    """Whether a repair changes anything: by its own steps where the plan has them, else by what a start leaves of each file, and
    by the findings."""
    planned = [step for part in (outcome.plan.get("repair") or {}).values() for step in part["steps"]]
    if planned:
        return any(step["action"] not in (COPY, CORRECT_OFFSETS) for step in planned)
    changes = any(step["action"] != "keep" for step in outcome.plan.get("steps", ()))
    return changes or any(f.code in CURED and f.severity != NOTE and f.next != NO_QUEUE for f in outcome.findings)


def _has_place_beside(store: str) -> bool:
    """Whether `repair` writes where a name beside the store's leads: not to other kinds of URI, nor to another bucket."""
    return store.startswith("/") or (is_s3(store) or is_hdfs(store)) and bool(urlsplit(store).path.strip("/"))


def config_helps(outcome: AuditOutcome) -> bool:
    """Whether --fix-config writes a file of config/ that is damaged, lost or older; it writes no database."""
    refused_by = ((outcome.plan.get("broker") or {}).get("config") or {}).get("refused_by")
    mended = (f for f in outcome.findings if f.code in _CONFIG_CODES and f.severity != NOTE and f.next != NO_LIGHT_OFFSETS)
    files = [f.file for f in mended]
    files += [f"config/{refused_by}"] if refused_by else []
    if outcome.config_database:
        return any(file in {each.path for each in CONFIG_FILES} - {*DATABASE_TABLES} for file in files)
    return bool(files)


def _more_than_a_start(outcome: AuditOutcome, policy: str) -> str:
    """What a repair by this policy keeps of a copy of which a start loses messages."""
    lost, out = lost_of(outcome)[0] - unqueueable(outcome), left_out(outcome, policy)
    kept = f"keeps {count_text(outcome.messages, 'message')}"
    kept += f", {lost - out:,} more than a start would" if lost > out else " and mends what differs"
    if not out:
        return kept
    return f"{kept}; {out:,} of an earlier life of their queue get no entry without --with-earlier"


def repair_commands(outcome: AuditOutcome, words: Sequence[str], plan: str) -> list[tuple[str, str]]:
    """(what it keeps, the command) for each way to repair this store, the one that keeps most first; none where nothing is to be
    done or a repair would refuse. A command is "" where `not_shown` of these words and the plan says why.

    words: as `store_words` gives them.  plan: where plan.json is.
    """
    broker = outcome.plan.get("broker")
    config = config_helps(outcome)
    if broker is None or not outcome.complete or not (_acts(outcome) or config) or repair_withheld(outcome):
        return []
    if not plan or not _has_place_beside(words[0]):
        return []
    nothing_left = not outcome.segment_count or is_emptied(outcome) and not outcome.messages  # a repair would make an empty store
    if judge(outcome).kind == Safety.SAFE or nothing_left:
        return []
    options: list[tuple[str, object]] = [("--plan", plan), ("--to", words[0].rstrip("/") + "-repaired")]
    messages, lost = outcome.messages, lost_of(outcome)[0]
    cut = lost - counted(outcome, "broker_skips_messages")
    lost -= unqueueable(outcome)
    if not broker.get("starts"):
        most = f"keeps {count_text(messages, 'message')} and removes what stops the release"
        less = "removes what stops the release, then keeps what the release keeps"
    elif lost:
        most = _more_than_a_start(outcome, SALVAGE if cut > 0 else BROKER)
        less = f"keeps {count_text(messages - cut, 'message')}, those that a start would leave in the log"
    else:
        kept = f"keeps {count_text(messages, 'message')}, as a start would, and " if messages else ""
        most, less = f"{kept}mends what differs", ""
    if broker.get("starts") and cut <= 0:
        ways = [(f"Repair: {most}", options)]
    else:
        ways = [
            (f"Repair with --policy salvage: {most}", [*options, ("--policy", "salvage")]),
            (f"Repair with --policy broker: {less}", [*options, ("--policy", "broker")]),
        ]
    found = [(what, command_line("repair", words, given)) for what, given in ways]
    if config:
        more = "; --fix-config writes files of config/ from what can be read of them in the copy and what the log shows"
        found = [(what + more, f"{command} {_FIX_CONFIG}" if command else "") for what, command in found]
    return found
