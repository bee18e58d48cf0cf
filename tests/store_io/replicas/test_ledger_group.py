"""Copies of one DLedger group: who could be elected, and which copy proves a quorum."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.rows import Row
from store_io.replicas.replica_row import ledger_of, quorum_sentence
from tests.support.answers import product
from tests.support.stores.dledger_stores import build


def row(store: str, term: int, index: int, committed: int) -> Row:
    return {"store": store, "dledger": {"end_term": term, "end_index": index, "committed_index": committed}}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [row("a", 1, 90, 80), row("b", 2, 85, 84)],
            "b would win an election: index 85 in term 2; b proves",
        ),
        ([row("a", 2, 85, 85), row("b", 2, 85, -1)], "a and b would win an election: index 85 in term 2; a proves"),
        ([row("a", 0, 9, -1), row("b", 0, 8, -1)], "no copy proves a quorum"),
    ],
)
def test_the_highest_last_term_then_index_wins(rows: list[Row], words: str) -> None:
    assert words in quorum_sentence(rows)


def test_other_logs_have_none() -> None:
    assert quorum_sentence([row("a", 0, 1, 1), {"store": "b", "dledger": None}]) == ""


def test_a_copys_own_numbers(tmp_path: Path) -> None:
    store = build(tmp_path, committed=7)
    audit = product.audit(store.root, store.release, store.broker_conf).audit
    assert ledger_of(audit) == {"end_index": 39, "end_term": 0, "committed_index": 7}
