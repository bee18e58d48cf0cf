"""Conditions on messages: which segments can hold such, and what two filters want together."""

from __future__ import annotations

import pytest

from store_io.messages.message_filter import ALL, EVERY_MESSAGE, MessageFilter, Range


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(ALL, True), ((0, 100), False), ((0, 101), True), ((199, None), True), ((200, None), False), ((None, 100), False)],
)
def test_a_segment_is_left_out_by_its_name(wanted: Range, found: bool) -> None:
    assert MessageFilter(phy_offsets=wanted).may_be_in(100, 100) is found


def test_a_filter_without_conditions_changes_none() -> None:
    one = MessageFilter(frozenset("ab"), frozenset({1}), (0, 5), (1, None), (None, 9))
    assert one.narrowed(EVERY_MESSAGE) == EVERY_MESSAGE.narrowed(one) == one.narrowed(one) == one


def test_both_have_to_hold() -> None:
    one = MessageFilter(frozenset("ab"), None, (0, 5), (10, None), ALL)
    two = MessageFilter(frozenset("bc"), frozenset({2}), (3, None), (None, 20), (7, 8))
    both = MessageFilter(frozenset("b"), frozenset({2}), (3, 5), (10, 20), (7, 8))
    assert one.narrowed(two) == two.narrowed(one) == both
