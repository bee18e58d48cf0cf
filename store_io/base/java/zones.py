"""Time zones by the names that a JVM knows: IANA's, its own short ones, and offsets such as GMT+8.

Source: TimeZone.getTimeZone and parseCustomTimeZone, ZoneId.SHORT_IDS of Java 8 to 21. UTC is known without a database of zones.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

UTC_NAME = "UTC"
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
_NO_NAMES = frozenset({"posix", "right", "localtime", "posixrules", "Factory", "ROC"})  # of a system's zones, and no JVM's
_OFFSET = re.compile(r"GMT([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


def zone(name: str) -> tzinfo | None:
    """Return the zone of this name; None if it is not known here, or to no JVM."""
    if name == UTC_NAME:
        return UTC
    if name.partition("/")[0] in _NO_NAMES:
        return None
    try:
        return ZoneInfo(_SHORT.get(name, name))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name that is a path or a folder, too
        return _offset(name)


def zones_are_known() -> bool:
    """Say whether this machine or this Python has a database of zones."""
    return bool(available_timezones())


def _offset(name: str) -> tzinfo | None:
    """Return the zone of a name such as GMT+8, GMT-0330 or GMT+05:30."""
    found = _OFFSET.fullmatch(name)
    hours, minutes = (int(part or 0) for part in found.groups()[1:]) if found is not None else (24, 0)
    if found is None or hours > 23 or minutes > 59:
        return None
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if found[1] == "-" else offset)


def local_time(at_ms: int, name: str) -> datetime:
    """Return the moment as clocks of a zone show it; of UTC if the zone is not known here."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone(name) or UTC)
