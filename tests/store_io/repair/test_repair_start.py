"""What keeps the release from starting is taken away, where nothing is lost by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store_io.base.errors import StoreError
from tests.support.answers.repaired import Served, plan_of, repaired
from tests.support.stores import builders
from tests.support.stores.rocksdb_stores import TWICE, combined_store


@pytest.mark.parametrize(("name", "spared"), [("consumerFilter.json", True), ("consumerOffset.json", False)])
def test_a_file_of_config_is_set_aside_only_where_a_broker_goes_on_without_it(tmp_path: Path, name: str, spared: bool) -> None:
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=4096, queue_file=400))
    builder.put(builders.Message("T", body=b"x"))
    store = builder.write(tmp_path / "store")
    (store.root / "config").mkdir(exist_ok=True)
    for ending in ("", ".bak"):
        (store.root / "config" / (name + ending)).write_text('{"torn":')
    plan = plan_of(store.root, store.release, store.broker_conf)
    if not spared:
        with pytest.raises(StoreError, match="under policy broker nothing can be done"):
            repaired(store.root, tmp_path / "new", plan)
        return
    done = repaired(store.root, tmp_path / "new", plan)
    assert done.exit_code == 0 and done.report["unblocked"][0].startswith(f"config/{name}: ")
    assert not list((tmp_path / "new" / "config").glob(f"{name}*"))


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
