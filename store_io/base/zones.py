"""Time zones by their IANA names. UTC is known without a database of zones."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UTC_NAME = "UTC"


def zone(name: str) -> tzinfo | None:
    """Return the zone of this name; None if it is not known here."""
    if name == UTC_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a name that is a path or a folder, too
        return None


def local_time(at_ms: int, name: str) -> datetime:
    """Return the moment as clocks of a zone show it; of UTC if the zone is not known here."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone(name) or UTC)
