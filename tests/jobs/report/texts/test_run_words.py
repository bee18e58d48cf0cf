"""Words about several stores together, and their titles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.report.texts.run_words import assumed_words, exit_words, kinds_text, store_title, title_of
from jobs.report.texts.summary_text import summary_text
from schemas.finding_codes import Code
from schemas.outcome import Outcome
from schemas.replicas import Group, GroupCopy, Lacked, Pair, Relation
from schemas.rows import REBUILDABLE, Finding
from schemas.start_effect import BrokerIdentity, ControlledStart, Setting
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter, varied
from tests.support.texts.pages import index_of, page_of


def test_code_20_says_whether_messages_or_the_start_are_concerned() -> None:
    refused = replace(samples.refused(), exit_code=20)
    assert exit_words(20, [refused]) == "no start"
    assert exit_words(20, [refused, samples.damaged()]) == "no start or loss"
    assert exit_words(10, [samples.damaged()]) == "derived data differ"


def behind(*codes: str, diverged: bool = False) -> Outcome:
    """A copy with findings of these codes, whose group holds a message that it lacks."""
    relation = Relation.DIVERGED if diverged else Relation.BEHIND
    copies = GroupCopy("a", start=0, lacks=1), GroupCopy("b", start=0)
    group = Group("g", "b", copies=copies, pairs=(Pair("a", "b", relation),), lacks=(Lacked("a", "b", 1),))
    found = [Finding(Code(code), "commitlog", severity=REBUILDABLE) for code in codes]
    counts = {REBUILDABLE: len(found)}
    return varied(samples.clean(), name="a", exit_code=10, findings=found, counts=counts, replicas=group)


def test_what_only_another_copy_has_is_not_said_to_differ_here() -> None:
    assert exit_words(10, [behind("copy_is_behind")]) == "lacking what another copy holds"
    assert exit_words(10, [behind("copy_is_behind", diverged=True)]) == "diverged from another copy"
    assert exit_words(10, [behind("copy_is_behind", "queue_entry_missing")]) == "derived data differ"
    assert exit_words(10, [behind("copy_is_behind"), behind("queue_entry_missing")]) == "derived data differ"
    assert exit_words(0, [samples.clean(), behind("copy_is_behind")]) == "consistent"


def test_what_is_assumed_is_counted_by_store() -> None:
    named, unnamed = samples.clean(), varied(samples.clean(), release_from="default")
    assert assumed_words([named]) == ""
    assert assumed_words([named, unnamed]).startswith("for 1 of 2 stores no release was named: 5.3.3 is assumed")


def test_more_kinds_than_are_named_are_counted() -> None:
    assert kinds_text(["a 3", "b 2", "c 1", "d 1", "e 1"]) == "a 3, b 2, c 1 and 2 more kinds"


@pytest.mark.parametrize("name", ["store", "store-2", "Store", "rocketmq", "data-11"])
def test_a_folder_that_says_nothing(name: str) -> None:
    assert store_title(name, "broker-a") == f"broker-a ({name})"
    assert store_title(name, "") == store_title(name, None) == name


@pytest.mark.parametrize(
    "name", ["broker-1", "mq", "backup", "broker-a", "prod-store", "store-eu", "store2x", "stores", "night-2026"]
)
def test_a_name_that_says_something_stays(name: str) -> None:
    assert store_title(name, "broker-b") == name


def test_a_long_name_of_a_broker_is_cut_and_the_stores_own_is_not() -> None:
    assert store_title("store-2", "rocketmq-broker-production-eu-central-1a", 40) == "rocketmq-broker-production-eu… (store-2)"
    assert store_title("store", "broker-a", 40) == "broker-a (store)"


def test_a_brokers_name_cannot_look_like_another_store() -> None:
    assert store_title("store", "broker-a (store-2)") == "store"


def test_the_pages_say_it_and_link_to_the_folder() -> None:
    outcome = replace(samples.clean(), name="store", replica_group="g")
    alter(outcome, settings={"brokerName": Setting(samples.HOSTILE.replace("(1)", ""), "broker.conf")})
    page, index = page_of(outcome), index_of([outcome, replace(outcome, name="store-2")])
    assert page.text.startswith(f"{title_of(outcome)}: RocketMQ store audit") and page.problems() == []
    assert "\\u202e" in title_of(outcome) and title_of(outcome).endswith(" (store)")
    assert [a["href"] for a in index.all("a")] == ["store/report.html", "store-2/report.html"]
    assert index.text.count(title_of(outcome)) == 2 and index.problems() == []  # the stores, and the copies of one broker


def test_the_summary_says_it() -> None:
    outcome = replace(samples.clean(), name="store")
    alter(outcome, settings={"brokerName": Setting("cart\x1b[31m", "broker.conf")})
    assert summary_text(samples.RUN, [outcome], "/out").startswith("cart\\x1b[31m (store): ")
    fleet = summary_text(samples.RUN, [outcome, replace(outcome, name="store-2")], "/out")
    assert "cart\\x1b[31m (store)    5.3.3" in fleet and "cart\\x1b[31m (store-2)  5.3.3" in fleet


def test_the_controller_knows_its_name_too() -> None:
    outcome = replace(samples.clean(), name="store")
    controller = ControlledStart(-1, (), identity=BrokerIdentity("c", "broker-c", 1, False))
    samples.start_changed(outcome, controller=controller)
    assert title_of(outcome) == "broker-c (store)"
    alter(outcome, settings={"brokerName": Setting("broker-a", "broker.conf")})
    assert title_of(outcome) == "broker-a (store)"
