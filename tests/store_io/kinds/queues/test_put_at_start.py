"""Entries of queues in files and of the index that are missing: those that a start puts by itself, and those that it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.finding_codes import STARTS_DISPATCH, Code
from schemas.rows import Finding
from store_io.outcome.safety import mended_by_a_start
from tests.support.answers import product
from tests.support.answers.product import Audited, Entry
from tests.support.stores.builders import Message, Sizes, StoreBuilder, inner_body

LATER = 3_600_000
SIZES = Sizes(segment=4096, queue_file=400, slots=50, index_max=31)
QUEUE, INDEX = Code.QUEUE_ENTRY_MISSING, Code.INDEX_RANGE_MISSING
EARLY = 60  # messages


def builder_of(batch: bool = False, release: str = "5.3.3") -> StoreBuilder:
    """Messages of two queues, the last ones an hour later: after a kill recovery begins in the segment of the first of these."""
    builder = StoreBuilder(release, SIZES, batch_topics=["T"] if batch else ())
    for number in range(EARLY + 20):
        builder.clock += LATER * (number == EARLY)
        body, inner = (inner_body([b"m"] * 2), 2) if batch else (b"x" * 60, 0)
        builder.put(Message("T", number % 2, body, keys=f"k{number}", inner_count=inner))
    return builder


def audited(root: Path, builder: StoreBuilder) -> Audited:
    return product.audit(root, builder.release, builder.broker_conf())


def cut(root: Path, entry: int) -> None:
    """Take from queue 0 the entries from this one on; the files stay."""
    for path in (root / "consumequeue/T/0").iterdir():
        held = max(0, entry * 20 - int(path.name))
        path.write_bytes(path.read_bytes()[:held].ljust(400, b"\0"))


def missing(audit: Audited, *codes: Code) -> list[Finding]:
    return [f for f in audit.findings if f.code in (codes or (QUEUE, INDEX))]


def left_to_a_start(audit: Audited, builder: StoreBuilder) -> list[bool]:
    """Say of each finding on queues whether a start is its next step: if the prediction has all its entries."""
    held = {(e["q"], e["i"], e["p"]) for e in caught_up(audit) if "q" in e}
    steps = []
    for finding in missing(audit, QUEUE):
        own = [r for r in builder.records if r.queue_id == finding.queue_id]
        first = [r.at for r in own].index(finding.phy_offset or 0) if builder.batch_topics else finding.queue_offset or 0
        steps.append(held.issuperset((r.queue_id, r.queue_offset, r.at) for r in own[first : first + finding.count]))
        assert steps[-1] == (finding.next == STARTS_DISPATCH), finding
    return steps


def caught_up(audit: Audited) -> list[Entry]:
    """Return the entries that a broker has when its start has caught up."""
    prediction = audit.audit.prediction
    assert prediction is not None and prediction.after_dispatch is not None
    return audit.entries(prediction.after_dispatch)


@pytest.mark.parametrize(
    ("release", "clean", "batch"),
    [("5.3.3", False, False), ("5.3.3", False, True), ("4.9.8", True, False), ("5.3.3", True, True)],
)
def test_what_was_not_dispatched_a_start_puts(release: str, clean: bool, batch: bool, tmp_path: Path) -> None:
    """After a kill recovery does it, after a clean exit the dispatching thread."""
    builder = builder_of(batch, release)
    builder.write(tmp_path, clean=clean, undispatched=15)
    audit = audited(tmp_path, builder)
    assert sum(f.count for f in missing(audit)) == 30 and {f.severity for f in missing(audit)} == {"rebuildable"}
    assert left_to_a_start(audit, builder) == [True, True] and mended_by_a_start(audit.outcome)


def test_the_message_at_which_dispatch_continues_after_a_clean_exit_stays_without_entries(tmp_path: Path) -> None:
    builder = builder_of()
    builder.write(tmp_path, clean=True, undispatched=15)
    audit = audited(tmp_path, builder)
    assert left_to_a_start(audit, builder) == [True, False]
    assert [f.next == STARTS_DISPATCH for f in missing(audit, INDEX)] == [False]


def test_entries_before_the_place_at_which_dispatch_begins_stay_missing(tmp_path: Path) -> None:
    """What is dispatched is then put where the first of them belongs."""
    builder = builder_of()
    builder.write(tmp_path, clean=False)
    cut(tmp_path, 5)
    audit = audited(tmp_path, builder)
    assert audit.broker is not None and int(audit.broker["start_segment"]) > builder.records[10].at
    assert len(left_to_a_start(audit, builder)) == 2 and not any(left_to_a_start(audit, builder))
    assert not mended_by_a_start(audit.outcome)


def test_of_a_queue_that_is_gone_the_later_entries_come_back(tmp_path: Path) -> None:
    builder = builder_of()
    builder.write(tmp_path, clean=False)
    shutil.rmtree(tmp_path / "consumequeue/T/0")
    assert left_to_a_start(audited(tmp_path, builder), builder) == [False, False]
    builder = builder_of()
    for number in range(60):
        builder.put(Message("T", number % 2, b"x" * 60, keys=f"l{number}"))
    builder.write(tmp_path / "longer", clean=False)
    shutil.rmtree(tmp_path / "longer/consumequeue/T/0")
    assert left_to_a_start(audited(tmp_path / "longer", builder), builder) == [False, False, True, True]


def test_an_entry_that_other_queues_reach_beyond_is_put_after_a_kill_alone(tmp_path: Path) -> None:
    for clean in (False, True):
        builder, root = builder_of(), tmp_path / str(clean)
        builder.write(root, clean=clean)
        cut(root, 38)
        assert left_to_a_start(audited(root, builder), builder) == [not clean]


@pytest.mark.parametrize("batch", [False, True])
def test_a_hole_that_the_queue_ends_after_stays(batch: bool, tmp_path: Path) -> None:
    builder = builder_of(batch)
    builder.write(tmp_path, clean=True)
    path = sorted((tmp_path / ("batchconsumequeue" if batch else "consumequeue") / "T/0").iterdir())[0]
    data = bytearray(path.read_bytes())
    size = 46 if batch else 20
    data[3 * size : 4 * size] = bytes(size)
    path.write_bytes(data)
    assert not any(left_to_a_start(audited(tmp_path, builder), builder))


@pytest.mark.parametrize(("gone", "put"), [([0], False), ([-1], True), ([0, 1, 2], False)])
def test_index_entries_are_put_from_where_dispatch_begins(gone: list[int], put: bool, tmp_path: Path) -> None:
    builder = builder_of()
    builder.write(tmp_path, clean=False)
    files = sorted((tmp_path / "index").iterdir())
    assert len(files) == 3
    for number in gone:
        files[number].unlink()
    audit = audited(tmp_path, builder)
    assert [f.next == STARTS_DISPATCH for f in missing(audit, INDEX)] == [put]
    held = {e["p"] for e in caught_up(audit) if "q" not in e}
    assert ({record.at for record in builder.records} <= held) == put


def test_no_start_puts_the_index_of_what_queues_hold_after_a_clean_exit(tmp_path: Path) -> None:
    builder = builder_of()
    builder.write(tmp_path, clean=True)
    sorted((tmp_path / "index").iterdir())[-1].unlink()
    assert [f.next == STARTS_DISPATCH for f in missing(audited(tmp_path, builder), INDEX)] == [False]
