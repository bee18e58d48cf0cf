"""The plan of a replica in controller mode, held against what the real release does: fenced, started, made master."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from py4j.protocol import Py4JError

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.damaged_copies import records
from tests.broker_truth.harness.kinds import CONTROLLER, CONTROLLER_RELEASES, Session
from tests.broker_truth.harness.real_broker import PREPARED, Broker, Jvm, Put, class_path, conf_of
from tests.broker_truth.harness.repairs import repair, valid_records
from tests.broker_truth.harness.replicas import follow, planned
from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.builders import Record
from tests.support.stores.replica import epoch_text, with_a_light_queue

pytestmark = pytest.mark.broker

SETTINGS: Mapping[str, Any] = {
    "mappedFileSizeCommitLog": 8192,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 20,
    "maxIndexNum": 80,
    "maxMessageSize": 2048,
    **CONTROLLER,
}
Damage = Callable[[Path, list[Record]], object]


def puts() -> list[Put]:
    return [
        Put(f"Topic{n % 3}", b"body %d" % n * 12, n % 2, "tag", f"key{n}", f"U{n}", transaction=PREPARED if n % 13 == 5 else 0)
        for n in range(130)
    ]


def write(root: Path, at: int, data: bytes) -> None:
    """Overwrite bytes of the CommitLog, by physical offset."""
    size = SETTINGS["mappedFileSizeCommitLog"]
    overwrite(root / "commitlog" / f"{at - at % size:020d}", at % size, data)


def confirm(at: int, root: Path, found: list[Record]) -> None:
    """confirmOffset at the start of this message, as on a slave that lagged."""
    overwrite(root / "checkpoint", 32, found[at].at.to_bytes(8, "big"))


def resize(by: int, root: Path, found: list[Record]) -> None:
    """Damage the size of a message that only an election reads, in a store without an index."""
    confirm(3, root, found)
    write(root, found[9].at, (found[9].size + by).to_bytes(4, "big"))
    shutil.rmtree(root / "index")


def kill(root: Path, found: list[Record]) -> None:
    confirm(len(found) // 2, root, found)
    (root / "abort").touch()


DAMAGES: Mapping[str, Damage] = {
    "nothing": lambda root, found: None,
    "unclean": lambda root, found: (root / "abort").touch(),
    "confirmed half": kill,
    "refused record": lambda root, found: resize(1 << 20, root, found),
    "sizes that do not fit": lambda root, found: resize(5000, root, found),
    "torn tail": lambda root, found: write(root, found[-3].at + 40, bytes(found[-1].at + found[-1].size - found[-3].at - 40)),
    "no queues": lambda root, found: shutil.rmtree(root / "consumequeue"),
    "epochs beyond the end": lambda root, found: (root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (4, 1 << 40))),
    "no epochs": lambda root, found: (root / "epochFileCheckpoint").write_bytes(b""),
}


@pytest.mark.parametrize("release", CONTROLLER_RELEASES)
def test_plans_of_damaged_replicas(release: str, tmp_path: Path) -> None:
    own_network.needed()
    whole = tmp_path / "whole"
    Session(release, whole, SETTINGS).run_controlled(1, puts())
    found, stores = records(whole), dict[str, Path]()
    for number, (name, damage) in enumerate(DAMAGES.items()):
        stores[name] = Path(shutil.copytree(whole, tmp_path / str(number)))
        damage(stores[name], found)
    plans = {name: planned(product.audit(root, release, conf_of(SETTINGS))) for name, root in stores.items()}
    asked = [(root, SETTINGS, plans[name][1]) for name, root in stores.items()]
    real = own_network.run(follow, release, class_path(release), asked)
    assert {name: plan for name, (plan, _) in plans.items()} == dict(zip(stores, real, strict=True))
    assert {name for name, (plan, _) in plans.items() if not plan.starts} >= {"no epochs"}


@pytest.mark.parametrize("release", CONTROLLER_RELEASES)
def test_an_election_waits_for_a_message_that_no_thread_can_dispatch(release: str, tmp_path: Path) -> None:
    """As the plan says (tests/store_io/broker/test_election.py): nothing is cut, and the new epoch is written."""
    own_network.needed()
    store = with_a_light_queue(tmp_path / "store", release)
    audit = product.audit(store.root, release, store.broker_conf)
    assert audit.broker is not None and "broker_hangs" in {finding.code for finding in audit.findings}
    ends = {queue["topic"]: queue["max_offset"] for queue in audit.broker["after_election"]["queues"]}
    election = audit.broker["controller"]["election"]
    plan = audit.broker["truncate_at"], (election["epoch"], election["start"]), ends
    assert own_network.run(_never_elected, release, class_path(release), store.root, store.broker_conf) == plan


def _never_elected(release: str, jars: Sequence[Path], root: Path, conf: str) -> tuple[int, tuple[int, int], dict[str, int]]:
    """The log's end, the last epoch and the queues' ends of a broker whose election has not ended after some seconds."""
    with Jvm(release, jars) as jvm:
        broker = jvm.broker(root, conf)
        broker.fence()
        broker.begin()
        election = Thread(target=_elect, args=(broker,), daemon=True)
        election.start()
        election.join(8)
        assert election.is_alive()
        *_, last = broker.java.getHaService().getEpochEntries()
        ends = {topic: numbers[1] for (topic, _), numbers in broker.queues().items()}
        return broker.state()["maxPhyOffset"], (int(last.getEpoch()), int(last.getStartOffset())), ends


def _elect(broker: Broker) -> None:
    with suppress(Py4JError):  # of a JVM that is gone
        broker.elect(2)


def test_each_start_cuts_what_was_appended_without_a_property_crc(tmp_path: Path) -> None:
    """forceVerifyPropCRC without enabledAppendPropCRC: of a sound store and of a repaired one alike (pitfalls.md C14)."""
    own_network.needed()
    forced = {**SETTINGS, "forceVerifyPropCRC": "true"}
    appending = {**forced, "enabledAppendPropCRC": "true"}
    conf = conf_of(forced)
    Session("5.3.3", tmp_path / "whole", appending).run_controlled(1, puts()[:40])
    damaged = Path(shutil.copytree(tmp_path / "whole", tmp_path / "damaged"))
    write(damaged, records(damaged)[20].at + 90, b"?")  # in its body
    assert repair(damaged, "5.3.3", conf, "salvage", tmp_path / "repaired").exit_code == 0
    for name in ("whole", "repaired"):
        before, answers = len(valid_records(tmp_path / name)), []
        for settings, epoch in ((appending, 2), (forced, 3), (forced, 4)):
            plan = product.audit(tmp_path / name, "5.3.3", conf).broker
            assert plan is not None and plan["lost"]["messages"] == (3 if epoch == 4 else 0)
            seen = Session("5.3.3", tmp_path / name, settings).run_controlled(epoch, puts()[:3])
            assert seen.end == plan["truncate_at"]
            answers.append(seen.answers)
        kept = valid_records(tmp_path / name)
        assert len(kept) == before + 6 and answers[0][0].phy_offset in kept
        assert answers[1][0].phy_offset == answers[2][0].phy_offset  # cut, and written over
