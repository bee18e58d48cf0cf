"""DLedger stores that real releases wrote and were killed over: predicted, helped by hand, damaged and repaired."""

from __future__ import annotations

import shutil
import struct
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.broker_truth.harness import ledgers, own_network
from tests.broker_truth.harness.ledgers import CONF, SETTINGS
from tests.broker_truth.harness.real_broker import Put, Served, class_path
from tests.support.answers.repaired import plan_of, repaired
from tests.support.damage import cut_at, overwrite

pytestmark = pytest.mark.broker

LEDGER = "dledger-n0"
MESSAGES = 120
PUTS = [Put(f"Topic{n % 2}", b"body %d " % n * (n % 30 + 1), n // 2 % 2, "tag", f"key{n}", f"U{n}") for n in range(MESSAGES)]
CRASH_CUTS = ("5.3.3", "5.4.0", "5.5.0")


@pytest.fixture(scope="module", params=["4.8.0", *CRASH_CUTS])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """(release, a store of it that was killed)."""
    own_network.needed()
    release, root = str(request.param), tmp_path_factory.mktemp("ledger") / "store"
    own_network.run(ledgers.write, class_path(release, dledger=True), release, root, PUTS)
    return release, root


def entries(root: Path) -> list[tuple[Path, int, int]]:
    """(file, position, size) of each entry."""
    found = []
    for path in sorted((root / LEDGER / "data").iterdir()):
        data, at = path.read_bytes(), 0
        while at + 48 <= len(data) and data[at : at + 4] == b"\0\0\0\1":
            (size,) = struct.unpack_from(">i", data, at + 4)
            found.append((path, at, size))
            at += size
    return found


def wrong_body(root: Path) -> None:
    path, at, _ = entries(root)[70]
    overwrite(path, at + 48 + 92, b"\xff\xff")


def wrong_position(root: Path) -> None:
    path, at, _ = entries(root)[-9]
    overwrite(path, at + 24, b"\x07")


def tail(root: Path) -> None:
    path, at, size = entries(root)[-1]
    overwrite(path, at + size // 2, bytes(16384 - at - size // 2))


def index_gone(root: Path) -> None:
    shutil.rmtree(root / LEDGER / "index")


def short_index(root: Path) -> None:
    cut_at(root / LEDGER / "index" / f"{0:020d}", 3200)


def nothing(root: Path) -> None:
    pass


def as_advised(root: Path) -> None:
    (root / "abort").unlink()
    (root / LEDGER / "checkpoint").unlink()


DAMAGES: list[Callable[[Path], None]] = [nothing, as_advised, wrong_body, wrong_position, tail, index_gone, short_index]


def damaged(root: Path, target: Path, damage: Callable[[Path], None]) -> Path:
    damage(ledgers.copy(root, target))
    return target


def test_the_plans_are_what_the_release_does_and_the_advice_helps(killed: tuple[str, Path], tmp_path: Path) -> None:
    release, root = killed
    roots = [damaged(root, tmp_path / damage.__name__, damage) for damage in DAMAGES]
    outcomes = [run_local(AuditRequest(r.name, StoreLocation(str(r)), release, CONF)) for r in roots]
    seen = own_network.run(ledgers.look, class_path(release, dledger=True), release, [(r, SETTINGS) for r in roots])
    for damage, outcome, real in zip(DAMAGES, outcomes, seen, strict=True):
        assert ledgers.differences(ledgers.planned(audit_plan(outcome)["broker"]), real) == [], damage.__name__
    counts = [sum(end for _, end, _ in look["after_dispatch"]["queues"].values()) for look in seen[:2] if look is not None]
    cut = any(f.code == "ledger_crash_cut" for f in outcomes[0].found.findings)
    assert cut == (release in CRASH_CUTS) and counts[1] == MESSAGES
    assert counts[0] < MESSAGES if cut else counts[0] == MESSAGES


REPAIRED = {  # each costs two starts and a stop
    "4.8.0": (wrong_body, "broker"),
    "5.3.3": (wrong_position, "salvage"),
    "5.4.0": (tail, "broker"),
    "5.5.0": (wrong_body, "salvage"),
}


def test_a_repaired_store_serves_all_that_it_holds(killed: tuple[str, Path], tmp_path: Path) -> None:
    release, root = killed
    damage, policy = REPAIRED[release]
    store, new = damaged(root, tmp_path / "store", damage), tmp_path / "new"
    done = repaired(store, new, plan_of(store, release, CONF), policy)
    assert done.exit_code == 0, done.report.problems
    jars, gone = class_path(release, dledger=True), {"wrong_body": 70, "tail": MESSAGES - 1}.get(damage.__name__)
    wanted = sorted(put.body for number, put in enumerate(PUTS) if number != gone)
    following = PUTS[:4]
    first, answers = own_network.run(ledgers.live, jars, release, new, following)
    assert bodies(first) == wanted and not first.key_misses
    ends: dict[tuple[str, int], int] = defaultdict(int)
    for message in first.messages:
        key = message.topic, message.queue_id
        ends[key] = max(ends[key], message.record.queue_offset + 1)
    assert [a.queue_offset for a in answers] == [ends[p.topic, p.queue_id] for p in following]
    again, _ = own_network.run(ledgers.live, jars, release, new, [])
    assert bodies(again) == sorted([*wanted, *(p.body for p in following)])


def bodies(served: Served) -> list[bytes]:
    """Each message once: an entry in a lost message's place leads to the message after it."""
    found = {m.phy_offset: m.record.body for m in served.messages}
    return sorted(found.values())
