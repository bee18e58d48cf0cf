"""Copies of a running broker: ConsumeQueues that were copied after the CommitLog are told as that, not as damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.rows import LOSS, NOTE
from store_io.answer.headline import verdict_text
from tests.support import damage
from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, StoreBuilder

SIZES = Sizes(segment=4096, queue_file=400, slots=20, index_max=200)
ALL = 22  # messages; they fit into one segment
FULL = 25  # messages that fill a segment
WIDE = Sizes(segment=16384, queue_file=400, slots=20, index_max=200)
HOLE = "Probably copied while the broker ran"
LATER = "The ConsumeQueues were copied after the CommitLog of a running broker"


def copied(root: Path, kept: int, *, clean: bool = False, torn: int = 0, flushed: int = ALL, count: int = ALL) -> product.Audited:
    """A copy whose log ends behind message `kept`, or `torn` bytes further, and is zero from there; all else is of later.

    flushed: how many messages the checkpoint tells as flushed.
    """
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(count):
        builder.put(Message("T", number % 3, body=b"x" * 50, tags="a", keys=f"k{number}"))
    records = builder.records
    time = records[flushed - 1].store_time
    store = builder.write(root, clean=clean, spare=False, checkpoint={"physic": time, "logics": time})
    end = records[kept].at + torn
    for path in sorted((root / "commitlog").iterdir()):
        base = int(path.name)
        if base >= end:
            path.unlink()
        elif base + SIZES.segment > end:
            path.write_bytes(path.read_bytes()[: end - base].ljust(SIZES.segment, b"\0"))
    return product.audit(root, store.release, store.broker_conf)


def test_queues_copied_later_are_told_first_and_are_no_loss(tmp_path: Path) -> None:
    audited = copied(tmp_path / "store", 15)
    assert f"{LATER}: they lead to 7 messages beyond its end." in verdict_text(audited.outcome)
    assert audited.outcome.exit_code == 10
    (finding,) = [f for f in audited.findings if f.code == "queues_copied_later"]
    end = audited.audit.segments[0].extents[0].end
    assert (finding.file, finding.start, finding.end) == (audited.audit.segments[0].path, end, end + 8)
    assert {f.code for f in audited.above_note} == {"queues_copied_later", "queue_entry_beyond_end", "index_entry_beyond_end"}


def test_without_a_later_checkpoint_a_loss_of_power_is_as_likely(tmp_path: Path) -> None:
    audited = copied(tmp_path / "store", 15, flushed=10)
    assert f"{LATER}, or its last pages were lost with the machine's power: they lead to 7" in verdict_text(audited.outcome)
    assert {f.code for f in audited.findings if f.severity == LOSS} == {"message_lost"}


def test_a_segment_that_the_copy_lacks_is_a_loss(tmp_path: Path) -> None:
    audited = copied(tmp_path / "store", 15, count=60, flushed=60)
    assert LATER in verdict_text(audited.outcome)
    assert {f.code for f in audited.findings if f.severity == LOSS} == {"segment_missing"}


def test_a_full_last_segment_before_the_queues_go_on_is_told_as_well(tmp_path: Path) -> None:
    audited = copied(tmp_path / "store", FULL, count=60, flushed=60)
    number = 60 - FULL
    assert f"{LATER}, or its last segments are gone: they lead to {number} messages" in verdict_text(audited.outcome)
    (finding,) = [f for f in audited.findings if f.code == "queues_copied_later"]
    assert (finding.file, finding.start, finding.phy_offset) == ("commitlog/00000000000000004096", None, 4096)
    assert {f.code for f in audited.findings if f.severity == LOSS} == {"segment_missing"}


def holed(
    root: Path, numbers: range, *, sizes: Sizes = SIZES, clean: bool = False, flushed: int = 60, undispatched: int = 0
) -> product.Audited:
    """A store of 60 messages in which the bytes of these are zero, up to the segment's end where the next one is in another."""
    builder = StoreBuilder("5.3.3", sizes)
    for number in range(60):
        builder.put(Message("T", number % 3, body=b"x" * 50, tags="a", keys=f"k{number}"))
    records = builder.records
    time = records[flushed - 1].store_time
    store = builder.write(root, clean=clean, spare=False, checkpoint={"physic": time, "logics": time}, undispatched=undispatched)
    start, next_at = records[numbers.start].at, records[numbers.stop].at
    base = start - start % sizes.segment
    path = root / "commitlog" / f"{base:020d}"
    data = bytearray(path.read_bytes())
    end = min(next_at - base, sizes.segment)
    data[start - base : end] = bytes(end - (start - base))
    path.write_bytes(data)
    return product.audit(root, store.release, store.broker_conf)


