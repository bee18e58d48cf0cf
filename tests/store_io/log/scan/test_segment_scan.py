"""A segment's scan: any bytes, damage by damage, runs against a plain walk, cuts, marks, and the reput walk."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import (
    EXTENT_DAMAGED,
    EXTENT_FILLER,
    EXTENT_MESSAGE,
    EXTENT_UNWRITTEN,
    LOSS,
    RUN_LMQ,
    RUN_UNQUEUED,
    WALK_AUDIT,
    WALK_BOTH,
    WALK_BROKER,
    Cuts,
    SegmentSummary,
)
from store_io.broker.message_verdict import END, HALF, REPUT, VALID, BufferFrames, check_frame
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.log.scan.segment_scan import PartialWalk, SegmentTask, scan_segment
from store_io.source.byte_source import StoreLocation
from store_io.source.piece_digest import PieceDigest
from tests.support.stores import strategies
from tests.support.stores.builders import BLANK, PREPARED, ROLLBACK, Message, Record, Sizes, StoreBuilder, encode, field_position
from tests.support.stores.dledger_stores import FOLDER, LedgerBuilder

SEGMENT = "commitlog/00000000000000004096"
BASE = 4096
STORE_TIME = 1_700_000_000_000


class MemoryFile:
    """One file's bytes."""

    def __init__(self, path: str, data: bytes):
        self.path, self.size, self._data = path, len(data), data

    def read_into(self, position: int, buffer: Any) -> int:
        part = self._data[position : position + len(buffer)]
        memoryview(buffer)[: len(part)] = part
        return len(part)

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]

    def next_data(self, position: int) -> int:
        return position

    def close(self) -> None: ...

    def __enter__(self) -> MemoryFile:
        return self

    def __exit__(self, *error: object) -> None: ...


class MemorySource:
    """A store in memory: path -> bytes. Read as files of this machine are."""

    local = True

    def __init__(self, files: dict[str, bytes]):
        self.files = files

    def open(self, path: str) -> MemoryFile:
        return MemoryFile(path, self.files[path])


def scan(data: bytes, rules: BrokerRules | None = None, base: int = BASE, **more: Any) -> SegmentSummary:
    """The summary of one segment in memory."""
    task = SegmentTask(0, SEGMENT, base, len(data), StoreLocation("memory"), rules or broker_rules(), log_end=base + len(data))
    return scan_segment(replace(task, **more), MemorySource({SEGMENT: data}))  # type: ignore[arg-type]


def told(summary: SegmentSummary) -> dict[str, Any]:
    """All that a summary says, comparable, without how many reads it took."""
    fields = dict(vars(summary))
    del fields["bytes_read"]
    fields["runs"] = [tuple(r) for r in summary.runs.tolist()]
    fields["index_runs"] = [tuple(r) for r in summary.index_runs.tolist()]
    return fields


def segment(
    messages: Iterable[Message], size: int = 4096, base: int = BASE, release: str = "5.3.3"
) -> tuple[bytearray, list[Record]]:
    """A segment that holds these messages, and an unwritten tail."""
    builder = StoreBuilder(release, Sizes(segment=size), first_offset=base, lmq=True)
    records = [builder.put(m) for m in messages]
    return builder.segments[base], records


def position(record: Record, name: str = "size", base: int = BASE) -> int:
    return record.at - base + field_position(record, name)[0]


FIVE = [Message(body=b"x" * 40 + bytes([i]), keys=f"k{i}", tags="t") for i in range(5)]


# ---- any bytes -------------------------------------------------------------------------------------------------------


