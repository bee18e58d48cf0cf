"""DLedger stores whose ConsumeQueues are in RocksDB, damaged: the plan against what the real release does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError

from schemas.finding_codes import STARTS_DISPATCH
from tests.broker_truth.harness import ledgers, own_network
from tests.broker_truth.harness.damaged_copies import older, planned, seen_by
from tests.broker_truth.harness.kinds import DLEDGER, ROCKSDB, ROCKSDB_RELEASES
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, PutAnswer, class_path, conf_of
from tests.broker_truth.harness.repairs import POLICIES, Key, expected, repair, served, valid_records
from tests.broker_truth.harness.table_stores import put_transactions
from tests.broker_truth.test_ledgers import LEDGER, index_gone, tail, wrong_body, wrong_position
from tests.support.answers import product
from tests.support.damage import remove

pytestmark = pytest.mark.broker

SETTINGS = ledgers.SETTINGS | ROCKSDB
PUTS = [Put(f"Topic{n % 2}", b"body %d " % n * (n % 30 + 1), n // 2 % 2, "tag", f"key{n}", f"U{n}") for n in range(240)]
State = dict[str, Any]
Settings = Mapping[str, Any]


def unclean(store: Path) -> None:
    (store / "abort").touch()


def group_checkpoint_gone(store: Path) -> None:
    remove(store / LEDGER / "checkpoint")


def database_gone(store: Path) -> None:
    remove(store / "consumequeue")


def last_data_gone(store: Path) -> None:
    max((store / LEDGER / "data").iterdir()).unlink()


@dataclass(frozen=True)
class Case:
    """A copy to damage. before: of the store as it was before its first start with DLedger, not of the last one."""

    damages: Sequence[Callable[[Path], object]]
    before: bool = False


DAMAGES = {
    "none": Case([]),
    "unclean": Case([unclean]),
    "no group checkpoint, unclean": Case([group_checkpoint_gone, unclean]),
    "wrong body, unclean": Case([wrong_body, unclean]),
    "wrong position": Case([wrong_position]),
    "wrong position, unclean": Case([wrong_position, unclean]),
    "tail, unclean": Case([tail, unclean]),
    "index gone": Case([index_gone]),
    "older": Case([older]),
    "older, unclean": Case([older, unclean]),
    "database gone": Case([database_gone]),
    "database gone, unclean": Case([database_gone, unclean]),
    "database and group checkpoint gone": Case([database_gone, group_checkpoint_gone]),
    "last data file gone, unclean": Case([last_data_gone, unclean]),
}


REPAIRED = "wrong body, unclean", "older, unclean", "database gone"
OF_MIXED = {
    "before": Case([], before=True),  # the first start with DLedger
    "before, unclean": Case([unclean], before=True),
    "before, database gone": Case([database_gone], before=True),
    "before, database gone, unclean": Case([database_gone, unclean], before=True),
    "first file gone": Case([lambda s: min((s / "commitlog").iterdir()).unlink()]),
}


def tables_gone(store: Path) -> None:
    remove(store / "rocksdbstore")


def older_tables(store: Path) -> None:
    tables_gone(store)
    shutil.copytree(store.parent / "older tables", store / "rocksdbstore")


WITH_TABLES = {
    "none": Case([]),
    "unclean": Case([unclean]),
    "tables gone": Case([tables_gone]),
    "tables gone, unclean": Case([tables_gone, unclean]),
    "older tables, unclean": Case([older_tables, unclean]),
    "older tables, no group checkpoint": Case([older_tables, group_checkpoint_gone]),
    "tail": Case([tail]),
    "tail, unclean": Case([tail, unclean]),
    "last data file gone": Case([last_data_gone]),
    "older tables, last data file gone": Case([older_tables, last_data_gone]),
    "older tables, last data file gone, unclean": Case([older_tables, last_data_gone, unclean]),
    "wrong position, older tables, unclean": Case([wrong_position, older_tables, unclean]),
}


def write(release: str, jars: Sequence[Path], folder: Path, settings: Settings, mixed: bool = False) -> None:
    """Two lives of a node that is alone; `older` is the database after the first. mixed: the first one is without DLedger."""
    with Jvm(release, jars) as jvm:
        for life, wanted in enumerate((PUTS[:100], PUTS[100:])):
            plain = mixed and not life
            own = {key: value for key, value in settings.items() if key not in DLEDGER} if plain else settings
            broker = jvm.broker(folder / "store", own)
            broker.begin()
            if not plain:
                broker.lead()
            if settings.get("transRocksDBEnable"):
                put_transactions(broker, 10 * life)
            broker.put(wanted)
            broker.catch_up()
            if not plain:
                time.sleep(ledgers.CHECKPOINT_SECONDS)
                _wait_for_checkpoint(folder / "store")
            with suppress(Py4JError):
                broker.shutdown()
            if not plain:
                _wait_for_checkpoint(folder / "store")
            if plain:
                ledgers.copy(folder / "store", folder / "before")
            if not (folder / "older").exists():
                shutil.copytree(folder / "store" / "consumequeue", folder / "older")
                if (folder / "store" / "rocksdbstore").exists():
                    shutil.copytree(folder / "store" / "rocksdbstore", folder / "older tables")


def _wait_for_checkpoint(store: Path) -> None:
    """It is written anew every three seconds, and is away for a moment then; on a busy machine for longer."""
    for _ in range(300):
        if (store / LEDGER / "checkpoint").exists():
            return
        time.sleep(0.1)


def look(release: str, jars: Sequence[Path], stores: Sequence[tuple[Path, State]], settings: Settings) -> list[State]:
    """What the release makes of each store; {}: it does not start. Each comes with its plan, whose queues are asked for."""
    found: list[State] = []
    jvm = Jvm(release, jars)
    try:
        for root, plan in stores:
            if not jvm.alive:  # DLedger has ended the process
                jvm.close()
                jvm = Jvm(release, jars)
            with jvm.broker(root, settings) as broker:
                found.append(_looked(broker, plan))
    finally:
        jvm.close()
    return found


def _looked(broker: Broker, plan: State) -> State:
    try:
        if not broker.load():
            return {}
    except Py4JError:
        return {}
    after_load = _settled(broker, plan.get("after_load", {}))
    end = broker.java.getMaxPhyOffset()
    broker.start()
    broker.lead()
    after_dispatch = _settled(broker, plan.get("after_dispatch", {}))
    if broker.jvm.release >= "5.4" and broker.java.getMessageStoreConfig().isIndexRocksDBEnable():
        time.sleep(1)  # threads of their own write the tables
        with suppress(Py4JError):
            broker.shutdown()
    return {"end": end, "after_load": after_load, "after_dispatch": after_dispatch}


def _settled(broker: Broker, queues: State) -> State:
    """What the broker answers once nothing moves any more: entries are put by a thread of its own, after load() too."""
    before: State = {}
    same = 0
    for _ in range(100):
        time.sleep(0.1)
        seen = seen_by(broker, queues)
        same = same + 1 if seen == before else 0
        if same == 8:  # on a busy machine that thread may not run for some of these looks
            break
        before = seen
    return before


def plan_of(audit: product.Audited) -> State:
    """The same of the audit's prediction, each queue with all answers that it leaves open."""
    assert audit.broker is not None, audit.incomplete
    if not audit.broker["starts"]:
        return {}
    moments = {moment: planned(audit.broker[moment]["queues"]) for moment in ("after_load", "after_dispatch")}
    return {"end": audit.broker["truncate_at"], **moments}


