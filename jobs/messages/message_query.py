"""A query as its command line asks for it: the messages that are wanted, and what is shown of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.cli.argument_places import absolute, tables_at
from jobs.cli.message_filters import read_filter, read_number
from jobs.cli.options import Command
from jobs.messages.message_arguments import RESEND, chosen_columns, redaction_of, refuse_with_resend
from jobs.report.texts.query_text import narrowing_text
from jobs.runtime import faults
from schemas.sources import BODY_COLUMNS, LOST
from store_io.base.errors import UsageError
from store_io.base.paths import is_uri
from store_io.messages.lost.sendable import to_resend
from store_io.messages.message_filter import ALL, Contents, MessageFilter
from store_io.messages.question import MOST_LAST, Narrowing, Question
from store_io.messages.redaction import Redaction
from store_io.messages.scans import COLUMNS

BODY_FORMS = ("none", "text", "base64")
TABLE_LIMIT = 100
TABLE_COLUMNS = ("phy_offset", "topic", "queue_id", "queue_offset", "store_time", "total_size", "tags", "keys", "status")
LINE_COLUMNS = tuple(name for name in COLUMNS if name not in (*BODY_COLUMNS, LOST, "store_time_ms", "born_time_ms"))

_OFFSET_ID = re.compile(r"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56}")


@dataclass(frozen=True)
class Query:
    """A checked command line.

    question: the messages that it asks for.
    offset_id: the id, as RocketMQ prints it, that names one of them.
    columns: what is shown of each.
    out: the file to write; None: standard output.
    tables: of earlier audits, which say what store times segments hold; None: they are not asked.
    only_here: the other copy, whose messages are not wanted; None: they are.
    """

    question: Question
    offset_id: str | None
    columns: tuple[str, ...]
    form: str
    body: str
    broker: bool
    redaction: Redaction
    out: str | None = None
    tables: str | None = None
    only_here: str | None = None

    @property
    def resend(self) -> bool:
        return self.form == RESEND

    @property
    def needs_audit(self) -> bool:
        """Say whether what a start would lose must be known."""
        return self.question.only_lost or LOST in self.columns


def read_query(command: Command) -> Query:
    """Return the query that the options ask for. Raises UsageError."""
    options = command.options
    form, body, broker = options.get("--format", "table"), options.get("--body", "none"), options.get("--view") == "broker"
    wanted = read_filter(options)
    if ("--from-queue-offset" in options or "--to-queue-offset" in options) and wanted.topics is None:
        raise UsageError("a queue offset means something in a topic: say --topic and, for one queue, --queue")
    at = read_number(options["--phy-offset"], "--phy-offset") if "--phy-offset" in options else None
    offset_id = options.get("--offset-msg-id")
    if offset_id is not None:
        if not _OFFSET_ID.fullmatch(offset_id):
            raise UsageError(f"--offset-msg-id {offset_id!r}: not 32 or 56 hexadecimal digits, as RocketMQ prints such an id")
        named = int(offset_id[-16:], 16)
        if named >= 1 << 63 or at not in (None, named):
            raise UsageError(f"--offset-msg-id {offset_id}: names physical offset {named}, which contradicts --phy-offset")
        at = named
    if at is not None:
        wanted = wanted.narrowed(MessageFilter(phy_offsets=(at, at + 1)))
    for option in ("--key", "--unique-key"):
        try:
            options.get(option, "").encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"{option} {options[option]!r}: not UTF-8, which keys are") from None
    unique_keys = frozenset({options["--unique-key"]}) if "--unique-key" in options else None
    contents = Contents(options.get("--key"), unique_keys, _needle(options.get("--body-contains")))
    if contents.key is not None and unique_keys is not None:
        raise UsageError("say either --key, which finds unique keys too, or --unique-key")
    if broker and (contents.key or unique_keys) and (wanted.topics is None or len(wanted.topics) != 1):
        raise UsageError("--view broker looks keys up by topic: say --topic, one of them")
    last = _last(options, broker)
    limit = options.get("--limit", TABLE_LIMIT if form == "table" and last is None else None)
    lost = "--lost" in command.flags
    columns, offset_id = _columns(options, form, body, lost), offset_id.upper() if offset_id else None
    redaction, trust_clock = redaction_of(command), "--trust-clock" in command.flags
    refuse_with_resend(options, form)
    if broker and (lost or form == RESEND or LOST in columns):
        raise UsageError(
            "--view broker shows what a start leaves: it cannot be combined with --lost, the column lost or --format resend"
        )
    scan = "--scan" in command.flags
    tables = tables_at("--tables", options["--tables"]) if "--tables" in options else None
    narrowing = [
        name for name, given in (("--view broker", broker), ("--trust-clock", trust_clock), ("--tables", tables)) if given
    ]
    if scan and narrowing:
        raise UsageError(f"--scan reads the whole log: it cannot be combined with {narrowing[0]}")
    only_here = _only_here(command, broker, lost)
    if tables is not None and broker:
        raise UsageError("--tables says which segments of the copy to read: it cannot be combined with --view broker")
    if tables is not None and wanted.store_times == ALL:
        raise UsageError("--tables skips segments by store time: say --since or --until, too")
    out = absolute(options["--out"]) if "--out" in options else None
    if out is not None and is_uri(out):
        raise UsageError(f"--out {options['--out']!r}: a file of this machine, not a URI")
    question = Question(
        wanted, contents, columns, body != "none", lost, only_lost=lost, trust_clock=trust_clock, whole_log=scan, at=at,
        limit=limit, last=last,
    )  # fmt: skip
    question = to_resend(question) if form == RESEND else question
    if offset_id is not None and "offset_msg_id" not in question.columns:
        question = replace(question, columns=(*question.columns, "offset_msg_id"))
    return Query(question, offset_id, columns, form, body, broker, redaction, out, tables, only_here)


def _only_here(command: Command, broker: bool, lost: bool) -> str | None:
    """Return the place of the other copy that --only-here names. Raises UsageError."""
    options = command.options
    if "--only-here" not in options:
        return None
    for name, given in (("--view broker", broker), ("--lost", lost), ("--last", "--last" in options)):
        if given:
            raise UsageError(f"--only-here compares two copies as they are: it cannot be combined with {name}")
    if not options["--only-here"]:
        raise UsageError("--only-here: an empty store path")
    return absolute(options["--only-here"])


def _last(options: Mapping[str, Any], broker: bool) -> int | None:
    last: int | None = options.get("--last")
    if last is None:
        return None
    if last > MOST_LAST:
        raise UsageError(f"--last {last}: at most {MOST_LAST}; --since or --from-phy-offset choose more")
    if "--limit" in options:
        raise UsageError("--last says how many, and so does --limit: say one of them")
    if broker:
        raise UsageError("--last means the end of the copy's log: it cannot be combined with --view broker")
    return last


def _needle(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not text.startswith("hex:"):
        return text.encode("utf-8", "surrogateescape")
    try:
        found = bytes.fromhex(text[4:])
    except ValueError:
        found = b""
    if not found:
        raise UsageError(f"--body-contains {text!r}: after hex: write pairs of hexadecimal digits")
    return found


def _columns(options: Mapping[str, str], form: str, body: str, lost: bool) -> tuple[str, ...]:
    names = (TABLE_COLUMNS if form == "table" else LINE_COLUMNS) + ((LOST,) if lost else ())
    if "--columns" in options:
        names = chosen_columns(options["--columns"], body, BODY_FORMS)
    if body != "none" and "body" not in names:
        more = ("body",) if form == "table" else ("body", "body_status")
        names += tuple(name for name in more if name not in names)
    return names


def tell(fact: Narrowing) -> None:
    """Say what was left out, and why."""
    say(narrowing_text(fact))


def say(sentence: str) -> None:
    """Say a sentence about the answer, beside it."""
    sys.stdout.flush()
    faults.say(sentence, "query")
