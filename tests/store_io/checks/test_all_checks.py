"""The table of checks: each once, in an order that keeps what builds on earlier findings behind them."""

from __future__ import annotations

import pytest

from schemas.rows import Finding, IndexFileSummary, QueueSummary
from store_io.checks.all_checks import run_checks
from store_io.kinds.index import index_kind
from tests.support.handmade.evidence import copy_of, evidence_of, log_path, queue_path, segment

PATH = queue_path(0)


def test_a_sound_copy_has_no_finding() -> None:
    assert run_checks(evidence_of(copy_of({log_path(0): 1000}), segments=[segment(0, {})])) == []


def test_findings_of_every_part_come_and_those_of_derived_data_dispute_the_message() -> None:
    data = (100).to_bytes(4, "big") + bytes(996)
    copy = copy_of({PATH: 200, "index/7": 1}, {log_path(0): data}, release="5.3.3")
    wrong = Finding("queue_entry_wrong", PATH, 0, 20, phy_offset=0, topic="T", queue_id=0)
    facts = {"queues": {("T", 0): QueueSummary(("T", 0), findings=[wrong])}}
    index = {"index/7": IndexFileSummary("index/7", 1, findings=[Finding("index_chain_broken", "index/7")])}
    found = run_checks(evidence_of(copy, segments=[segment(0, {})], index=index, **facts))
    assert [f.code for f in found] == ["index_file_wrong_size", "queue_entry_wrong", "index_chain_broken", "message_disputed"]
    assert (found[-1].start, found[-1].end, found[-1].file) == (0, 100, log_path(0))


def test_an_index_header_is_settled_before_messages_are_disputed(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("index_header_wrong", "index/7"), Finding("index_entry_wrong", "index/7", phy_offset=0)]
    monkeypatch.setattr(index_kind, "without_header_echoes", lambda given, summary, slots: [f for f in given if f != findings[0]])
    copy = copy_of({}, {log_path(0): (100).to_bytes(4, "big") + bytes(996)})
    index = {"index/7": IndexFileSummary("index/7", 1, findings=findings)}
    found = run_checks(evidence_of(copy, segments=[segment(0, {})], index=index))
    assert [f.code for f in found] == ["index_entry_wrong", "message_disputed"]
