"""A DLedger group's files against each other: each damage is found on its file, and healthy states are not."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas.finding_codes import BY_A_REPAIR
from schemas.rows import LOSS, Finding
from store_io.answer.headline import judge, verdict_text
from store_io.kinds.dledger import entry_walk, ledger_kind, unit_reader
from tests.support.answers import product
from tests.support.damage import write_at
from tests.support.stores.builders import Message
from tests.support.stores.dledger_stores import FOLDER, HEADER, SIZES, LedgerBuilder, LedgerStore, build, header, unit

DATA, INDEX = f"{FOLDER}/data", f"{FOLDER}/index"


def found(store: LedgerStore) -> list[Finding]:
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert not audit.incomplete
    return audit.above_note


@dataclass(frozen=True)
class Damage:
    """What is done, and the code and file that it has to be found by. low: where the finding begins; None: the whole file."""

    name: str
    do: Callable[[LedgerStore], None]
    code: str
    file: str
    low: int | None


def entry(store: LedgerStore, field: int, data: bytes) -> None:
    write_at(store.data(0), store.entries[2].at + field, data)


def drop_last_file(store: LedgerStore) -> None:
    store.data().unlink()


TABLE = [
    Damage("index jumps", lambda s: entry(s, 8, struct.pack(">q", 9)), "ledger_chain_broken", f"{DATA}/{0:020d}", 8),
    Damage("term too high", lambda s: entry(s, 16, struct.pack(">q", 7)), "ledger_chain_broken", f"{DATA}/{0:020d}", 16),
    Damage("magic", lambda s: entry(s, 0, b"\0\0\0\2"), "commitlog_damaged", f"{DATA}/{0:020d}", 0),
    Damage("position", lambda s: entry(s, 24, struct.pack(">q", 5)), "commitlog_damaged", f"{DATA}/{0:020d}", 0),
    Damage("body", lambda s: entry(s, HEADER + 90, b"\xee"), "commitlog_damaged", f"{DATA}/{0:020d}", HEADER + 8),
    Damage("last file gone", drop_last_file, "ledger_entries_missing", "", None),
    Damage("one unit", lambda s: write_at(s.index, 64, bytes(32)), "ledger_unit_wrong", f"{INDEX}/{0:020d}", None),
    Damage("index gone", lambda s: s.index.unlink(), "ledger_index_missing", f"{INDEX}/{0:020d}", None),
    Damage("index cut", lambda s: s.index.write_bytes(b""), "ledger_index_wrong_size", f"{INDEX}/{0:020d}", None),
    Damage("committed beyond", lambda s: s.set_checkpoint(44), "ledger_entries_missing", "", None),
    Damage(
        "older term", lambda s: (s.root / FOLDER / "currterm").write_text("currTerm=1\n") and None, "ledger_term_old",
        f"{FOLDER}/currterm", 0,
    ),
]  # fmt: skip


def grown(root: Path, messages: int = 40) -> LedgerStore:
    """A store whose leader changed: terms 2 and 3."""
    builder = LedgerBuilder(term=2)
    for n in range(messages):
        builder.term = 2 + (n > 20)
        builder.put(Message(f"Topic{n % 2}", 0, b"body %d " % n * (n % 5 + 1), uniq=f"7F00{n:08X}"))
    return builder.write(root)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_damage_is_found_and_its_twin_is_silent(row: Damage, tmp_path: Path) -> None:
    store = grown(tmp_path)
    assert found(store) == []
    start = store.entries[2].at
    row.do(store)
    if row.name == "last file gone":
        file = f"{DATA}/{store.end - store.end % SIZES.segment:020d}"
    else:
        file = row.file or f"{DATA}/{store.data().name}"
    on_file = [f for f in found(store) if (f.code, f.file) == (row.code, file)]
    assert on_file, found(store)
    if row.low is not None and row.file.startswith(DATA):
        assert on_file[0].start == start + row.low
        assert on_file[0].end is not None and on_file[0].end <= start + store.entries[2].size


def test_how_many_entries_are_missing_is_told(tmp_path: Path) -> None:
    store = grown(tmp_path)
    gone = [e for e in store.entries if e.at >= store.end - store.end % SIZES.segment]
    drop_last_file(store)
    (finding,) = (f for f in found(store) if f.code == "ledger_entries_missing")
    assert finding.count == len(gone) and finding.start is None
    store.set_checkpoint(-1)  # the units alone know it
    (finding,) = (f for f in found(store) if f.code == "ledger_entries_missing")
    assert finding.count == len(gone) and "units" in (finding.expected or "")


@pytest.mark.parametrize("release", ["4.8.0", "5.1.4", "5.5.0"])
def test_healthy_states_are_silent(tmp_path: Path, release: str) -> None:
    for number, how in enumerate(({}, {"committed": 3}, {"committed": -1})):
        assert found(build(tmp_path / str(number), release, **how)) == []  # type: ignore[arg-type]


def cut_short(store: LedgerStore, kept: int) -> int:
    """Leave so many bytes of the last entry, and return its position in its file."""
    low = store.entries[-1].at % SIZES.segment
    write_at(store.data(), low + kept, bytes(SIZES.segment - low - kept))
    return low


@pytest.mark.parametrize("kept", [HEADER + 100, HEADER + 4, 30])
@pytest.mark.parametrize("clean", [False, True])
def test_a_start_keeps_an_entry_that_was_cut_short_after_its_header(kept: int, clean: bool, tmp_path: Path) -> None:
    store = build(tmp_path, "5.1.4", clean=clean)
    low, last = cut_short(store, kept), store.entries[-1]
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.broker is not None and (audit.broker["dledger"]["end_index"] == last.index) == (kept > HEADER)
    torn = [f for f in audit.findings if f.code in ("ledger_entry_torn", "commitlog_torn_tail")]
    places = [(f.code, f.severity, f.start, f.end) for f in torn if f.code == "ledger_entry_torn"]
    assert places == [("ledger_entry_torn", LOSS, low, low + last.size)] * (kept > HEADER) and len(torn) <= 1
    for finding in torn:
        assert finding.expected == f"entry 39 of {last.size} bytes" and finding.next in BY_A_REPAIR


def test_in_a_group_no_repair_is_offered_for_it(tmp_path: Path) -> None:
    store = build(tmp_path, "5.1.4", clean=False)
    cut_short(store, HEADER + 100)
    peers = store.broker_conf.replace("dLegerPeers=", "dLegerPeers=n7-127.0.0.1:1;")
    (finding,) = [f for f in product.audit(store.root, store.release, peers).findings if f.code == "ledger_entry_torn"]
    assert finding.next not in BY_A_REPAIR


def test_old_entries_after_a_cut_are_no_damage(tmp_path: Path) -> None:
    """A leader of a higher term cut this node's log and wrote less over it: whole old entries lie after its end."""
    store = grown(tmp_path, 34)
    last = store.entries[-1]
    at, path = store.end + 30, store.data()
    stale = header(last.record.size, last.index - 1, 1, at)
    assert at % SIZES.segment + HEADER + last.record.size < SIZES.segment
    body = bytearray(last.data[HEADER:])
    body[28:36] = struct.pack(">q", at + HEADER)
    write_at(path, store.end % SIZES.segment, b"\x07" * 30)
    write_at(path, at % SIZES.segment, stale + bytes(body))
    write_at(store.index, 32 * (last.index + 1), unit(at, last.size, last.index + 1, 1))
    assert found(store) == []


