"""Wrong time differences: neighbours are one finding; most of a file's are its header's fault."""

from __future__ import annotations

from schemas.finding_codes import Code
from store_io.base.findings import Findings
from store_io.kinds.index.odd_entries import WrongTimes
from store_io.log.entries.index_entries import IndexFileRef

FILE = IndexFileRef("index/f", 4096, 0, 900, 1_700_000_000_000, 60, 3, 100)


def judged(numbers: list[int], compared: int) -> list[tuple[str, int | None, int | None, int]]:
    times, findings = WrongTimes([FILE]), Findings()
    for number in numbers:
        times.add(0, number, 10 * number, 5, 7)
    times.close()
    times.judge({0: compared}, findings)
    return [(f.code, f.start, f.end, f.count) for f in findings.ordered()]


def test_neighbours_are_one_finding() -> None:
    seconds = FILE.position(9) + 12
    assert judged([4, 5, 6, 9], 50) == [
        (Code.INDEX_ENTRY_WRONG, FILE.position(4), FILE.position(7), 3),
        (Code.INDEX_ENTRY_WRONG, seconds, seconds + 4, 1),
    ]


def test_most_of_a_file_s_are_the_header_s_fault() -> None:
    assert judged([4, 5, 6, 9], 7) == [(Code.INDEX_HEADER_WRONG, 0, 8, 1)]
    assert [code for code, *_ in judged([4, 5], 2)] == [Code.INDEX_ENTRY_WRONG]  # too few to tell
