"""Copies of one log against each other. Expected values come from the bytes of the copies and the records as they were made."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.report.texts.comparison_words import pair_words
from schemas.replicas import FirstDifference, GroupCopy, Lacked
from schemas.rows import LOSS, NOTE, Finding
from store_io.answer.headline import judge
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base.tasks import run_task
from store_io.model.audit_request import AuditRequest
from store_io.outcome.safety import Safety, decide
from store_io.replicas.replica_groups import ReplicaGroup, replica_groups
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.answers.repaired import plan_of, repaired
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=1 << 14)


def message(number: int) -> Message:
    """One of about 300 bytes; three topics of two queues each."""
    body = bytes((number * 7 + i) % 251 for i in range(120 + number % 60))
    return Message(f"Topic{number % 3}", number % 2, body, tags=f"t{number % 5}", keys=f"k{number}", uniq=f"U{number:05}")


def builder_of(count: int, sizes: Sizes = SIZES, **more: Any) -> StoreBuilder:
    builder = StoreBuilder("5.3.3", sizes, **more)
    for number in range(count):
        builder.clock += 10
        builder.put(replace(message(number), born_time=builder.clock - 3))
    return builder


def copied(store: Store, root: Path) -> Store:
    shutil.copytree(store.root, root, dirs_exist_ok=True)
    return replace(store, root=root)


def compared(stores: Sequence[Store], **more: Any) -> tuple[ReplicaGroup, list[StoreAudit]]:
    audits = []
    for number, store in enumerate(stores):
        request = AuditRequest("abcdef"[number], StoreLocation(str(store.root)), store.release, store.broker_conf, "g", number)
        audits.append(run_audit(replace(request, **more)))
    (group,) = replica_groups(audits)
    group.finish([run_task(task) for task in group.tasks()])
    return group, audits


def told(audit: StoreAudit) -> list[Finding]:
    return [f for f in audit.outcome().found.findings if f.code.startswith("replica_")]


def log_of(store: Store) -> dict[int, bytes]:
    """The witness's view: base offset -> bytes."""
    return {int(path.name): path.read_bytes() for path in (store.root / "commitlog").iterdir()}


def bytes_at(log: dict[int, bytes], start: int, end: int) -> bytes | None:
    """None where no file holds all of it."""
    found = b""
    for base, data in sorted(log.items()):
        if base <= start + len(found) < base + len(data):
            found += data[start + len(found) - base : end - base]
    return found if len(found) == end - start else None


def holds(store: Store, records: Sequence[Record], whole: dict[int, bytes]) -> set[int]:
    """Which of the records the copy holds just as they were written."""
    log = log_of(store)
    return {r.at for r in records if bytes_at(log, r.at, r.at + r.size) == bytes_at(whole, r.at, r.at + r.size)}


def row(group: ReplicaGroup, name: str) -> GroupCopy:
    return next(copy for copy in group.result.copies if copy.store == name)


def lack(group: ReplicaGroup, store: str, holder: str) -> Lacked:
    return next((r for r in group.result.lacks if (r.store, r.holder) == (store, holder)), Lacked(store, holder))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[StoreBuilder, Store, Store]:
    builder = builder_of(200)
    first = builder.write(tmp_path / "a")
    return builder, first, copied(first, tmp_path / "b")


