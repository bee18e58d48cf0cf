"""What follows from sizes that are another store's (tests/test_verdicts.py has how they are found and told)."""

from __future__ import annotations

import pytest

from schemas.finding_codes import Part
from schemas.rows import Finding
from store_io.broker.releases import broker_rules
from store_io.broker.settings.read_settings import read_settings
from store_io.model.facts.odd_settings import unknown_names
from store_io.model.facts.size_misfits import Misfit, misfit_findings, size_misfits, with_cause
from tests.support.handmade.evidence import listing_of

QUEUES = {f"consumequeue/A/{n}/00000000000000000000": 2000 for n in range(3)}


def misfits_of(conf: str) -> list[Misfit]:
    listing = listing_of(QUEUES)
    settings = read_settings(conf, listing)
    return size_misfits(conf, listing, settings, unknown_names(conf, broker_rules("5.3.3", settings)))


def test_a_size_that_fits_under_the_right_name_is_this_stores() -> None:
    (found,) = misfits_of("mapedFileSizeConsumeQueue=1990")  # rounded up to whole entries
    assert found.sentence.endswith("are 2,000 bytes long: mapedFileSizeConsumeQueue would fit under the right name")
    assert found.step.startswith("Correct the name in broker.conf, mappedFileSizeConsumeQueue in place of mapedFileSize")
    (told,) = with_cause([Finding("queue_file_wrong_size", "consumequeue/A/0/0")], [found])
    assert told.next == found.step == misfit_findings([found])[0].next


@pytest.mark.parametrize(
    "line", ["mapedFileSizeConsumeQueue=4000", "mapedFileSizeConsumeQueue=many", "", "mapedFileSizeCommitLog=2000"]
)
def test_any_other_size_is_another_stores(line: str) -> None:
    (found,) = misfits_of(line)
    assert found.sentence.endswith("this broker.conf is probably not this store's") and "own broker.conf" in found.step
    assert "Correct" not in found.step


@pytest.mark.parametrize(
    ("conf", "works"),
    [
        ("mappedFileSizeConsumeQueue=4000", True),
        ("mappedFileSizeConsumeQueue=4000\nduplicationEnable=true", False),  # which no file shows
        ("mappedFileSizeConsumeQueue=4000\nmappedFileSizeCommitLog=1024", False),
        ("mappedFileSizeConsumeQueue=4000\nduplicationEnable=false", True),
    ],
)
def test_to_leave_the_file_out_is_advised_only_if_the_files_show_all_that_it_says(conf: str, works: bool) -> None:
    listing = listing_of(QUEUES)
    settings = read_settings(conf, listing)
    (found,) = size_misfits(conf, listing, settings, left_out=lambda: read_settings(None, listing))
    assert ("Without --broker-conf" in found.step) == works and found.step.startswith("Find this store's own broker.conf")


MISFIT = Misfit("commitlog/0", "2 bytes", "1 bytes", Part.LOG, "broker.conf says 2; all are 1")


def test_findings_of_the_same_cause_get_its_step_and_others_keep_theirs() -> None:
    own = Finding("broker_refuses", "config/subscriptionGroup.json", next="Set both aside.")
    caused, other = Finding("segment_wrong_size", "commitlog/0"), Finding("commitlog_damaged", "commitlog/0")
    told = [*with_cause([own, caused, other], [MISFIT])]
    assert told[0] is own and told[2] is other
    assert told[1].next.startswith("Find this store's own broker.conf")
