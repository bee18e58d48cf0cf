"""Audits that leave something out: the quick level, a time limit, segments that a run before has verified."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from schemas.advice import Cause, exit_code_of
from schemas.finding_codes import Code
from schemas.losses import ALL_READ
from schemas.outcome import Outcome
from schemas.rows import LOSS, NOTE
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.log.scan.segment_scan import scan_segment
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.answers.earlier_run import VERIFIED_AT, earlier
from tests.support.answers.product import Audited
from tests.support.stores import random_stores
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder
from tests.support.stores.corpus_tools import Case, cases

SEGMENT = 4096
LATE = exit_code_of(Cause.TIME_LIMIT)


def request(store: Store, release: str = "5.3.3", **more: Any) -> AuditRequest:
    return AuditRequest("store", StoreLocation(str(store.root)), release, store.broker_conf, **more)


def large(tmp_path: Path, messages: int = 200, **more: Any) -> Store:
    """A store of a dozen segments, three queues and an index."""
    builder = StoreBuilder("5.3.3", Sizes(segment=SEGMENT, queue_file=200, slots=50, index_max=100))
    for number in range(messages):
        builder.put(Message(queue_id=number % 3, body=b"%04d" % number * 10, keys=f"k{number}", uniq=f"u{number}"))
    return builder.write(tmp_path / "store", **more)


def without_lost(outcome: Outcome) -> dict[str, Any] | None:
    broker = audit_plan(outcome)["broker"]
    left_out = ("lost", "timer")  # the quick level does not read the timer's files
    return {k: v for k, v in broker.items() if k not in left_out} if broker is not None else None


def segments_read(audit: StoreAudit) -> list[str]:
    return [s.path.rpartition("/")[2].lstrip("0") or "0" for s in audit.segments]


# ---- the quick level -----------------------------------------------------------------------------------------------


def assert_quick_is_as_full(full: Outcome, audit: StoreAudit) -> None:
    quick = audit.outcome()
    assert without_lost(quick) == without_lost(full), quick.incomplete
    assert (
        not quick.complete and not audit_plan(quick)["complete"] and quick.exit_code in (3, 20) and quick.covered.level == "quick"
    )
    if audit_plan(full)["broker"] is not None and audit_plan(full)["broker"]["starts"]:
        ours, theirs = audit_plan(quick)["broker"]["lost"], audit_plan(full)["broker"]["lost"]
        assert ours == theirs if not audit.unread else ours["messages"] <= theirs["messages"]
    if quick.exit_code == 20:
        assert full.exit_code == 20


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_quick_plans_as_full_does(case: Case, audited: Callable[[Case], Audited]) -> None:
    full = audited(case)
    assert_quick_is_as_full(full.outcome, run_audit(replace(full.audit.request, level="quick")))


def test_quick_plans_as_full_does_for_random_damaged_stores(tmp_path: Path) -> None:
    left_out = 0
    for number in range(14):
        made = random_stores.random_store(tmp_path / str(number), random.Random(f"quick/{number}"))
        asked = AuditRequest("store", StoreLocation(str(made.store.root)), made.release, made.broker_conf)
        quick = run_audit(replace(asked, level="quick"))
        assert_quick_is_as_full(run_audit(asked).outcome(), quick)
        left_out += bool(quick.unread)
    assert left_out > 2


@pytest.mark.parametrize("number", range(25))
def test_quick_raises_no_alarm_over_an_undamaged_store(number: int, tmp_path: Path) -> None:
    rng = random.Random(f"quick-undamaged/{number}")
    release = rng.choice(random_stores.RELEASES)
    builder = random_stores.random_builder(rng, release, healthy=True)
    store = builder.write(tmp_path / "store", clean=True)
    quick = run_audit(request(store, release, level="quick")).outcome()
    found = [f for f in quick.found.findings if f.code != Code.CONFIG_NOT_COPIED]  # these stores have no config/
    assert {f.severity for f in found} <= {NOTE} and quick.exit_code == 3, quick.found.findings


def test_quick_reads_what_recovery_reads_and_says_what_it_left_out(tmp_path: Path) -> None:
    store = large(tmp_path)
    audit = run_audit(request(store, "4.9.8", level="quick"))
    outcome = audit.outcome()
    files = sorted(p.name for p in (store.root / "commitlog").iterdir())
    assert len(files) >= 8
    assert [s.path for s in audit.segments] == [f"commitlog/{name}" for name in files[-3:]]
    assert outcome.covered.not_read.segments == len(files) - 3
    assert outcome.covered.not_read.segment_bytes == (len(files) - 3) * SEGMENT
    queue_files = [p for p in (store.root / "consumequeue").rglob("*") if p.is_file()]
    assert outcome.covered.not_read.queue_files == len(queue_files) - 3 * 3 and outcome.covered.not_read.index_files > 0
    assert f"{len(files) - 3} of {len(files)} CommitLog segments ({(len(files) - 3) * SEGMENT:,} bytes)" in outcome.incomplete[0]
    assert audit_plan(outcome)["not_read"] == asdict(outcome.covered.not_read)
    assert outcome.cost.bytes_read < 3 * SEGMENT + len(queue_files) * 400 + len(files) * 2 * SEGMENT
    kept = {step["file"]: step["reason"] for step in audit_plan(outcome)["steps"] if step["action"] == "keep"}
    assert kept[f"commitlog/{files[0]}"] == "not read by this audit"
    digests = {row["file"]: row["digest"] for row in audit_plan(outcome)["inputs"]}
    assert digests[f"commitlog/{files[0]}"] == "" and digests[f"commitlog/{files[-1]}"]


def test_quick_counts_what_lies_behind_the_cut(tmp_path: Path) -> None:
    store = large(tmp_path)
    files = sorted(p.name for p in (store.root / "commitlog").iterdir())
    first = next(r for r in store.records if r.at >= int(files[-2]))
    damage.invert_byte(store.root / "commitlog" / files[-2], first.at + 92 - int(files[-2]))
    full, quick = run_audit(request(store, "4.9.8")).outcome(), run_audit(request(store, "4.9.8", level="quick")).outcome()
    assert audit_plan(quick)["broker"] == audit_plan(full)["broker"] and audit_plan(quick)["broker"]["lost"]["messages"] > 5
    assert quick.exit_code == 20


def test_quick_sees_a_segment_that_begins_with_rubbish(tmp_path: Path) -> None:
    store = large(tmp_path)
    path = sorted((store.root / "commitlog").iterdir())[2]
    damage.zero_range(path, 0, 40)
    damage.invert_byte(path, 44)
    outcome = run_audit(request(store, level="quick")).outcome()
    assert [(f.code, f.severity, f.start) for f in outcome.found.findings if f.file == f"commitlog/{path.name}"] == [
        ("commitlog_damaged", LOSS, 0)
    ]
    assert outcome.exit_code == 20


# ---- a time limit --------------------------------------------------------------------------------------------------


def test_no_time_at_all_reads_nothing_and_says_so(tmp_path: Path) -> None:
    store = large(tmp_path)
    audit = run_audit(request(store, not_after=time.time() - 1))
    outcome = audit.outcome()
    files = list((store.root / "commitlog").iterdir())
    assert audit.segments == [] and audit_plan(outcome)["broker"] is None and outcome.exit_code == LATE
    assert outcome.covered.not_read.segments == len(files) and outcome.holds.segment_count == len(files)
    assert "the time limit was reached" in outcome.incomplete[0] and not outcome.complete
    assert {f.severity for f in outcome.found.findings} <= {NOTE}
    assert [row["digest"] for row in outcome.rows.segments] == [None] * len(files)


def test_enough_time_is_as_none(tmp_path: Path) -> None:
    store = large(tmp_path)
    plain, timed = run_audit(request(store)).outcome(), run_audit(request(store, not_after=time.time() + 900)).outcome()
    assert (audit_plan(timed), timed.found.findings, timed.exit_code, timed.complete) == (
        audit_plan(plain),
        plain.found.findings,
        plain.exit_code,
        True,
    )
    assert timed.covered.not_read == ALL_READ


class Clock:
    """A time that moves on with each segment that is begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int):
        self.begun: list[str] = []
        real = time.time

        def now() -> float:
            return real() + (1000 if len(self.begun) >= most else 0)

        monkeypatch.setattr("store_io.base.tasks.time.time", now)

        def scan(task: Any) -> Any:
            self.begun.append(task.path.rpartition("/")[2].lstrip("0") or "0")
            return scan_segment(task)

        monkeypatch.setattr("store_io.log.scan.segment_scan.scan_segment", scan)


