"""A brokerIdentity that names another broker than broker.conf keeps the broker fenced; the same names, or none, do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.finding_codes import Code
from store_io.answer.headline import judge
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores.replica import replica

NAMES = "brokerName=broker-a\nbrokerClusterName=oracle\n"


def audited(root: Path, identity: bytes, lines: str | None, release: str = "5.3.3", name: str = "brokerIdentity") -> Audited:
    store = replica(root, release)
    (root / "brokerIdentity").unlink()
    (root / name).write_bytes(identity)
    return product.audit(store.root, release, None if lines is None else f"{store.broker_conf}\n{lines}")


def differing(found: Audited) -> list[str | None]:
    return [finding.actual for finding in found.findings if finding.code == Code.IDENTITY_DIFFERS]


@pytest.mark.parametrize(
    ("identity", "lines", "expected"),
    [
        (b"oracle#broker-a#1", NAMES, []),
        (b"oracle#broker-b#1", NAMES, ["brokerName=broker-a"]),
        (b"Oracle#broker-a#1", NAMES, ["brokerClusterName=oracle"]),
        (b"other#broker-b#1", NAMES, ["brokerClusterName=oracle", "brokerName=broker-a"]),
        (b"DefaultCluster#broker-b#1", "", []),  # the host's name is not known
        (b"oracle#broker-b#1", "", ["brokerClusterName=DefaultCluster"]),
        (b"oracle#broker-b#1", "enableControllerMode=false\n" + NAMES, []),
        (b"oracle#broker-b#1", None, []),
        (b"no identity", NAMES, []),
    ],
)
def test_names_are_held_against_those_of_broker_conf(
    tmp_path: Path, identity: bytes, lines: str | None, expected: list[str]
) -> None:
    assert sorted(map(str, differing(audited(tmp_path, identity, lines)))) == expected


@pytest.mark.parametrize(("release", "checked"), [("5.1.0", 0), ("5.1.1", 1), ("5.5.1", 1)])
def test_releases_before_do_not_check_it(tmp_path: Path, release: str, checked: int) -> None:
    assert len(differing(audited(tmp_path, b"oracle#broker-b#1", NAMES, release))) == checked


def test_an_identity_that_is_not_confirmed_yet_counts_too(tmp_path: Path) -> None:
    found = audited(tmp_path, b"oracle#broker-b#1#127.0.0.1:1;5", NAMES, name="brokerIdentity-temp")
    assert differing(found) == ["brokerName=broker-a"]


def test_the_headline_says_both_names_and_what_to_do(tmp_path: Path) -> None:
    found = audited(tmp_path, b"oracle#broker-b#1", NAMES)
    assert found.outcome.exit_code == 20 and found.broker is not None and found.broker["starts"]
    assert judge(found.outcome).headline.startswith(
        "Do not start this copy with brokerName=broker-a: brokerIdentity says broker-b: correct the one or remove the file"
    )
