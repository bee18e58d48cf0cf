"""What is said of a line that a broker takes otherwise than it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from store_io.answer.headline import verdict_text
from store_io.base.errors import UsageError
from store_io.broker.releases import KNOWN_RELEASES, BrokerRules, broker_rules
from store_io.broker.settings.read_settings import read_given, read_settings
from store_io.model.facts.odd_settings import MOST_NAMED, ignored_lines, odd_settings
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import StoreListing
from tests.support.answers.product import audit

EMPTY = StoreListing(StoreLocation("/nowhere"), ())


def rules(conf: str, release: str) -> BrokerRules:
    return broker_rules(release, read_settings(conf, EMPTY))


@pytest.mark.parametrize(
    ("line", "release", "value", "said"),
    [
        ("enableControllerMode=true ", "5.3.3", False, "takes that for false, because of the white space"),
        ("duplicationEnable=yes", "4.8.0", False, "takes that for false, as all that is not true"),
        ("mappedFileSizeCommitLog=1024 ", "5.5.0", 1 << 30, "cannot read that as a number and keeps its default, 1073741824"),
        ("mappedFileSizeCommitLog=1G", "4.9.8", 1 << 30, "cannot read that as a number"),
        ("storeType=defaultRocksDB ", "5.1.4", "defaultRocksDB ", "keeps the white space"),
        ("brokerRole=SLAVE\t", "5.1.4", "ASYNC_MASTER", "knows no such role and keeps its default"),
        ("brokerRole=MASTER", "5.4.0", "ASYNC_MASTER", "knows no such role"),
        ("timerPrecisionMs=300", "5.0.0", 200, "makes 200 of that"),
        ("storeType=rocksdb", "5.5.0", "rocksdb", "knows no such kind and does as with its default, default"),
        ("configManagerVersion=V2", "5.4.0", "V2", "knows no such kind and does as with its default, v1"),
        ("enableAcceleratedRecovery=true", "5.3.3", False, "has no such setting"),
    ],
)
def test_what_a_release_makes_of_a_line(line: str, release: str, value: Any, said: str) -> None:
    own, key = rules(line, release), line.partition("=")[0]
    (sentence,) = odd_settings(line, own)
    assert said in sentence and key in sentence and f"RocketMQ {release} " in sentence
    assert own.value(key) == value


@pytest.mark.parametrize("release", ["4.8.0", "5.1.4", "5.2.0", "5.5.0"])
def test_nothing_is_said_of_what_is_taken_as_it_reads(release: str) -> None:
    conf = (
        "duplicationEnable=false \nmessageIndexSafe=TRUE\nbrokerId=+01\nbrokerName=a\nmessageDelayLevel=1s 5s \nlistenPort=1 \n"
        "enableAcceleratedRecovery=false\nbrokerRole=SLAVE\nmaxIndexNum=4\nmaxIndexNum=4\nstorePathRootDir=/x"
    )
    assert odd_settings(conf, rules(conf, release)) == [] == odd_settings(None, rules("", release))


def test_a_text_loses_its_spaces_from_5_2_0_on() -> None:
    conf = "storeType=\\ defaultRocksDB \nbrokerRole=SLAVE "
    for release in ("5.2.0", "5.5.0"):
        own = rules(conf, release)
        assert (own.rocksdb_queues, own.is_slave, odd_settings(conf, own)) == (True, True, [])
    assert not rules(conf, "5.1.4").is_slave


def test_one_copy_is_read_by_each_release_as_that_takes_its_settings() -> None:
    first = rules("brokerRole=SLAVE \nenableAcceleratedRecovery=true", "5.1.4")
    later = broker_rules("5.5.0", first.settings)
    assert (first.is_slave, first.accelerated, later.is_slave, later.accelerated) == (False, False, True, True)


def test_the_last_of_equal_keys_and_a_key_that_is_no_setting_are_named() -> None:
    conf = "maxIndexNum=400\n\u00ef\u00bb\u00bfbrokerrole=SLAVE\nmaxIndexNum=800\nwhatever=1"
    misspelt, repeated = sorted(odd_settings(conf, rules(conf, "5.3.3")), key=lambda sentence: "maxIndexNum" in sentence)
    assert "does not know; brokerRole was probably meant" in misspelt and 'maxIndexNum="800"' in repeated


def test_many_lines_are_counted() -> None:
    conf = "\n".join(f"{key}=true " for key in rules("", "5.5.0").settings if rules("", "5.5.0").value(key) is False)
    found = odd_settings(conf, rules(conf, "5.5.0"))
    assert len(found) == MOST_NAMED + 1 and "more lines" in found[-1]


def test_sizes_and_what_moves_the_end_of_the_log_come_first() -> None:
    conf = "brokerRole=MASTER\nautoX=1\nstoreType=x \nenableLmq=yes\nmaxIndexNum=4\nmaxIndexNum=5\nduplicationEnable=true "
    found = odd_settings(conf, rules(conf, "5.1.4"))
    firsts = [sentence.removeprefix("broker.conf has ").partition("=")[0].partition(" ")[0] for sentence in found]
    assert firsts == ["duplicationEnable", "storeType", "maxIndexNum", "brokerRole", "enableLmq"]


@example_settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(rules("", "5.5.0").settings)), st.text(max_size=12), st.sampled_from(KNOWN_RELEASES))
def test_any_value_is_taken_or_refused(key: str, text: str, release: str) -> None:
    try:
        own = rules(f"{key}={text}", release)
        assert len(odd_settings(f"{key}={text}", own)) < 4
        assert read_given(f"{key}={text}", release).items() <= {k: s.value for k, s in own.settings.items()}.items()
    except UsageError:
        pass


def test_the_verdict_names_the_line() -> None:
    example = Path(__file__).resolve().parents[4] / "examples" / "damaged-store"
    outcome = audit(example / "store", "4.9.8", (example / "broker.conf").read_text() + "\nduplicationEnable=true ").outcome
    assert 'broker.conf has duplicationEnable="true ": RocketMQ 4.9.8 takes that for false' in verdict_text(outcome)
    assert audit_plan(outcome)["settings"]["duplicationEnable"] == {"value": False, "from": "broker.conf", "text": "true "}


@pytest.mark.parametrize(
    ("line", "release", "said"),
    [
        ("mapedFileSizeConsumeQueue=300000", "4.8.0", "mappedFileSizeConsumeQueue was meant"),
        ("mapedFileSizeConsumeQueue=300000", "5.5.0", "mappedFileSizeConsumeQueue was meant"),
        ("timerUseRocksDB=true", "5.4.0", "timerRocksDBEnable was meant"),
        ("enableDLedgerCommitLog=true", "5.3.3", "enableDLegerCommitLog was probably meant"),
    ],
)
def test_a_name_that_no_release_reads_is_named_with_the_one_that_was_meant(line: str, release: str, said: str) -> None:
    (sentence,) = odd_settings(line, rules(line, release))
    assert sentence == f"broker.conf has {line}, a name that RocketMQ {release} does not know; {said}"
    assert ignored_lines(line, rules(line, release)) == []


def test_an_unknown_name_that_changes_nothing_is_no_more_than_noted() -> None:
    conf = "mapedFileSizeCommitLog=1073741824\nmappedFileSizeConsumeQueue=6000\nmapedFileSizeConsumeQueue=1\nfileReservedTimes=48"
    own = rules(conf, "5.3.3")
    assert odd_settings(conf, own) == []
    (noted,) = ignored_lines(conf, own)
    assert "fileReservedTimes (fileReservedTime was probably meant)" in noted
    assert noted.endswith(
        "mapedFileSizeCommitLog (mappedFileSizeCommitLog was probably meant), mapedFileSizeConsumeQueue (known up to 4.5.1)"
    )


def test_names_of_other_releases_are_noted_with_these() -> None:
    conf = (
        "liteEventCheckInterval=1\ncommercialEnable=true\nlistenPort=1\nrmqAddressServerDomain=a\nclientCallbackExecutorThreads=4"
    )
    (noted,) = ignored_lines(conf, rules(conf, "5.3.3"))
    assert "commercialEnable (known up to 4.9.8), liteEventCheckInterval (known from 5.5.0 on)" in noted
    assert "listenPort" not in noted and "rmqAddress" not in noted and "clientCallback" not in noted
    assert ignored_lines("commercialEnable=true", rules("", "4.8.0")) == []


def test_what_templates_hold_and_no_broker_reads_is_said_once() -> None:
    conf = "storePathConsumeQueue=/a\nstorePathIndex=/b\nstoreCheckpoint=/c\nabortFile=/d"
    (noted,) = ignored_lines(conf, rules(conf, "4.9.8"))
    assert noted.startswith(
        "broker.conf has abortFile, storeCheckpoint, storePathConsumeQueue, storePathIndex, which RocketMQ ignores"
    )


def test_many_and_hostile_names_stay_short() -> None:
    conf = "\n".join(f"{letter * 300}\\u001b[2J{number}=1" for number, letter in enumerate("abcdefghij" * 200))
    (noted,) = ignored_lines(conf, rules(conf, "5.3.3"))
    assert len(noted) < 1200 and "and 1,992 more" in noted and "\x1b" not in noted


def test_a_ratio_of_the_jvm_that_is_no_number_to_it_is_named() -> None:
    clean, ledger = "rocketmq.broker.diskSpaceCleanForciblyRatio", "dledger.disk.ratio.clean"
    conf = f"{clean}=0,8\n{ledger}=80%\n"
    (said,) = odd_settings(conf, rules(conf, "5.3.3"))
    assert said.startswith(f'broker.conf has {clean}="0,8": a JVM reads no number in that')
    assert len(odd_settings(conf, rules(f"{conf}enableDLegerCommitLog=true", "5.3.3"))) == 2
    for text in ("0.8", "8e-1d", ""):
        assert odd_settings(f"{clean}={text}\n", rules("", "4.9.8")) == []