@st.composite
def any_segments(draw: st.DrawFn) -> tuple[bytes, int]:
    """A segment of a store, changed in some places, or pieces of everything after one another."""
    builder = draw(strategies.store_builders())
    if not builder.segments or draw(st.booleans()):
        pieces = [
            encode(r) if keep else encode(replace(r, phy_offset=r.at + 1))
            for r, keep in zip(builder.records, draw(st.lists(st.booleans(), min_size=20, max_size=20)), strict=False)
        ]
        pieces += draw(
            st.lists(st.binary(max_size=30) | st.integers(0, 40).map(bytes) | st.just(struct.pack(">iI", 8, BLANK)), max_size=6)
        )
        return b"".join(draw(st.permutations(pieces))), 0
    base = draw(st.sampled_from(sorted(builder.segments)))
    data = bytes(builder.segments[base])
    for mutation in draw(st.lists(strategies.mutations, max_size=4)):
        data = mutation.apply(data)
    return data, base


@given(
    any_segments(),
    st.sampled_from(["4.8.0", "4.9.8", "5.0.0", "5.1.4", "5.3.3", "5.5.0", "5.5.1"]),
    st.sampled_from([{}, {"checkCRCOnRecover": False}, {"duplicationEnable": True}, {"forceVerifyPropCRC": True}]),
    st.booleans(),
    st.integers(16, 9000),
    st.integers(0, 200),
)
@settings(max_examples=50, deadline=None)
def test_any_bytes_give_extents_that_tile_and_the_same_answer_whatever_the_window_and_decoder(
    made: tuple[bytes, int], release: str, flags: dict[str, bool], unclean: bool, window: int, broker_from: int
) -> None:
    data, base = made
    rules = broker_rules(release, {k: Setting(v, "broker.conf") for k, v in flags.items()})
    more = {"base": base, "unclean": unclean, "broker_from": 0 if broker_from > 100 else broker_from}
    whole = scan(data, rules, **more)
    assert whole.problem is None
    ends = [0, *(e.end for e in whole.extents)]
    assert [e.start for e in whole.extents] == ends[:-1]
    assert ends[-1] == len(data)
    assert all(e.start < e.end for e in whole.extents)
    for finding in whole.findings:
        assert 0 <= finding.start < finding.end <= len(data), finding  # type: ignore[operator]
    for other in ({"window_bytes": window}, {"window_bytes": 64}, {"decoder": "reference"}):
        assert told(scan(data, rules, **more, **other)) == told(whole), other


def plain_walk(data: bytes, base: int, rules: BrokerRules, start: int = 0) -> tuple[list[Any], str, int]:
    """The broker's walk, one frame after the other: (messages, kind of the stop, its position)."""
    frames, at, messages = BufferFrames(data), start, []
    while True:
        verdict = check_frame(frames, at, len(data), rules)
        if verdict.kind != VALID:
            return messages, {END: "end", HALF: "half"}.get(verdict.kind, "bad"), at
        messages.append(verdict.message)
        at += verdict.size


def unfolded(summary: SegmentSummary, walk: int) -> dict[tuple[str, int, int], list[tuple[int, ...]]]:
    """Per queue and kind, the runs of a walk as tuples."""
    found: dict[tuple[str, int, int], list[tuple[int, ...]]] = defaultdict(list)
    for run in summary.runs:
        if run["walk"] & walk and run["kind"] != RUN_LMQ:
            topic, queue_id = summary.queues[run["queue"]]
            found[topic, queue_id, int(run["kind"])].append(run)
    return found


