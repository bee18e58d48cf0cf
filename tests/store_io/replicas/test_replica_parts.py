"""Pieces grow by their neighbours; states have the names of replicas.json."""

from __future__ import annotations

from dataclasses import replace

from store_io.replicas.replica_parts import LACKING, ReplicaRange, State, state_name


def test_a_piece_takes_in_its_neighbour() -> None:
    piece = ReplicaRange(0, 10, 1, 10, 50, 60, (0, State.MISSING))
    following = ReplicaRange(10, 40, 2, 30, 40, 55, (0, State.MISSING))
    assert piece.is_like(following) and not piece.is_like(replace(following, malformed=True))
    assert not piece.is_like(replace(following, states=(0, State.BEYOND)))
    piece.extend(following)
    assert piece == ReplicaRange(0, 40, 3, 40, 40, 60, (0, State.MISSING))


def test_states_by_name() -> None:
    assert [state_name(number) for number in range(10)] == [
        "equal", "expired", "unknown", "beyond", "missing", "unwritten", "damaged", "filler", "disputed", "other",
    ]  # fmt: skip
    assert State.DISPUTED not in LACKING and State.EXPIRED not in LACKING and State.BEYOND in LACKING
