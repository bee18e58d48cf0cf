"""The checks of options' values: each takes the text and returns the value. argparse puts the option's name before a sentence."""

from __future__ import annotations

import difflib
import re
import secrets
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from store_io.base.errors import UsageError
from store_io.broker.releases import KNOWN_RELEASES, parse_release
from store_io.source import storage_options

LAST_RUN = "last"
ALL_RELEASES = "all"

_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(kB|MB|GB|MiB|GiB)(?:/s)?")
LEAST_RATE = 1_000_000
_KEY = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smh])")
_SPAN = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Return a check for one of these words."""

    def check(text: str) -> str:
        if text not in choices:
            listed = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
            raise ArgumentTypeError(f"{text!r}: must be {listed}")
        return text

    return check


def release(text: str) -> str:
    """Return the release, known or not, as its three numbers. Raises UsageError."""
    return ".".join(map(str, parse_release(text)))


def releases(text: str) -> tuple[str, ...]:
    """Return the releases of "all", of "4.9.8,5.4.0", or the one that is named."""
    parts = [part.strip() for part in text.split(",")]
    if parts == [ALL_RELEASES]:
        return KNOWN_RELEASES
    if ALL_RELEASES in parts:
        raise UsageError(f"release {text!r}: {ALL_RELEASES} goes alone, without other releases")
    return tuple(dict.fromkeys(map(release, parts)))


def duration(text: str) -> float:
    """Return the seconds of "90s", "30m", "2h"."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ArgumentTypeError(f"{text!r}: must be a number with s, m or h, such as 90s, 30m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def _span(text: str) -> timedelta | None:
    match = _SPAN.fullmatch(text.strip())
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def moment(text: str, now: datetime | None = None) -> datetime:
    """Return a point in time: a span back from now (90m, 12h, 7d, 4w), or an ISO date or time.

    An ISO time is in UTC unless it says otherwise.
    """
    try:
        if (back := _span(text)) is not None:
            return (now or datetime.now(UTC)) - back
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r}: must be a span (12h, 7d, 4w) or a date (2026-11-01)") from None


def hours(text: str) -> int:
    """Return the hours of "36h", "7d", "4w"."""
    span = _span(text)
    if span is None or text.strip().endswith("m"):
        raise ArgumentTypeError(f"{text!r}: must be a span, such as 7d or 36h")
    return span // timedelta(hours=1)


def rate(text: str) -> int:
    """Return the bytes per second of "200MB/s"."""
    match = _RATE.fullmatch(text.strip())
    value = int(float(match[1]) * {"kB": 1e3, "MB": 1e6, "GB": 1e9, "MiB": 1 << 20, "GiB": 1 << 30}[match[2]]) if match else 0
    if value < LEAST_RATE:
        raise ArgumentTypeError(f"{text!r}: must be a number with MB/s, GB/s, MiB/s or GiB/s, at least 1MB/s, such as 200MB/s")
    return value


def risk(text: str) -> float:
    """Return a probability above 0 and at most 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text!r}: must be a number above 0 and at most 1, such as 1e-4")
    return value


def new_run_id() -> str:
    """Return an id that no other run has. Ids in order are runs by time, so that one run's rows are found in files of many."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def positive(text: str) -> int:
    """Return a whole number above 0."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) < 1:
        raise ArgumentTypeError(f"{text!r}: must be a whole number from 1")
    return int(text)


def run_id(text: str) -> str:
    if not _RUN_ID.fullmatch(text) or text in (".", ".."):
        raise ArgumentTypeError(f"{text!r}: must be at most 100 letters, digits, '.', '_' and '-'")
    return text


def earlier_run(text: str) -> str:
    if not _RUN_ID.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}: must be the id of an earlier run, or {LAST_RUN}")
    return text


def some_of(what: str, *choices: str) -> Callable[[str], frozenset[str]]:
    """Return a check for a list of these words, separated by commas; `what` they are called in its sentence."""

    def check(text: str) -> frozenset[str]:
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in choices:
                raise ArgumentTypeError(f"{name!r}{near(name, choices)}: the {what} are {', '.join(choices)}")
        return frozenset(names)

    return check


def storage_option(text: str) -> tuple[str, str]:
    """Return the key and the value of KEY=VALUE. A text that may be a secret is not quoted."""
    name, equals, value = text.partition("=")
    key = name.strip().lower()
    known = ", ".join(storage_options.KEYS)
    if not equals or not _KEY.fullmatch(key):
        raise ArgumentTypeError(f"must be KEY=VALUE with one of these keys: {known}")
    if key not in storage_options.KEYS:
        raise ArgumentTypeError(f"{key!r}{near(key, storage_options.KEYS)}: the keys are {known}")
    if not value:
        raise ArgumentTypeError(f"{key}: needs a value")
    if fault := storage_options.fault_of(key, value):
        raise ArgumentTypeError(fault)
    return key, storage_options.in_full(key, value)


def near(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return the known word that is meant, perhaps, for the end of a sentence; empty without one."""
    close = difflib.get_close_matches(word, sorted(known), 1, likeness)
    return f" (did you mean {close[0]}?)" if close else ""