@given(
    any_segments(),
    st.sampled_from(["4.8.0", "5.0.0", "5.1.4", "5.3.3"]),
    st.sampled_from([{}, {"checkCRCOnRecover": False}, {"duplicationEnable": True}]),
)
@settings(max_examples=40, deadline=None)
def test_the_brokers_runs_hold_exactly_what_a_plain_walk_meets(
    made: tuple[bytes, int], release: str, flags: dict[str, bool]
) -> None:
    data, base = made
    rules = broker_rules(release, {k: Setting(v, "broker.conf") for k, v in flags.items()})
    messages, kind, at = plain_walk(data, base, rules)
    summary = scan(data, rules, base)
    assert (summary.broker.kind, summary.broker.position) == (kind, at)
    expected = defaultdict(list)
    for m in messages:
        expected[m.topic, m.queue_id, 0 if m.in_queue else RUN_UNQUEUED].append(m)
    runs = unfolded(summary, WALK_BROKER)
    assert set(runs) == set(expected)
    for key, of_queue in runs.items():
        left = expected[key]
        for run in of_queue:
            part, left = left[: run["records"]], left[run["records"] :]
            assert len(part) == run["records"] == run["messages"]
            assert (part[0].queue_offset, part[0].position, part[0].phy_offset, part[0].total_size, part[0].store_time) == (
                run["queue_offset"], run["first_position"], run["first_phy_offset"], run["first_size"], run["first_store_time"],
            )  # fmt: skip
            assert (part[-1].phy_offset, part[-1].total_size, part[-1].store_time) == (
                run["last_phy_offset"], run["last_size"], run["last_store_time"],
            )  # fmt: skip
            assert sum(m.total_size for m in part) == run["bytes"]
            if len(part) > 1:
                assert run["regular"] == 1
                assert all(m.phy_offset == base + m.position for m in part)
                if key[2] != RUN_UNQUEUED:
                    assert [m.queue_offset for m in part] == list(range(part[0].queue_offset, part[0].queue_offset + len(part)))
        assert not left
    assert sum(r["records"] for r in summary.index_runs if r["walk"] & WALK_BROKER) == len(messages)


def walks(summary: SegmentSummary) -> list[tuple[int, int]]:
    """Walk and number of messages, run by run."""
    return [(int(run["walk"]), int(run["records"])) for run in summary.runs]


def test_the_brokers_walk_joins_at_the_last_message_of_a_batch_and_not_behind_it() -> None:
    data, records = segment(FIVE)
    assert walks(scan(bytes(data), broker_from=records[4].at - BASE)) == [(WALK_AUDIT, 4), (WALK_BOTH, 1)]
    behind = scan(bytes(data), broker_from=records[4].at - BASE + records[4].size)
    assert walks(behind) == [(WALK_AUDIT, 5)] and behind.broker.position == records[4].at - BASE + records[4].size


def test_the_brokers_walk_begins_at_the_header_of_a_dledger_entry() -> None:
    builder = LedgerBuilder()
    *_, last = [builder.put(message) for message in FIVE]
    (data,) = builder.files.values()
    path, rules = f"{FOLDER}/data/{0:020d}", broker_rules("5.3.3", {"enableDLegerCommitLog": Setting(True, "broker.conf")})
    task = SegmentTask(0, path, 0, len(data), StoreLocation("memory"), rules, broker_from=last.at)
    summary = scan_segment(task, MemorySource({path: bytes(data)}))  # type: ignore[arg-type]
    assert walks(summary) == [(WALK_AUDIT, 4), (WALK_BOTH, 1)] and summary.findings == []


# ---- cuts, marks, reput ----------------------------------------------------------------------------------------------


@given(any_segments(), st.lists(st.integers(0, 9000), max_size=5), st.lists(st.integers(0, 12), max_size=3))
@settings(max_examples=60, deadline=None)
def test_cuts_split_runs_where_they_say_and_change_no_total(
    made: tuple[bytes, int], thresholds: list[int], numbers: list[int]
) -> None:
    data, base = made
    whole = scan(data, base=base)
    keys = whole.queues
    cuts = Cuts(
        tuple(base + t for t in thresholds[:3]),
        {keys[0]: tuple(base + t for t in thresholds[3:])} if keys else {},
        {key: tuple(numbers) for key in keys[:2]},
    )
    split = scan(data, base=base, cuts=cuts)
    for field in ("runs", "index_runs"):
        for name in {"records", "messages", "bytes", "keys"} & set(getattr(whole, field).dtype.names):
            assert getattr(whole, field)[name].sum() == getattr(split, field)[name].sum()
    for run in split.runs:
        key = keys[run["queue"]]
        for t in (*cuts.phy_offsets, *cuts.by_queue.get(key, ())):
            first_end, last_end = run["first_phy_offset"] + run["first_size"], run["last_phy_offset"] + run["last_size"]
            assert (run["first_phy_offset"] > t) == (run["last_phy_offset"] > t)
            assert (run["first_phy_offset"] >= t) == (run["last_phy_offset"] >= t)
            assert (first_end > t) == (last_end > t)
        for q in cuts.queue_offsets.get(key, ()):
            if run["kind"] != RUN_UNQUEUED:
                assert not run["queue_offset"] < q < run["queue_offset"] + run["messages"]
    for run in split.index_runs:
        for t in cuts.phy_offsets:
            assert (run["first_phy_offset"] >= t) == (run["last_phy_offset"] >= t)
            assert (run["first_end"] > t) == (run["last_end"] > t)


