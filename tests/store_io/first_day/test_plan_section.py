"""The first day as plan.json has it."""

from __future__ import annotations

from dataclasses import replace

from schemas.first_day import DelaysOfDay, FirstDay, Retention, StartMoment, TimersOfDay, TransactionsOfDay, Unread
from store_io.first_day.plan_section import first_day_section

DAY = FirstDay(StartMoment(1_795_879_455_000, "Asia/Shanghai", 43.6, 1000, decided=True), registers=False)


def test_all_parts() -> None:
    day = replace(
        DAY,
        retention=Retention(72, "04", ("a",), ("b",), ("c",), 7, 2, (Unread("G", "T", 0, 5),), 3, next_hour_ms=1),
        timers=TimersOfDay(1, 2, 3, 4, 5, 1_795_816_014_250),
        delays=DelaysOfDay(1, 2, 3, (6,)),
        transactions=TransactionsOfDay(1, 2),
        settings=(("fileReservedTime", 48),),
    )
    assert first_day_section(day) == {
        "as_of": "2026-11-28T15:24:15Z",
        "timezone": "Asia/Shanghai",
        "disk_used": 43.6,
        "retention": {
            "reserved_hours": 72,
            "delete_when": "04",
            "at_once": ("a",),
            "in_delete_when": ("b",),
            "if_disk_full": ("c",),
            "messages": 7,
            "timers_lost": 2,
            "unread": ({"group": "G", "topic": "T", "queue_id": 0, "messages": 5},),
            "unread_more": 3,
        },
        "timers": {"never": 1, "uncertain": 2, "at_once": 3, "later": 4, "twice": 5, "start_before": "2026-11-27T21:46:54.250Z"},
        "delays": {"at_once": 1, "later": 2, "left_out": 3, "stuck_levels": (6,)},
        "transactions": {"moved_at_first_check": 1, "open": 2},
        "registers": False,
        "settings": {"fileReservedTime": 48},
    }


def test_what_is_not_known_is_null() -> None:
    assert first_day_section(None) is None
    parts = first_day_section(DAY)
    assert parts is not None
    assert [name for name, value in parts.items() if value is None] == ["retention", "timers", "delays", "transactions"]
    assert "settings" not in parts
    undated = first_day_section(replace(DAY, timers=TimersOfDay()))
    assert undated is not None and undated["timers"]["start_before"] is None
