"""config/ as whole brokers left it, whose clients filled each table, read by the release that wrote it and by all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.broker.releases import KNOWN_RELEASES, NEWEST_RELEASE, parse_known
from tests.support.answers.real_tables import check_tables, tables_of
from tests.support.stores.corpus_tools import Case, of_kind

CASES = of_kind("config")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_release_that_wrote_it_reads_all(case: Case, tmp_path: Path) -> None:
    check_tables(case.unpack(tmp_path), case.release, case.broker_conf, case.case["consumed"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_other_releases_refuse_what_their_parsers_refused(case: Case, tmp_path: Path) -> None:
    root, refused = case.unpack(tmp_path), case.case["refused"]
    assert {*refused} <= {*case.case["tried"]}
    for release in case.case["tried"]:
        if not parse_known(KNOWN_RELEASES[0]) <= parse_known(release) <= parse_known(NEWEST_RELEASE):
            continue
        config = tables_of(root, release, case.broker_conf)
        assert {path.removeprefix("config/") for path, done in config.loads.items() if done.refuses} == {
            *refused.get(release, ())
        }
        assert not config.problems
