"""What follows from sizes that are another store's (tests/test_verdicts.py has how they are found and told)."""

from __future__ import annotations

from schemas.finding_codes import Part
from schemas.rows import Finding
from store_io.audit.facts.size_misfits import Misfit, with_cause

MISFIT = Misfit("commitlog/0", "2 bytes", "1 bytes", Part.LOG, "broker.conf says 2; all are 1")


def test_findings_of_the_same_cause_get_its_step_and_others_keep_theirs() -> None:
    own = Finding("broker_refuses", "config/subscriptionGroup.json", next="Set both aside.")
    caused, other = Finding("segment_wrong_size", "commitlog/0"), Finding("commitlog_damaged", "commitlog/0")
    told = [*with_cause([own, caused, other], [MISFIT])]
    assert told[0] is own and told[2] is other
    assert told[1].next.startswith("Find this store's own broker.conf")