@given(strategies.store_builders(), st.sampled_from(["5.3.3", "5.4.0"]), st.integers(100, 5000))
@settings(max_examples=30, deadline=None)
def test_a_mark_names_the_message_that_puts_the_key(builder: StoreBuilder, release: str, window: int) -> None:
    for base, data in builder.segments.items():
        rules = broker_rules(release)
        whole = scan(bytes(data), rules, base)
        owners = []
        for r in strategies.record_list(builder, base):
            p = r.properties
            keys = ("UNIQ_KEY" in p) + len([k for k in p.get("KEYS", "").split(" ") if k]) + (rules.tag_index and "TAGS" in p)
            owners += [(r.phy_offset, r.store_time)] * (0 if r.transaction == ROLLBACK else keys)
        assert len(whole.index_runs) == 1
        assert whole.index_runs[0]["keys"] == len(owners)
        marks = tuple((0, k) for k in range(1, len(owners) + 1))
        answers = scan(bytes(data), rules, base, index_marks=marks, window_bytes=window).index_marks
        assert answers == {(0, k): owner for k, owner in enumerate(owners, 1)}


def plain_reput(data: bytes, base: int, rules: BrokerRules, start: int, limit: int) -> tuple[list[int], int]:
    """doReputMessage over one buffer: (positions of what is dispatched, next physical offset)."""
    frames, at, pos, read, whole, found = BufferFrames(data), start, start, 0, limit - start, []
    while read < whole:
        verdict = check_frame(frames, pos, limit, replace(rules, dup_info=False), REPUT)
        if verdict.kind == VALID:
            found.append(pos)
            at, read, pos = at + verdict.size, read + verdict.size, pos + verdict.size
        elif verdict.kind == END:
            return found, base + len(data)
        elif verdict.kind == HALF:
            at, pos = at + verdict.size, verdict.parsed_to
        else:
            return found, base + at + whole - read
    return found, base + at


@given(any_segments(), st.integers(0, 20), st.floats(0.3, 1), st.integers(16, 5000))
@settings(max_examples=40, deadline=None)
def test_the_reput_walk_is_doReputMessage(made: tuple[bytes, int], first: int, share: float, window: int) -> None:
    data, base = made
    rules = broker_rules("4.9.8")
    starts = [m.position for m in plain_walk(data, base, rules)[0]] or [0]
    start, limit = starts[min(first, len(starts) - 1)], int(len(data) * share)
    if limit < start:
        return
    found, end = plain_reput(data, base, rules, start, limit)
    summary = scan(data, rules, base, only=PartialWalk("reput", start, limit), window_bytes=window)
    assert (summary.broker.kind, summary.broker.position) == ("next", end)
    assert summary.runs["records"].sum() == len(found)
    assert set(summary.runs["first_position"]) <= set(found)
    assert (summary.runs["walk"] == WALK_BROKER).all()


# ---- damage, one by one ------------------------------------------------------------------------------------------------


def kinds(summary: SegmentSummary) -> list[tuple[str, int, int]]:
    return [(e.kind, e.start, e.end) for e in summary.extents]


def codes(summary: SegmentSummary) -> list[tuple[str, int | None, int | None]]:
    return [(f.code, f.start, f.end) for f in summary.findings]


