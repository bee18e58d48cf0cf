"""The words for what shows that a copy is not whole: its headline, and what to copy again. Each kind has one of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.advice import Lack, NotWhole
from store_io.base.wording import count_text

_AGAIN = "Copy again: "


def messages_text(lack: NotWhole) -> str:
    """Return "12 messages" or "at least 12 messages"; "" if the number is not known."""
    return f"{'at least ' if lack.at_least else ''}{count_text(lack.messages, 'message')}" if lack.messages else ""


def headline(lack: NotWhole) -> str:
    """Return the answer for a copy of which this is the gravest that is missing, without a full stop."""
    return _HEADLINES[lack.kind](lack)


def step(lack: NotWhole) -> str:
    """Return the sentence on what to copy again, or which copy to use."""
    return _STEPS[lack.kind](lack)


def _missing(lack: NotWhole, where: str) -> str:
    more = f" and {count_text(lack.files - 1, 'more segment')}" if lack.files > 1 else ""
    number = messages_text(lack)
    return f"{_AGAIN}{lack.file}{more} {'is' if lack.files == 1 else 'are'} missing {where}{number and f': {number}'}"


def _other_copy(lack: NotWhole) -> str:
    if lack.own:
        more = f"it holds {messages_text(lack)} that this copy lacks, and lacks {lack.own:,} of this copy's"
        return f"Rescue {lack.place} instead, with this copy as its donor: {more}"
    return f"Rescue {lack.place} instead: it holds everything that this copy has, and {lack.messages:,} more messages"


def _elsewhere(lack: NotWhole) -> str:
    number = messages_text(lack)
    kept = f"{_AGAIN}broker.conf keeps the CommitLog at {lack.place}, and the log in this copy ends too early"
    return kept + (f": {number} {'is' if lack.messages == 1 else 'are'} missing" if number else "")


def _zeros(lack: NotWhole) -> str:
    more = f" and {count_text(lack.files - 1, 'more segment')}" if lack.files > 1 else ""
    lay = f"; {messages_text(lack)} lay there" if lack.messages else ""
    return f"{_AGAIN}{lack.file}{more} {'holds' if lack.files == 1 else 'hold'} zeros before later messages{lay}"


def _later(lack: NotWhole) -> str:
    known = f"the queues lead to {messages_text(lack)} after it" if lack.messages else "index and checkpoint know later messages"
    return f"{_AGAIN}the log of this copy ends too early, in {lack.file}: {known}"


_HEADLINES: Mapping[Lack, Callable[[NotWhole], str]] = {
    Lack.OTHER_COPY: _other_copy,
    Lack.LOG_ELSEWHERE: _elsewhere,
    Lack.STORES_MERGED: lambda lack: f"{_AGAIN}{lack.file} and the segment before it are files of two brokers",
    Lack.SEGMENTS_BETWEEN: lambda lack: _missing(lack, "between two others"),
    Lack.SEGMENTS_AT_END: lambda lack: _missing(lack, "from the end of the log"),
    Lack.ZEROS: _zeros,
    Lack.QUEUES_LATER: _later,
    Lack.NO_CONFIG: lambda lack: f"{_AGAIN}{lack.file} is not in this copy, and its log shows that groups consumed",
}
_STORE = "If the broker runs, stop it; never start it for this. Then copy its whole store again, into a new folder"
_STEPS: Mapping[Lack, Callable[[NotWhole], str]] = {
    Lack.OTHER_COPY: lambda lack: f"Rescue the other copy, {lack.place}: no repair of this one adds the end of the log",
    Lack.LOG_ELSEWHERE: lambda lack: f"Copy {lack.place} from the broker's machine again, and name that folder with --commitlog",
    Lack.STORES_MERGED: lambda lack: (
        "Copy the store of each broker again, each into a folder of its own: a repair would mix their messages in the same queues"
    ),
    Lack.SEGMENTS_BETWEEN: lambda lack: (
        "Copy again what is missing between two segments, from the broker's disk, before anybody starts that broker"
    ),
    Lack.SEGMENTS_AT_END: lambda lack: "Copy again the end of the log, from the broker's disk, before anybody starts that broker",
    Lack.ZEROS: lambda lack: _STORE,
    Lack.QUEUES_LATER: lambda lack: _STORE,
    Lack.NO_CONFIG: lambda lack: "Copy config/ again, from the broker's disk: no other file has the offsets of groups",
}
