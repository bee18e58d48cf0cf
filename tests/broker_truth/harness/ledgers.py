"""DLedger stores opened by the real release: what it makes of one, as a plan tells it. Runs in a network of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from tests.broker_truth.harness.kinds import DLEDGER
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, PutAnswer, Served, conf_of

SIZES = {"mappedFileSizeCommitLog": 16384, "mappedFileSizeConsumeQueue": 1200, "maxHashSlotNum": 100, "maxIndexNum": 600}
SETTINGS = SIZES | DLEDGER
CONF = conf_of(SETTINGS)
CHECKPOINT_SECONDS = 4  # DLedger writes its own every 3 s


def write(jars: Sequence[Path], release: str, root: Path, puts: Sequence[Put]) -> None:
    """A store of those messages, all dispatched and in DLedger's checkpoint, whose broker was killed."""
    with Jvm(release, jars) as jvm:
        broker = jvm.broker(root, SETTINGS)
        assert broker.load()
        broker.start()
        broker.lead()
        broker.put(puts)
        broker.catch_up()
        time.sleep(CHECKPOINT_SECONDS)
        jvm.kill()


def look(jars: Sequence[Path], release: str, roots: Sequence[Path]) -> list[dict[str, Any] | None]:
    """What the release makes of each store in load() and as a leader, as a plan's `broker` tells it; None: it does not start."""
    found: list[dict[str, Any] | None] = []
    jvm = Jvm(release, jars)
    try:
        for root in roots:
            if not jvm.alive:  # DLedger has ended the process
                jvm.close()
                jvm = Jvm(release, jars)
            found.append(_looked(jvm, root))
    finally:
        jvm.close()
    return found


def _looked(jvm: Jvm, root: Path) -> dict[str, Any] | None:
    with jvm.broker(root, SETTINGS) as broker:
        try:
            if not broker.load():
                return None
        except Py4JError:
            return None
        after_load, ledger = _moment(broker), _ledger(broker)
        broker.start()
        broker.lead()
        return {"after_load": after_load, "dledger": ledger, "after_dispatch": _moment(broker)}


def _moment(broker: Broker) -> dict[str, Any]:
    state = broker.state()
    index = [(f["beginPhyOffset"], f["endPhyOffset"], max(1, f["indexCount"])) for f in state["indexFiles"]]
    return {"max": state["maxPhyOffset"], "queues": dict(state["queues"]), "index": index}


def _ledger(broker: Broker) -> dict[str, int]:
    log = broker.field(broker.field(broker.java.getCommitLog(), "dLedgerServer"), "dLedgerStore")
    return {
        "begin_index": log.getLedgerBeginIndex(),
        "end_index": log.getLedgerEndIndex(),
        "end_term": log.getLedgerEndTerm(),
        "committed_index": log.getCommittedIndex(),
        "committed_pos": log.getCommittedPos(),
    }


def planned(broker: Mapping[str, Any]) -> dict[str, Any] | None:
    """A plan's `broker` in the same shape."""
    if not broker["starts"]:
        return None

    def moment(plan: Mapping[str, Any]) -> dict[str, Any]:
        queues = {(q["topic"], q["queue_id"]): (q["min_offset"], q["max_offset"], q["max_phy_offset"]) for q in plan["queues"]}
        index = [(f["begin_phy_offset"], f["end_phy_offset"], max(1, f["index_count"])) for f in plan["index"]]
        return {"queues": queues, "index": index}

    ledger = {key: broker["dledger"][key] for key in ("begin_index", "end_index", "end_term", "committed_index", "committed_pos")}
    after_load = {"max": broker["truncate_at"], **moment(broker["after_load"])}
    return {"after_load": after_load, "dledger": ledger, "after_dispatch": moment(broker["after_dispatch"])}


def live(jars: Sequence[Path], release: str, root: Path, puts: Sequence[Put]) -> tuple[Served, list[PutAnswer]]:
    """What a leader serves of the store, and its answers to new messages; stopped cleanly then."""
    with Jvm(release, jars) as jvm:
        broker = jvm.broker(root, SETTINGS)
        assert broker.load()
        broker.start()
        broker.lead()
        served, answers = broker.serve(), broker.put(puts)
        broker.catch_up()
        with suppress(Py4JError):
            broker.shutdown()
        return served, answers
