"""Words about several stores together."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.texts.run_words import assumed_words, exit_words, kinds_text
from tests.support.handmade import samples


def test_code_20_says_whether_messages_or_the_start_are_concerned() -> None:
    refused = replace(samples.refused(), exit_code=20)
    assert exit_words(20, [refused]) == "no start"
    assert exit_words(20, [refused, samples.damaged()]) == "no start or loss"
    assert exit_words(10, [samples.damaged()]) == "derived data differ"


def test_what_is_assumed_is_counted_by_store() -> None:
    named, unnamed = samples.clean(), replace(samples.clean(), release_from="default")
    assert assumed_words([named]) == ""
    assert assumed_words([named, unnamed]).startswith("for 1 of 2 stores no release was named: 5.3.3 is assumed")


def test_more_kinds_than_are_named_are_counted() -> None:
    assert kinds_text(["a 3", "b 2", "c 1", "d 1", "e 1"]) == "a 3, b 2, c 1 and 2 more kinds"
