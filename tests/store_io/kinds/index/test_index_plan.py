"""The index of a new store."""

from __future__ import annotations

import shutil
from pathlib import Path

from store_io.kinds.index.index_rebuild import index_names, prepare_index
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES, copied

WILD_MS = 2_685_000_000_000  # of the year 2055


def test_names_are_used_again_and_ascend() -> None:
    there = ["index/20231114221320000", "index/odd", "index/20231114221319998"]
    assert index_names(there, 1, 0) == ["index/20231114221319998"]
    assert index_names(there, 4, 0) == [
        f"index/{n}" for n in (20231114221319998, 20231114221320000, 20231114221320001, 20231114221320002)
    ]
    day = 86_400_000
    assert index_names([], 1, day) == ["index/19700101100000000"]  # 14 hours before: below every time zone's name


def test_one_message_with_a_wild_store_time_names_no_file(tmp_path: Path) -> None:
    """Its name would come after all that a broker makes for years."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(20):
        time = WILD_MS if number == 7 else None
        builder.put(Message("TopicA", number % 2, b"x" * 40, uniq=f"{number:032X}", store_time=time))
    store = builder.write(tmp_path / "store")
    shutil.rmtree(store.root / "index")
    with copied(store.root, store.broker_conf, tmp_path / "new") as (work, audit):
        (path,) = prepare_index(work, audit).paths
        assert audit.last_store_time == WILD_MS and path < "index/2050"
