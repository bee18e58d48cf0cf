"""A store small enough to damage by hand, and what its repair loses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from schemas.repair import DonorReport
from store_io.repair.copy_under_way import CopyUnderWay
from store_io.repair.repair_audit import Audited, audit_copy
from store_io.repair.repair_plan import SALVAGE
from store_io.repair.repair_work import RepairRequest, Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import Served, plan_of, previewed, repaired, run_tasks
from tests.support.answers.repaired import numbers as numbers_of
from tests.support.stores.builders import Message, Sizes, StoreBuilder

SIZES = Sizes(segment=4096)


def small_store(folder: Path) -> tuple[Path, str]:
    """Three segments and a bit of one queue's messages of 200 bytes."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        builder.put(Message("TopicA", 0, bytes([number]) * 60, tags="a", uniq=f"{number:032X}"))
    store = builder.write(folder / "store")
    return store.root, store.broker_conf


def lost(root: Path, conf: str, target: Path, policy: str = "salvage", donor: Path | None = None) -> tuple[set[int], Served]:
    """(places of the messages that the repaired queue leads to, what it serves)."""
    more = {"donor": StoreLocation(str(donor))} if donor is not None else {}
    outcome = repaired(root, target, plan_of(root, "5.3.3", conf), policy, **more)
    assert outcome.exit_code == 0, outcome.report.problems
    served = Served(target, SIZES.segment)
    return {phy for _, phy, _ in served.messages.values()}, served


def donor_told(root: Path, conf: str, target: Path, donor: Path) -> DonorReport:
    plan, more = plan_of(root, "5.3.3", conf), {"donor": StoreLocation(str(donor))}
    dry = previewed(root, target, plan, "salvage", **more)
    outcome = repaired(root, target, plan, "salvage", **more)
    assert outcome.exit_code == 0 and numbers_of(dry) == outcome.report
    assert outcome.report.donor is not None
    return outcome.report.donor


@contextlib.contextmanager
def copied(root: Path, conf: str, target: Path, policy: str = SALVAGE) -> Iterator[tuple[Work, Audited]]:
    """A repair whose copy is made and audited; nothing of it stays."""
    request = RepairRequest("store", StoreLocation(str(root)), str(target), plan_of(root, "5.3.3", conf), policy)
    with StoreWriter.beside(str(target)) as writer:
        work = Work(request, writer, run_tasks, lambda sentence: None)
        with CopyUnderWay(request.location, writer) as copying:
            audit = audit_copy(work, copying)
        yield work, audit
