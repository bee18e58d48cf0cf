"""What report makes of rows of the tables, without Spark: literal rows in, literal answers out."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from jobs.commands.past import fleet
from jobs.report.past_views import CodeCount, NotSeen
from jobs.report.texts.history_text import fleet_text
from jobs.report.values_as_rows import as_json, json_text, micros_of
from schemas.outcome import Outcome
from schemas.rows import DEFAULT
from store_io.answer.headline import judge
from store_io.outcome.safety import Safety
from tests.support.handmade import samples
from tests.support.handmade.history_rows import DAY, T0, kept, run_row, view_of
from tests.support.handmade.outcome_fields import varied


def test_a_broker_name_is_shown_for_a_name_that_says_nothing() -> None:
    named = {"brokerId": "1", "brokerName": "broker-a"}
    runs = [run_row("store", 1, settings=named), run_row("data", 1, settings={}), run_row("mine", 1, settings=named)]
    view = view_of(runs)
    assert {store.store: store.broker_name for store in view.stores} == {"store": "broker-a", "data": None, "mine": None}
    assert "settings" not in json_text(view)


def test_the_unsafe_copies_come_first() -> None:
    rows = [
        run_row("calm", 2, safety="safe"),
        run_row("lost-12", 2, 20, lost_messages=12, losses=1, safety="stop"),
        run_row("lost-300", 2, 20, lost_messages=300, losses=1, safety="stop"),
        run_row("unread", 2, 3, safety="unknown"),
        run_row("hurt", 2, 20, losses=900, safety="care"),  # a start loses nothing more
        run_row("stuck", 2, 10, starts=False, refusal="no file of 0 bytes", safety="refuses"),
        run_row("behind", 2, 10, rebuildable=7, safety="rebuild"),
        run_row("calm", 1, 20, lost_messages=5000),  # long repaired
        run_row("slave", 2, lacks_messages=30, safety="lacks"),
        run_row("split", 2, lacks_messages=5, diverged=True, safety="diverged"),
        run_row("wiped", 2, 20, messages=0, losses=1, safety="gone"),
        run_row("new", 2, messages=0, notes=1, safety="empty"),
    ]
    codes = [
        CodeCount("lost-300", s, c, n, 1, "f")
        for s, c, n in [
            ("note", "n", 900),
            ("rebuildable", "b", 40),
            ("loss", "a", 1),
            ("rebuildable", "c", 41),
            ("loss", "d", 2),
        ]
    ] + [
        CodeCount(store, severity, code, 1, 1, "commitlog")
        for store, severity, code in (("wiped", "loss", "commitlog_emptied"), ("new", "note", "commitlog_empty"))
    ]
    view = view_of(rows, codes, {"old": T0 - DAY}, micros_of(datetime(2026, 11, 18, tzinfo=UTC)))
    assert [(s.store, s.safety) for s in view.stores] == [
        ("lost-300", "stop"), ("lost-12", "stop"), ("wiped", "gone"), ("hurt", "care"), ("unread", "unknown"),
        ("stuck", "refuses"), ("behind", "rebuild"), ("split", "diverged"), ("slave", "lacks"), ("new", "empty"),
        ("calm", "safe"),
    ]  # fmt: skip
    assert [code.code for code in view.stores[0].latest.codes] == ["d", "a", "c", "b", "n"]
    assert view.totals == {
        "stores": 11, "stop": 2, "gone": 1, "unknown": 1, "refuses": 1, "diverged": 1, "lacks": 1, "care": 1, "rebuild": 1,
        "empty": 1, "safe": 1, "unsafe": 4, "lost_messages": 312, "lost_bytes": 0, "lost_timers": 0,
    }  # fmt: skip
    assert [run.exit_code for run in view.stores[-1].trend] == [20, 0]
    assert (view.runs, view.not_audited_since) == (2, [NotSeen("old", "old", T0 - DAY)])
    text = fleet_text(view)
    assert "\x1b" not in text and text.count("\n") == 11 + 4
    assert text.splitlines()[1].split()[:7] == ["20", "lost-300", "-", "do", "not", "start", "300"]
    assert "not audited since then: old (last 2026-11-17 11:06:40 UTC)" in text
    assert "\x1b[31m" in fleet_text(view, colour=True)
    json.loads(json_text(view))


def test_safety_is_what_the_reports_of_single_stores_say() -> None:
    """The same outcomes, by their rows of the tables and by the page of each store."""
    made = (
        samples.clean, samples.damaged, samples.not_audited, samples.refused, samples.empty, samples.emptied, samples.shrunk,
        samples.already_damaged,
    )  # fmt: skip
    outcomes = [make() for make in made] + [samples.behind(make(), parted) for make in made for parted in (False, True)]
    outcomes += [written_by_another_release(make()) for make in made]
    outcomes += [varied(samples.empty(), counts={"note": 1, "rebuildable": 1})]
    for outcome in outcomes:
        assert fleet.safety_of(kept(outcome, outcome.name)) == judge(outcome).kind, outcome.name
    assert {judge(outcome).kind for outcome in outcomes} == set(Safety) - {Safety.REBUILD}


def written_by_another_release(outcome: Outcome) -> Outcome:
    return varied(outcome, release_from=DEFAULT, written_by="4.8.0 to 4.9.8")


def test_the_answer_and_its_steps_are_shown_as_the_run_kept_them() -> None:
    rows = [
        run_row("a", 2, 20, safety="stop", answer="copy_again", steps=["stop", "copy", "start"]),
        run_row("old", 2, safety="safe"),
    ]
    view = view_of(rows)
    assert [(s.answer, s.steps) for s in view.stores] == [("copy_again", ["stop", "copy", "start"]), (None, None)]
    assert all(key not in as_json(store.latest) for store in view.stores for key in ("answer", "steps"))
    head, first, second = (line.split() for line in fleet_text(view).splitlines()[:3])
    assert (head[2], first[2], second[2]) == ("answer", "copy_again", "-")
    assert json.loads(json_text(view))["stores"][0]["answer"] == "copy_again"


@pytest.mark.parametrize(
    ("outcome", "safety"),
    [
        (written_by_another_release(samples.clean()), "unknown"),
        (written_by_another_release(samples.already_damaged()), "unknown"),
        (written_by_another_release(samples.damaged()), "stop"),
        (varied(samples.empty(), counts={"note": 1, "rebuildable": 1}), "empty"),
    ],
    ids=["clean", "already-damaged", "damaged", "empty"],
)
def test_what_is_assumed_reaches_the_report(outcome: Outcome, safety: str) -> None:
    (store,) = view_of([kept(outcome, outcome.name)]).stores
    assert store.safety == safety == judge(outcome).kind


def test_a_run_that_kept_no_safety_is_not_called_safe() -> None:
    rows = [
        run_row("calm", 2),
        run_row("lost", 2, 20, lost_messages=12, losses=1),
        run_row("later", 2, safety="of a later version"),
    ]
    view = view_of(rows)
    assert {s.store: s.safety for s in view.stores} == {"calm": "unknown", "lost": "stop", "later": "unknown"}
    assert "not known" in fleet_text(view)
