"""Copies of one DLedger group: who could be elected, and which copy proves a quorum."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.replicas import GroupCopy, LedgerEnd
from store_io.replicas.group_of_copies import ledger_of, quorum_sentence
from tests.support.answers import product
from tests.support.stores.dledger_stores import build


def row(store: str, term: int, index: int, committed: int) -> GroupCopy:
    return GroupCopy(store, dledger=LedgerEnd(index, term, committed))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row("a", 1, 90, 80), row("b", 2, 85, 84)], "b would win an election: index 85 in term 2; b proves"),
        ([row("a", 2, 85, 85), row("b", 2, 85, -1)], "a and b would win an election: index 85 in term 2; a proves"),
        ([row("a", 0, 9, -1), row("b", 0, 8, -1)], "no copy proves a quorum"),
    ],
)
def test_the_highest_last_term_then_index_wins(rows: list[GroupCopy], words: str) -> None:
    assert words in quorum_sentence(rows)


def test_other_logs_have_none() -> None:
    assert quorum_sentence([row("a", 0, 1, 1), GroupCopy("b")]) == ""


def test_a_copys_own_numbers(tmp_path: Path) -> None:
    store = build(tmp_path, committed=7)
    audit = product.audit(store.root, store.release, store.broker_conf).audit
    assert ledger_of(audit) == LedgerEnd(39, 0, 7)
