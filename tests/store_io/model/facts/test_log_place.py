"""A CommitLog that broker.conf keeps elsewhere is asked for, and never opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.answer.headline import verdict_text
from store_io.broker.releases import broker_rules
from store_io.broker.settings.read_settings import read_settings
from store_io.model.facts.log_place import LogPlace, log_place
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import StoreListing
from store_io.wording.gaps import gap_text
from tests.support.answers.product import audit
from tests.support.handmade.evidence import listing_of

SEGMENT = {"commitlog/00000000000000000000": 100}
QUEUE = {"consumequeue/A/0/00000000000000000000": 20}
ROOT = "storePathRootDir=/opt/store\n"


def place(conf: str, files: dict[str, int], release: str = "5.3.3", location: StoreLocation | None = None) -> LogPlace:
    listing = listing_of(files)
    if location is not None:
        listing = StoreListing(location, listing.files)
    return log_place(conf, listing, broker_rules(release, read_settings(conf, listing)))


def asked(found: LogPlace) -> str:
    assert found.asked is not None
    return gap_text(found.asked)


@pytest.mark.parametrize(
    "path",
    [
        "/opt/commitlog",
        "/opt/log/../commitlog/",
        "/a/commitlog,/b/commitlog",
        "/a/commitlog:/b/commitlog",
        "/opt/store2/commitlog",
        "/opt/store/log",
    ],
)
def test_a_log_outside_of_the_folder_is_asked_for_by_name(path: str) -> None:
    found = place(f"{ROOT}storePathCommitLog={path}", QUEUE)
    assert path in asked(found) and asked(found).endswith("name it with --commitlog") and not found.said
    beside = place(f"{ROOT}storePathCommitLog={path}", SEGMENT)
    assert not beside.asked and path in beside.said
    named = StoreLocation("/copy", (("commitlog", ("/else",)),))
    assert place(f"{ROOT}storePathCommitLog={path}", QUEUE, location=named) == LogPlace()


@pytest.mark.parametrize(
    "conf",
    [
        "",
        ROOT,
        ROOT + "storePathCommitLog=/opt/store/commitlog",
        ROOT + "storePathCommitLog=/opt//store/commitlog/",
        ROOT + "storePathCommitLog=${storePathRootDir}/commitlog",
        "storePathCommitLog=/var/store/commitlog",
        "storePathRootDir=D:/mq/store\nstorePathCommitLog=D:\\\\mq\\\\store\\\\commitlog",
        "storePathCommitLog=${storePathRootDir}/commitlog",
    ],
)
def test_a_log_in_the_folder_is_not_asked_for(conf: str) -> None:
    assert place(conf, QUEUE) == place(conf, SEGMENT) == LogPlace()


def test_older_releases_leave_the_log_in_the_home_folder() -> None:
    assert "~/store/commitlog" in asked(place(ROOT, QUEUE, "4.9.3"))
    assert place(ROOT, QUEUE, "4.9.4") == place("", QUEUE, "4.8.0") == LogPlace()
    assert place("storePathRootDir=~/store", QUEUE, "4.8.0") == LogPlace()


def test_data_files_of_dledger_elsewhere_are_asked_for() -> None:
    conf = ROOT + "enableDLegerCommitLog=true\ndLegerSelfId=n0\nstorePathDLedgerCommitLog="
    assert "dledger-n0/data" in asked(place(conf + "/data/ledger", QUEUE))
    assert place(conf + "/opt/store/dledger-n0/data", QUEUE) == LogPlace()
    assert place(conf + "/data/ledger", {"dledger-n0/data/00000000000000000000": 9}) == LogPlace()


def test_a_hostile_path_is_escaped_and_short() -> None:
    found = place(ROOT + "storePathCommitLog=/a\\u001b[2J" + "x" * 5000, QUEUE)
    assert "\x1b" not in asked(found) and len(asked(found)) < 500


def test_the_audit_asks_for_the_log_and_finds_nothing_lost(tmp_path: Path) -> None:
    queue = tmp_path / "consumequeue" / "A" / "0" / "00000000000000000000"
    queue.parent.mkdir(parents=True)
    queue.write_bytes((b"\0" * 7 + b"\x05" + b"\0\0\0\x64" + b"\0" * 8) * 100)
    conf = "mappedFileSizeConsumeQueue=2000\nstorePathRootDir=/opt/store\nstorePathCommitLog=/opt/commitlog"
    outcome = audit(tmp_path, "5.3.3", conf).outcome
    assert outcome.exit_code == 3 and audit_plan(outcome)["broker"] is None
    assert "name it with --commitlog" in verdict_text(outcome) and "Nothing to lose" not in verdict_text(outcome)
    assert not outcome.found.counts.get("loss")
    emptied = audit(tmp_path, "5.3.3", conf.partition("storePathCommitLog")[0]).outcome
    assert emptied.exit_code == 20 and "Nothing to lose is left here" in verdict_text(emptied)
