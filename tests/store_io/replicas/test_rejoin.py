"""What a replica would lose as slave of another (controller.md 5)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.report.texts.comparison_words import rejoin_words
from schemas.replicas import Pair, Rejoin, Rejoining, Relation
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base.tasks import run_task
from store_io.model.audit_request import AuditRequest
from store_io.replicas.replica_groups import replica_groups
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.stores.builders import Message, Store, StoreBuilder
from tests.support.stores.replica import SIZES, epoch_text

COMMON = 30


def one(root: Path, own: str, more: int, *epochs: tuple[int, int], mode: str = "true") -> Store:
    """A replica: COMMON messages that all have, and `more` of its own."""
    builder = StoreBuilder("5.3.3", SIZES, settings={"enableControllerMode": mode})
    for n in range(COMMON + more):
        builder.put(Message("T", 0, f"{'common' if n < COMMON else own} {n}".encode() * 3, keys=f"k{n}"))
    store = builder.write(root)
    if epochs:
        (root / "epochFileCheckpoint").write_bytes(epoch_text(*epochs))
    return store


def rejoin(*stores: Store) -> Any:
    audits: list[StoreAudit] = []
    for number, store in enumerate(stores):
        audits.append(
            run_audit(AuditRequest("ab"[number], StoreLocation(str(store.root)), store.release, store.broker_conf, "g", number))
        )
    (group,) = replica_groups(audits)
    group.finish([run_task(task) for task in group.tasks()])
    return group.result.pairs[0].rejoin


def words(row: Rejoin) -> str:
    return next(rejoin_words(Pair("a", "b", Relation.DIVERGED, rejoin=(row,))))


def where_parted(store: Store) -> int:
    return store.records[COMMON].at


def test_an_old_master_loses_what_it_alone_wrote(tmp_path: Path) -> None:
    probe = where_parted(one(tmp_path / "probe", "x", 1))
    old = one(tmp_path / "old", "old", 12, (1, 0))
    new = one(tmp_path / "new", "new", 20, (1, 0), (2, probe))
    left, right = rejoin(old, new)
    lost = old.records[COMMON:]
    size, times = sum(record.size for record in lost), (lost[0].store_time, lost[-1].store_time)
    assert left == Rejoin("a", "b", probe, Rejoining.CUTS, 12, size, *times, differs_before=False)
    # The other way round the same epoch is common, and the new master's own messages are beyond it.
    assert (right.consistent_point, right.outcome, right.messages) == (probe, "cuts", 20)
    assert words(left) == (
        f"as slave of b, a would cut its log at physical offset {probe:,}, as the epochs say,"
        " and lose 12 messages that b does not hold"
    )


def test_a_slave_that_is_behind_loses_nothing(tmp_path: Path) -> None:
    slave, master = one(tmp_path / "slave", "same", 0, (1, 0)), one(tmp_path / "master", "same", 9, (1, 0))
    left, right = rejoin(slave, master)
    assert (left.outcome, left.messages, left.consistent_point) == ("copies", 0, where_parted(master))
    assert (right.outcome, right.messages) == ("cuts", 9)


def test_no_common_epoch_and_a_point_inside_of_a_record_leave_both_apart(tmp_path: Path) -> None:
    probe = where_parted(one(tmp_path / "probe", "x", 1))
    apart = one(tmp_path / "a", "x", 5, (1, 7)), one(tmp_path / "b", "x", 5, (1, 0))
    assert [(row.outcome, row.consistent_point) for row in rejoin(*apart)] == [("refused", None)] * 2
    inside = one(tmp_path / "c", "x", 5, (1, 0)), one(tmp_path / "d", "y", 5, (1, 0), (2, probe - 5))
    left, _ = rejoin(*inside)
    assert (left.outcome, left.consistent_point, left.messages) == ("refused", probe - 5, 0)
    assert "neither cut nor copy" in words(left)


def test_without_epochs_a_log_stays_as_it_is(tmp_path: Path) -> None:
    left, _ = rejoin(one(tmp_path / "a", "x", 5), one(tmp_path / "b", "y", 5, (1, 0)))
    assert (left.outcome, left.messages, left.consistent_point) == ("keeps_its_log", 0, None)


def test_logs_that_differ_before_the_point_are_named(tmp_path: Path) -> None:
    left, _ = rejoin(one(tmp_path / "a", "x", 5, (1, 0)), one(tmp_path / "b", "y", 5, (1, 0)))
    assert left.differs_before and left.outcome == "copies"
    assert words(left).endswith("; both differ before that place, and this stays")


def test_outside_of_controller_mode_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert rejoin(one(tmp_path / "a", "x", 5, mode="false"), one(tmp_path / "b", "x", 5, (1, 0))) is None


def test_a_copy_whose_start_never_ends_joins_nobody(tmp_path: Path) -> None:
    waits, other = one(tmp_path / "a", "x", 5, (1, 0)), one(tmp_path / "b", "x", 5, (1, 0))
    shutil.rmtree(waits.root / "commitlog")  # so a start that looks at the queues waits for what is confirmed
    damage.set_checkpoint(waits, confirm=waits.records[3].at)
    assert rejoin(waits, other) is not None
    assert rejoin(replace(waits, broker_conf=f"{waits.broker_conf}recheckReputOffsetFromCq=true\n"), other) is None
