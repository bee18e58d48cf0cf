"""For which kinds of store no repair is written, and what their findings advise instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.advice import Advice, Step
from schemas.finding_codes import CATALOGUE, WITHOUT_DONOR
from schemas.rows import LOSS, Finding
from store_io.broker.releases import Setting, broker_rules
from store_io.model.evidence import Evidence
from store_io.outcome.final_findings import final_findings, no_repair
from store_io.wording.steps import advice_text
from tests.support.handmade.evidence import copy_of, evidence_of


def twice_beside(named: str) -> Advice:
    return Advice(Step.NO_DOUBLE_WRITE_REPAIR, (named,))


def of_kind(kind: str) -> Evidence:
    files = {"compaction/compactionLog/T/0/00000000000000000000": 9} if kind == "compacted" else {}
    found = evidence_of(copy_of(files))
    peers = {"dledger": "n0-h:1;n1-h:2", "single dledger": "n0-h:1"}.get(kind, "")
    settings = {"enableDLegerCommitLog": Setting(bool(peers), "broker.conf"), "dLegerPeers": Setting(peers, "broker.conf")}
    if kind == "rocksdb":
        settings["storeType"] = Setting("defaultRocksDB", "broker.conf")
    return replace(found, copy=replace(found.copy, rules=broker_rules("5.4.0", settings)))


@pytest.mark.parametrize("kind", ["plain", "dledger", "single dledger", "rocksdb", "compacted"])
def test_no_step_promises_what_no_repair_does(kind: str) -> None:
    evidence = of_kind(kind)
    codes = ["commitlog_damaged", "queue_entry_missing", "checkpoint_missing"]
    told = {f.code: f.next for f in final_findings(evidence, [Finding(code, "x") for code in codes])[0]}
    if kind in ("plain", "rocksdb"):
        assert not no_repair(evidence.copy) and told == {code: CATALOGUE[code].next for code in codes}
        return
    assert told["commitlog_damaged"] == Advice(Step.OTHER_COPY_ALONE)
    if kind == "single dledger":
        assert not no_repair(evidence.copy) and told["checkpoint_missing"] == CATALOGUE["checkpoint_missing"].next
        return
    why = Advice({"dledger": Step.NO_LEDGER_REPAIR, "compacted": Step.NO_COMPACTED_REPAIR}[kind])
    assert told["checkpoint_missing"] == told["queue_entry_missing"] == no_repair(evidence.copy) == why


def test_a_compacted_log_beside_a_ledger_is_refused_as_beside_segments() -> None:
    copy = of_kind("single dledger").copy
    compacted = copy_of({"compaction/compactionLog/T/0/00000000000000000000": 9})
    assert no_repair(replace(copy, listing=compacted.listing)) == Advice(Step.NO_COMPACTED_REPAIR)


@pytest.mark.parametrize("more", ["", "enableLmq", "duplicationEnable", "recheckReputOffsetFromCq", "enableControllerMode"])
def test_queues_that_are_written_twice_are_refused_beside_what_no_repair_knows(more: str) -> None:
    settings = {name: Setting(True, "broker.conf") for name in ("rocksdbCQDoubleWriteEnable", more) if name}
    evidence = evidence_of(copy_of({}))
    copy = replace(evidence.copy, rules=broker_rules("5.4.0", settings))
    named = {"enableLmq": "light queues in RocksDB alone"}.get(more, more)
    assert no_repair(copy) == (twice_beside(named) if more in ("enableLmq", "duplicationEnable") else None)


@pytest.mark.parametrize(
    ("release", "on", "refused"),
    [
        ("5.4.0", ("enableLmq", "enableMultiDispatch"), ""),
        ("5.4.0", ("enableMultiDispatch",), "files"),
        ("5.5.0", ("enableLmq",), "RocksDB"),
        ("5.5.0", ("enableLmq", "combineCQUseRocksdbForLmq"), ""),
    ],
)
def test_light_queues_of_both_kinds_or_by_a_setting_in_rocksdb_alone(release: str, on: tuple[str, ...], refused: str) -> None:
    settings = {name: Setting(True, "broker.conf") for name in ("rocksdbCQDoubleWriteEnable", *on)}
    why = no_repair(replace(evidence_of(copy_of({})).copy, rules=broker_rules(release, settings)))
    assert why == (twice_beside(f"light queues in {refused} alone") if refused else None)


def test_queues_of_one_kind_alone_are_named() -> None:
    given = {"rocksdbCQDoubleWriteEnable": True, "combineCQUseRocksdbForLmq": True, "combineCQLoadingCQTypes": "default"}
    rules = broker_rules("5.5.0", {name: Setting(value, "broker.conf") for name, value in given.items()})
    why = no_repair(replace(evidence_of(copy_of({})).copy, rules=rules))
    assert why == twice_beside("queues of one kind alone (combineCQLoadingCQTypes=default)")


def test_each_step_with_a_donor_has_a_form_without() -> None:
    steps = {advice for row in CATALOGUE.values() for advice in (row.next, row.next_at(LOSS))}
    with_donor = {advice.step for advice in steps if "--donor" in advice_text(advice)}
    assert with_donor == set(WITHOUT_DONOR)
    assert not any("--donor" in advice_text(Advice(step)) for step in WITHOUT_DONOR.values())
