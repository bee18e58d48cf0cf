"""The commands that look closer at a finding, or repair a store, ready for a shell: quoted, and with nothing in them that steers
a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from jobs.environment.installation import COMMAND
from jobs.report.texts.judgement import judge
from jobs.report.texts.text import count_text, printable
from schemas.finding_codes import BEGINS_AGAIN, CATALOGUE, CURED, Part
from schemas.rows import DEFAULT, DOUBT, NOTE, AuditOutcome, Finding
from store_io.audit.outcome.safety import Safety, counted, is_emptied, lost_of, setting_at_fault
from store_io.base.paths import is_hdfs, is_s3
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_steps import COPY, CORRECT_OFFSETS

if TYPE_CHECKING:
    from jobs.command_line.stores import StoreArgument

_UNNAMED = "Name the release with --release; no repair command is shown for an assumed one."
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


def shell_word(text: str) -> str:
    """One word of a POSIX shell's command line; a text that holds what cannot be seen becomes bash's $'...' with escapes.

    "" where no word can hold it (a zero byte).
    """
    if "\0" in text:
        return ""
    if printable(text) == text:
        return shlex.quote(text)
    parts = []
    for character in text:
        if character in "\\'":
            parts.append("\\" + character)
        elif printable(character) == character:
            parts.append(character)
        else:
            code = ord(character)
            raw = bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else character.encode("utf-8", "surrogatepass")
            parts.append("".join(f"\\x{byte:02x}" for byte in raw))
    return "$'" + "".join(parts) + "'"


def store_words(store: StoreArgument) -> tuple[str, ...]:
    """The words with which another command reads the same store in the same way."""
    words = [store.path] if store.release_from == DEFAULT else [store.path, "--release", store.release]
    if store.broker_conf is not None:
        file = store.broker_conf_file or ""
        lasting = file and not file.startswith(("/dev/", "/proc/"))  # a shell's pipe (<(...)) no longer exists
        words += ["--broker-conf", file if lasting else "broker.conf"]
    for part, paths in store.parts:
        words += [f"--{part}", ",".join(paths)]
    return tuple(words)


def command_line(command: str, words: Sequence[str], options: Sequence[tuple[str, object]]) -> str:
    """`./spark-submit.sh COMMAND STORE ... --option value`; "" where a word cannot be written."""
    shown = [COMMAND, command, *map(shell_word, words)]
    for option, value in options:
        text = shell_word(str(value))
        # A value that begins with a dash would be taken for an option of its own.
        shown += [f"{option}={text}"] if str(value).startswith("-") else [option, text]
    return "" if "" in shown else " ".join(shown)


def closer_look(finding: Finding, words: Sequence[str]) -> str:
    """The command for one finding; "" where none would show more. words: as `store_words` gives them."""
    topic, queue_id, offset = finding.topic, finding.queue_id, finding.queue_offset
    if finding.code == BEGINS_AGAIN and topic is not None and finding.phy_offset is not None:  # what lies before it
        of_queue = [("--topic", topic.replace(",", "\\,")), ("--queue", queue_id), ("--to-phy-offset", finding.phy_offset)]
        return command_line("query", words, of_queue)
    if topic is not None and queue_id is not None and offset is not None and _about_queue(finding):
        first = max(0, offset)
        options = [("--topic", topic.replace(",", "\\,")), ("--queue", queue_id)]
        options += [("--from-queue-offset", first), ("--to-queue-offset", first + max(1, min(finding.count, _RANGE)))]
        return command_line("query", words, options)
    if finding.phy_offset is not None and finding.phy_offset >= 0:
        return command_line("explain", words, [("--phy-offset", finding.phy_offset)])
    return ""


def _about_queue(finding: Finding) -> bool:
    return CATALOGUE[finding.code].about is Part.QUEUE or finding.phy_offset is None


def words_of(outcome: AuditOutcome) -> tuple[str, ...]:
    """The same where no more is known than the outcome."""
    named = () if outcome.release_from == DEFAULT else ("--release", outcome.release)
    return (outcome.location_text, *named)


def repair_withheld(outcome: AuditOutcome) -> str:
    """Why no command repairs this store although there is something to do; "" where one is shown or nothing is to be done."""
    if not (_acts(outcome) or config_helps(outcome)):
        return NOTHING_MENDS if _worked_out(outcome) else ""
    if setting_at_fault(outcome) or outcome.no_repair:
        return setting_at_fault(outcome) or outcome.no_repair
    if outcome.release_from == DEFAULT:
        return _UNNAMED
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
    return changes or any(finding.code in CURED and finding.severity != NOTE for finding in outcome.findings)


def _has_place_beside(store: str) -> bool:
    """Whether `repair` writes where a name beside the store's leads: not to other kinds of URI, nor to another bucket."""
    return store.startswith("/") or (is_s3(store) or is_hdfs(store)) and bool(urlsplit(store).path.strip("/"))


def config_helps(outcome: AuditOutcome) -> bool:
    """Whether --fix-config writes a file of config/ that is damaged, lost or older; it writes no database."""
    if outcome.config_database:
        return False
    loads = (outcome.plan.get("broker") or {}).get("config") or {}
    return bool(loads.get("refused_by")) or any(f.code in _CONFIG_CODES and f.severity != NOTE for f in outcome.findings)


def _more_than_a_start(outcome: AuditOutcome, policy: str) -> str:
    """What a repair by this policy keeps of a copy of which a start loses messages."""
    lost, out = lost_of(outcome)[0], left_out(outcome, policy)
    kept = f"keeps {count_text(outcome.messages, 'message')}"
    kept += f", {lost - out:,} more than a start would" if lost > out else " and mends what differs"
    if not out:
        return kept
    return f"{kept}; {out:,} of an earlier life of their queue get no entry without --with-earlier"


def repair_commands(outcome: AuditOutcome, words: Sequence[str], plan: str) -> list[tuple[str, str]]:
    """(what it keeps, the command) for each way to repair this store, the one that keeps most first; none where nothing is to be
    done or a repair would refuse.

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
        more = "; --fix-config writes files of config/ from the best of the file, its .bak and what the log shows"
        found = [(what + more, f"{command} {_FIX_CONFIG}" if command else "") for what, command in found]
    return [(what, command) for what, command in found if command]
