"""A segment that is repeated is a sound store, its queues too, and what is held packed changes no result."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dev.bench_stores import write_pieces
from dev.sample_repeats import RepeatedLocation, light_template_pieces, template_pieces
from dev.sample_store import SampleStore
from jobs.report.files.json_text import document
from schemas.outcome import Outcome
from store_io.audit.audit_store import run_local
from store_io.base import packed
from store_io.broker.queues import queue_puts
from store_io.log.scan import stored_runs
from store_io.model import queue_runs
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import open_source


def audited(location: RepeatedLocation) -> Outcome:
    return run_local(AuditRequest("s", location, "5.3.3", location.settings()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("repeats") / "template"
    store = SampleStore([64], segment_bytes=65536, topics=3, queues=4, queue_file_bytes=200, chunk_bytes=20_000)
    write_pieces(made, template_pieces(store))
    return made


def test_each_repetition_is_sound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also read in pieces that cut fields in two, and with everything packed that can be."""
    location = RepeatedLocation(str(folder), repeats=4)
    outcome = audited(location)
    assert (outcome.exit_code, outcome.complete, outcome.holds.segment_count, len(outcome.rows.queues)) == (0, True, 4, 12)
    assert (
        outcome.holds.messages
        == sum(row["log_messages"] for row in outcome.rows.queues)
        == sum(row["equal"] for row in outcome.rows.queues)
    )
    assert outcome.holds.messages % 4 == 0 and outcome.holds.messages > 700 and outcome.found.findings == []
    with open_source(location).open(f"commitlog/{3 * 65536:020d}") as file:
        whole = file.read(0, file.size)
        assert b"".join(file.read(at, 13) for at in range(0, file.size, 13)) == whole
    for few, inside in ((2, packed.FEW_INSIDE), (packed.FEW, 2)):  # many queues; few queues of many files
        monkeypatch.setattr(packed, "FEW", few)
        monkeypatch.setattr(packed, "FEW_INSIDE", inside)
        again = audited(location)
        assert isinstance(again.rows.queues, packed.PackedList) and document(audit_plan(again)) == document(audit_plan(outcome))
        assert (
            isinstance(audit_plan(again)["inputs"], packed.PackedList) == (few == 2) and again.rows.queues == outcome.rows.queues
        )


def test_runs_in_temporary_files_change_no_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second message is a run of its own here."""
    location = RepeatedLocation(str(folder), repeats=4, wrong_every=2)
    plain = audited(location)
    monkeypatch.setattr(stored_runs, "MOST_HELD", 100)
    monkeypatch.setattr(queue_runs, "BLOCK_RUNS", 50)
    again = audited(location)
    assert (
        plain.found.findings
        and again.found.findings == plain.found.findings
        and document(audit_plan(again)) == document(audit_plan(plain))
    )
    assert (again.rows.queues, again.rows.segments, again.loss) == (plain.rows.queues, plain.rows.segments, plain.loss)


def test_a_full_disk_of_temporary_files_takes_nothing_of_what_was_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    location = RepeatedLocation(str(folder), repeats=4, wrong_every=2)
    whole = audited(location)  # which needs no such file
    monkeypatch.setattr(packed, "FEW", 2)
    outcome = audited(location)
    assert whole.found.findings and isinstance(outcome.rows.queues, packed.PackedList)
    assert (
        document(audit_plan(outcome)) == document(audit_plan(whole))
        and outcome.found.findings == whole.found.findings
        and outcome.complete
    )


def test_queues_that_are_lost_come_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = RepeatedLocation(str(folder), repeats=4, lost=True)
    plain = audited(location)
    assert (plain.exit_code, plain.complete, len(plain.rows.queues), audit_plan(plain)["broker"]["lost"]["messages"]) == (
        10,
        True,
        12,
        0,
    )
    assert sum(f.count for f in plain.found.findings) == plain.holds.messages == sum(row["missing"] for row in plain.rows.queues)
    monkeypatch.setattr(packed, "FEW", 2)
    monkeypatch.setattr(queue_puts, "MOST_ROWS", 10)
    monkeypatch.setattr(stored_runs, "MOST_HELD", 20)
    again = audited(location)
    assert document(audit_plan(again)) == document(audit_plan(plain)) and (again.found.findings, again.rows.queues) == (
        plain.found.findings,
        plain.rows.queues,
    )


def test_light_queues(tmp_path: Path) -> None:
    write_pieces(tmp_path / "light", light_template_pieces(30, 100, 100))
    outcome = audited(RepeatedLocation(str(tmp_path / "light"), repeats=3))
    assert (outcome.exit_code, outcome.complete, outcome.holds.messages, len(outcome.rows.queues)) == (0, True, 300, 31)
    light = [row for row in outcome.rows.queues if row["lmq"]]
    assert len(light) == 30 and sum(row["equal"] for row in light) == 300


def test_wrong_entries_are_found(folder: Path) -> None:
    outcome = audited(RepeatedLocation(str(folder), repeats=4, wrong_every=2))
    wrong = sum(row["wrong"] for row in outcome.rows.queues)
    assert outcome.exit_code == 10 and outcome.found.dropped == {}
    assert wrong == sum(finding.code == "queue_entry_wrong" for finding in outcome.found.findings) > 300
