"""What several copies hold that one lacks is counted once, and its place has a file even where there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from schemas.rows import EXTENT_MESSAGE, Extent, SegmentSummary
from store_io.model.found_gaps import Gaps
from store_io.model.log_map import log_map
from store_io.replicas.compared_copies import ComparedCopies, Copy
from store_io.replicas.replica_findings import ReplicaFindings
from store_io.replicas.replica_parts import QueueTotal, ReplicaPart, ReplicaRange, State
from store_io.replicas.replica_row import group_row

KEY = ("T", 0)


def copy(name: str, bases: tuple[int, ...]) -> Copy:
    segments = [SegmentSummary(f"commitlog/{b:020d}", b, 100, extents=[Extent(EXTENT_MESSAGE, 0, 100, 4)]) for b in bases]
    audit: Any = SimpleNamespace(
        request=SimpleNamespace(name=name),
        findings=[],
        gaps=Gaps(),
        prediction=SimpleNamespace(starts=True, controller=None, ledger=None),
        loss=None,
    )
    return Copy(audit, segments, (), log_map(segments, 100))


def compared() -> ComparedCopies:
    """Copies a and b hold three segments, c lacks the one in the middle."""
    states = (State.EQUAL, State.EQUAL, State.MISSING)
    held = ReplicaRange(100, 200, 4, 100, 1, 2, states, False, *KEY)
    parts = [ReplicaPart(n, 100, [held], {(states, KEY): QueueTotal(4, 100, 4, 7, 1, 2)}) for n in (0, 1)]
    return ComparedCopies([copy("a", (0, 100, 200)), copy("b", (0, 100, 200)), copy("c", (0, 200))], parts)


def test_messages_that_two_copies_hold_are_lacking_once() -> None:
    found = compared()
    assert [found.lacks(number) for number in found.numbers] == [0, 0, 4]
    assert found.most(2, State.MISSING) == 4 and found.most(0, State.MISSING) == 0
    assert found.piece_at(0, 150) is not None and found.piece_at(0, 99) is None
    assert found.place(2, 150, 260) == (f"commitlog/{100:020d}", 50, 100)
    assert found.place(0, 150, 260) == (f"commitlog/{100:020d}", 50, 100)


def test_the_finding_names_the_first_copy_that_holds_them() -> None:
    findings = ReplicaFindings(compared())
    assert findings.of(0) == findings.of(1) == []
    (only,) = findings.of(2)
    assert (only.code, only.file, only.start, only.end, only.count) == ("replica_holds", f"commitlog/{100:020d}", 0, 100, 4)
    assert only.expected == "4 messages, as in a" and only.actual == "missing"


def test_the_row_of_the_group() -> None:
    row = group_row("g", compared(), ["a problem"])
    assert (row["group"], row["best"], row["problems"]) == ("g", "a", ["a problem"])
    assert [copy["loses"] for copy in row["copies"]] == [0, 0, 4]
    assert [(p["left"], p["right"], p["relation"], p["same_until"]) for p in row["pairs"]] == [
        ("a", "b", "equal", 300), ("a", "c", "damaged", 100), ("b", "c", "damaged", 100),
    ]  # fmt: skip
    assert [(lack["holder"], lack["messages"], lack["by_queue"][0]["last_queue_offset"]) for lack in row["lacks"]] == [
        ("a", 4, 7), ("b", 4, 7),
    ]  # fmt: skip
