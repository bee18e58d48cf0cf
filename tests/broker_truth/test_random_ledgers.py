"""Random DLedger stores, damaged at random: what the real release does, loaded and as a leader, against the plan."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.broker_truth.harness import ledgers, own_network
from tests.broker_truth.harness.kinds import DLEDGER
from tests.broker_truth.harness.real_broker import class_path, conf_of
from tests.support.answers import product
from tests.support.stores.random_ledgers import random_ledger

RELEASES = "4.8.0", "5.3.3", "5.4.0", "5.5.0"
SOME, MANY = range(15), range(15, 215)
WAITS = 15  # seconds after which start() waits without end


@pytest.fixture(autouse=True)
def _network() -> None:
    own_network.needed()


@pytest.mark.parametrize("numbers", [pytest.param(SOME, marks=pytest.mark.broker), pytest.param(MANY, marks=pytest.mark.soak)])
@pytest.mark.parametrize("release", RELEASES)
def test_the_plan_is_what_the_release_does(release: str, numbers: range, tmp_path: Path) -> None:
    cases, wrong, started = [], list[str](), 0
    for number in numbers:
        store, done = random_ledger(tmp_path / f"{number}" / "audited", Random(f"ledger/{release}/{number}"), release)
        conf = store.broker_conf + conf_of(DLEDGER)
        audit = product.audit(store.root, release, conf)
        assert audit.broker is not None, (number, done, audit.incomplete)
        prediction = audit.audit.prediction
        ours = ledgers.planned(audit.broker, waits=prediction is not None and prediction.hangs_at >= 0)
        cases.append((ledgers.copy(store.root, store.root.with_name("started")), conf, done, ours))
    stores = [(root, conf) for root, conf, *_ in cases]
    seen = own_network.run(ledgers.look, class_path(release, dledger=True), release, stores, WAITS)
    for number, (_, _, done, ours), real in zip(numbers, cases, seen, strict=True):
        found = ledgers.differences(ours, real)
        wrong += [f"{number}: {done}", *found] if found else []
        started += real is not None
    assert not wrong, "\n".join(wrong)
    assert started > len(numbers) / 2
