"""Walks by other rules on the back of one scan, against a scan of each."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import WALK_BROKER, WALK_PART, Cuts, SegmentSummary
from store_io.broker.releases import KNOWN_RELEASES, BrokerRules, Setting, broker_rules
from store_io.log.scan.other_walks import MOST_OTHERS, WalkRules, by_other_rules, by_own_rules
from tests.store_io.log.scan.test_segment_scan import any_segments, scan
from tests.support.stores.builders import Message, StoreBuilder

FLAGS: list[dict[str, bool]] = [{}, {"checkCRCOnRecover": False}, {"duplicationEnable": True}, {"forceVerifyPropCRC": True}]


def rules_of(release: str, flags: dict[str, bool] | None = None) -> BrokerRules:
    return broker_rules(release, {key: Setting(value, "broker.conf") for key, value in (flags or {}).items()})


def distinct(own: BrokerRules) -> list[BrokerRules]:
    """One of each set of rules that a scan tells apart, other than its own."""
    found = {WalkRules.of(own, False): own}
    for release in KNOWN_RELEASES:
        for flags in FLAGS:
            rules = rules_of(release, flags)
            found.setdefault(WalkRules.of(rules, False), rules)
    return list(found.values())[1:]


def told(summary: SegmentSummary) -> tuple[Any, ...]:
    """What a fold takes from a summary, wherever its runs are split: the same for equal walks."""
    records: Counter[tuple[int, ...]] = Counter()
    for run in summary.runs:
        key = (int(run["walk"]), int(run["kind"]), int(run["match"]), int(run["plausible"]), *summary.queues[run["queue"]])
        records[*key, "records"] += int(run["records"])  # type: ignore[index]
        records[*key, "messages"] += int(run["messages"])  # type: ignore[index]
        records[*key, "bytes"] += int(run["bytes"])  # type: ignore[index]
        records[*key, "places"] ^= int(run["first_phy_offset"]) if run["records"] == 1 else 0  # type: ignore[index]
    records = Counter({key: count for key, count in records.items() if key[-1] != "places"})
    return summary.first, summary.broker, summary.extents, summary.findings, summary.lmq_faults, records


@given(any_segments(), st.sampled_from(["4.8.0", "5.1.4", "5.5.0", "5.5.1"]), st.integers(300, 9000))
@settings(max_examples=10, deadline=None)
def test_a_followed_walk_is_that_of_a_scan_by_its_own_rules(made: tuple[bytes, int], release: str, window: int) -> None:
    data, base = made
    own = rules_of(release)
    others = distinct(own)
    assert len(others) < MOST_OTHERS
    together = scan(data, own, base, others=tuple(others), window_bytes=window)
    alone = scan(data, own, base, window_bytes=window)
    assert told(by_own_rules(together)) == told(alone)
    assert by_own_rules(together).index_runs.tolist() == alone.index_runs.tolist()
    for number, rules in enumerate(others):
        followed = by_other_rules(together, number)
        if followed is not None:
            assert told(followed) == told(scan(data, rules, base, window_bytes=window))


def segment(*messages: Message) -> bytes:
    builder = StoreBuilder()
    for message in messages:
        builder.put(message)
    return bytes(next(iter(builder.segments.values())))


def test_walks_leave_one_after_another_and_say_where() -> None:
    plain, second = Message(body=b"x" * 20, keys="k"), Message(topic="T" * 200, body=b"y", keys="k")
    data = segment(plain, plain, second, plain)
    own, old, careful = rules_of("5.5.0"), rules_of("5.0.0"), rules_of("5.5.0", {"duplicationEnable": True})
    summary = scan(data, own, 0, others=(old, careful))
    first, last = (by_other_rules(summary, number) for number in (0, 1))
    assert first is not None and last is not None
    assert (first.broker.reason, last.broker.reason, last.broker.position) == ("magic", "dup_info", 0)
    records = [int(s.runs["records"][s.runs["walk"] & WALK_BROKER != 0].sum()) for s in (by_own_rules(summary), first, last)]
    assert records == [4, 2, 0]
    assert summary.runs["walk"].max() >= WALK_PART and by_own_rules(summary).runs["walk"].max() < WALK_PART


def test_a_walk_that_accepts_damage_needs_a_scan_of_its_own() -> None:
    data = bytearray(segment(Message(body=b"x" * 20), Message(body=b"y" * 20), Message(body=b"z" * 20)))
    at = data.index(b"y" * 20)
    data[at] ^= 1
    summary = scan(bytes(data), rules_of("5.3.3"), 0, others=(rules_of("5.3.3", {"checkCRCOnRecover": False}), rules_of("5.4.0")))
    assert by_other_rules(summary, 0) is None
    other = by_other_rules(summary, 1)
    assert other is not None and other.broker == by_own_rules(summary).broker


@pytest.mark.parametrize("value, own", [("a\x01b", False), ("ab", True)])
def test_a_value_that_the_old_parser_reads_otherwise_is_noticed(value: str, own: bool) -> None:
    data = segment(Message(body=b"x", raw_properties=f"TAGS\x01{value}\x02".encode()))
    summary = scan(data, rules_of("5.3.3"), 0, others=(rules_of("4.9.0"), rules_of("4.9.8")))
    assert [other is not None for other in summary.others] == [own, True]
    slow = scan(data, rules_of("5.3.3"), 0, others=(rules_of("4.9.0"),), decoder="reference")
    assert [other is not None for other in slow.others] == [own]


def test_cuts_of_others_split_runs_and_no_index_run() -> None:
    data = segment(*(Message(body=b"x" * 20, keys=f"k{n}") for n in range(6)))
    whole = scan(data, base=0)
    middle = int(whole.runs["first_phy_offset"][0] + whole.runs["first_size"][0] * 3)
    cut = scan(data, base=0, cuts=Cuts(of_others=(middle,)))
    assert len(cut.runs) > len(whole.runs) and cut.index_runs.tolist() == whole.index_runs.tolist()
