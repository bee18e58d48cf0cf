"""What to read, as plain values that travel."""

from __future__ import annotations

import pickle

from schemas.sources import BODY_COLUMNS, LOST
from store_io.broker.releases import broker_rules
from store_io.messages.scans import COLUMNS, DEFAULT_COLUMNS, EntryScan, MessageScan
from store_io.source.byte_source import StoreLocation


def test_bodies_are_given_only_where_they_are_asked_for() -> None:
    assert set(COLUMNS) - set(DEFAULT_COLUMNS) == {*BODY_COLUMNS, LOST}
    scan = MessageScan(StoreLocation("/copy"), "commitlog/0", 0, 10)
    assert scan.columns == DEFAULT_COLUMNS and scan.rules.delays[1] == 1000


def test_scans_travel() -> None:
    for scan in (MessageScan(StoreLocation("/copy"), "commitlog/0", 0, 10), EntryScan(StoreLocation("/copy"), broker_rules())):
        assert pickle.loads(pickle.dumps(scan)) == scan