def test_what_is_beyond_the_bounds_of_a_walk_makes_the_audit_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = grown(tmp_path)
    for number in (1, 3, 5):
        entry = store.entries[number]
        write_at(store.data(0), entry.at + 8, struct.pack(">q", 900 + number))  # its index
        write_at(store.index, 32 * (entry.index + 20), bytes(32))
    sound = product.audit(store.root, store.release, store.broker_conf)
    assert not sound.incomplete and sound.broker is not None
    for module in (entry_walk, unit_reader, ledger_kind):
        monkeypatch.setattr(module, "MAX_STRETCHES", 2)
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert {sentence.partition(": ")[2].partition(";")[0].lstrip("0123456789 ") for sentence in audit.incomplete} == {
        "stretches of entries", "ranges of entries with other index units", "runs of index units",
    }  # fmt: skip
    assert all(" only the first 2 were judged" in sentence for sentence in audit.incomplete)
    assert audit.broker is None and verdict_text(audit.outcome).startswith(
        "Do not start this copy: it is damaged, and not all of it"
    )


def test_the_log_of_another_node_is_not_this_ones(tmp_path: Path) -> None:
    store = grown(tmp_path)
    other = store.root / "dledger-n1" / "data" / f"{0:020d}"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"\x07" * 300)
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.above_note == [] and audit.outcome.exit_code == 0 and audit.outcome.covered.not_judged == ["dledger-n1"]
    assert judge(audit.outcome).why[-1] == "Not judged, as no start of this DLedger node reads it: dledger-n1."
    (store.root / FOLDER).rename(store.root / "dledger-n2")  # now its own is missing
    alone = product.audit(store.root, store.release, store.broker_conf)
    assert "dledger-n2/ are not read without dLegerSelfId=n2" in verdict_text(alone.outcome) and alone.outcome.exit_code == 20
