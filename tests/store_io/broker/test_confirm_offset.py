"""confirmOffset after load() (controller.md 3)."""

from __future__ import annotations

import pytest

from schemas.rows import Checkpoint
from store_io.broker.dispatch import recovery_choice
from store_io.broker.fenced_broker import ConfirmOffset
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.releases import Setting, broker_rules
from tests.support.handmade.evidence import segment

RULES = broker_rules("5.3.3", {"enableControllerMode": Setting(True, "broker.conf")})
SCAN = ScanId("segment", 0)


@pytest.mark.parametrize(
    ("value", "unclean", "after"),
    [(50, False, 100), (500, False, 500), (5000, False, 1000), (500, True, 300), (200, True, 200), (50, True, 100)],
)
def test_it_is_moved_into_the_log_and_after_a_crash_into_what_was_dispatched(value: int, unclean: bool, after: int) -> None:
    confirm = ConfirmOffset(value)
    confirm.begin(300)
    confirm.settle(100, 1000, unclean)
    assert confirm.value == after


def test_a_crash_dispatches_what_ends_at_confirm_offset_at_most() -> None:
    summary = segment(0, {}, {"first_phy_offset": 100, "last_phy_offset": 100}, {"first_phy_offset": 200, "last_phy_offset": 200})
    for confirmed, reached in ((300, 300), (299, 200), (99, 0), (0, 0)):
        confirm, needs = ConfirmOffset(confirmed), Needs()
        confirm.begin(0)
        choice = recovery_choice(RULES, Checkpoint(confirm_phy_offset=confirmed), True, 0)
        assert choice is not None
        confirm.met(SCAN, summary, choice, needs)
        assert confirm.dispatched_to == reached and not needs


def test_a_run_inside_of_which_it_lies_is_looked_at_again() -> None:
    summary = segment(0, {"records": 3, "last_phy_offset": 200})
    confirm, needs = ConfirmOffset(150), Needs()
    choice = recovery_choice(RULES, Checkpoint(confirm_phy_offset=150), True, 0)
    assert choice is not None
    confirm.met(SCAN, summary, choice, needs)
    assert needs.phy_cuts == {SCAN: {150}}


def test_of_records_that_store_another_place_the_last_one_counts() -> None:
    """As in a segment under another's name: confirmOffset gets the end that the last record stores, and with duplicationEnable
    its own place."""
    first = {"first_phy_offset": 900, "last_phy_offset": 900, "first_position": 0, "regular": 0}
    last = {"first_phy_offset": 200, "last_phy_offset": 200, "first_position": 100, "regular": 0}
    summary = segment(4096, last, first)  # runs are ordered by queue
    confirm, needs = ConfirmOffset(5000), Needs()
    choice = recovery_choice(RULES, Checkpoint(confirm_phy_offset=5000), True, 0)
    assert choice is not None
    confirm.met(SCAN, summary, choice, needs)
    confirm.read(summary)
    assert (confirm.dispatched_to, confirm.last_read) == (300, 4196)