def test_a_healthy_segment_has_no_finding() -> None:
    data, records = segment(FIVE)
    end = records[-1].at + records[-1].size - BASE
    summary = scan(bytes(data))
    assert kinds(summary) == [(EXTENT_MESSAGE, 0, end), (EXTENT_UNWRITTEN, end, 4096)]
    assert summary.extents[0].message_count == 5
    assert codes(summary) == []
    assert (summary.broker.kind, summary.broker.position, summary.broker.reason) == ("bad", end, "unwritten")
    assert (summary.first_store_time, summary.last_store_time) == (STORE_TIME, STORE_TIME + 28)


@pytest.mark.parametrize(
    ("field", "code", "low", "high"),
    [
        ("body", "commitlog_damaged", "bodyCRC", "topicLength"),
        ("bodyCRC", "commitlog_damaged", "bodyCRC", "topicLength"),
        ("physOffset", "commitlog_foreign", "physOffset", "sysFlag"),
        ("magic", "commitlog_damaged", "size", "end"),
        ("size", "commitlog_damaged", "size", "end"),
        ("propsLength", "commitlog_damaged", "size", "end"),
        ("topicLength", "commitlog_damaged", "size", "end"),
    ],
)
@pytest.mark.parametrize("which", [0, 2, 4])
def test_one_flipped_bit_costs_one_message(field: str, code: str, low: str, high: str, which: int) -> None:
    data, records = segment(FIVE)
    record = records[which]
    start, end = position(record), position(record) + record.size
    data[position(record, field) + field_position(record, field)[1] - 1] ^= 0x04
    summary = scan(bytes(data))
    bounds = [start if name == "size" else end if name == "end" else position(record, name) for name in (low, high)]
    assert codes(summary) == [(code, *bounds)]
    assert (EXTENT_DAMAGED, start, end) in kinds(summary)
    assert sum(e.message_count for e in summary.extents) == 4
    assert [e.plausible for e in summary.extents if e.kind == EXTENT_MESSAGE] == ([False] if which else []) + (
        [True] if which < 4 else []
    )
    assert summary.runs[summary.runs["plausible"] == 1]["records"].sum() == 4 - which


def test_a_hole_over_several_messages_is_two_findings_and_the_rest_is_found() -> None:
    data, records = segment(FIVE)
    start, end = position(records[1], "bodyCRC"), position(records[3], "body")
    data[start:end] = bytes(end - start)
    summary = scan(bytes(data))
    hole = position(records[1])
    assert codes(summary) == [("commitlog_damaged", hole, hole + 8), ("commitlog_damaged", hole + 8, position(records[4]))]
    assert kinds(summary)[1:3] == [
        (EXTENT_DAMAGED, hole, position(records[4])),
        (EXTENT_MESSAGE, position(records[4]), position(records[4]) + records[4].size),
    ]


def test_a_message_between_two_damaged_ones_is_found() -> None:
    data, records = segment(FIVE)
    for record in (records[1], records[3]):
        data[position(record, "body")] ^= 1
    summary = scan(bytes(data))
    assert [e.message_count for e in summary.extents if e.kind == EXTENT_MESSAGE] == [1, 1, 1]


def test_a_fake_message_inside_a_body_is_never_counted() -> None:
    _, records = segment([Message(body=b"y" * 30)])
    inner = replace(records[0], at=BASE + records[0].size + 88 + 10, phy_offset=BASE + records[0].size + 88 + 10)
    builder = StoreBuilder(sizes=Sizes(segment=4096), first_offset=BASE)
    builder.put(Message(body=b"y" * 30))
    outer = builder.put(Message(body=b"z" * 10 + encode(inner) + b"z" * 10))
    builder.put(Message(body=b"last"))
    summary = scan(bytes(builder.segments[BASE]))
    assert [e.message_count for e in summary.extents] == [3, 0]
    assert outer.size > inner.size


