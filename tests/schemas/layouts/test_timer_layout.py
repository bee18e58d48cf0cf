"""Sizes of the timer's files agree with each other."""

from __future__ import annotations

import struct

from schemas.layouts import commitlog_layout, timer_layout


def test_sizes_are_those_of_the_fields() -> None:
    assert struct.calcsize(timer_layout.UNIT_HEAD_FORMAT) == timer_layout.UNIT_HEAD_BYTES < timer_layout.UNIT_BYTES
    assert struct.calcsize(timer_layout.CHECK_FIELDS_FORMAT) == timer_layout.CHECK_FIELDS_BYTES <= timer_layout.CHECK_BYTES
    assert timer_layout.WHEEL_BYTES == 38_707_200


def test_a_blank_is_the_commitlogs() -> None:
    assert timer_layout.BLANK_MAGIC == commitlog_layout.MAGIC_BLANK
