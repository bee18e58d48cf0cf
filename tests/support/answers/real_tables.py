"""What is asked of config/ that a real broker left behind after tests/broker_truth/harness/configs.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import config_files
from store_io.broker.settings.read_settings import given_settings
from store_io.kinds.config.config_reader import BACKUP, StoreConfig, read_config
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store

ALL_SEEN = {"pushed", "pulled", "polled", "in-order", "popped", "delayed", "paid"}  # groups that consume whole topics


def tables_of(root: Path, release: str, conf: str) -> StoreConfig:
    """config/ as this release reads it."""
    location = StoreLocation(str(root))
    return read_config(open_source(location), list_store(location), broker_rules(release, given_settings(conf, release)))


def check_tables(root: Path, release: str, conf: str, consumed: Mapping[str, Mapping[str, Mapping[str, int]]]) -> None:
    """The writer's release takes each file and each .bak as a broker writes it; the tables hold what was consumed."""
    config = tables_of(root, release, conf)
    assert not config.findings and not config.problems and not config.useless_backups
    for path, done in config.loads.items():
        assert done.name == (path if (root / path).exists() else ""), path
        assert done.odd is None and not done.bad and not done.refuses
    for file in root.glob(f"config/*{BACKUP}"):
        file.replace(file.with_name(file.name.removesuffix(BACKUP)))
    older = tables_of(root, release, conf)
    assert not older.findings and not older.problems and all(not done.bad and done.odd is None for done in older.loads.values())

    for group, topics in consumed.items():
        assert config.groups[group]["consumeEnable"]
        for topic, queues in topics.items():
            for queue, offset in queues.items():
                held = config.offsets[group, topic, int(queue)]
                assert held == offset if group in ALL_SEEN else held >= offset, (group, topic, queue)
    assert {*consumed} >= ALL_SEEN - {"popped"} and ("popped" in consumed) == release.startswith("5.")
    assert not config.groups["slow"]["consumeEnable"] and config.groups["slow"]["retryMaxTimes"] == 3
    topics_held = {name: (config.topics or {})[name]["readQueueNums"] for name in ("Orders", "Ordered", "Later", "Paid")}
    assert topics_held == {"Orders": 4, "Ordered": 2, "Later": 2, "Paid": 1}
    assert {level for level, offset in config.delay_offsets.items() if offset} >= {1, 2, 3}
    assert {file.path for file in config_files(broker_rules(release, given_settings(conf, release))) if file.stops} == {
        *config.loads
    }