@pytest.mark.parametrize("kept", [4, 20, 60, 110])
@pytest.mark.parametrize("unclean", [True, False])
def test_a_torn_last_message(kept: int, unclean: bool) -> None:
    data, records = segment(FIVE)
    start, end = position(records[4]), position(records[4]) + records[4].size
    data[start + kept : end] = bytes(end - start - kept)
    written = len(bytes(data).rstrip(b"\0"))
    summary = scan(bytes(data), unclean=unclean)
    assert codes(summary) == [("commitlog_torn_tail", start, max(written, start + 8))]
    assert summary.findings[0].severity == ("" if unclean else LOSS)
    assert kinds(summary)[-1] == (EXTENT_UNWRITTEN, max(written, start + 8), 4096)


def test_a_message_torn_in_its_properties_passes_every_checksum() -> None:
    data, records = segment(FIVE)
    end = position(records[4]) + records[4].size
    data[end - 10 : end] = bytes(10)
    summary = scan(bytes(data))
    assert codes(summary) == [("properties_malformed", position(records[4], "props"), end)]
    assert summary.broker.position == end


def filled(change: bytes | None = None, behind: bytes = b"") -> tuple[bytes, int]:
    """A segment closed by a filler; (bytes, where the filler stands)."""
    data, records = segment(FIVE)
    at = records[-1].at + records[-1].size - BASE
    data[at : at + 8] = struct.pack(">iI", 4096 - at, BLANK) if change is None else change
    data[at + 8 : at + 8 + len(behind)] = behind
    return bytes(data), at


def test_a_filler_ends_the_segment() -> None:
    data, at = filled()
    summary = scan(data)
    assert kinds(summary)[-1] == (EXTENT_FILLER, at, 4096)
    assert codes(summary) == []
    assert (summary.broker.kind, summary.broker.position, summary.broker.reason) == ("end", at, "filler")


@pytest.mark.parametrize(
    ("change", "behind", "expected"),
    [
        (None, b"stale", [("filler_not_zero", 8, None)]),
        (struct.pack(">iI", 70_000, BLANK), b"", [("filler_wrong_size", 0, 8)]),
        (struct.pack(">iI", 20, BLANK), b"", [("filler_wrong_size", 0, 8)]),
    ],
)
def test_fillers_that_are_not_right(change: bytes | None, behind: bytes, expected: list[tuple[str, int, int | None]]) -> None:
    data, at = filled(change, behind)
    summary = scan(data)
    assert codes(summary) == [(c, at + low, 4096 if high is None else at + high) for c, low, high in expected]
    assert kinds(summary)[-1] == (EXTENT_FILLER, at, 4096)


def test_a_filler_with_a_wrong_magic_is_known_by_its_size() -> None:
    data, at = filled(struct.pack(">iI", 4096 - filled()[1], BLANK ^ 0x10))
    summary = scan(data)
    assert codes(summary) == [("commitlog_damaged", at, at + 8)]
    assert kinds(summary)[-2:] == [(EXTENT_DAMAGED, at, at + 8), (EXTENT_FILLER, at + 8, 4096)]


def test_messages_hidden_by_a_filler_are_found() -> None:
    data, records = segment(FIVE)
    at = position(records[2])
    data[at : at + 8] = struct.pack(">iI", 4096 - at, BLANK)
    summary = scan(bytes(data))
    assert codes(summary) == [("filler_hides_messages", at, at + 8)]
    assert summary.broker.kind == "end"
    assert sum(e.message_count for e in summary.extents) == 4


def test_another_segment_s_old_bytes_behind_a_filler_hide_nothing() -> None:
    """As a transient pool leaves them: the buffer of a segment, written again from its start, keeps its end, filler and all."""
    before, _ = segment(FIVE * 8, base=0)
    old_end = before.index(struct.pack(">I", BLANK)) - 4
    data, at = filled()
    assert at < old_end - 200
    data = data[: at + 8] + bytes(before[at + 8 :])
    summary = scan(data)
    assert codes(summary) == [("filler_not_zero", at + 8, 4096)]
    assert kinds(summary)[-1] == (EXTENT_FILLER, at, 4096)


