"""DLedger's recovery over walks: where it begins, what it cuts, what counts as committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.advice import Refusal, RefusalKind
from schemas.rows import MappedFile
from store_io.broker.prediction import Refused
from store_io.broker.releases import broker_rules
from store_io.broker.settings.ledger_files import LedgerFiles
from store_io.kinds.dledger.ledger_recovery import LedgerMemory, recover_ledger
from store_io.kinds.dledger.ledger_walks import FILLER, HEADER, UNWRITTEN, DataWalk, EntryPlace, LedgerTexts, Stretch

SIZE, EACH = 1000, 10


def path(number: int) -> str:
    return f"dledger-n0/data/{number * SIZE:020d}"


def walks(count: int, term: int = 0) -> list[DataWalk]:
    """Ten entries of 90 bytes in each file."""
    found = []
    for n in range(count):
        ended = FILLER if n + 1 < count else UNWRITTEN
        stretch = Stretch(0, 900, 810, n * EACH, n * EACH + 9, term, term, None, ended)
        found.append(DataWalk(path(n), n * SIZE, SIZE, n * EACH, [stretch], sound_start=True))
    return found


NOTHING = LedgerTexts()


def recovered(given: list[DataWalk], texts: LedgerTexts = NOTHING) -> LedgerMemory:
    data = [MappedFile(w.path, w.start, w.size) for w in given]
    files = LedgerFiles("dledger-n0", data, [MappedFile("dledger-n0/index/0", 0, 167_772_160)])
    return recover_ledger(files, {w.path: w for w in given}, texts, broker_rules())


def broken(walk: DataWalk, **changes: object) -> DataWalk:
    stretch = replace(walk.stretches[0], **changes)  # type: ignore[arg-type]
    return replace(walk, stretches=[stretch], first_index=stretch.first_index)


def test_it_begins_at_the_third_from_the_end_or_before_it_at_a_sound_file() -> None:
    given = walks(5)
    assert recovered(given).start_file == 2
    given[2] = replace(given[2], sound_start=False)
    assert recovered(given).start_file == 1
    assert recovered([replace(w, sound_start=False) for w in given]).start_file == 0


def test_an_index_that_does_not_continue_ends_it_at_that_file() -> None:
    given = walks(4)
    given[3] = broken(given[3], first_index=31, last_index=40)
    ledger = recovered(given)
    assert (ledger.end, ledger.log_end, ledger.stop_reason) == (29, 3 * SIZE, "entry_chain")
    assert [f.wrote for f in ledger.data] == [SIZE, SIZE, SIZE, 0] and ledger.index.files[0].wrote == 32 * 30


def test_an_end_far_before_the_last_file_ends_the_process() -> None:
    given = walks(5)
    given[2] = broken(given[2], ended_by=HEADER)
    with pytest.raises(Refused, match="ledger_ends_early"):
        recovered(given)
    given = walks(4)
    given[2] = broken(given[2], ended_by=HEADER)
    assert recovered(given).deleted == [path(3)]


@pytest.mark.parametrize(
    ("committed", "index", "position"),
    [(None, -1, -1), (-1, -1, -1), (-5, -1, -1), (99, 29, 2900), (29, 29, 2900), (15, 15, 1540)],
)
def test_what_counts_as_committed(committed: int | None, index: int, position: int) -> None:
    given = walks(3)
    if committed == 15:
        given[1] = replace(given[1], wanted=EntryPlace(1450, 1540))
    ledger = recovered(given, LedgerTexts(committed))
    assert (ledger.committed, ledger.committed_pos) == (index, position)


def test_an_entry_before_what_was_read_is_taken_from_its_unit() -> None:
    assert recovered(walks(5), LedgerTexts(5, committed_unit=(450, 90))).committed_pos == 540
    given = walks(5)
    given[0] = replace(given[0], first_index=7)  # the log's first index is what its first header claims
    assert recovered(given, LedgerTexts(5, committed_unit=(450, 90))).committed == -1


def test_units_are_written_anew_from_the_first_that_differs() -> None:
    given = walks(3)
    given[1] = broken(given[1], unequal=12)
    assert recovered(given).index.files[0].wrote == 32 * 30
    data = [MappedFile(w.path, w.start, w.size) for w in given]
    made = recover_ledger(LedgerFiles("dledger-n0", data, []), {w.path: w for w in given}, LedgerTexts(), broker_rules())
    assert [(f.path, f.wrote, f.begin) for f in made.index.files] == [(None, 32 * 30, 0)]


def test_files_that_do_not_adjoin_refuse() -> None:
    apart = Refusal(RefusalKind.LEDGER_FILES_APART, "dledger-n0/data/2", "dledger-n0/data/0")
    with pytest.raises(Refused) as refused:
        recover_ledger(LedgerFiles("dledger-n0", misfit=apart), {}, LedgerTexts(), broker_rules())
    assert refused.value.refusal == apart


def test_data_files_without_an_entry_have_no_last_term() -> None:
    empty = DataWalk(path(0), 0, SIZE)
    ledger = recovered([empty])
    assert (ledger.begin, ledger.end, ledger.end_term, ledger.log_end) == (-1, -1, -1, 0)
