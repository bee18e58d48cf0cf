"""The epoch file as a broker reads it: its .bak, and what no start survives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.advice import Cause, RefusalKind
from store_io.broker.epochs import Epoch
from store_io.kinds.controller.controller_files import EPOCH_FILE_BYTES, Fatal, Unusable, epoch_text, parse_epochs, read_epochs
from store_io.source import store_dir
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores import replica

TWO = replica.epoch_text((1, 0), (2, 500))


def epochs_of(data: bytes) -> list[tuple[int, int]]:
    return [(line.epoch.epoch, line.epoch.start) for line in parse_epochs(data)]


def test_a_broker_s_file_is_read_and_written() -> None:
    assert epochs_of(b"1\n1725254278\n1-0\n") == [(1, 0)]
    assert epoch_text([Epoch(1, 0)]) == b"1\n1725254278\n1-0\n"
    assert epoch_text([Epoch(1, 0), Epoch(2, 500)]) == TWO
    assert [(line.start, line.end) for line in parse_epochs(TWO)] == [
        (TWO.index(b"1-0"), TWO.index(b"1-0") + 3),
        (len(TWO) - 6, len(TWO) - 1),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"2\r\n0\r\n1-0\r\n2-500\r\n",  # a checksum of 0 is not checked
        b"2\n0\n1-0\n2-500",  # the last line needs no end
        b"2\n0\n1-0\n\nnote\n2-500-\n",  # what has not two parts is no entry
        b"+2\n00\n01-0\n2-+500\n",
    ],
)
def test_what_java_reads_all_the_same(data: bytes) -> None:
    assert epochs_of(data) == [(1, 0), (2, 500)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (replica.epoch_text((1, 0), count=2), "2 entries"),
        (replica.epoch_text((1, 0), checksum=5), "checksum is 5"),
        (b"1\n0\n1-0\n\xff", "UTF-8"),
        (b"\xff", "UTF-8"),
        (b"1\n0\n" + b"-\n" * 8192 + b"\xff", "UTF-8"),
    ],
)
def test_the_bak_is_read_after_these(data: bytes, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        parse_epochs(data)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"x\n0\n1-0\n", b"1", b"1\nx\n1-0\n", b"1\n0\nx-0\n", b"1\n0\n1-x\n", b" 1\n0\n1-0\n",
             b"x\n" + b"-\n" * 8192 + b"\xff"]
)  # fmt: skip
def test_no_start_survives_these(data: bytes) -> None:
    with pytest.raises(Fatal):
        parse_epochs(data)


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([b"1", b"2", b"-", b"\n", b"0", b"\r", b"x", b"\xe9", b"\xff"])).map(b"".join)
)
def test_any_bytes_are_epochs_or_one_of_two_faults(data: bytes) -> None:
    try:
        lines = parse_epochs(data)
    except (Unusable, Fatal) as why:
        assert str(why) and "\n" not in str(why)
    else:
        for line in lines:
            text = data[line.start : line.end].decode().rstrip("-")
            assert [int(part) for part in text.split("-")] == [line.epoch.epoch, line.epoch.start]


def stored(root: Path, main: bytes | None, bak: bytes | None):  # type: ignore[no-untyped-def]
    (root / "commitlog").mkdir()
    for name, data in (("epochFileCheckpoint", main), ("epochFileCheckpoint.bak", bak)):
        if data is not None:
            (root / name).write_bytes(data)
    location = StoreLocation(str(root))
    return read_epochs(open_source(location), store_dir.list_folder(location))


def test_of_both_files_the_first_that_holds_epochs_counts(tmp_path: Path) -> None:
    wrong = replica.epoch_text((1, 0), checksum=5)
    for number, (main, bak, epochs, path, bad) in enumerate(
        [
            (TWO, b"", 2, "epochFileCheckpoint", []),
            (None, TWO, 2, "epochFileCheckpoint.bak", []),
            (b"0\n0\n", TWO, 2, "epochFileCheckpoint.bak", []),
            (wrong, TWO, 2, "epochFileCheckpoint.bak", ["epochFileCheckpoint"]),
            (wrong, wrong, 0, "", ["epochFileCheckpoint", "epochFileCheckpoint.bak"]),
            (None, None, 0, "", []),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = stored(folder, main, bak)
        assert (len(found.epochs), found.path, [file.path for file in found.bad]) == (epochs, path, bad)
        assert not found.refusal and not found.problem


def test_an_empty_file_stops_a_start_beside_a_good_bak(tmp_path: Path) -> None:
    found = stored(tmp_path, b"", TWO)
    assert found.refusal is not None and str(found.refusal.actual).startswith("it is empty")
    assert (found.refusal.kind, found.refusal.path) == (RefusalKind.EPOCH_FILE, "epochFileCheckpoint") and found.epochs == ()
    assert found.bad[0].fatal


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    problem = stored(tmp_path, bytes(EPOCH_FILE_BYTES + 1), None).problem
    assert problem is not None and (problem.cause, problem.path) == (Cause.NOT_A_FILE, "epochFileCheckpoint")


def test_of_lines_with_one_epoch_the_last_counts(tmp_path: Path) -> None:
    found = stored(tmp_path, replica.epoch_text((3, 9), (1, 0), (3, 70)), None)
    assert found.epochs == (Epoch(1, 0), Epoch(3, 70)) and len(found.lines) == 3