def test_a_filler_over_the_last_message_s_first_bytes_hides_it() -> None:
    data, _ = filled()
    last = position(segment(FIVE)[1][-1])
    data = data[:last] + struct.pack(">iI", 4096 - last, BLANK) + data[last + 8 :]
    assert codes(scan(data)) == [("filler_hides_messages", last, last + 8)]


def test_stray_messages_behind_the_end() -> None:
    data, records = segment(FIVE)
    end = records[-1].at + records[-1].size - BASE
    stale = b"".join(encode(r) for r in records[:3])
    data[end : end + len(stale)] = stale
    summary = scan(bytes(data), broker_rules("5.5.0"))
    assert [(f.code, f.start, f.end, f.count) for f in summary.findings] == [("commitlog_foreign", end, end + len(stale), 3)]
    assert summary.runs[summary.runs["walk"] == WALK_BROKER]["records"].tolist() == [1, 1, 1]
    assert summary.runs[summary.runs["walk"] == WALK_BROKER]["regular"].tolist() == [0, 0, 0]
    assert summary.broker.position == end + len(stale)
    checked = broker_rules("5.5.0", {"checkCommitLogOffsetOnRecover": Setting(True, "broker.conf")})
    assert scan(bytes(data), checked, unclean=True).broker.reason == "unwritten"  # these are inside of the file's range
    data[end + 28 : end + 36] = struct.pack(">q", BASE - 1)
    stopped = scan(bytes(data), checked, unclean=True)
    assert (stopped.broker.kind, stopped.broker.position, stopped.broker.reason) == ("bad", end, "outside_file")
    assert scan(bytes(data), checked, unclean=False).broker.reason == "unwritten"


def test_a_whole_file_under_a_wrong_name() -> None:
    data, records = segment(FIVE)
    summary = scan(bytes(data), base=BASE * 2)
    end = records[-1].at + records[-1].size - BASE
    assert [(f.code, f.start, f.end, f.count) for f in summary.findings] == [("commitlog_foreign", 0, end, 5)]
    assert summary.runs["records"].sum() == 5  # the broker takes them


def test_bytes_behind_zeros_are_damage() -> None:
    data, records = segment(FIVE)
    end = records[-1].at + records[-1].size - BASE
    data[3000:3010] = b"0123456789"
    summary = scan(bytes(data))
    assert codes(summary) == [("commitlog_damaged", end, 3010)]
    assert kinds(summary)[1:] == [(EXTENT_DAMAGED, end, 3010), (EXTENT_UNWRITTEN, 3010, 4096)]


def test_a_v2_message_stops_a_release_that_does_not_know_it() -> None:
    data, records = segment([FIVE[0], Message(topic="T" * 200), FIVE[1]])
    summary = scan(bytes(data), broker_rules("5.0.0"))
    assert (summary.broker.position, summary.broker.reason) == (position(records[1]), "magic")
    assert codes(summary) == []
    assert summary.runs["walk"].tolist() == [WALK_AUDIT | WALK_BROKER, WALK_AUDIT, WALK_AUDIT]


def test_a_prepared_message_is_in_no_queue_and_a_rollback_puts_no_key() -> None:
    data, _ = segment([replace(FIVE[0], sys_flag=PREPARED), replace(FIVE[1], sys_flag=ROLLBACK), FIVE[2]])
    summary = scan(bytes(data), broker_rules("5.3.3"))
    assert [(int(r["kind"]), int(r["records"])) for r in summary.runs] == [(RUN_UNQUEUED, 2), (0, 1)]
    assert summary.index_runs["keys"].tolist() == [2]
    assert summary.index_runs["records"].tolist() == [3]


def test_an_lmq_offset_that_is_no_number() -> None:
    bad = Message(properties=(("INNER_MULTI_DISPATCH", "%LMQ%a,%LMQ%b"), ("INNER_MULTI_QUEUE_OFFSET", "0,x")))
    data, records = segment([FIVE[0], bad])
    summary = scan(bytes(data))
    assert summary.lmq_faults == [(records[1].phy_offset, "x")]
    assert [f.code for f in summary.findings] == ["properties_malformed"]