def test_equal_copies_differ_in_nothing_and_are_not_read_again(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    group, audits = compared([first, second])
    end = builder.records[-1].at + builder.records[-1].size
    (only,) = group.result.pairs
    assert only.relation == "equal" and only.first_difference is None
    assert (only.common_start, only.common_end, only.same_until) == (0, end, end)
    assert [(c.store, c.lacks, c.cut, c.loses) for c in group.result.copies] == [("a", 0, 0, 0), ("b", 0, 0, 0)]
    assert group.result.lacks == () and group.result.best == "a"
    assert group.tasks() == []
    assert [told(audit) for audit in audits] == [[], []] and [audit.outcome().exit_code for audit in audits] == [0, 0]


def as_masters(audits: Sequence[StoreAudit]) -> list[str]:
    """What each headline says of the copy as master; "" if it says nothing of that."""
    return [f"{headline}." if "as master" in (headline := judge(audit.outcome()).headline) else "" for audit in audits]


def test_a_verdict_says_what_a_copy_lacks(tmp_path: Path) -> None:
    whole, sizes = builder_of(200), [150, 199, 200]
    stores = [whole.write(tmp_path / "whole"), *(builder_of(n).write(tmp_path / str(n)) for n in sizes)]
    _, audits = compared(stores[:2])
    later = "Start a, which holds {}, as master: this copy is an earlier moment of it."
    assert as_masters(audits) == ["", later.format("50 later messages")]
    assert [audit.outcome().exit_code for audit in audits] == [0, 0], "a slave that is behind is normal"
    _, audits = compared(stores)
    assert as_masters(audits) == ["", later.format("50 later messages"), later.format("1 later message"), ""]


def test_a_verdict_says_what_is_scattered_over_several_copies(tmp_path: Path) -> None:
    """Each copy is damaged somewhere else: the best one is told what it lacks, too, and from whom to take it."""
    first = builder_of(200).write(tmp_path / "a")
    stores = [first, copied(first, tmp_path / "b"), copied(first, tmp_path / "c")]
    for store, numbers in zip(stores, ([10], [20, 40], [30, 50]), strict=True):
        for number in numbers:
            record = store.records[number]
            damage.invert_byte(store.segment_of(record), store.position_of(record) + 100)
    group, audits = compared(stores)
    told = as_masters(audits)
    assert group.result.best == "a" and told[0].startswith("Do not start this copy as master yet: ")
    assert "In its group, b holds 1 message that this copy lacks." in judge(audits[0].outcome()).why
    for audit, first in zip(audits[1:], told[1:], strict=True):
        assert first.startswith("Do not start this copy as master: ")
        assert "In its group, a holds 2 messages that this copy lacks." in judge(audit.outcome()).why


@pytest.mark.parametrize("kept", [1, 133])
def test_a_copy_that_is_behind_is_normal(tmp_path: Path, kept: int) -> None:
    whole = builder_of(200)
    first, second = whole.write(tmp_path / "a"), builder_of(kept).write(tmp_path / "b")
    group, audits = compared([first, second])
    (only,) = group.result.pairs
    assert only.relation == "behind" and only.same_until == whole.records[kept - 1].at + whole.records[kept - 1].size
    assert group.result.best == "a"
    assert (row(group, "a").loses, row(group, "b").loses) == (0, 200 - kept)
    missing = whole.records[kept:]
    found = lack(group, "b", "a")
    assert (found.messages, found.bytes) == (200 - kept, sum(r.size for r in missing))
    assert [(r.start, r.end, r.other_has) for r in found.ranges] == [(missing[0].at, missing[-1].at + missing[-1].size, "beyond")]
    wanted: dict[tuple[str, int], list[Record]] = {}
    for record in missing:
        wanted.setdefault((record.topic, record.queue_id), []).append(record)
    assert [
        (q.topic, q.queue_id, q.messages, q.first_queue_offset, q.last_queue_offset, q.first_store_time,
         q.last_store_time)
        for q in found.by_queue
    ] == [
        (*key, len(own), own[0].queue_offset, own[-1].queue_offset, own[0].store_time, own[-1].store_time)
        for key, own in sorted(wanted.items())
    ]  # fmt: skip
    assert lack(group, "a", "b") == Lacked("a", "b")
    assert [told(audit) for audit in audits] == [[], []] and [audit.outcome().exit_code for audit in audits] == [0, 0]


def flip(store: Store, record: Record, field: str) -> None:
    damage.flip_in(store, record, field, bit=2)


def body_of(record: Record) -> int:
    return record.at + 88


def zero(store: Store, start: int, end: int) -> None:
    """Zero a physical range."""
    for path in (store.root / "commitlog").iterdir():
        base, size = int(path.name), path.stat().st_size
        low, high = max(start, base), min(end, base + size)
        if low < high and any(path.read_bytes()[low - base : high - base]):
            damage.zero_range(path, low - base, high - base)


def test_a_damaged_body_is_named_and_the_other_copy_holds_it(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    record = builder.records[77]
    damage.invert_byte(second.segment_of(record), second.position_of(record) + 88 + 33, 0x10)
    group, (sound, damaged) = compared([first, second])
    (only,) = group.result.pairs
    assert (only.relation, only.same_until) == ("damaged", record.at + 88 + 33)
    message = record.at, record.size, "BODY", record.topic, record.queue_id, record.queue_offset
    assert only.first_difference == FirstDifference(record.at + 88 + 33, *message, "a", "b", "damaged")
    assert (row(group, "a").lacks, row(group, "b").lacks, group.result.best) == (0, 1, "a")
    assert told(sound) == [] and sound.outcome().exit_code == 0
    (finding,) = told(damaged)
    at = second.position_of(record)
    assert (finding.code, finding.severity, finding.start, finding.end) == ("replica_holds", NOTE, at, at + record.size)
    assert finding.file == f"commitlog/{second.segment_of(record).name}" and finding.phy_offset == record.at
    assert damaged.outcome().exit_code == 20  # by its own finding


@pytest.mark.parametrize("field", ["flag", "bornHost"])
def test_what_no_checksum_covers_is_disputed_by_two_copies_and_settled_by_three(
    tmp_path: Path, pair: tuple[StoreBuilder, Store, Store], field: str
) -> None:
    builder, first, second = pair
    third = copied(first, tmp_path / "c")
    record = builder.records[60]
    flip(second, record, field)
    group, audits = compared([first, second])
    (only,) = group.result.pairs
    assert only.relation == "disputed" and only.first_difference.field == field.upper()
    for audit in audits:
        (finding,) = told(audit)
        assert (finding.code, finding.severity, finding.phy_offset) == ("replica_disputes", NOTE, record.at)
        assert finding.start is not None and finding.end == finding.start + 1  # the one byte
        judged = decide(audit.outcome())
        assert judged.safety == Safety.DIVERGED and judged.lacking is not None
        assert "differ in 1 message, and nothing shows which copy is right" in judged.lacking.headline()
        assert audit.outcome().exit_code == 0  # neither can be called damaged
    assert (row(group, "a").lacks, row(group, "b").lacks) == (0, 0)
    assert (row(group, "a").disputed, row(group, "b").disputed) == (1, 1)

    group, audits = compared([first, second, third])
    severities = [[(f.code, f.severity) for f in told(audit)] for audit in audits]
    assert severities == [[], [("replica_disputes", LOSS)], []] and audits[1].outcome().exit_code == 20
    assert [a.outcome().exit_code for a in (audits[0], audits[2])] == [0, 0]
    assert [pair.relation for pair in group.result.pairs] == ["disputed", "equal", "disputed"]


def test_a_message_that_its_own_entries_contradict_is_the_damaged_one(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    record = builder.records[50]
    path, at = second.segment_of(record), second.position_of(record)
    tags = path.read_bytes().index(b"TAGS\x01", at) + 5
    damage.invert_byte(path, tags, 0x01)
    group, (sound, damaged) = compared([first, second])
    assert told(sound) == [] and sound.outcome().exit_code == 0
    (finding,) = told(damaged)
    assert (finding.severity, finding.phy_offset, finding.start, finding.end) == (LOSS, record.at, tags, tags + 1)
    assert group.result.pairs[0].first_difference.field == "PROPERTIES"


def test_a_message_torn_in_its_properties_is_blamed_by_its_form(tmp_path: Path) -> None:
    """A slave that was killed within a block: sizes and body are right, and what follows in the properties never came."""
    whole = builder_of(100)
    first = whole.write(tmp_path / "a")
    second = copied(first, tmp_path / "b")
    last = whole.records[59]
    zero(second, last.at + last.size - 9, 1 << 20)
    for path in sorted((second.root / "commitlog").iterdir()):
        if int(path.name) > last.at:
            path.unlink()
    group, (sound, torn) = compared([first, second])
    (only,) = group.result.pairs
    assert only.relation == "disputed" and only.first_difference.field == "PROPERTIES"
    assert only.same_until == last.at + last.size - 9
    assert told(sound) == [] and sound.outcome().exit_code == 0
    assert [(f.severity, f.phy_offset) for f in told(torn) if f.code == "replica_disputes"] == [(LOSS, last.at)]
    assert row(group, "b").lacks == 40 and group.result.best == "a"


@pytest.mark.parametrize("kept", [5, 50, 90, 200])
def test_a_record_torn_before_its_properties_is_merely_behind(tmp_path: Path, kept: int) -> None:
    first, second = builder_of(100).write(tmp_path / "a"), builder_of(60).write(tmp_path / "b")
    record = builder_of(61).records[60]
    torn = (first.segment_of(record)).read_bytes()[first.position_of(record) :][:kept]
    damage.overwrite(second.segment_of(record), second.position_of(record), torn)
    group, audits = compared([first, second])
    (only,) = group.result.pairs
    assert (only.relation, only.same_until, only.first_difference) == ("behind", record.at, None)
    assert row(group, "b").lacks == 40
    assert [told(audit) for audit in audits] == [[], []]


def test_a_hole_and_a_lost_segment_are_in_the_other_copy(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    zero(second, builder.records[20].at, builder.records[23].at)
    lost = sorted((second.root / "commitlog").iterdir())[2]
    base = int(lost.name)
    lost.unlink()
    inside = [r for r in builder.records if base <= r.at < base + SIZES.segment]
    group, (sound, holed) = compared([first, second])
    (only,) = group.result.pairs
    assert (only.relation, only.first_difference.message) == ("damaged", builder.records[20].at)
    assert only.same_until == builder.records[20].at + 2  # the first two bytes of its size are zero
    found = lack(group, "b", "a")
    assert found.messages == 3 + len(inside) == row(group, "b").lacks
    assert [(r.start, r.other_has, r.messages) for r in found.ranges] == [
        (builder.records[20].at, "damaged", 3), (base, "missing", len(inside)),
    ]  # fmt: skip
    assert [(f.code, f.file, f.count) for f in told(holed)] == [
        ("replica_holds", f"commitlog/{second.segment_of(builder.records[20]).name}", 3),
        ("replica_holds", f"commitlog/{base:020}", len(inside)),
    ]
    assert told(sound) == []


def test_logs_that_went_on_apart(tmp_path: Path) -> None:
    """A slave took over at message 120 while the old master had 30 more that never reached it."""
    old, new = builder_of(150), builder_of(120)
    for number in range(700, 790):
        new.clock += 11
        new.put(replace(message(number), born_time=new.clock - 2))
    first, second = old.write(tmp_path / "a"), new.write(tmp_path / "b")
    at = old.records[120].at
    assert new.records[120].at == at
    group, audits = compared([first, second])
    (only,) = group.result.pairs
    logs = log_of(first), log_of(second)
    differing = next(i for i in range(at, at + 400) if bytes_at(logs[0], i, i + 1) != bytes_at(logs[1], i, i + 1))
    assert (only.relation, only.same_until, only.first_difference.message) == ("diverged", differing, at)
    assert (row(group, "a").lacks, row(group, "b").lacks, group.result.best) == (90, 30, "b")
    for audit, count in zip(audits, (30, 90), strict=True):
        findings = told(audit)
        assert {(f.code, f.severity) for f in findings} == {("replica_diverged", NOTE)}
        assert findings[0].phy_offset == at and sum(f.count for f in findings) <= count
        assert audit.outcome().exit_code == 0  # each is sound by itself
        assert decide(audit.outcome()).safety == Safety.DIVERGED
    assert lack(group, "b", "a").messages == 30 and lack(group, "a", "b").messages == 90


def test_retention_is_no_loss(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    gone = sorted((second.root / "commitlog").iterdir())[0]
    gone.unlink()
    group, audits = compared([first, second])
    (only,) = group.result.pairs
    expired = [r for r in builder.records if r.at < SIZES.segment]
    assert (only.relation, only.common_start) == ("equal", SIZES.segment)
    assert (row(group, "b").lacks, row(group, "b").before_its_start) == (0, len(expired))
    assert [told(audit) for audit in audits] == [[], []]


def test_copies_that_have_no_range_in_common(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    files = [sorted((store.root / "commitlog").iterdir()) for store in (first, second)]
    for path in files[0][2:] + files[1][:2]:
        path.unlink()
    group, _ = compared([first, second])
    (only,) = group.result.pairs
    assert (only.relation, only.common_start, only.same_until) == ("apart", None, None)
    late = [r for r in builder.records if r.at >= 2 * SIZES.segment]
    assert row(group, "a").lacks == len(late) and row(group, "b").lacks == 0


NEITHER = "a and b are equal: neither has a message that the other lacks"


@pytest.mark.parametrize("segments", [0, 1])
def test_copies_without_a_message(pair: tuple[StoreBuilder, Store, Store], tmp_path: Path, segments: int) -> None:
    """As of a broker that has just been set up: with a segment of zeros, or none yet. Nothing is unknown about them."""
    empty = [StoreBuilder("5.3.3", SIZES).write(tmp_path / name) for name in ("c", "d")]
    for store in empty[: 2 * segments]:
        (store.root / "commitlog" / f"{0:020d}").write_bytes(bytes(SIZES.segment))
    group, _ = compared(empty)
    (only,) = group.result.pairs
    assert (only.relation, only.same_until, pair_words(only)) == ("equal", None, NEITHER)
    group, _ = compared([pair[1], empty[0]])
    (only,) = group.result.pairs
    assert (only.relation, only.same_until) == ("apart", None)
    assert pair_words(only) == "a and b have no physical offset in common"
    assert row(group, "b").lacks == len(pair[0].records) and group.result.best == "a"


def test_files_of_another_size_are_compared_by_physical_offset(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    files = sorted((second.root / "commitlog").iterdir())
    whole = b"".join(path.read_bytes() for path in files)
    for path in files:
        path.unlink()
    for base in range(0, len(whole), 2 * SIZES.segment):
        part = whole[base : base + 2 * SIZES.segment].ljust(2 * SIZES.segment, b"\0")
        (second.root / "commitlog" / f"{base:020}").write_bytes(part)
    conf = second.broker_conf.replace(f"={SIZES.segment}\n", f"={2 * SIZES.segment}\n")
    second = replace(second, broker_conf=conf)
    group, _ = compared([first, second])
    assert (row(group, "a").lacks, row(group, "b").lacks) == (0, 0)
    assert group.result.pairs[0].same_until == builder.records[-1].at + builder.records[-1].size
    damage.invert_byte(first.segment_of(builder.records[100]), first.position_of(builder.records[100]) + 90)
    group, _ = compared([first, second])
    assert (row(group, "a").lacks, row(group, "b").lacks) == (1, 0)
    assert group.result.pairs[0].same_until == builder.records[100].at + 90


def test_a_group_of_very_many_copies_is_bounded(tmp_path: Path) -> None:
    stores = [builder_of(5 + number % 3).write(tmp_path / str(number)) for number in range(18)]
    audits = [
        run_audit(AuditRequest(f"s{i}", StoreLocation(str(s.root)), s.release, s.broker_conf, "g", i))
        for i, s in enumerate(stores)
    ]
    (group,) = replica_groups(audits)
    group.finish([run_task(task) for task in group.tasks()])
    assert [copy.lacks for copy in group.result.copies] == [2 - number % 3 for number in range(16)]
    assert len(group.result.problems) == 2


def test_what_a_start_cuts_counts_against_a_copy(pair: tuple[StoreBuilder, Store, Store]) -> None:
    """Damage in the last segment: the copy lacks one message, and its start would cut all that follow."""
    builder, first, second = pair
    record = builder.records[180]
    damage.invert_byte(second.segment_of(record), second.position_of(record) + 100)
    damage.add_abort(second)
    damage.zero_checkpoint(second)
    group, _ = compared([first, second])
    found = row(group, "b")
    assert (found.lacks, found.cut, found.loses) == (1, 19, 20)
    assert group.result.best == "a" and row(group, "a").loses == 0


def test_a_segment_that_cannot_be_read_leaves_the_pair_unknown(pair: tuple[StoreBuilder, Store, Store]) -> None:
    _, first, second = pair
    path = sorted((second.root / "commitlog").iterdir())[1]
    path.unlink()
    path.symlink_to("/dev/zero")
    group, (_, second_audit) = compared([first, second])
    assert second_audit.outcome().exit_code in (3, 20) and group.result.pairs[0].relation != "equal"
    assert row(group, "b").complete is False and row(group, "b").loses is None and group.result.best == "a"


def test_a_copy_that_changes_between_the_rounds_is_incomplete(pair: tuple[StoreBuilder, Store, Store]) -> None:
    builder, first, second = pair
    damage.invert_byte(second.segment_of(builder.records[5]), second.position_of(builder.records[5]) + 100)
    audits = [
        run_audit(AuditRequest(n, StoreLocation(str(s.root)), s.release, s.broker_conf, "g", i))
        for i, (n, s) in enumerate([("a", first), ("b", second)])
    ]
    (group,) = replica_groups(audits)
    tasks = group.tasks()
    damage.cut_at(second.segment_of(builder.records[5]), 5000)
    group.finish([run_task(task) for task in tasks])
    assert group.problems and audits[1].outcome().exit_code == 20 and not audits[1].outcome().complete
    assert audits[0].outcome().complete


def disturbed(store: Store, records: Sequence[Record], rng: random.Random) -> None:
    """Damage that leaves no touched message valid: bodies changed, zeros from a body to a body, files gone."""
    for _ in range(rng.randrange(4)):
        what = rng.randrange(4)
        i = rng.randrange(len(records))
        if what == 0:
            record = records[i]
            path = store.root / "commitlog" / f"{record.at - record.at % SIZES.segment:020}"
            if path.exists():
                damage.invert_byte(path, record.at % SIZES.segment + 88 + rng.randrange(100), 1 << rng.randrange(8))
        elif what == 1:
            j = min(len(records) - 1, i + rng.randrange(60))
            zero(store, body_of(records[i]) + rng.randrange(50), body_of(records[j]) + 60 + rng.randrange(50))
        elif what == 2:
            files = sorted((store.root / "commitlog").iterdir())
            if len(files) > 1:
                rng.choice(files).unlink()
        else:
            zero(store, body_of(records[i]) + rng.randrange(100), 1 << 30)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(6, 30))])
def test_any_copies_against_a_bytewise_witness(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    counts = [rng.randrange(90, 201) for _ in range(rng.choice([2, 2, 3]))]
    whole = builder_of(max(counts))
    original = log_of(whole.write(tmp_path / "whole"))
    stores = []
    for number, count in enumerate(counts):
        store = builder_of(count).write(tmp_path / str(number))
        disturbed(store, whole.records[:count], rng)
        stores.append(store)
    group, _ = compared(stores, window_bytes=rng.choice([100, 1000, 4 << 20]), decoder=rng.choice(["fast", "reference"]))
    has = [holds(store, whole.records, original) for store in stores]
    begins = [min(log_of(store), default=0) for store in stores]
    ends = [
        max([r.at + r.size for r in whole.records if r.at in own], default=begin) for own, begin in zip(has, begins, strict=True)
    ]
    for number in range(len(stores)):
        others = set().union(*(has[other] for other in range(len(stores)) if other != number))
        lacking = {at for at in others - has[number] if at >= begins[number]}
        assert row(group, "abc"[number]).lacks == len(lacking)
        for other in range(len(stores)):
            if other != number:
                mine = {at for at in has[other] - has[number] if at >= begins[number]}
                assert lack(group, "abc"[number], "abc"[other]).messages == len(mine)
    logs = [log_of(store) for store in stores]
    for pair in group.result.pairs:
        left, right = "abc".index(pair.left), "abc".index(pair.right)
        low, high = max(begins[left], begins[right]), min(ends[left], ends[right])
        differing = []
        for r in whole.records:
            if (r.at in has[left]) != (r.at in has[right]):
                lacking_one = right if r.at in has[left] else left
                if begins[lacking_one] <= r.at < ends[lacking_one]:
                    pieces = [[bytes_at(logs[n], i, i + 1) for i in range(r.at, r.at + r.size)] for n in (left, right)]
                    differing.append(r.at + next(i for i, (a, b) in enumerate(zip(*pieces, strict=True)) if a != b))
        if low < high:
            assert pair.same_until == (min(differing) if differing else high)


@pytest.mark.parametrize("fault", ["message", "segment"])
def test_what_a_repair_has_bridged_is_no_message_that_another_copy_lacks(
    fault: str, pair: tuple[StoreBuilder, Store, Store], tmp_path: Path
) -> None:
    builder, sound, hurt = pair
    hit = [record for record in builder.records if SIZES.segment <= record.at < 2 * SIZES.segment]
    segment = hurt.root / "commitlog" / f"{SIZES.segment:020d}"
    if fault == "message":
        hit = hit[3:4]
        damage.zero_range(segment, hit[0].at - SIZES.segment, hit[0].at - SIZES.segment + 200)
    else:
        segment.unlink()
    plan = plan_of(hurt.root, hurt.release, hurt.broker_conf)
    assert repaired(hurt.root, tmp_path / "new", plan, "salvage").exit_code == 0
    new = replace(hurt, root=tmp_path / "new")
    group, audits = compared([hurt, new])
    assert [f.code for f in audits[1].findings].count("commitlog_bridged") >= 1
    assert (row(group, "a").lacks, row(group, "b").lacks) == (0, 0) and group.result.lacks == ()
    assert [told(audit) for audit in audits] == [[], []]
    group, audits = compared([sound, new])
    assert (row(group, "a").lacks, row(group, "b").lacks) == (0, len(hit))
    assert group.result.pairs[0].relation == "damaged", "not diverged: the bridge is no message of another log"
    assert {part.other_has for part in lack(group, "b", "a").ranges} <= {"damaged", "filler"}
