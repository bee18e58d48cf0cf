"""Which releases lose least, and what is said where it is not known."""

from __future__ import annotations

from dataclasses import replace

from schemas.outcome import Outcome
from schemas.rows import Start
from store_io.audit.compared.comparison import answer_of, comparison, least_loss, older_than_its_writer
from store_io.audit.compared.variants import Variant
from store_io.model.written_by import WrittenBy
from store_io.outcome.plan_writer import audit_plan
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter

ROW = Start("5.3.3", True, 20, True, starts=True, truncate_at=100, lost_messages=3, lost_bytes=30, deleted_files=1, timers_lost=0)


def test_the_least_of_those_that_are_known_to_start() -> None:
    rows = [
        replace(ROW, release="4.8.0", lost_messages=0, doubt="older"),
        replace(ROW, release="4.9.8", known=False, lost_messages=None),
        replace(ROW, release="5.0.0", starts=False, lost_messages=None),
        replace(ROW, release="5.1.0", timers_lost=1),
        ROW,
        replace(ROW, release="5.4.0"),
    ]
    assert least_loss(rows) == ("5.3.3", "5.4.0")
    assert least_loss(rows[:3]) == ()


def test_a_release_older_than_the_writer_is_in_doubt() -> None:
    written = WrittenBy("5.4.0", "5.5.0", "5.4.0", ("rocksdbstore",))
    assert "5.4.0 or newer wrote this copy (rocksdbstore)" in older_than_its_writer("5.3.3", written)
    assert older_than_its_writer("5.4.0", written) == older_than_its_writer("4.8.0", WrittenBy("4.8.0", "4.9.8")) == ""


def test_settings_that_change_nothing_are_only_named() -> None:
    changed = replace(ROW, setting="checkCRCOnRecover", value=False, lost_messages=0)
    found = comparison([ROW], [changed, replace(ROW, setting="enableLmq", value=True)], ROW)
    assert found.settings == (changed,) and found.unchanged == ("enableLmq",)


def test_a_row_of_an_outcome() -> None:
    outcome: Outcome = samples.damaged()
    answer = answer_of(outcome, Variant(outcome.release))
    assert answer.start.lost_messages == audit_plan(outcome)["broker"]["lost"]["messages"] and answer.start.starts
    alter(outcome, effect=None)
    row = answer_of(outcome, Variant(outcome.release)).start
    assert (row.known, row.starts, row.lost_messages) == (False, None, None) and row.why