def test_the_first_record_is_read_at_fixed_places_whatever_it_is() -> None:
    data, records = segment(FIVE)
    first = scan(bytes(data)).first
    assert (first.check_ok, first.blank, first.store_time, first.phy_offset) == (True, False, STORE_TIME, BASE)
    assert first.total_size == records[0].size
    data[position(records[0], "body")] ^= 1
    first = scan(bytes(data)).first
    assert (first.check_ok, first.store_time) == (False, STORE_TIME)
    blank = scan(struct.pack(">iI", 100, BLANK).ljust(100, b"\0")).first
    assert (blank.check_ok, blank.blank) == (True, True)
    assert scan(b"").first.total_size == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_digest_is_that_of_the_bytes_whatever_is_decoded(seed: int) -> None:
    """Long bodies give it the checksums that were taken of them."""
    random = Random(seed)
    sizes = [random.choice([1, 300, 4_095, 4_096, 5_000, 30_000, 200_000]) for _ in range(40)]
    data, records = segment([Message(body=random.randbytes(size), keys=f"k{n}") for n, size in enumerate(sizes)], 1 << 22, 0)
    for _ in range(seed):
        record = random.choice([record for record in records if record.at < 1 << 22])
        place = position(record, random.choice(["body", "size", "topic"]), 0) + random.randrange(4)
        data[place : place + random.choice([1, 60_000])] = random.randbytes(1)
        data = data.ljust(1 << 22, b"\0")
    plain = PieceDigest()
    plain.feed(np.frombuffer(bytes(data), np.uint8))
    for window in (5_000, 50_000, 300_000, 1 << 22):
        assert scan(bytes(data), base=0, window_bytes=window).digest == plain.text()


def test_a_file_that_changed_is_a_problem_and_nothing_else() -> None:
    data, _ = segment(FIVE)
    summary = scan(bytes(data), size=4000)
    assert summary.problem
    assert summary.extents == []
    assert len(summary.runs) == 0


def test_a_sparse_file_is_the_same_as_a_dense_one(tmp_path: Path) -> None:
    data, records = segment(FIVE, 3 << 20, 0)
    end = records[-1].at + records[-1].size
    data[2 << 20 : (2 << 20) + 5] = b"later"
    (tmp_path / "commitlog").mkdir()
    path = tmp_path / SEGMENT
    with open(path, "wb") as file:
        file.write(data[:end])
        file.seek(2 << 20)
        file.write(b"later")
        file.truncate(len(data))
    task = SegmentTask(0, SEGMENT, 0, len(data), StoreLocation(str(tmp_path)), broker_rules(), log_end=len(data))
    for window in (1 << 16, 1 << 22):
        sparse = scan_segment(replace(task, window_bytes=window))
        assert told(sparse) == told(scan(bytes(data), base=0))


@pytest.mark.parametrize("damaged", [False, True])
def test_holes_of_a_huge_sparse_segment_are_not_read(tmp_path: Path, damaged: bool) -> None:
    size, far = 4 << 40, (3 << 40) + 5
    (tmp_path / "commitlog").mkdir()
    with open(tmp_path / SEGMENT, "wb") as file:
        data, records = segment(FIVE, base=0)
        end = records[-1].at + records[-1].size
        if damaged:
            data[position(records[-1], base=0) + 88] ^= 1
        file.write(data[:end] + struct.pack(">iI", 8, BLANK))
        file.seek(far)
        file.write(encode(replace(records[0], phy_offset=far)))
        file.truncate(size)
    task = SegmentTask(0, SEGMENT, 0, size, StoreLocation(str(tmp_path)), broker_rules(), log_end=size)
    summary = scan_segment(task)
    assert ("commitlog_damaged" if damaged else "filler_hides_messages") in {f.code for f in summary.findings}
    assert (far, 1) in {(e.start, e.message_count) for e in summary.extents}
    assert summary.extents[-1].end == size
    assert summary.bytes_read < 1 << 27
