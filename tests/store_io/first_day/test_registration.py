"""A broker whose identity names another one, or that does not start, never registers; of other nodes nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.first_day.registration import registers
from tests.support.answers import product
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.replica import replica

NAMES = "brokerName=broker-a\nbrokerClusterName=oracle\n"


def controlled(
    root: Path, identity: bytes | None, lines: str | None, release: str = "5.3.3", name: str = "brokerIdentity"
) -> bool | None:
    store = replica(root, release)
    (root / "brokerIdentity").unlink()
    if identity is not None:
        (root / name).write_bytes(identity)
    found = product.audit(store.root, release, None if lines is None else f"{store.broker_conf}\n{lines}")
    return registers(found.audit.evidence)


@pytest.mark.parametrize(
    ("identity", "lines", "expected"),
    [
        (b"oracle#broker-a#1", NAMES, True),
        (b"oracle#broker-b#1", NAMES, False),
        (b"Oracle#broker-a#1", NAMES, False),
        (b"oracle#broker-b#1", "enableControllerMode=false\n" + NAMES, True),
        (b"DefaultCluster#broker-a#1", "", None),  # the host's name is not known
        (b"other#broker-a#1", "", False),
        (b"oracle#broker-a#1", None, None),
        (None, NAMES, None),  # the controller is asked for an id
    ],
)
def test_names_in_the_identity_decide(tmp_path: Path, identity: bytes | None, lines: str | None, expected: bool | None) -> None:
    assert controlled(tmp_path, identity, lines) is expected


@pytest.mark.parametrize(
    ("identity", "expected"), [(b"oracle#broker-b#1#127.0.0.1:1;5", False), (b"oracle#broker-a#1#127.0.0.1:1;5", None)]
)
def test_an_identity_that_is_not_confirmed_can_only_fail(tmp_path: Path, identity: bytes, expected: bool | None) -> None:
    assert controlled(tmp_path, identity, NAMES, name="brokerIdentity-temp") is expected


@pytest.mark.parametrize(("release", "expected"), [("5.1.0", None), ("5.1.1", False), ("5.5.1", False)])
def test_releases_without_an_identity_are_known_by_their_address(tmp_path: Path, release: str, expected: bool | None) -> None:
    assert controlled(tmp_path, b"oracle#broker-b#1", NAMES, release) is expected


def ledger(root: Path, self_id: str, peers: str) -> bool | None:
    store = StoreBuilder("5.3.3")
    store.put(Message("T"))
    made = store.write(root)
    lines = f"{made.broker_conf}\nenableDLegerCommitLog=true\ndLegerSelfId={self_id}\ndLegerPeers={peers}\n"
    return registers(product.audit(made.root, "5.3.3", lines).audit.evidence)


@pytest.mark.parametrize(
    ("self_id", "peers", "expected"),
    [
        ("n0", "n0-127.0.0.1:40911", True),
        ("n0", "n0-127.0.0.1:40911;n1-127.0.0.1:40912", None),  # the others elect
        ("nX", "nX-127.0.0.1:40911", False),
        ("n1", "n0-127.0.0.1:40911", False),
    ],
)
def test_a_self_id_that_is_no_number_or_no_peers_ends_the_broker(
    tmp_path: Path, self_id: str, peers: str, expected: bool | None
) -> None:
    assert ledger(tmp_path, self_id, peers) is expected
