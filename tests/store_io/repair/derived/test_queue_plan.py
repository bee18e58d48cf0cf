"""What each queue of a repaired store holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.stores.builders import Message, StoreBuilder, inner_body
from tests.support.stores.small_repairs import SIZES, lost


@pytest.mark.parametrize(("jump", "kept"), [(40, 40), (10**12, 0), (2**61, 0)])
@pytest.mark.parametrize("first", [0, 30])
def test_a_jump_that_no_disk_could_hold_is_not_filled(jump: int, kept: int, first: int, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        place = number if number < first else number + jump
        builder.put(Message("TopicA", 0, bytes([number]) * 60, tags="a", uniq=f"{number:032X}", queue_offset=place))
    store = builder.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue", ignore_errors=True)
    _, served = lost(store.root, store.broker_conf, tmp_path / "new")
    own = {place for _, _, place in served.messages}
    if first or jump == 40:
        assert own >= set(range(first)) | set(range(first + kept, 60 + kept)) and max(own) == 59 + kept
    assert len({phy for _, phy, _ in served.messages.values()}) == 60


@pytest.mark.parametrize("damage", ["gone", "an entry is zeros"])
def test_a_batch_queue_gets_the_entries_that_a_broker_wrote(damage: str, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES, batch_topics={"Batch"})
    for number in range(9):
        inner = number % 3 + 1
        builder.put(Message("Batch", 0, inner_body([b"m"] * inner), inner_count=inner))
    store = builder.write(tmp_path / "store")
    (file,) = (store.root / "batchconsumequeue/Batch/0").iterdir()
    written = file.read_bytes()
    if damage == "gone":
        shutil.rmtree(store.root / "batchconsumequeue")
    else:
        file.write_bytes(written[:92] + bytes(46) + written[138:])
    lost(store.root, store.broker_conf, tmp_path / "new")
    assert (tmp_path / "new" / file.relative_to(store.root)).read_bytes() == written