def lacked_by_tables(audit: product.Audited, put: bool) -> set[str]:
    """Codes of entries that index or transactions lack; put: of those that a start puts, else of the others."""
    missing = (
        f for f in audit.findings if f.file == "rocksdbstore" and f.code in ("index_entry_missing", "transaction_entry_missing")
    )
    return {f.code for f in missing if (f.next == STARTS_DISPATCH) == put}


@pytest.mark.parametrize("release", ROCKSDB_RELEASES)
def test_plans_of_damaged_logs(release: str, tmp_path: Path) -> None:
    compare(release, tmp_path, DAMAGES, SETTINGS)


@pytest.mark.parametrize("release", ROCKSDB_RELEASES)
def test_plans_of_damaged_logs_that_began_before_dledger(release: str, tmp_path: Path) -> None:
    compare(release, tmp_path, DAMAGES | OF_MIXED, SETTINGS, mixed=True)


@pytest.mark.parametrize("mixed", [False, True], ids=["plain", "mixed"])
@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
def test_repaired_logs_are_served(release: str, mixed: bool, tmp_path: Path) -> None:
    """All that is valid, new messages with the next queue offsets, and the same after a second start."""
    jars = written(release, tmp_path, SETTINGS, mixed)
    stores = damaged(tmp_path, {name: DAMAGES[name] for name in REPAIRED})
    wanted: dict[str, dict[Key, bytes]] = {}
    for number, (name, root) in enumerate(stores.items()):
        policy, target = POLICIES[number % 2], root.with_name("new")
        valid, made = expected(valid_records(root)), repair(root, release, conf_of(SETTINGS), policy, target)
        assert made.exit_code == 0, (name, made.report.get("problems"))
        audit = product.audit(target, release, conf_of(SETTINGS))
        assert audit.above_note == [] and audit.broker is not None and audit.broker["lost"]["messages"] == 0
        wanted[name] = {key: data for key, data in valid.items() if key[3] < made.report["log_end"]}
        assert policy == "broker" or wanted[name] == valid
    asked = [(root.with_name("new"), wanted[name]) for name, root in stores.items()]
    wrong = own_network.run(serve, release, jars, asked)
    assert {name: found for name, found in zip(stores, wrong, strict=True) if found} == {}


