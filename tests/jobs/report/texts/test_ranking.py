"""Which exit code stands for several stores."""

from __future__ import annotations

import pytest

from jobs.report.texts.ranking import worst_exit_code


@pytest.mark.parametrize(
    ("codes", "worst"), [([], 0), ([0, 10], 10), ([10, 3], 3), ([3, 20, 0], 20), ([0, 3], 3), ([10, 20], 20)]
)
def test_worst_exit_code(codes: list[int], worst: int) -> None:
    assert worst_exit_code(codes) == worst
