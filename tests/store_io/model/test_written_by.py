"""Which releases can have written a copy: of every real store the range holds the one that did."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.layouts import commitlog_layout
from schemas.rows import DEFAULT, Checkpoint, StoreFile
from store_io.audit.audit_store import run_audit
from store_io.model.audit_request import AuditRequest
from store_io.model.written_by import WrittenBy, written_by
from store_io.source.byte_source import StoreLocation
from tests.support.stores.corpus_tools import Case, cases


def named(*paths: str, folders: str = "", **checkpoint: int) -> WrittenBy:
    files = [StoreFile(path, "file", 5) for path in paths] + [StoreFile(path, "directory") for path in folders.split()]
    return written_by(files, Checkpoint(**checkpoint), {})


# By default the last case of each release that wrote some.
LAST = {str(case.case.get("writeVersion") or case.release): case.name for case in cases()}
WRITTEN = [pytest.param(case, id=case.name, marks=() if case.name in LAST.values() else pytest.mark.soak) for case in cases()]


@pytest.mark.parametrize("case", WRITTEN)
def test_the_release_that_wrote_a_real_store_lies_in_its_range(case: Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    audit = run_audit(AuditRequest("s", StoreLocation(str(root)), "5.5.0", release_from=DEFAULT))
    found, wrote = audit.evidence.written_by(), str(case.case.get("writeVersion") or case.release)
    assert found.holds(wrote), found.sentence()
    assert not found.holds("4.9.8" if wrote > "5" else "5.0.0"), found.sentence()
    outcome = audit.outcome()
    assert found.sentence() in outcome.assumed.premises[0].sentence
    assert outcome.assumed.written_by == ("" if found.holds("5.5.0") else found.range_text())


@pytest.mark.parametrize(
    ("found", "oldest", "newest", "sure"),
    [
        (named("abort.bak", folders="rocksdbstore"), "5.4.0", "5.5.1", "5.4.0"),
        (named("abort.bak"), "5.0.0", "5.3.4", "5.0.0"),
        (named("abort.bak", "config/transactionMetrics"), "5.3.0", "5.3.4", "5.3.0"),
        (named("abort.bak", confirm_phy_offset=9), "5.1.1", "5.3.4", "5.1.1"),
        (named("abort.bak", confirm_phy_offset=-9, logics_phy_offset=-1 << 63), "5.0.0", "5.3.4", "5.0.0"),
        (named(logics_phy_offset=7), "5.5.0", "5.5.1", "5.5.0"),
        (named("abort"), "5.0.0", "5.3.4", "5.0.0"),
        (named(), "4.6.1", "4.9.8", ""),
        (named("config/lmqConsumerOffset.json"), "4.9.3", "4.9.8", "4.9.3"),
        (named("abort.bak", folders="consumequeue/" + "t" * 127), "5.0.0", "5.3.4", "5.0.0"),
        (named("abort.bak", folders="consumequeue/" + "t" * 128), "5.1.0", "5.3.4", "5.1.0"),
        (named("abort.bak", folders="consumequeue/%LMQ%" + "t" * 128), "5.0.0", "5.3.4", "5.0.0"),
    ],
)
def test_what_each_trace_says(found: WrittenBy, oldest: str, newest: str, sure: str) -> None:
    assert (found.oldest, found.newest, found.surely_since) == (oldest, newest, sure)


def test_the_forms_of_config_and_records() -> None:
    old, new, newer = b'{"offsetTable":{"a@g":{0:5}}}', b'{"dataVersion":{"stateVersion":0}}', b'{"a@g":{\n\t0:5\n}}'
    file = "config/consumerOffset.json"
    assert written_by([], Checkpoint(), {file: old}).newest == "4.9.8"
    assert written_by([], Checkpoint(), {file: new}).oldest == "5.0.0"
    assert written_by([], Checkpoint(), {file: newer}).oldest == "5.4.0"
    assert written_by([], Checkpoint(), {}, [commitlog_layout.MAGIC_V1]).surely_since == ""
    assert written_by([], Checkpoint(), {}, [commitlog_layout.MAGIC_V2]).surely_since == "5.1.0"


def test_the_sentence_says_how_sure_and_why() -> None:
    assert named("abort.bak").sentence() == (
        "written by 5.0.0 to 5.3.4 (surely 5.0.0 or newer: abort.bak; likely not newer than 5.3.4: no rocksdbstore)"
    )
    assert named("x").sentence() == "written by 4.6.1 to 4.9.8 (likely not newer than 4.9.8: no abort.bak)"
