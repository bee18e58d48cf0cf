"""What a verdict rests on that nobody said."""

from __future__ import annotations

from schemas.rows import ASSUMED, DEFAULT, DOUBT, NAMED, NOTED, TAKEN
from store_io.broker.releases import NEWEST_RELEASE, Setting, broker_rules
from store_io.model.premises import GivenConf, assumed_sentence, heads_of, mode_doubts, premises
from store_io.model.written_by import HEAD_BYTES, WrittenBy
from tests.support.handmade.evidence import copy_of

ANY = WrittenBy("4.8.0", "5.5.0")


def test_a_named_release_and_broker_conf_that_fit_need_no_premise() -> None:
    assert premises("5.3.3", NAMED, ANY, {}, GivenConf()) == []


def test_doubts_come_first_and_say_what_contradicts() -> None:
    newer = WrittenBy("5.0.0", "5.5.0", "5.0.0", ("timerwheel", "compaction", "abort.bak", "timerlog"))
    found = premises("4.9.8", NAMED, newer, {}, GivenConf(["a size that no file has"], ["a line"]))
    assert [premise.kind for premise in found] == [TAKEN, DOUBT, DOUBT]
    assert [premise.kind for premise in premises("5.0.0", DEFAULT, newer, {}, None)] == [ASSUMED, ASSUMED]
    found = found[1:]
    assert found[0].sentence == "a size that no file has"
    assert "5.0.0 or newer" in found[1].sentence and "abort.bak" in found[1].sentence and "timerlog" not in found[1].sentence
    assert premises("5.0.0", NAMED, newer, {}, GivenConf()) == []


def test_an_assumed_release_is_told_with_who_wrote_the_copy() -> None:
    old = WrittenBy("4.8.0", "4.9.8", "", (), ("checkpoint",))
    (found,) = premises(NEWEST_RELEASE, DEFAULT, old, {}, GivenConf())
    assert found.kind == ASSUMED and "the newest known" in found.sentence and "the answer may be another" in found.sentence
    assert "the newest known" not in assumed_sentence("4.9.8", DEFAULT)
    (unknown,) = premises("5.3.4", "5.3.9", old, {}, GivenConf())
    assert unknown.kind == ASSUMED and unknown.sentence.startswith(f"{assumed_sentence('5.3.4', '5.3.9')}. This copy was written")
    assert unknown.sentence.endswith("Name a known one with --release")


def test_a_newer_release_than_the_writers_and_what_is_ignored_are_noted_last() -> None:
    old = WrittenBy("4.8.0", "4.9.8", "", (), ("no abort.bak",))
    upgrade, ignored = premises("5.3.3", NAMED, old, {}, GivenConf(noted=["a line that is ignored"]))
    assert upgrade.kind == ignored.kind == NOTED and ignored.sentence == "a line that is ignored"
    assert "4.8.0 to 4.9.8: a start of 5.3.3 is an upgrade" in upgrade.sentence
    assert premises("4.9.8", NAMED, old, {}, GivenConf()) == []


def test_inferred_settings_are_named() -> None:
    settings = {"b": Setting(2, "inferred"), "a": Setting(1, "inferred"), "c": Setting(3, "default")}
    (found,) = premises("5.3.3", NAMED, ANY, settings, None)
    assert "a = 1, b = 2; " in found.sentence and "c = 3" not in found.sentence


def test_heads_are_bounded_and_what_cannot_be_read_is_left_out() -> None:
    copy = copy_of({"config/consumerOffset.json": 5}, {"config/topics.json": b"x" * (HEAD_BYTES + 9)})
    assert heads_of(copy.source, copy.listing) == {"config/topics.json": b"x" * HEAD_BYTES}


def test_a_broker_conf_without_controller_mode_is_doubted_beside_an_epoch_file() -> None:
    listing = copy_of({"epochFileCheckpoint": 5}).listing
    silent = {"enableControllerMode": Setting(False, "default")}
    (found,) = mode_doubts(listing, broker_rules("5.3.3", silent))
    assert "epochFileCheckpoint" in found and "enableControllerMode" in found
    for release, value, origin in (("5.3.3", False, "broker.conf"), ("5.3.3", True, "broker.conf"), ("4.9.8", False, "default")):
        assert mode_doubts(listing, broker_rules(release, {"enableControllerMode": Setting(value, origin)})) == []
    assert mode_doubts(copy_of({}).listing, broker_rules("5.3.3", silent)) == []
