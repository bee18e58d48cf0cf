"""Each cause of a gap has words, which tell all that the gap knows."""

from __future__ import annotations

import pytest

from schemas.advice import Cause, Gap, LedgerRows, LeftOut
from store_io.wording.gaps import distinct, gap_rows, gap_text, incomplete_texts

PATH = "commitlog/{0}"  # a name found in a store may hold anything
FILES = (LeftOut.FILES, 1, 2, 1000, 0, 7, 0, 4, 5, 60)
VALUES: dict[Cause, tuple[str | int, ...]] = {
    Cause.LEVEL_QUICK: FILES,
    Cause.TIME_LIMIT: FILES,
    Cause.FILE_FOR_FOLDER: (12,),
    Cause.LOG_ELSEWHERE: ("/else", "4.9.3"),
    Cause.CHANGED: (10, 20),
    Cause.LISTED_OTHERWISE: (10, 20),
    Cause.LEDGER_LARGE: (LedgerRows.STRETCHES, 12, 10),
    Cause.INDEX_SLOTS: (50,),
    Cause.SEGMENT_OUT_OF_RANGE: (-1,),
    Cause.WORKER_LOST: ("{files}", "SIGKILL", True),
}
SILENT = {Cause.LEVEL_QUICK, Cause.TIME_LIMIT, Cause.LEDGER_LARGE, Cause.SEGMENT_OUT_OF_RANGE, Cause.WORKER_LOST}


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_words_and_needs_no_value_that_is_not_told(cause: Cause) -> None:
    text = gap_text(Gap(cause, PATH, VALUES.get(cause, ("{one}", "{two}", "{three}"))))
    assert text and "\n" not in text and not text.endswith(".")


@pytest.mark.parametrize("cause", sorted(VALUES.keys() - SILENT))
def test_the_words_tell_every_value(cause: Cause) -> None:
    text = gap_text(Gap(cause, PATH, VALUES[cause]))
    assert all(str(value) in text for value in VALUES[cause])


def test_what_was_left_out() -> None:
    counted = "1 of 2 CommitLog segments (1,000 bytes), 4 of 5 index files (60 bytes)"
    late = "the time limit was reached"
    assert gap_text(Gap(Cause.TIME_LIMIT, values=FILES)) == f"not read ({late}): {counted}"
    quick = "level quick reads what a starting broker reads"
    assert gap_text(Gap(Cause.LEVEL_QUICK, values=FILES)) == f"not read ({quick}): {counted}"
    assert gap_text(Gap(Cause.LEVEL_QUICK)) == f"not everything was compared: {quick}"
    others = {gap_text(Gap(Cause.TIME_LIMIT, values=(left,))) for left in LeftOut if left != LeftOut.FILES}
    assert len(others) == len(LeftOut) - 1 and all(text.startswith(f"{late}: ") for text in others)


@pytest.mark.parametrize("rows", LedgerRows)
def test_more_rows_than_are_judged(rows: LedgerRows) -> None:
    text = gap_text(Gap(Cause.LEDGER_LARGE, "dledger-n0/data/0", (rows, 12_000, 10_000)))
    assert text.startswith("dledger-n0/data/0: 12,000 ") and text.endswith("; only the first 10,000 were judged")


def test_one_sentence_is_told_once_and_the_rows_are_those_of_the_sentences() -> None:
    first, again = Gap(Cause.UNREADABLE, "a", ("a: refused",)), Gap(Cause.UNREADABLE, "", ("a: refused",))
    other = Gap(Cause.TIME_LIMIT, values=(LeftOut.EPOCHS,))
    gaps = distinct([first, other, again])
    assert gaps == [first, other]
    rows = gap_rows(gaps)
    assert [row["text"] for row in rows] == incomplete_texts(gaps)
    assert rows[0] == {"cause": "unreadable", "path": "a", "on_purpose": False, "text": "a: refused"}
    assert (rows[1]["cause"], rows[1]["path"], rows[1]["on_purpose"]) == ("time_limit", None, True)
