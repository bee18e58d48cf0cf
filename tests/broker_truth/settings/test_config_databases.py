"""Tables of config/ in RocksDB, of both versions: what the managers of whole and damaged ones hold, against the audit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from store_io.broker.releases import broker_rules
from store_io.broker.settings.read_settings import read_settings
from store_io.kinds.config.config_reader import read_config
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests.broker_truth.harness.managers import Loaded, Managers
from tests.broker_truth.harness.real_broker import Jvm, class_path, conf_of
from tests.store_io.kinds.config.texts.test_held_tables import ODD_RECORDS, RECORDS
from tests.support.damage import invert_byte

pytestmark = pytest.mark.broker
RELEASES = ("5.3.3", "5.4.0", "5.5.0")
V2, V1 = {"configManagerVersion": "v2"}, {"storeType": "defaultRocksDB"}
KINDS = {"v2": V2, "v1": V1, "single": {**V1, "useSingleRocksDBForAllConfigs": "true"}}
FOLDERS = {"v2": "rdb", "v1": "topics", "single": "metadata"}
TOPICS = {f"Topic{n:03d}": n % 7 + 1 for n in range(300)}
GROUPS = {f"group{n:03d}": n % 5 for n in range(100)}
OFFSETS = {(f"group{g:03d}", f"Topic{t:03d}", q): 1000 * g + 10 * t + q for g in range(20) for t in range(20) for q in range(3)}
PER_JVM = 12  # a manager that refuses leaves its database open


def jars(release: str) -> list[Path]:
    return class_path(release, cluster=release == "5.3.3", managers=release != "5.3.3")


def audited(root: Path, release: str, settings: Mapping[str, Any]) -> Loaded | None:
    """What the audit says; None where it says that it does not know."""
    (root / "commitlog").mkdir(exist_ok=True)
    location = StoreLocation(str(root))
    listing, source = list_store(location), open_source(location)
    conf = conf_of({"brokerName": "broker-a", **settings})
    config = read_config(source, listing, broker_rules(release, read_settings(conf, listing, source)))
    if config.problems or any(done.problems for done in config.loads.values()):
        return None
    topics = {name: row["readQueueNums"] for name, row in (config.topics or {}).items()}
    groups = {name: row["retryMaxTimes"] for name, row in config.groups.items()}
    return Loaded(not any(done.refuses for done in config.loads.values()), topics, groups, config.offsets)


def largest(folder: Path, end: str) -> Path:
    """Raises ValueError where none has a byte."""
    return max((path for path in folder.glob(f"*{end}") if path.stat().st_size), key=lambda path: path.stat().st_size)


def manifest(folder: Path) -> Path:
    return next(folder.glob("MANIFEST-*"))


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def flip(path: Path, part: float) -> None:
    invert_byte(path, int(path.stat().st_size * part), 1)


def flip_largest(end: str, part: float, folder: Path) -> None:
    flip(largest(folder, end), part)


def emptied(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "whole": lambda folder: None,
    "no CURRENT": lambda folder: (folder / "CURRENT").unlink(),
    "CURRENT of zeros": lambda folder: (folder / "CURRENT").write_bytes(bytes(16)),
    "CURRENT empty": lambda folder: (folder / "CURRENT").write_bytes(b""),
    "no MANIFEST": lambda folder: manifest(folder).unlink(),
    "MANIFEST cut in half": lambda folder: cut(manifest(folder), manifest(folder).stat().st_size // 2),
    "MANIFEST without its end": lambda folder: cut(manifest(folder), -10),
    "MANIFEST flipped": lambda folder: flip(manifest(folder), 0.5),
    "no IDENTITY": lambda folder: (folder / "IDENTITY").unlink(missing_ok=True),
    "folder empty": emptied,
    "no folder": shutil.rmtree,
    **{f"table flipped at {part}": partial(flip_largest, ".sst", part) for part in (0.05, 0.3, 0.6, 0.9, 0.97)},
    "table cut": lambda folder: cut(largest(folder, ".sst"), -100),
    "table empty": lambda folder: cut(largest(folder, ".sst"), 0),
    "table missing": lambda folder: largest(folder, ".sst").unlink(),
    **{f"log flipped at {part}": partial(flip_largest, ".log", part) for part in (0.001, 0.3, 0.7, 0.999)},
    "log cut by 5": lambda folder: cut(largest(folder, ".log"), -5),
    "log missing": lambda folder: largest(folder, ".log").unlink(),
}


@pytest.mark.parametrize(
    ("release", "kind"), [(release, kind) for kind in KINDS for release in RELEASES if kind != "single" or release >= "5.4"]
)
def test_damaged_databases_are_held_as_the_release_holds_them(release: str, kind: str, tmp_path: Path) -> None:
    """`stopped`: after a clean stop and a second life; `killed`: a copy from within that."""
    settings = KINDS[kind]
    with Jvm(release, jars(release)) as jvm:
        for life in range(2):
            managers = Managers(jvm, tmp_path / "stopped", settings)
            assert managers.load().starts
            managers.write({"More": 3} if life else TOPICS, GROUPS, OFFSETS)
            if life:
                shutil.copytree(tmp_path / "stopped", tmp_path / "killed")
            managers.stop()
    cases = []
    for number, (state, name) in enumerate((state, name) for state in ("stopped", "killed") for name in DAMAGES):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / state, copy, ignore=shutil.ignore_patterns("LOCK"))
        try:
            DAMAGES[name](copy / "config" / FOLDERS[kind])
        except ValueError:  # it has no such file
            continue
        cases.append((copy, f"{release} {kind} {state} {name}", audited(copy, release, settings)))
    assert len(cases) > 35
    wrong = []
    for first in range(0, len(cases), PER_JVM):
        with Jvm(release, jars(release)) as jvm:
            for copy, case, said in cases[first : first + PER_JVM]:
                managers = Managers(jvm, copy, settings)
                seen = managers.load()
                with suppress(Exception):  # a database that is left open can end the JVM
                    managers.stop()
                if not same(said, seen):
                    wrong.append((case, shown(said), shown(seen)))
    assert wrong == []


def same(said: Loaded | None, seen: Loaded) -> bool:
    """What a broker has without any database is in what it holds alone."""
    if said is None or said.starts != seen.starts:
        return False
    own = TOPICS.keys() | GROUPS.keys() | {"More", "A", "g"}
    return not seen.starts or (
        said.topics.items() <= seen.topics.items()
        and said.groups.items() <= seen.groups.items()
        and own & (said.topics.keys() | said.groups.keys()) == own & (seen.topics.keys() | seen.groups.keys())
        and said.offsets == seen.offsets
    )


def shown(loaded: Loaded | None) -> Any:
    return loaded and (loaded.starts, len(loaded.topics), len(loaded.groups), len(loaded.offsets), loaded.thrown)


@pytest.mark.parametrize("release", RELEASES)
def test_odd_records_of_the_second_version(release: str, tmp_path: Path) -> None:
    wrong = []
    with Jvm(release, jars(release)) as jvm:
        for number, more in enumerate([{}, *ODD_RECORDS]):
            copy = tmp_path / str(number)
            managers = Managers(jvm, copy, V2)
            assert managers.load().starts
            managers.put_records({**RECORDS, **more})
            managers.stop()
            said = audited(copy, release, V2)
            seen = Managers(jvm, copy, V2).load()
            if not same(said, seen):
                wrong.append((more, shown(said), shown(seen)))
    assert wrong == []
