"""Findings of one segment: bounded by code and severity, those side by side as one, in a stable order."""

from __future__ import annotations

from schemas.rows import LOSS, NOTE, Finding
from store_io.base.findings import MAX_FINDINGS, Findings


def finding(start: int, code: str = "a", file: str = "f", count: int = 1) -> Finding:
    return Finding(code, file, start, start + 10, count=count)


def test_what_is_beyond_the_bound_is_counted_for_its_code_alone() -> None:
    found = Findings()
    for number in range(MAX_FINDINGS):
        assert found.room("a")
        found.add(finding(number))
    found.add(finding(1 << 30, count=5))
    found.add(finding(0, "b"))
    assert not found.room("a") and found.room("b")
    assert len(found.ordered()) == MAX_FINDINGS + 1
    assert [f.more for f in found.found if f.more] == [5] and found.found[MAX_FINDINGS - 1].more == 5


def test_a_loss_is_kept_after_any_number_of_notes_of_its_code() -> None:
    found = Findings()
    for number in range(MAX_FINDINGS + 2):
        found.add(Finding("a", "f", number, severity=NOTE))
    assert not found.room("a", NOTE) and found.room("a", LOSS)
    found.add(Finding("a", "f", 1 << 30, severity=LOSS))
    assert found.ordered()[-1].severity == LOSS and sum(f.more for f in found.ordered() if f.severity == NOTE) == 2


def test_neighbours_of_one_code_and_file_become_one() -> None:
    found = Findings()
    for start in (0, 14, 28):  # 4 bytes between them
        found.add_beside(finding(start), 4)
    found.add_beside(finding(43), 4)
    found.add_beside(finding(57, "b"), 4)
    found.add_beside(finding(57, file="g"), 4)
    assert [(f.code, f.file, f.start, f.end, f.count) for f in found.ordered()] == [
        ("a", "f", 0, 38, 3),
        ("a", "f", 43, 53, 1),
        ("b", "f", 57, 67, 1),
        ("a", "g", 57, 67, 1),
    ]


def test_the_order_does_not_depend_on_the_order_of_adding() -> None:
    some = [finding(5), finding(5, "b"), finding(0, "z"), finding(3, file="e")]
    one, two = Findings(), Findings()
    for each in some:
        one.add(each)
    for each in reversed(some):
        two.add(each)
    assert one.ordered() == two.ordered() and [f.start for f in one.ordered()] == [3, 0, 5, 5]
