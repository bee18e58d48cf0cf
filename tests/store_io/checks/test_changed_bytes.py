"""Segments whose bytes changed under the same modification time: night after night over one copy, and what is no finding."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from schemas.answer import Answer
from schemas.outcome import Outcome
from schemas.rows import LOSS
from store_io.answer.answers import answer_of
from store_io.answer.headline import verdict_text
from store_io.answer.steps import steps_of
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.checks.changed_bytes import SegmentRow, seen_segments
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.damage import invert_byte
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder


class Nights:
    """Audits of one copy, each held against the rows of the one before, as the table `segments` has them."""

    def __init__(self, root: Path, named: bool = True):
        self.root, self.named, self.rows, self.runs = root, named, list[SegmentRow](), 0

    def copy(self, count: int = 60, first: int = 0) -> Store:
        builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
        builder.clock += first * 10
        for number in range(first, first + count):
            builder.clock += 10
            builder.put(Message("T", number % 2, bytes(200), uniq=f"U{number:03}"))
        return builder.write(self.root)

    @property
    def segments(self) -> list[Path]:
        return sorted((self.root / "commitlog").iterdir())

    def night(self, level: str = "full") -> Outcome:
        audit: StoreAudit = run_audit(AuditRequest("s", StoreLocation(str(self.root)), "5.3.3", level=level))
        audit.hold_bytes_against(seen_segments(self.rows), self.named)
        outcome = audit.outcome()
        self.runs += 1
        run = f"n{self.runs}"
        more = ({"store": "s", "run_id": run, "verified_run": run if row["digest"] else None} for row in outcome.rows.segments)
        columns = [column.name for column in fields(SegmentRow)]
        rows = [row | of_run for row, of_run in zip(outcome.rows.segments, more, strict=True)]
        self.rows = [SegmentRow(**{name: row.get(name) for name in columns}) for row in rows]
        return outcome


def changed(outcome: Outcome) -> list[tuple[str, str]]:
    return [(finding.file, finding.severity) for finding in outcome.found.findings if finding.code == "segment_changed"]


def under_the_same_time(path: Path, change: Callable[[], object]) -> None:
    times = path.stat()
    change()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def unseen(path: Path) -> Callable[[], object]:
    """Change a byte that no other check looks at: the born host's port of the segment's first message."""
    return lambda: invert_byte(path, 55, 0x01)


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    made = Nights(tmp_path / "s")
    made.copy()
    assert changed(made.night()) == changed(made.night()) == []
    return made


def test_the_finding_stays_as_long_as_these_bytes_do(nights: Nights) -> None:
    path = nights.segments[1]
    whole = path.read_bytes()
    under_the_same_time(path, unseen(path))
    file, told = f"commitlog/{path.name}", []
    for level in ("full", "full", "quick", "full"):
        outcome = nights.night(level)
        told.append(changed(outcome))
        if level == "full":
            (finding,) = [one for one in outcome.found.findings if one.code == "segment_changed"]
            assert "run n1 read" in finding.message and finding.expected != finding.actual
            assert outcome.exit_code == 20 and f" {file}: its {finding.message}." in verdict_text(outcome)
            assert outcome.holds.damaged_extents == 0 and len(outcome.found.findings) == 1, "nothing else sees it"
            assert answer_of(outcome) == Answer.COPY_AGAIN
            assert (file,) in [step.files for step in steps_of(outcome) if step.name == "copy"]
    assert told == [[(file, LOSS)], [(file, LOSS)], [], [(file, LOSS)]]

    under_the_same_time(path, lambda: path.write_bytes(whole))  # the old bytes are back
    assert changed(nights.night()) == []
    under_the_same_time(path, unseen(path))
    assert changed(nights.night()) == [(file, LOSS)]
    os.utime(path)  # a copy of its own time: what it holds is held against itself from now on
    assert changed(nights.night()) == changed(nights.night()) == []


def test_what_is_written_until_the_next_segment_begins_is_no_change(tmp_path: Path) -> None:
    nights = Nights(tmp_path / "s")
    nights.copy(40)
    nights.night()
    times = {path.name: path.stat().st_mtime_ns for path in nights.segments}
    shutil.rmtree(nights.root)
    nights.copy(60)  # the last segment went on, on a disk whose clock ticks slowly
    for path in nights.segments:
        if path.name in times:
            os.utime(path, ns=(times[path.name], times[path.name]))
    assert changed(nights.night()) == [] == changed(nights.night())
    path = nights.segments[-2]
    under_the_same_time(path, unseen(path))
    assert changed(nights.night()) == [(f"commitlog/{path.name}", LOSS)]


def test_damage_that_is_gone_is_mended_and_no_change(nights: Nights) -> None:
    """A repair keeps the times of the files that it writes."""
    path = nights.segments[1]
    under_the_same_time(path, lambda: invert_byte(path, 150, 0x55))
    hurt = nights.night()
    assert hurt.holds.damaged_extents and len(changed(hurt)) == 1
    whole = bytearray(path.read_bytes())
    invert_byte(path, 150, 0x55)
    whole[55] ^= 1
    whole[150] ^= 0x55
    under_the_same_time(path, lambda: path.write_bytes(whole))  # sound, and not the bytes of the first night
    os.utime(path, ns=(1, nights.rows[1].modified_ns or 0))
    assert changed(nights.night()) == [] == changed(nights.night())


def test_a_segment_that_was_damaged_at_first_has_no_first_reading(tmp_path: Path) -> None:
    nights = Nights(tmp_path / "s")
    nights.copy()
    path = nights.segments[1]
    times, whole = path.stat().st_mtime_ns, path.read_bytes()
    invert_byte(path, 150, 0x55)
    os.utime(path, ns=(times, times))
    nights.night()
    path.write_bytes(whole)
    os.utime(path, ns=(times, times))
    assert changed(nights.night()) == [] == changed(nights.night())


@pytest.mark.parametrize("named", [True, False])
def test_another_store_in_the_same_place_is_no_change_unless_both_have_one_name(tmp_path: Path, named: bool) -> None:
    nights = Nights(tmp_path / "s", named)
    nights.copy()
    nights.night()
    times = [path.stat().st_mtime_ns for path in nights.segments]
    shutil.rmtree(nights.root)
    nights.copy(first=5000)
    for path, time in zip(nights.segments, times, strict=True):
        os.utime(path, ns=(time, time))
    assert bool(changed(nights.night())) is named


def test_a_time_that_is_not_known_shows_nothing(nights: Nights) -> None:
    for path in nights.segments:
        os.utime(path, ns=(0, 0))
    nights.night()
    path = nights.segments[1]
    under_the_same_time(path, unseen(path))
    assert changed(nights.night()) == []
