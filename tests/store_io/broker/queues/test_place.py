"""Which folder holds the queues' database, by release and setting."""

from __future__ import annotations

import pytest

from schemas.advice import RefusalKind
from schemas.rows import StoreFile
from store_io.broker.loading import Tree
from store_io.broker.queues.start_databases import database_folder, folder_refusal
from store_io.broker.releases import BrokerRules, Setting, broker_rules


def rules(release: str, separate: bool) -> BrokerRules:
    return broker_rules(release, {"useSeparateStorePathForRocksdbCQ": Setting(separate, "broker.conf")})


@pytest.mark.parametrize(
    ("release", "separate", "folder"),
    [("5.4.0", True, "consumequeue"), ("5.5.0", False, "consumequeue"), ("5.5.0", True, "consumequeue_rocksdb")],
)
def test_folder(release: str, separate: bool, folder: str) -> None:
    assert database_folder(rules(release, separate)) == folder


@pytest.mark.parametrize("separate", [False, True])
def test_a_database_in_the_other_folder_stops_5_5_0_alone(separate: bool) -> None:
    own, other = ("consumequeue_rocksdb", "consumequeue") if separate else ("consumequeue", "consumequeue_rocksdb")
    assert folder_refusal(Tree([StoreFile(f"{own}/CURRENT", "file", 16)]), rules("5.5.0", separate)) is None
    beside = Tree([StoreFile(f"{other}/CURRENT", "file", 16)])
    refusal = folder_refusal(beside, rules("5.5.0", separate))
    assert refusal is not None and (refusal.kind, refusal.path) == (RefusalKind.QUEUE_DATABASE_ELSEWHERE, f"{other}/CURRENT")
    assert folder_refusal(beside, rules("5.4.0", separate)) is None
