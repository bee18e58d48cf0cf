"""A database beside queues in files, which the release writes and never reads: it goes if the log is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers.repaired import plan_of, repaired
from tests.support.damage import invert_byte
from tests.support.stores import dledger_stores
from tests.support.stores.small_repairs import small_store

RELEASE = "5.3.3"
NAMES = ("000004.sst", "CURRENT", "MANIFEST-000005")


def plain(folder: Path) -> tuple[Path, str, Path, int]:
    root, conf = small_store(folder)
    segment = max(path for path in (root / "commitlog").iterdir() if any(path.read_bytes()))
    return root, conf, segment, len(segment.read_bytes().rstrip(b"\0")) - 60


def ledger(folder: Path) -> tuple[Path, str, Path, int]:
    store = dledger_stores.build(folder / "store", RELEASE)
    entry = store.entries[-1]
    return (
        store.root,
        store.broker_conf,
        store.data_of(entry),
        entry.at % dledger_stores.SIZES.segment + dledger_stores.HEADER + 100,
    )


@pytest.mark.parametrize("build", [plain, ledger])
@pytest.mark.parametrize("policy", ["broker", "salvage"])
@pytest.mark.parametrize("cut", [True, False])
def test_a_database_that_is_written_only_goes_with_a_changed_log(tmp_path: Path, build, policy: str, cut: bool) -> None:  # type: ignore[no-untyped-def]
    root, conf, path, last = build(tmp_path)
    for name in NAMES:
        (root / "consumequeue" / name).write_bytes(b"MANIFEST-000005\n")
    if cut:
        invert_byte(path, last)
    outcome = repaired(root, tmp_path / "new", plan_of(root, RELEASE, conf + "rocksdbCQDoubleWriteEnable=true\n"), policy)
    assert outcome.exit_code == 0
    assert [name for name in NAMES if (tmp_path / "new" / "consumequeue" / name).exists()] == ([] if cut else list(NAMES))
