"""What a comparison of copies says, in words."""

from __future__ import annotations

import pytest

from jobs.report.texts.comparison_words import pair_words
from jobs.report.texts.summary_text import summary_text
from schemas.rows import AuditOutcome
from tests.support.handmade import samples


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("equal", "a and b are equal up to physical offset 1,234"),
        ("behind", "a and b are equal up to physical offset 1,234, where one of them ends"),
        ("apart", "a and b have no physical offset in common"),
        ("unknown", "a and b could not be compared completely"),
    ],
)
def test_words_for_two_copies(relation: str, words: str) -> None:
    pair = {"left": "a", "right": "b", "relation": relation, "same_until": 1234, "first_difference": None}
    assert pair_words(pair) == words


def test_without_a_group_nothing_is_said() -> None:
    outcomes: list[AuditOutcome] = [samples.clean(), samples.damaged()]
    assert "Replicas" not in summary_text(samples.RUN, outcomes, "out")
