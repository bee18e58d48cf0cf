"""What keeps the release from starting is taken away, where nothing is lost by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store_io.base.errors import StoreError
from tests.support.answers.repaired import Served, plan_of, repaired
from tests.support.stores import builders
from tests.support.stores.rocksdb_stores import TWICE, combined_store


@pytest.mark.parametrize("name", ["consumerFilter.json", "consumerOffset.json"])
def test_a_table_of_config_is_never_taken_away_unasked(tmp_path: Path, name: str) -> None:
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=4096, queue_file=400))
    builder.put(builders.Message("T", body=b"x"))
    store = builder.write(tmp_path / "store")
    (store.root / "config").mkdir(exist_ok=True)
    for ending in ("", ".bak"):
        (store.root / "config" / (name + ending)).write_text('{"torn":')
    plan = plan_of(store.root, store.release, store.broker_conf)
    with pytest.raises(StoreError, match=r"under policy broker nothing can be done.* Repair with --fix-config$"):
        repaired(store.root, tmp_path / "new", plan)
    with pytest.raises(StoreError, match=r"with --empty-config it begins empty$"):
        repaired(store.root, tmp_path / "new", plan, fix_config=True)
    salvage = repaired(store.root, tmp_path / "new", plan, "salvage", fix_config=True)
    assert salvage.exit_code == 20 and salvage.report["problems"][-1].endswith("with --empty-config it begins empty")
    done = repaired(store.root, tmp_path / "new", plan, fix_config=True, empty_config=True)
    assert done.exit_code == 0 and done.report["emptied"][0] == {"file": f"config/{name}", "lost": 0}


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_a_line_of_broker_conf_that_stops_the_release_is_to_be_corrected_first(policy: str, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    store = combined_store(tmp_path / "s").write()
    conf = store.plain.broker_conf + TWICE + "combineCQPreferCQType=other\n"
    plan = plan_of(store.root, "5.4.0", conf)
    with pytest.raises(
        StoreError, match=r"Correct this line of broker\.conf, the copy is not at fault: combineCQPreferCQType=other"
    ):
        repaired(store.root, tmp_path / "new", plan, policy)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("cut", ["in a segment between others", "in the last segment"])
def test_a_record_that_only_the_zeros_beyond_a_short_file_completed_is_left_out(tmp_path: Path, cut: str) -> None:
    """Its properties would end with NUL bytes, which no checksum shows: its tag would be another one."""
    builder = builders.StoreBuilder("4.8.0", builders.Sizes(segment=1024, queue_file=400))
    placed = [builder.put(builders.Message("T", body=b"x" * 50, uniq=f"{n:032X}")) for n in range(30)]
    store = builder.write(tmp_path / "store")
    base = 0 if cut == "in a segment between others" else max(m.at for m in placed) // 1024 * 1024
    half = [m for m in placed if base <= m.at < base + 1024][-1]
    os.truncate(store.root / "commitlog" / f"{base:020d}", half.at + half.size - base - 1)
    plan = plan_of(store.root, store.release, store.broker_conf)
    kept = {}
    for policy in ("broker", "salvage"):
        done = repaired(store.root, tmp_path / policy, plan, policy)
        assert done.exit_code == 0, done.report["problems"]
        kept[policy] = done.report["messages_after"]
        report = done.report
        if policy == "broker":
            assert report["dropped"] == [
                {
                    "file": f"commitlog/{base:020d}", "start": half.at - base, "end": half.at + half.size - base, "topic": "T",
                    "queue_id": 0, "queue_offset": half.queue_offset,
                    "reason": "its last 1 byte lay beyond the end of the file and would be zeros now",
                }
            ]  # fmt: skip
        assert (report["given_up"]["missing"], report["given_up"]["cut"], report["lost"]["messages"]) == (1, 0, 0)
        assert half.at not in {record.at for record in Served(tmp_path / policy, 1024).records() if record.topic == "T"}
    assert kept == {"broker": 29, "salvage": 29}
