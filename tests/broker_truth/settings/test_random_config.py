"""Random files of config/, damaged at random: what each manager of the real release loads, against the audit."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, config_files, config_rules
from store_io.kinds.config.config_reader import Load, load
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests.broker_truth.harness.managers import Tables
from tests.broker_truth.harness.real_broker import Jvm, class_path
from tests.support.stores.random_config import random_config

RELEASES = "4.8.0", "5.3.3", "5.4.0", "5.5.0"
NUMBERS = range(300)


@pytest.mark.broker
@pytest.mark.parametrize("release", RELEASES)
def test_the_audit_holds_what_the_managers_hold(release: str, tmp_path: Path) -> None:
    _hold(release, NUMBERS, tmp_path)


def _hold(release: str, numbers: range, folder: Path) -> None:
    cluster, dledger = release == "5.3.3", release < "5.3"  # where the jars that it needs besides are
    jars = class_path(release, cluster=cluster, managers=not cluster, dledger=dledger)
    wrong, unknown, compared = [], 0, 0
    with Jvm(release, jars) as jvm:
        managers = Tables(jvm, folder / "own")
        (folder / "empty").mkdir()
        own = {name: _plain(table) for name, (_, table) in managers.load(folder / "empty").items()}
        for number in numbers:
            root = folder / f"{number}"
            done = random_config(root / "config", Random(f"config/{release}/{number}"), pretty=release >= "5.4")
            said, seen = _audited(root, release), managers.load(root)
            for name, (loads, table) in seen.items():
                if said[name].problems or any(not bad.refused for bad in said[name].bad):
                    unknown += 1
                    continue
                compared += 1
                ours = (not said[name].refuses, {**own[name], **_table(name, said[name])})
                theirs = (loads, _plain(table))
                if ours[0] != theirs[0] or loads is True and ours[1] != theirs[1]:
                    what = next(part for part in done.splitlines() if part.startswith(f"{name}: "))
                    wrong.append(f"{number} {what}\n   audit {_shown(ours, own[name])}\n   broker {_shown(theirs, own[name])}")
    assert not wrong, "\n".join([f"{len(wrong)} of {compared}, {unknown} not known", *wrong])
    assert unknown < compared / 4


def _audited(root: Path, release: str) -> dict[str, Load]:
    (root / "commitlog").mkdir()
    location = StoreLocation(str(root))
    listing, source, rules = list_store(location), open_source(location), broker_rules(release)
    files = [file.path for file in config_files(rules) if file.stops]
    return {path.removeprefix("config/"): load(source, listing, path, config_rules(rules)) for path in files}


def _table(name: str, done: Load) -> dict[str, Any]:
    """What the audit says that the manager holds, in the form of the real ones."""
    if name == "topics.json":
        return _plain(done.entries)
    if name == CONSUMER_OFFSETS.removeprefix("config/"):
        table: dict[str, Any] = {}
        for (group, topic, queue_id), offset in done.entries.items():
            table.setdefault(f"{topic}@{group}" if group else topic, {})[str(queue_id)] = offset
        return table
    if name == "delayOffset.json":
        return {str(level): offset for level, offset in done.entries.items()}
    return dict(done.entries) if name == "subscriptionGroup.json" else {}


def _plain(table: Any) -> dict[str, Any]:
    """A manager's table without attributes that are empty."""
    without = {"attributes": {}}
    rows = (table or {}).items()
    return {
        key: {k: v for k, v in row.items() if (k, v) not in without.items()} if isinstance(row, dict) else row
        for key, row in rows
    }


def _shown(held: tuple[bool | str, dict[str, Any]], own: dict[str, Any]) -> str:
    """Without what a broker has by itself."""
    return f"{held[0]}: { ({key: row for key, row in held[1].items() if own.get(key) != row}) }"