@pytest.mark.parametrize(
    ("flushed", "undispatched", "power"),
    [(60, 0, ""), (10, 0, ", or its machine lost power"), (10, 50, ", or its machine lost power")],
    ids=["queues of a later moment", "and nothing of the checkpoint", "queues of an earlier moment"],
)
def test_a_hole_before_later_segments_is_told_first_with_what_lay_there(
    tmp_path: Path, flushed: int, undispatched: int, power: str
) -> None:
    audited = holed(tmp_path / "store", range(15, FULL), flushed=flushed, undispatched=undispatched)
    (hole,) = [f for f in audited.findings if f.code == "segment_unwritten"]
    (live,) = [f for f in audited.findings if f.code == "live_copy"]
    lay = f"at least {FULL - 15} messages lay there"
    assert live.severity == NOTE and (live.file, live.start, live.end) == (hole.file, hole.start, hole.end)
    assert hole.message.endswith(lay) and hole.severity == LOSS
    number = hole.message.partition(" ")[0]
    zero = f"{HOLE}{power}: {number} bytes of the CommitLog are zero, although messages follow; {lay}."
    assert zero in verdict_text(audited.outcome)


def test_after_a_clean_exit_a_hole_is_damage_and_what_lay_there_is_counted_all_the_same(tmp_path: Path) -> None:
    audited = holed(tmp_path / "store", range(15, FULL), clean=True)
    assert HOLE not in verdict_text(audited.outcome) and not [f for f in audited.findings if f.code == "live_copy"]
    (hole,) = [f for f in audited.findings if f.code == "segment_unwritten"]
    assert hole.message.endswith(f"at least {FULL - 15} messages lay there")


def wide(root: Path, end: int, start: int | None = None) -> tuple[product.Audited, int]:
    """A store of 60 messages in one segment of which [start, end) is zero, from the 15th message on if not said otherwise; and
    how many messages that hits."""
    builder = StoreBuilder("5.3.3", WIDE)
    for number in range(60):
        builder.put(Message("T", number % 3, body=b"x" * 50, tags="a", keys=f"k{number}"))
    first = builder.records[15].at if start is None else start
    store = builder.write(root, clean=False, spare=False, checkpoint={"physic": 0, "logics": 0})
    damage.zero_range(root / "commitlog" / f"{0:020d}", first, end)
    hit = sum(record.at < end and record.at + record.size > first for record in builder.records)
    return product.audit(root, store.release, store.broker_conf), hit


def test_zeros_up_to_a_page_inside_a_segment_are_a_hole(tmp_path: Path) -> None:
    audited, hit = wide(tmp_path / "store", 8192)
    assert f"{HOLE}, or its machine lost power: " in verdict_text(audited.outcome)
    assert f"are zero, although messages follow; at least {hit} messages lay there." in verdict_text(audited.outcome)


@pytest.mark.parametrize(("start", "end"), [(None, 8100), (8182, 8210), (None, 8300)])
def test_zeros_that_do_not_end_with_a_page_are_damage(start: int | None, end: int, tmp_path: Path) -> None:
    audited, _ = wide(tmp_path / "store", end, start)
    assert HOLE not in verdict_text(audited.outcome) and audited.outcome.exit_code == 20
    assert not [f for f in audited.findings if f.code == "live_copy"]


def test_a_segment_that_is_zero_from_its_start_on_is_damage(tmp_path: Path) -> None:
    audited = holed(tmp_path / "store", range(FULL, 2 * FULL))
    (hole,) = [f for f in audited.findings if f.code == "segment_unwritten"]
    assert hole.start == 0 and hole.message.endswith("messages lay there")
    assert HOLE not in verdict_text(audited.outcome) and not [f for f in audited.findings if f.code == "live_copy"]


def test_what_lay_in_a_hole_is_not_counted_again_by_light_queues(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES, lmq=True)
    for _ in range(60):
        builder.put(Message("T", 0, body=b"x" * 20, lmq=("%LMQ%a",)))
    store = builder.write(tmp_path / "store", clean=False, spare=False)
    first = builder.records[5].at
    damage.zero_range(store.root / "commitlog" / f"{0:020d}", first, SIZES.segment)
    hit = sum(first <= record.at < SIZES.segment for record in builder.records)
    audited = product.audit(store.root, store.release, f"{store.broker_conf}enableLmq=true\nenableMultiDispatch=true\n")
    assert f"at least {hit} messages lay there" in verdict_text(audited.outcome)


@pytest.mark.parametrize(("clean", "torn", "kept"), [(True, 0, 15), (False, 40, 15), (False, 40, 21)])
def test_what_a_running_broker_does_not_leave_is_damage(tmp_path: Path, clean: bool, torn: int, kept: int) -> None:
    audited = copied(tmp_path / "store", kept, clean=clean, torn=torn)
    assert LATER not in verdict_text(audited.outcome) and audited.outcome.exit_code == 20


def test_a_killed_broker_s_store_is_no_live_copy(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(ALL):
        builder.put(Message("T", number % 3, body=b"x" * 50))
    store = builder.write(tmp_path / "store", clean=False, undispatched=3)
    audited = product.audit(store.root, store.release, store.broker_conf)
    assert "copied" not in verdict_text(audited.outcome)
