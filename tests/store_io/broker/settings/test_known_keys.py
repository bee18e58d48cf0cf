"""Names of broker.conf by release."""

from __future__ import annotations

import pytest

from store_io.broker.releases import ALL_DEFAULTS, KNOWN_RELEASES, parse_known
from store_io.broker.settings.known_keys import known_span, meant_by, reads


@pytest.mark.parametrize("key", sorted(ALL_DEFAULTS))
def test_the_table_has_every_modelled_setting(key: str) -> None:
    assert reads(key, parse_known(KNOWN_RELEASES[-1]))


def test_a_name_is_known_between_its_releases() -> None:
    assert known_span("mapedFileSizeCommitLog") == ("4.1.0", "4.5.1")
    assert known_span("mappedFileSizeCommitLog") == ("4.5.2", "")
    assert (reads("commercialEnable", (4, 9, 8)), reads("commercialEnable", (5, 0, 0))) == (True, False)
    assert (reads("authenticationEnabled", (5, 2, 0)), reads("authenticationEnabled", (5, 3, 0))) == (False, True)
    assert not reads("whatever", (5, 3, 3))


@pytest.mark.parametrize(
    ("key", "release", "meant"),
    [
        ("brokerrole", (4, 8, 0), "brokerRole"),
        ("destroyMappedFileIntervalForcibly", (5, 3, 3), "destroyMapedFileIntervalForcibly"),
        ("timerUseRocksDB", (5, 3, 3), ""),
        ("timerUseRocksDB", (5, 5, 0), "timerRocksDBEnable"),
        ("brokerIP3", (5, 3, 3), ""),  # as near to brokerIP1 as to brokerIP2
        ("port", (5, 3, 3), ""),
        ("x" * 100_000, (5, 3, 3), ""),
        ("\u00ef\u00bb\u00bfbrokerName", (5, 3, 3), "brokerName"),
    ],
)
def test_the_name_that_was_meant(key: str, release: tuple[int, ...], meant: str) -> None:
    assert meant_by(key, release) == meant
