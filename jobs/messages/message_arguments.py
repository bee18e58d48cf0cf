"""The arguments that the commands for messages share, and the hint for a topic that has no queue in the copy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jobs.cli.options import Command
from jobs.cli.stores import StoreArgument
from jobs.report.texts.text import name_text
from store_io.base.errors import StoreError, UsageError
from store_io.base.wording import names_text
from store_io.messages.open_store import OpenStore, open_store
from store_io.messages.redaction import Redaction, read_redaction
from store_io.messages.scans import COLUMNS
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:
    from store_io.model.audit_request import AuditRequest

RESEND = "resend"
"""The format whose lines a producer can send again."""
NO_SEGMENT = "this copy holds no CommitLog segment"
_CLOSE = 3  # names shown
_LOOKED_AT = 10_000  # names compared
_LETTERS = 100  # of a name


def chosen_columns(text: str, body: str, bodies: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that --columns names. body: the value of --body, one of bodies. Raises UsageError."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in COLUMNS:
            raise UsageError(f"--columns {name!r}: no such column; there are {', '.join(COLUMNS)}")
    if len(set(names)) != len(names):
        raise UsageError(f"--columns {text!r}: a column twice")
    if body == "none" and {"body", "body_status"} & set(names):
        raise UsageError(f"--columns names a body: say {' or '.join(f'--body {form}' for form in bodies[1:])} as well")
    return names


def request_of(store: StoreArgument) -> AuditRequest:
    """Return the store that a command line names as what is read, or audited."""
    from store_io.model.audit_request import AuditRequest  # planners start faster without it

    location = StoreLocation(store.path, store.parts)
    return AuditRequest(store.name, location, store.release, store.broker_conf, release_from=store.release_from)


def open_named(store: StoreArgument) -> OpenStore:
    """Open the store that a command line names. Raises StoreError."""
    return open_store(StoreLocation(store.path, store.parts), store.release, store.broker_conf)


def redaction_of(command: Command, salt: str | None = None) -> Redaction:
    """Return the redaction of --redact: none (the default), hide or hash. Raises UsageError."""
    mode = command.options.get("--redact", "none")
    return read_redaction(None if mode == "none" else mode, salt)


def refuse_with_resend(options: Mapping[str, str], form: str) -> None:
    """Raise UsageError for options that say what a line for a producer holds: it always holds all."""
    if form == RESEND:
        for option in ("--columns", "--body"):
            if option in options:
                raise UsageError(f"{option} does not go with --format resend, whose lines hold all that is sent again")


def unknown_topics(store: OpenStore, topics: Iterable[str] | None) -> str:
    """Return one sentence, without a full stop, on topics that have no queue.

    "" without any, or if nothing is known of queues.
    """
    try:
        known = sorted({queue.key[0] for queue in store.queues()})
    except StoreError:
        return ""
    unknown = sorted(set(topics or ()) - set(known))
    if not unknown or not known:
        return ""
    close: dict[str, None] = {}
    for name in unknown[:_CLOSE]:
        close |= dict.fromkeys(difflib.get_close_matches(name, known[:_LOOKED_AT], _CLOSE))
    lead = "this copy has no queue of the topic" if len(unknown) == 1 else "this copy has no queue of these topics:"
    near = f"; it has {names_text([name_text(name, _LETTERS) for name in close], _CLOSE)}" if close else ""
    return f"{lead} {names_text([name_text(name, _LETTERS) for name in unknown], _CLOSE)}{near}"
