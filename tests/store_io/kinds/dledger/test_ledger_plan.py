"""Logs of a DLedger node, damaged and repaired: what the new store's data say, read without the product."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.rows import Finding
from store_io.base.errors import StoreError
from store_io.kinds.dledger.ledger_plan import damage_of_older_part
from tests.support.answers.repaired import plan_of, plan_with_steps, previewed, repaired
from tests.support.stores import dledger_stores
from tests.support.stores.builders import decode
from tests.support.stores.dledger_stores import FOLDER, HEADER, SIZES, UNIT, LedgerStore, build

MESSAGES = 40
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
    assert bool(damage_of_older_part([Finding(code, file)])) == refused


def log_of(root: Path) -> tuple[list[tuple[int, int, int]], list[int]]:
    """((index, term, position) of each entry, indexes of those with a message of a broker); each unit must be the entry's."""
    units = (root / FOLDER / "index" / f"{0:020d}").read_bytes()[: 1 << 16]
    entries, own = [], []
    for path in sorted((root / FOLDER / "data").iterdir()):
        data, at = path.read_bytes(), 0
        while at + HEADER <= len(data) and data[at : at + 4] == b"\0\0\0\1":
            _, size, index, term, pos, _, _, _, body = struct.unpack_from(">iiqqqiiii", data, at)
            record = decode(data, at + HEADER, int(path.name))
            assert (size, pos) == (body + HEADER, int(path.name) + at) and record.size == body
            assert units[UNIT * index : UNIT * (index + 1)] == dledger_stores.unit(pos, size, index, term)
            entries.append((index, term, pos))
            own += [index] if record.topic != "STORE_AUDIT_BRIDGE" else []
            at += size
        assert not any(data[at:]) or data[at : at + 8] == struct.pack(">ii", -1, len(data) - at)
    assert not any(units[UNIT * (entries[-1][0] + 1) :])
    assert [index for index, _, _ in entries] == list(range(entries[0][0], entries[0][0] + len(entries)))
    return entries, own


def mended(store: LedgerStore, policy: str) -> tuple[list[int], list[int]]:
    """(indexes, those of messages) after the repair, which its plan and a dry run tell before."""
    plan = plan_with_steps(store.root, store.release, store.broker_conf, policy)
    target = store.root.with_name("new")
    told = previewed(store.root, target, plan, policy)
    done = repaired(store.root, target, plan, policy)
    assert (done.exit_code, done.report.problems) == (0, ())
    assert told.report.steps == done.report.steps
    for row in done.report.bridges:
        assert row.phy_offset == int(Path(row.file).name) + row.start
    entries, own = log_of(target)
    last = entries[-1][0]
    assert (target / FOLDER / "checkpoint").read_text() == f"committedIndex={last}\nendIndex={last}\n"
    assert not (target / "abort").exists() and done.report.messages_after == len(own)
    return [index for index, _, _ in entries], own


def flip(number: int, at: int) -> Callable[[LedgerStore], None]:
    def act(store: LedgerStore) -> None:
        entry = store.entries[number]
        store.flip(store.data_of(entry), entry.at % SIZES.segment + at)

    return act


def tail_gone(store: LedgerStore) -> None:
    entry = store.entries[-1]
    path = store.data_of(entry)
    data = path.read_bytes()
    path.write_bytes(data[: entry.at % SIZES.segment + 20].ljust(SIZES.segment, b"\0"))


ALL = list(range(MESSAGES))


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_a_wrong_body_gets_a_bridge_in_its_own_entry(policy: str, tmp_path: Path) -> None:
    store = build(tmp_path / "store", clean=False)
    flip(17, HEADER + 90)(store)
    assert mended(store, policy) == (ALL, [n for n in ALL if n != 17])


HEADER_FIELDS = {"magic": 3, "size": 7, "index": 15, "pos": 31, "body_size": 47}
BY_DEFAULT = "size", "pos"  # what leads on from the entry, and what does not


@pytest.mark.parametrize(
    "at", [pytest.param(at, id=name, marks=() if name in BY_DEFAULT else pytest.mark.soak) for name, at in HEADER_FIELDS.items()]
)
def test_a_message_after_a_wrong_header_is_kept_by_salvage(at: int, tmp_path: Path) -> None:
    store = build(tmp_path / "store", clean=False)
    flip(35, at)(store)
    assert mended(store, "salvage") == (ALL, ALL)


def test_the_release_ends_the_log_at_a_wrong_header(tmp_path: Path) -> None:
    store = build(tmp_path / "store", clean=False)
    flip(35, 31)(store)
    assert mended(store, "broker") == (ALL[:35], ALL[:35])


def test_a_cut_tail(tmp_path: Path) -> None:
    store = build(tmp_path / "store", clean=False)
    tail_gone(store)
    assert mended(store, "broker") == (ALL[:-1], ALL[:-1])


def test_a_data_file_that_is_gone_is_made_of_bridges(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    path = store.data(2)
    gone = [e.index for e in store.entries if store.data_of(e) == path]
    path.unlink()
    assert gone and mended(store, "salvage") == (ALL, [n for n in ALL if n not in gone])


def test_index_and_currterm_are_made_anew(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    store.index.unlink()
    (store.root / FOLDER / "currterm").unlink()
    assert mended(store, "broker") == (ALL, ALL)


def test_the_older_part_of_a_mixed_store_stays(tmp_path: Path) -> None:
    _, store = dledger_stores.mixed(tmp_path / "store")
    flip(5, HEADER + 90)(store)
    count = len(store.entries)
    assert mended_mixed(store) == [n for n in range(count) if n != 5]
    older = sorted((tmp_path / "store" / "commitlog").iterdir())[0]
    assert (tmp_path / "new" / "commitlog" / older.name).read_bytes() == older.read_bytes()
    store.flip(older, 100)
    with pytest.raises(StoreError, match="from before DLedger is damaged"):
        plan = plan_of(store.root, store.release, store.broker_conf)
        repaired(store.root, tmp_path / "other", plan, "salvage")


def mended_mixed(store: LedgerStore) -> list[int]:
    target = store.root.with_name("new")
    done = repaired(store.root, target, plan_of(store.root, store.release, store.broker_conf), "salvage")
    assert (done.exit_code, done.report.problems) == (0, ())
    return log_of(target)[1]