def test_order_in_which_segments_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged ones, those at which recovery begins, never verified ones, then the one verified longest ago."""
    store = large(tmp_path)
    before = run_audit(request(store))
    long_ago = VERIFIED_AT.replace(year=2025)
    changes: dict[str, dict[str, Any]] = {
        "12288": {"damaged": True},
        "8192": {"verified_run": "", "verified_at": None},
        "16384": {"verified_at": long_ago},
    }
    clock = Clock(monkeypatch, 7)
    audit = run_audit(request(store, earlier=earlier(before, changes), not_after=time.time() + 500))
    newest = [str(f.start) for f in audit.copy.loaded.segments[-3:]]
    assert clock.begun[:7] == ["12288", *newest, "8192", "16384", "0"]
    outcome = audit.outcome()
    assert audit_plan(outcome)["broker"] is not None and not outcome.complete and outcome.exit_code == LATE
    by_file = {row["file"]: row for row in outcome.rows.segments}
    left = by_file[f"commitlog/{4096:020d}"]
    assert (left["verified_run"], left["verified_at"], left["digest"]) == (
        "run-0", VERIFIED_AT, before.outcome().rows.segments[1]["digest"],
    )  # fmt: skip
    assert by_file[f"commitlog/{0:020d}"]["verified_run"] is None  # by this run, whose name is not known here


def test_a_damaged_segment_is_read_however_late_it_is(tmp_path: Path) -> None:
    store = large(tmp_path)
    before = run_audit(request(store))
    late = request(store, earlier=earlier(before, {"12288": {"damaged": True}}), not_after=time.time() - 1)
    assert segments_read(run_audit(late)) == ["12288"]


# ---- since a run before --------------------------------------------------------------------------------------------


def test_unchanged_segments_are_not_read_again(tmp_path: Path) -> None:
    store = large(tmp_path)
    before = run_audit(request(store))
    audit = run_audit(request(store, earlier=earlier(before), reuse=True))
    outcome, whole = audit.outcome(), before.outcome()
    assert audit_plan(outcome)["broker"] == audit_plan(whole)["broker"]
    assert outcome.complete and outcome.exit_code == whole.exit_code and outcome.covered.not_read.since == "run-0"
    assert outcome.covered.not_read.segments == 0
    assert outcome.covered.not_read.reused_segments == len(whole.rows.segments) - len(audit.segments) > 5
    assert {f.severity for f in outcome.found.findings} <= {NOTE}
    same = "file size_bytes digest edge_digest messages damaged_bytes extents".split()
    assert [[row[name] for name in same] for row in outcome.rows.segments] == [
        [row[name] for name in same] for row in whole.rows.segments
    ]
    assert audit_plan(outcome)["inputs"] == audit_plan(whole)["inputs"]


@pytest.mark.parametrize("how", ["byte at the edge", "time", "damaged", "other rules", "not verified"])
def test_what_changed_is_read_again(how: str, tmp_path: Path) -> None:
    store = large(tmp_path)
    before = run_audit(request(store))
    known = earlier(before)
    path = f"commitlog/{8192:020d}"
    segment = known.segments[path]
    if how == "byte at the edge":
        status = (store.root / path).stat()
        damage.invert_byte(store.root / path, 92)
        os.utime(store.root / path, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = {
        "byte at the edge": segment,
        "time": replace(segment, modified_ns=segment.modified_ns - 1),
        "damaged": replace(segment, damaged=True),
        "other rules": segment,
        "not verified": replace(segment, verified_run=""),
    }[how]
    known = replace(known, segments={**known.segments, path: changed})
    if how == "other rules":
        known = replace(known, settings={**known.settings, "maxHashSlotNum": "49"})
    audit = run_audit(request(store, earlier=known, reuse=True))
    read = segments_read(audit)
    assert "8192" in read and ("4096" in read) == (how == "other rules")
    assert how != "other rules" or len(read) == len(audit.segment_files)
    assert (audit.outcome().exit_code == 20) == (how == "byte at the edge")


@pytest.mark.parametrize("what", ["entry", "queue file gone", "index file", "nothing"])
def test_derived_data_that_changed_have_all_segments_read_again(what: str, tmp_path: Path) -> None:
    """What leads to segments that are not read again was compared by the run before, and must still be the same."""
    store = large(tmp_path)
    before = earlier(run_audit(request(store)))
    queue = sorted((store.root / "consumequeue" / "TopicA" / "0").iterdir())
    index = sorted((store.root / "index").iterdir())
    if what == "entry":
        damage.invert_byte(queue[1], 3 * 20 + 11)
    elif what == "queue file gone":
        queue[0].unlink()
    elif what == "index file":
        damage.invert_byte(index[0], 40 + 20 * 4 + 20 * 3 + 1)
    audit = run_audit(request(store, earlier=before, reuse=True))
    outcome, whole = audit.outcome(), run_audit(request(store)).outcome()
    assert (outcome.exit_code, outcome.complete) == (whole.exit_code, True) and (whole.exit_code > 0) == (what != "nothing")
    assert (not audit.unread) == (what != "nothing")
    if what != "nothing":
        assert outcome.found.findings == whole.found.findings


def test_queues_that_have_grown_are_as_they_were(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=SEGMENT, queue_file=200, slots=50, index_max=100))
    for number in range(100):
        builder.put(Message(queue_id=number % 3, body=b"%04d" % number * 10, uniq=f"u{number}"))
    store = builder.write(tmp_path / "store")
    before = earlier(run_audit(request(store)))
    times = {path: path.stat().st_mtime_ns for path in (store.root / "commitlog").iterdir()}
    for number in range(100, 160):
        builder.put(Message(queue_id=number % 3, body=b"%04d" % number * 10, uniq=f"u{number}"))
    store = builder.write(tmp_path / "store")
    for path, modified in list(times.items())[:-1]:
        os.utime(path, ns=(modified, modified))
    audit = run_audit(request(store, earlier=before, reuse=True))
    outcome = audit.outcome()
    assert outcome.complete and outcome.exit_code == 0 and outcome.holds.messages == 160
    assert (
        outcome.covered.not_read.reused_segments >= 3
        and audit_plan(outcome)["broker"] == audit_plan(run_audit(request(store)).outcome())["broker"]
    )


def test_what_the_run_before_found_is_found_again(tmp_path: Path) -> None:
    """Damage in one segment: only that one is read again, and all findings are those of a full audit. A disagreement of derived
    data about a sound segment: everything is."""
    store = large(tmp_path)
    damage.invert_byte(store.root / "commitlog" / f"{8192:020d}", 92)
    whole = run_audit(request(store))
    audit = run_audit(request(store, earlier=earlier(whole), reuse=True))
    assert [f for f in audit.outcome().found.findings if f.severity != NOTE] == [
        f for f in whole.outcome().found.findings if f.severity != NOTE
    ]
    assert audit.outcome().exit_code == 20 and "8192" in segments_read(audit) and len(audit.unread) > 5
    queue = sorted((store.root / "consumequeue" / "TopicA" / "1").iterdir())[0]
    damage.zero_range(queue, 40, 60)
    whole = run_audit(request(store))
    audit = run_audit(request(store, earlier=earlier(whole), reuse=True))
    assert not audit.unread and audit.outcome().found.findings == whole.outcome().found.findings
