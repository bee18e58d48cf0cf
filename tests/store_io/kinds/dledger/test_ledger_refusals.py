"""Which findings about the older part of a mixed store forbid a repair."""

from __future__ import annotations

import pytest

from schemas.rows import Finding
from store_io.kinds.dledger.ledger_refusals import older_part_damage

OLDER, DATA = "commitlog/00000000000000000000", "dledger-n0/data/00000000000000002048"


@pytest.mark.parametrize(
    ("code", "file", "refused"),
    [
        ("segment_missing", OLDER, True),
        ("segment_missing", DATA, False),
        ("index_entry_missing", OLDER, False),  # which is rebuilt
    ],
)
def test_only_damage_of_the_older_part_is_refused(code: str, file: str, refused: bool) -> None:
    assert older_part_damage([Finding(code, file)]).startswith(OLDER) == refused
