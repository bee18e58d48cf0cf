"""For which stores no repair can be made, by kind and release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.report.texts.commands import repair_withheld
from jobs.report.texts.no_repair import no_repair
from schemas.finding_codes import NO_REPAIR, REBUILD_BY_START
from tests.support.samples import damaged


@pytest.mark.parametrize(
    ("release", "setting", "value", "said"),
    [
        ("5.3.3", "storeType", "default", ""),
        ("5.3.3", "storeType", "defaultRocksDB", REBUILD_BY_START),
        ("5.1.4", "storeType", "defaultRocksDB", ""),  # whose queues are in files all the same
        ("5.3.3", "enableDLegerCommitLog", True, ""),
    ],
)
def test_kinds_without_a_repair(release: str, setting: str, value: object, said: str) -> None:
    sample = damaged()
    plan = {**sample.plan, "steps": [{"action": "rebuild"}], "settings": {setting: {"value": value, "from": "broker.conf"}}}
    outcome = replace(sample, release=release, plan=plan)
    assert no_repair(outcome) == said
    assert not said or repair_withheld(outcome) == said


def test_the_log_of_one_node_of_a_group_is_not_repaired() -> None:
    ledger = {"enableDLegerCommitLog": {"value": True, "from": "broker.conf"}}
    for peers, said in (("n0-h:1", ""), ("n0-h:1;n1-h:2", NO_REPAIR)):
        settings = {**ledger, "dLegerPeers": {"value": peers, "from": "broker.conf"}}
        assert no_repair(replace(damaged(), plan={**damaged().plan, "settings": settings})) == said
