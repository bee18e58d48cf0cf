"""The moment and the disk of a start, as a command line or a row of a fleet file names them. Standard library only."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobs.cli.parser import Option
from schemas.first_day import StartMoment
from store_io.base.errors import UsageError
from store_io.base.java.zones import UTC_NAME, zone, zones_are_known
from store_io.base.times import LAST_TIME_MS, time_text

AFTER_STOP = "stop"
FLEET_KEYS = ("start_at", "timezone", "disk_used", "disk_size")
_ZONEINFO = "/zoneinfo/"
_MOST_BYTES = 1 << 62


@dataclass(frozen=True)
class AskedStart:
    """What is said of the start of a store's broker; None and "": not said.

    at_ms: since 1970. after_stop: an hour after the store's last message, in place of it.
    """

    at_ms: int | None = None
    after_stop: bool = False
    timezone: str = ""
    disk_used: float | None = None
    disk_size: int | None = None

    def moment(self, now_ns: int, decided: bool = False) -> StartMoment:
        """Return the moment: now and this machine's zone, if no others are named. decided: also if no time is named."""
        named = self.after_stop or self.at_ms is not None
        now_ms = now_ns // 1_000_000
        at_ms = self.at_ms if self.at_ms is not None else now_ms
        return StartMoment(
            0 if self.after_stop else at_ms,
            self.timezone or machine_zone(),
            self.disk_used,
            self.disk_size,
            decided or named,
            self.after_stop,
            now_ms,
        )

    def words(self) -> tuple[str, ...]:
        """Return the words with which another command is asked for the same start."""
        at = None if self.at_ms is None else time_text(self.at_ms).replace(".000Z", "Z")
        named = (
            ("--start-at", at),
            ("--timezone", self.timezone),
            ("--disk-used", self.disk_used),
            ("--disk-size", self.disk_size),
        )
        return tuple(word for name, value in named if value not in (None, "") for word in (name, str(value)))


NOTHING_ASKED = AskedStart()


def start_time(text: str) -> int:
    """Return the ms since 1970 of an ISO time with its zone."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            raise ArgumentTypeError(f"{text!r}: must say its zone, such as 2026-11-28T15:00:00Z or +08:00")
        ms = (found.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r}: must be a time with its zone, such as 2026-11-28T15:00:00Z") from None
    if not 0 <= ms <= LAST_TIME_MS:
        raise ArgumentTypeError(f"{text!r}: must be a time from 1970 to 2261")
    return int(ms)


def timezone_name(text: str) -> str:
    """Return the name of a zone that is known here."""
    if zone(text) is None and zones_are_known():  # else the environment, which is still to be made, has them
        raise ArgumentTypeError(f"{text!r}: no JVM knows a time zone of this name; one is Asia/Shanghai, UTC, or GMT+8")
    return text


def percent(text: str) -> float:
    """Return a number from 0 to 100."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?", text) or float(text) > 100:
        raise ArgumentTypeError(f"{text!r}: must be a percentage from 0 to 100, such as 87.5")
    return float(text)


def disk_bytes(text: str) -> int:
    """Return a number of bytes above 0."""
    if not re.fullmatch(r"[0-9]{1,19}", text) or not 0 < int(text) <= _MOST_BYTES:
        raise ArgumentTypeError(f"{text!r}: must be a whole number of bytes from 1")
    return int(text)


def start_options(disk: str) -> tuple[Option, ...]:
    """Return the options of a command. disk: what holds if nothing is said of it."""
    return (
        Option("--start-at", "TIME", "when the broker will be started, an ISO time with its zone (default now)", start_time),
        Option("--timezone", "NAME", "of the broker's JVM: which hour is deleteWhen (default this machine's)", timezone_name),
        Option("--disk-used", "PERCENT", f"of the disk on which it starts, with the store ({disk})", percent),
        Option("--disk-size", "BYTES", "of that disk: shows how much deleting frees", disk_bytes),
    )


def asked_start(options: Mapping[str, Any]) -> AskedStart:
    """Return what the checked options of a command line say."""
    return AskedStart(
        options.get("--start-at"),
        False,
        options.get("--timezone", ""),
        options.get("--disk-used"),
        options.get("--disk-size"),
    )


def start_of_row(row: Mapping[str, Any], otherwise: AskedStart) -> AskedStart:
    """Return what a row of a fleet file says. otherwise: the command line's, for keys that the row lacks. Raises UsageError."""
    values: dict[str, Any] = {key: getattr(otherwise, key) for key in ("at_ms", "after_stop", *FLEET_KEYS[1:])}
    for key in FLEET_KEYS:
        if key not in row:
            continue
        value = row[key]
        text = value.isoformat() if isinstance(value, datetime) else value if isinstance(value, str) else str(value)
        try:
            if isinstance(value, bool):
                raise ArgumentTypeError(f"{value}: must be no truth value")
            if key == "start_at":
                values["after_stop"] = text == AFTER_STOP
                values["at_ms"] = None if text == AFTER_STOP else start_time(text)
            else:
                values[key] = {"timezone": timezone_name, "disk_used": percent, "disk_size": disk_bytes}[key](text)
        except ArgumentTypeError as problem:
            raise UsageError(f"{key} {problem}") from None
    return AskedStart(**values)


def machine_zone() -> str:
    """Return the name of this machine's time zone, as a JVM on it has it; UTC if it has no name."""
    named = [os.environ.get("TZ", "").removeprefix(":")]
    place = os.path.realpath("/etc/localtime")
    named += [place.partition(_ZONEINFO)[2]] if _ZONEINFO in place else []
    return next((name for name in named if name and zone(name) is not None), UTC_NAME)
