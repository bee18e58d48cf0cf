"""The last round of an audit, which reads single entries again: what it meets there that was not so before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from schemas.advice import Cause
from schemas.layouts.entries import STORED_KEYED_ENTRY_DTYPE
from schemas.rows import NOTE, QueueKey
from store_io.audit.audit_store import StoreAudit
from store_io.base.findings import Findings
from store_io.base.tasks import run_task
from store_io.log.entries.stored_entries import EntryReader
from store_io.model import queue_leftovers
from store_io.model.audit_request import AuditRequest
from store_io.model.queue_leftovers import DatabaseEntries, LeftoverTask
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder


def test_a_file_that_vanishes_before_it_is_read_again_makes_the_audit_incomplete(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=200))
    for number in range(40):
        builder.put(Message(topic="T", queue_id=0, body=b"%04d" % number * 10, uniq=f"u{number}"))
    store = builder.write(tmp_path / "store")
    queue = store.root / "consumequeue" / "T" / "0"
    first = queue / f"{0:020d}"
    damage.invert_byte(first, 5)  # of the physical offset: an entry that leads to no message
    audit = StoreAudit(AuditRequest("s", StoreLocation(str(store.root)), "5.3.3", store.broker_conf))
    tasks, met = audit.first_tasks(), False
    while tasks:
        if any(isinstance(task, LeftoverTask) for task in tasks):
            met = True
            first.unlink(missing_ok=True)
        tasks = audit.next_tasks([run_task(task) for task in tasks])
    outcome = audit.outcome()
    assert met
    assert not outcome.complete and outcome.exit_code in (3, 20)
    assert any(f"consumequeue/T/0/{0:020d}" in sentence for sentence in outcome.incomplete)
    assert not {gap.cause for gap in outcome.gaps} & {Cause.AUDIT_FAULT, Cause.TASK_FAULT}


def test_entries_of_a_database_are_asked_for_in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question goes to another process. What lies between the wanted numbers is left out, what is not stored stays zero."""
    stored, asked = np.array([0, 1, 2, 3, 5, 9, 5000, 5001], np.int64), []

    def windows(_: object, key: QueueKey, first: int, end: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        asked.append((first, end))
        numbers = stored[(stored >= first) & (stored < end)]
        rows = np.zeros(len(numbers), STORED_KEYED_ENTRY_DTYPE)
        rows["phy_offset"] = numbers * 100
        for place in range(0, len(numbers), 3):
            yield numbers[place : place + 3], rows[place : place + 3]

    monkeypatch.setattr(EntryReader, "windows", windows)
    task = SimpleNamespace(key=("T", 0))
    found = DatabaseEntries(None, None, task).of(np.array([1, 3, 4, 9, 5001]))  # type: ignore[arg-type]
    assert found["phy_offset"].tolist() == [100, 300, 0, 900, 500100]
    assert asked == [(1, 10), (5001, 5002)]


def numbered(root: Path, *numbers: int, queue_file: int = 800) -> Store:
    """A store with one queue whose messages have these queue offsets."""
    builder = StoreBuilder("5.3.3", Sizes(segment=1024, queue_file=queue_file))
    for number in numbers:
        builder.put(Message("T", 0, b"body %d" % number * 9, queue_offset=number))
    return builder.write(root)


def test_positions_that_a_repair_made_lead_to_the_next_message_are_noted(tmp_path: Path) -> None:
    store = numbered(tmp_path / "s", 0, 1, 2, 5, 6)
    (path,) = damage.queue_files(store, "T", 0)
    after = path.read_bytes()[60:100]  # entries of the messages 5 and 6, which the builder puts behind one another
    damage.overwrite(path, 60, after[:20] * 2 + after)
    found = [f for f in product.audit(store.root, "5.3.3", store.broker_conf).findings if f.code == "queue_position_answered"]
    assert [(f.severity, f.start, f.end, f.count) for f in found] == [(NOTE, 60, 100, 2)]


def test_an_entry_that_leads_below_the_logs_minimum(tmp_path: Path) -> None:
    store = numbered(tmp_path / "s", *range(20))
    damage.cq_append(store, "T", 0, store.records[1].at, store.records[1].size)
    damage.drop_segment(store, 0)
    (found,) = (
        f for f in product.audit(store.root, "5.3.3", store.broker_conf).findings if f.code == "queue_entry_below_minimum"
    )
    assert (found.start, found.end, found.queue_offset) == (400, 420, 20)


@pytest.mark.parametrize("notes", [9, 10, 11, 100])
@pytest.mark.parametrize("faults", [1, 9, 10, 11, 100])
def test_no_number_of_notes_hides_a_fault_behind_them(
    notes: int, faults: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_leftovers, "Findings", lambda: Findings(10))
    store = numbered(tmp_path / "s", *range(0, 2 * notes + 1, 2), queue_file=20_000)
    (path,) = damage.queue_files(store, "T", 0)
    own = [path.read_bytes()[20 * number :][:20] for number in range(notes + 1)]
    answered = [own[0], *(entry for entry in own[1:] for _ in range(2))]  # as a salvage repair answers what is asked for between
    damage.overwrite(path, 0, b"".join(answered))
    for _ in range(faults):
        damage.cq_append(store, "T", 0, -5, 77)
    outcome = product.audit(store.root, "5.3.3", store.broker_conf).outcome
    told = {
        code: sum(f.count for f in outcome.found.findings if f.code == code) for code in {f.code for f in outcome.found.findings}
    }
    assert (outcome.exit_code, told["queue_entry_invalid"]) == (10, faults)
    assert told["queue_position_answered"] + outcome.found.dropped.get("queue_position_answered", 0) == notes
