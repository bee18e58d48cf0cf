"""Stores of real brokers with one bit, byte or field wrong: healed they hold what was written, and real brokers serve it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker_truth.harness.real_broker import Jvm
from tests.broker_truth.harness.repairs import in_a_queue, repair, served, valid_records
from tests.support.stores import builders
from tests.support.stores.corpus_tools import Case, cases

pytestmark = pytest.mark.broker

CASES = ("g19", "g37", "g60", "g65", "g68", "g79", "g84")


def faults(case: Case) -> list[dict[str, Any]]:
    """What was done to bytes of the log."""
    return [m["did"] for m in case.case["mutations"] if m["op"] in ("flip", "set_field")]


def old_bytes(did: dict[str, Any]) -> tuple[int, bytes]:
    """(physical offset, the bytes that the writer had put there)."""
    if "byteOffset" in did:
        return did["byteOffset"], bytes([did["old"]])
    place, form = builders.FIELDS[did["field"]]
    return did["recordOffset"] + place, did["old"].to_bytes(8 if form == ">q" else 4, "big")


@pytest.mark.parametrize("policy", ["broker", "salvage"])
@pytest.mark.parametrize("case", cases(*CASES), ids=lambda case: case.name)
def test_a_healed_store_is_served_whole(case: Case, policy: str, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    root = case.unpack(tmp_path / "copy")
    done = repair(root, case.release, case.broker_conf, policy, tmp_path / "new", "--heal")
    assert done.root is not None
    size = int(case.case["config"]["store.mappedFileSizeCommitLog"])
    records = valid_records(done.root)
    for did in faults(case):
        at, old = old_bytes(did)
        segment = (done.root / "commitlog" / f"{at - at % size:020d}").read_bytes()
        assert segment[at % size : at % size + len(old)] == old, did
        assert did["recordOffset"] in records
    assert not done.report["healed"]["not_healed"] and not done.report["bridges"]
    with jvm_of(case.release).broker(done.root, case.broker_conf, []) as broker:
        assert broker.load()
        assert broker.state()["maxPhyOffset"] == done.report["log_end"]
        broker.start()
        found = {key[3]: data for key, data in served(broker.serve(keys=False)).items()}
    for did in faults(case):
        record, data = records[did["recordOffset"]]
        assert not in_a_queue(record) or found[did["recordOffset"]] == data, did
