"""Real brokers recovered the corpus's stores; our plan is what they left.

Each case under the release that recovered it (deep: all files, queues, entries), and under the other releases, where the
record is shorter.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

LISTED = ("commitlog/", "consumequeue/", "batchconsumequeue/")  # index files are recorded without their names
CASES = corpus_tools.plain_cases()
# By default each case under each third of the releases that were tried, beginning with another one from case to case.
PAIRS = [
    pytest.param(case, release, id=f"{case.name}-{release}", marks=pytest.mark.soak if (number + place) % 3 else ())
    for number, case in enumerate([*CASES, *corpus_tools.of_kind("releases")])
    for place, release in enumerate(case.other_versions)
]


def recorded_state(recorded: dict[str, Any]) -> dict[str, Any]:
    """The plan's STATE out of the broker's recorded one; queues by (topic, queue id)."""
    return {
        "commitlog": [{"file": f["name"], "wrote": f["wrotePosition"]} for f in recorded["commitLogFiles"]],
        "index": [
            {"begin_phy_offset": f["beginPhyOffset"], "end_phy_offset": f["endPhyOffset"], "index_count": f["indexCount"]}
            for f in recorded["indexFiles"]
        ],
        "queues": {
            (topic, int(queue_id)): (q["minOffsetInQueue"], q["maxOffsetInQueue"], q["maxPhysicOffset"])
            for topic, by_id in recorded["queues"].items()
            for queue_id, q in by_id.items()
        },
    }


def by_queue(state: dict[str, Any]) -> dict[tuple[str, int], tuple[int, int, int]]:
    return {(q["topic"], q["queue_id"]): (q["min_offset"], q["max_offset"], q["max_phy_offset"]) for q in state["queues"]}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_plan_is_what_the_broker_left(case: Case, audited: Callable[[Case], Audited]) -> None:
    audit, expected = audited(case), case.expected
    assert audit.broker is not None, audit.incomplete
    broker = audit.broker
    starts = expected["load"].get("result") is True
    assert broker["starts"] == starts
    assert broker["exit"] == ("unclean" if expected["abortPresent"] else "clean")
    if not starts:
        assert broker["refusal"]
        return
    assert broker["min_phy_offset"] == expected["afterLoad"]["minPhyOffset"]
    assert broker["truncate_at"] == expected["afterLoad"]["maxPhyOffset"]
    before = {f["path"] for f in case.case["filesBefore"] if not f.get("dir")}
    after = {f["path"] for f in expected["filesAfterLoad"] if not f.get("dir")}
    assert [p for p in broker["deleted_files"] if p.startswith(LISTED)] == sorted(
        p for p in before - after if p.startswith(LISTED)
    )
    moments = {"after_load": "afterLoad", "after_dispatch": "converged", "after_election": "elected"}
    assert (broker["after_election"] is None) == ("elected" not in expected)
    for moment, recorded in ((moment, expected.get(name)) for moment, name in moments.items()):
        if recorded:
            theirs = recorded_state(recorded)
            assert broker[moment]["commitlog"] == theirs["commitlog"], moment
            assert broker[moment]["index"] == theirs["index"], moment
            assert by_queue(broker[moment]) == theirs["queues"], moment


@pytest.mark.parametrize("case", [c for c in CASES if c.expected["load"].get("result") is True], ids=lambda c: c.name)
def test_entries_are_what_the_broker_left(case: Case, audited: Callable[[Case], Audited]) -> None:
    audit = audited(case)
    assert case.entries() is not None

    def counted(entries: list[dict[str, Any]]) -> Counter[str]:
        # The filter's bit map comes from consumers' expressions: nothing in the store says what it will be, nor how long,
        # so the unit's address is open too.
        hidden = [("xb", "c") if "xc" in e else () for e in entries]
        return Counter(
            json.dumps({k: v for k, v in e.items() if k not in h}, sort_keys=True) for e, h in zip(entries, hidden, strict=True)
        )

    assert audit.audit.prediction is not None
    for memory, entries in (
        (audit.audit.prediction.after_load, case.entries()),
        (audit.audit.prediction.settled, case.entries("elected")),
    ):
        if entries is not None:
            ours, theirs = counted(audit.entries(memory)), counted(entries)
            assert ours - theirs == Counter() and theirs - ours == Counter()


@pytest.mark.parametrize("case", [c for c in CASES if "elected" in c.expected], ids=lambda c: c.name)
def test_confirm_offset_and_epochs_are_the_broker_s(case: Case, audited: Callable[[Case], Audited]) -> None:
    broker = audited(case).broker
    assert broker is not None
    ours, load, elected = broker["controller"], case.expected["afterLoad"], case.expected["elected"]
    assert ours["confirm_offset"] == load["confirmOffset"]
    epochs = [(epoch["epoch"], epoch["start"]) for epoch in ours["epochs"]]
    epochs.append((ours["election"]["epoch"], ours["election"]["start"]))
    assert epochs == [(epoch, start) for epoch, start, _ in elected["controller"]["epochs"]]


@pytest.mark.parametrize(("case", "release"), PAIRS)
def test_plan_under_another_release(case: Case, release: str, unpacked: Callable[[Case], Path]) -> None:
    said = case.other_versions[release]
    audit = product.audit(unpacked(case), release, case.broker_conf)
    assert audit.broker is not None, audit.incomplete
    broker = audit.broker
    assert broker["starts"] == (said["load"] is True)
    if not broker["starts"]:
        return
    assert (broker["min_phy_offset"], broker["truncate_at"]) == (said["minPhyOffset"], said["maxPhyOffset"])
    assert [f["file"] for f in broker["after_load"]["commitlog"]] == said["commitLogFiles"]
    index = [[i["begin_phy_offset"], i["end_phy_offset"], i["index_count"]] for i in broker["after_load"]["index"]]
    assert index == said["indexFiles"]
    later = said["queues"] if said["queuesConverged"] == "same" else said["queuesConverged"]
    for moment, queues in (("after_load", said["queues"]), ("after_dispatch", later)):
        theirs = {(topic, int(q)): tuple(v[:3]) for topic, by_id in queues.items() for q, v in by_id.items()}
        assert by_queue(broker[moment]) == theirs, moment
