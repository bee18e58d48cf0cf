"""Which runs a pruning keeps: by age, by number, and those that the next audit or report needs."""

from __future__ import annotations

from typing import Any

from jobs.tables.table_care import KeptRun, choose, months_gone

DAY = 86_400_000_000


def row(run: int, store: str = "a", **more: Any) -> KeptRun:
    """Run number N began on day N."""
    known = {"level": "full", "messages": 5, "log_end": run, "month": f"2026-{run // 10 + 1:02}", **more}
    return KeptRun(f"r{run}", store, run * DAY, **known)


def test_what_either_rule_keeps_stays() -> None:
    rows = [row(n) for n in range(1, 8)]
    assert choose(rows, 5 * DAY, None).gone == ("r1", "r2", "r3", "r4")
    assert choose(rows, None, 2).gone == ("r1", "r2", "r3", "r4", "r5")
    assert choose(rows, 7 * DAY, 4).gone == ("r1", "r2", "r3")
    assert choose(rows, 0, 1).gone == () and choose([], 5, 1).gone == ()
    assert choose(list(reversed(rows)), 5 * DAY, None) == choose(rows, 5 * DAY, None)


def test_a_run_stays_as_long_as_one_of_its_stores_keeps_it() -> None:
    rows = [row(n, store) for n in range(1, 6) for store in "ab"] + [row(n, "b") for n in (6, 7)]
    assert choose(rows, None, 2).gone == ("r1", "r2", "r3")
    gone = choose([*rows, row(2, "retired")], 6 * DAY, None)
    assert gone.gone == ("r1", "r3", "r4") and gone.needed == ("r2", "r5")  # a's latest, and that of a store that is no more


def test_a_store_keeps_its_latest_full_run_and_the_one_that_reached_furthest() -> None:
    rows = [row(1, log_end=90), row(2), row(3, log_end=90, level="quick"), row(4), row(5, level="quick"), row(6, level="quick")]
    assert choose(rows, 9 * DAY, None).needed == ("r1", "r4", "r6")
    assert choose(rows, None, 1).gone == ("r2", "r3", "r5") and choose(rows, None, 1).needed == ("r1", "r4")
    emptied = [row(1), row(2), *(row(n, messages=0, log_end=None) for n in range(3, 9))]
    assert choose(emptied, 7 * DAY, None).needed == ("r2",)
    older = [row(1, level=None, messages=None, log_end=None), row(2, level=None, log_end=None)]
    assert choose(older, 9 * DAY, None).gone == ("r1",)


def test_months_of_which_every_run_goes() -> None:
    rows = [row(n) for n in (1, 2, 11, 12, 21)]
    assert months_gone(rows, ["r1", "r2", "r11"]) == ["2026-01"]
    assert months_gone([*rows, row(1, month=None)], ["r1", "r2", "r11", "r12"]) == ["2026-01", "2026-02"]
