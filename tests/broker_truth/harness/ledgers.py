"""DLedger stores opened by the real release: what it makes of one, as a plan tells it. Runs in a network of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from tests.broker_truth.harness.kinds import DLEDGER
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, PutAnswer, Served, conf_of

SIZES = {"mappedFileSizeCommitLog": 16384, "mappedFileSizeConsumeQueue": 1200, "maxHashSlotNum": 100, "maxIndexNum": 600}
SETTINGS = SIZES | DLEDGER
CONF = conf_of(SETTINGS)
Looked = dict[str, Any]
CHECKPOINT_SECONDS = 4  # DLedger writes its own every 3 s


def write(jars: Sequence[Path], release: str, root: Path, puts: Sequence[Put]) -> None:
    """A store of those messages, all dispatched and in DLedger's checkpoint, whose broker was killed."""
    with Jvm(release, jars) as jvm:
        broker = jvm.broker(root, SETTINGS)
        broker.begin()
        broker.lead()
        broker.put(puts)
        broker.catch_up()
        time.sleep(CHECKPOINT_SECONDS)
        jvm.kill()


def look(
    jars: Sequence[Path], release: str, stores: Sequence[tuple[Path, Mapping[str, Any] | str]], seconds: float = 60
) -> list[Looked | None]:
    """What the release makes of each store in load() and as a leader, as a plan's `broker` tells it; None: it does not start.

    stores: each with its settings.  seconds: after which start() waits without end; then there is no `after_dispatch`.
    """
    found: list[Looked | None] = []
    jvm = Jvm(release, jars)
    try:
        for root, settings in stores:
            for fresh in (False, True):  # what ends the process may be left of the store before
                try:
                    found.append(_looked(jvm, root, settings, seconds))
                    break
                except Py4JNetworkError:  # DLedger has ended the process
                    jvm.close()
                    jvm = Jvm(release, jars)
                    if fresh:
                        found.append(None)
    finally:
        jvm.close()
    return found


def _looked(jvm: Jvm, root: Path, settings: Mapping[str, Any] | str, seconds: float) -> Looked | None:
    with jvm.broker(root, settings) as broker:
        try:
            if not broker.load():
                return None
        except Py4JJavaError:
            return None
        loaded = {"after_load": _moment(broker, end=True), "dledger": _ledger(broker)}
        try:
            broker.start(seconds)
            broker.lead(seconds)
        except TimeoutError:
            return loaded
        return {**loaded, "after_dispatch": _moment(broker)}


def _moment(broker: Broker, end: bool = False) -> dict[str, Any]:
    """end: with the log's end."""
    state = broker.state()
    index = [(f["beginPhyOffset"], f["endPhyOffset"], max(1, f["indexCount"])) for f in state["indexFiles"]]
    return {"queues": dict(state["queues"]), "index": index, **({"max": state["maxPhyOffset"]} if end else {})}


def _ledger(broker: Broker) -> dict[str, int]:
    log = broker.field(broker.field(broker.java.getCommitLog(), "dLedgerServer"), "dLedgerStore")
    return {
        "begin_index": log.getLedgerBeginIndex(),
        "end_index": log.getLedgerEndIndex(),
        "end_term": log.getLedgerEndTerm(),
        "committed_index": log.getCommittedIndex(),
        "committed_pos": log.getCommittedPos(),
    }


def planned(broker: Mapping[str, Any], waits: bool = False) -> Looked | None:
    """A plan's `broker` in the same shape. waits: it says that start() waits without end."""
    if not broker["starts"]:
        return None

    def moment(plan: Mapping[str, Any]) -> dict[str, Any]:
        queues = {(q["topic"], q["queue_id"]): (q["min_offset"], q["max_offset"], q["max_phy_offset"]) for q in plan["queues"]}
        index = [(f["begin_phy_offset"], f["end_phy_offset"], max(1, f["index_count"])) for f in plan["index"]]
        return {"queues": queues, "index": index}

    ledger = {key: broker["dledger"][key] for key in ("begin_index", "end_index", "end_term", "committed_index", "committed_pos")}
    after_load = {"max": broker["truncate_at"], **moment(broker["after_load"])}
    loaded = {"after_load": after_load, "dledger": ledger}
    return loaded if waits else {**loaded, "after_dispatch": moment(broker["after_dispatch"])}


def differences(ours: Looked | None, theirs: Looked | None) -> list[str]:
    """A line for each; of tables what is in one of them alone."""
    if ours is None or theirs is None or ours.keys() != theirs.keys():
        names = ["does not start" if one is None else f"starts, {', '.join(one)}" for one in (ours, theirs)]
        return [] if ours is theirs else [f"plan {names[0]}; broker {names[1]}"]
    found = []
    for moment in ours:
        for part in ours[moment].keys() | theirs[moment].keys():
            mine, real = ours[moment].get(part), theirs[moment].get(part)
            if mine == real:
                continue
            if isinstance(mine, dict) and isinstance(real, dict):
                apart = {key for key in mine.keys() | real.keys() if mine.get(key) != real.get(key)}
                mine, real = ({key: table.get(key) for key in sorted(apart)} for table in (mine, real))
            found.append(f"{moment}, {part}: plan {mine}, broker {real}")
    return found


def copy(root: Path, target: Path) -> Path:
    """A copy of a store, its files up to their last byte that is not zero: the index is nearly all hole."""
    shutil.copytree(root, target, copy_function=copy_sparse)
    return target


def copy_sparse(source: str, target: str) -> None:
    size = Path(source).stat().st_size
    with open(source, "rb") as file:
        data = file.read(1 << 20)  # these stores have written no more of any file
    with open(target, "wb") as file:
        file.write(data)
        file.truncate(size)


def live(jars: Sequence[Path], release: str, root: Path, puts: Sequence[Put]) -> tuple[Served, list[PutAnswer]]:
    """What a leader serves of the store, and its answers to new messages; stopped cleanly then."""
    with Jvm(release, jars) as jvm:
        broker = jvm.broker(root, SETTINGS)
        broker.begin()
        broker.lead()
        served, answers = broker.serve(), broker.put(puts)
        broker.catch_up()
        with suppress(Py4JError):
            broker.shutdown()
        return served, answers