def serve(release: str, jars: Sequence[Path], stores: Sequence[tuple[Path, dict[Key, bytes]]]) -> list[list[object]]:
    """What is not as it should be, of each store."""
    with Jvm(release, jars) as jvm:
        return [_not_served(jvm, root, wanted) for root, wanted in stores]


def _not_served(jvm: Jvm, root: Path, wanted: dict[Key, bytes]) -> list[object]:
    found: list[object] = []
    keys, new = sorted({(key[0], key[1]) for key in wanted}), list[PutAnswer]()
    ends: dict[tuple[str, int], int] = {}
    for _ in range(2):
        with jvm.broker(root, SETTINGS) as broker:
            assert broker.load(), root
            broker.start()
            broker.lead()
            _settled(broker, dict.fromkeys(keys))
            queues = broker.serve(keys=False)
            got = served(queues)
            found += sorted(key for key, data in wanted.items() if got.get(key) != data)
            found += [len(got)] if len(got) != len(wanted) + len(new) else []
            if not new:
                ends = {key: queues.queues[key].max_offset for key in keys}
                new = broker.put([Put(topic, b"new", queue_id) for topic, queue_id in keys])
                broker.catch_up()
                time.sleep(ledgers.CHECKPOINT_SECONDS)
            with suppress(Py4JError):
                broker.shutdown()
    offsets = {key: answer.queue_offset for key, answer in zip(keys, new, strict=True)}
    return [*found, offsets] if offsets != ends else found


@pytest.mark.parametrize("queues", ["default", "defaultRocksDB"])
@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
def test_plans_of_damaged_logs_beside_tables_in_rocksdb(release: str, queues: str, tmp_path: Path) -> None:
    tables = {"indexRocksDBEnable": "true", "transRocksDBEnable": "true", "transWriteOriginTransHalfEnable": "false"}
    compare(release, tmp_path, WITH_TABLES, ledgers.SETTINGS | tables | {"storeType": queues})


def written(release: str, folder: Path, settings: Settings, mixed: bool) -> list[Path]:
    """The release's jars, once it has written a store, in which an audit finds nothing."""
    own_network.needed()
    jars = class_path(release, dledger=True)
    own_network.run(write, release, jars, folder, settings, mixed)
    sound = product.audit(folder / "store", release, conf_of(settings))
    assert not sound.above_note and not sound.incomplete and not sound.outcome.covered.not_judged
    return jars


def damaged(folder: Path, cases: Mapping[str, Case]) -> dict[str, Path]:
    """A damaged copy for each of these cases, by name."""
    stores: dict[str, Path] = {}
    for number, (name, case) in enumerate(cases.items()):
        stores[name] = folder / str(number) / "store"
        ledgers.copy(folder / ("before" if case.before else "store"), stores[name])
        for older_parts in folder.glob("older*"):
            shutil.copytree(older_parts, stores[name].parent / older_parts.name)
        for damage in case.damages:
            damage(stores[name])
    return stores


def compare(release: str, tmp_path: Path, cases: Mapping[str, Case], settings: Settings, mixed: bool = False) -> None:
    jars = written(release, tmp_path, settings, mixed)
    stores = damaged(tmp_path, cases)
    audits = {name: product.audit(root, release, conf_of(settings)) for name, root in stores.items()}
    plans = {name: plan_of(audit) for name, audit in audits.items()}
    real = own_network.run(look, release, jars, [(root, plans[name]) for name, root in stores.items()], settings)
    for name, seen in zip(stores, real, strict=True):
        plan = plans[name]
        assert plan.keys() == seen.keys() and plan.get("end") == seen.get("end"), name
        for moment in ("after_load", "after_dispatch"):
            wrong = {key: numbers for key, numbers in seen.get(moment, {}).items() if numbers not in plan[moment].get(key, [])}
            assert not wrong, (name, moment, plan[moment])
        if (stores[name] / "rocksdbstore" / "CURRENT").exists() and plan:
            left, after = lacked_by_tables(audits[name], put=False), product.audit(stores[name], release, conf_of(settings))
            assert left == lacked_by_tables(after, put=False) | lacked_by_tables(after, put=True), name
