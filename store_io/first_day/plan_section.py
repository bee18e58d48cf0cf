"""A broker's first day as plan.json shapes it."""

from __future__ import annotations

from dataclasses import asdict

from schemas.first_day import FirstDay
from schemas.rows import Row
from store_io.base.times import iso_time


def first_day_section(day: FirstDay | None) -> Row | None:
    """Return the plan's `first_day`; None if nothing is known of it."""
    if day is None:
        return None
    retention = asdict(day.retention) if day.retention is not None else None
    if retention is not None:
        del retention["next_hour_ms"], retention["forced"]
    timers = asdict(day.timers) if day.timers is not None else None
    if timers is not None:
        timers["start_before"] = _second(timers.pop("start_before_ms"))
    return {
        "as_of": _second(day.moment.at_ms),
        "timezone": day.moment.timezone,
        "disk_used": day.moment.disk_used,
        "retention": retention,
        "timers": timers,
        "delays": asdict(day.delays) if day.delays is not None else None,
        "transactions": asdict(day.transactions) if day.transactions is not None else None,
        "registers": day.registers,
        **({"settings": dict(day.settings)} if day.settings else {}),
    }


def _second(milliseconds: int | None) -> str | None:
    """Return the time, without milliseconds if there are none."""
    text = iso_time(milliseconds) if milliseconds is not None else None
    return text.replace(".000Z", "Z") if text is not None else None
