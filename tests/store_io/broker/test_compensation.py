"""load() reads messages after confirmOffset, and fails over some (controller.md 3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.broker.fenced_broker import judged
from tests.support import damage
from tests.support.answers import product
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.replica import SIZES, replica


@pytest.mark.parametrize(("release", "starts"), [("5.1.4", True), ("5.2.0", False), ("5.3.3", False), ("5.5.0", False)])
def test_a_damaged_magic_after_confirm_offset_stops_a_start(release: str, starts: bool, tmp_path: Path) -> None:
    """It lies before the segment where recovery begins, so without controller mode no start meets it."""
    store = replica(tmp_path / "store", release, messages=60)
    damage.set_field(store, store.records[5], "magic", lambda magic: magic ^ 1)
    audit = product.audit(store.root, release, store.broker_conf)
    assert audit.broker is not None and audit.broker["starts"] == starts
    assert starts or f"commitlog/{0:020d}" in audit.broker["refusal"] and "confirmOffset 0" in audit.broker["refusal"]
    damage.set_checkpoint(store, confirm=store.records[6].at)
    assert product.audit(store.root, release, store.broker_conf).broker["starts"]  # type: ignore[index]
    plain = store.broker_conf.replace("true", "false")
    assert product.audit(store.root, release, plain).broker["starts"]  # type: ignore[index]


@pytest.mark.parametrize(("release", "starts"), [("5.1.4", True), ("5.3.3", False)])
def test_so_does_a_message_with_a_long_topic(release: str, starts: bool, tmp_path: Path) -> None:
    builder = StoreBuilder(release, SIZES, settings={"enableControllerMode": "true"})
    for n in range(12):
        builder.put(Message("T" * (130 if n == 6 else 10), 0, b"x" * 90))
    store = builder.write(tmp_path / "store")
    broker = product.audit(store.root, release, store.broker_conf).broker
    assert broker is not None and broker["starts"] == starts
    assert starts or "V2" in broker["refusal"]


@pytest.mark.parametrize(
    ("release", "last", "starts"),
    [("4.9.8", True, True), ("5.1.4", True, False), ("5.3.3", True, False), ("5.5.0", True, False), ("5.3.3", False, True)],
)
@pytest.mark.parametrize("clean", [True, False])
def test_with_duplication_the_last_message_alone_counts(
    release: str, last: bool, starts: bool, clean: bool, tmp_path: Path
) -> None:
    """Recovery leaves confirmOffset at its start, whatever the checkpoint says."""
    builder = StoreBuilder(release if release > "5" else "5.1.4", SIZES, settings={"duplicationEnable": "true"})
    for n in range(40):
        builder.put(Message("T" * (130 if n == (39 if last else 38) else 10), properties=(("DUP_INFO", "a_b"),)))
    store = builder.write(tmp_path / "store", clean=clean)
    broker = product.audit(store.root, release, store.broker_conf).broker
    assert broker is not None and broker["starts"] == starts
    assert starts or f"confirmOffset {store.records[-1].at}" in broker["refusal"]


@pytest.mark.parametrize("where", ["body", "middle"])
def test_a_record_that_fails_another_check_only_ends_it(where: str, tmp_path: Path) -> None:
    store = replica(tmp_path / "store", messages=60)
    if where == "body":
        damage.flip_in(store, store.records[5], "body")
    else:  # a size that leads beyond the log's end
        damage.set_field(store, store.records[5], "size", lambda size: size | 1 << 28)
    damage.set_field(store, store.records[9], "magic", lambda magic: magic ^ 1)
    broker = product.audit(store.root, store.release, store.broker_conf).broker
    assert broker is not None and broker["starts"]


def test_a_filler_leads_to_where_its_size_says(tmp_path: Path) -> None:
    """Elsewhere a filler ends the segment, whatever its size."""
    store = replica(tmp_path / "store", messages=60)
    assert product.audit(store.root, store.release, store.broker_conf).broker["starts"]  # type: ignore[index]
    first = max(record.at + record.size for record in store.records if record.at < SIZES.segment)
    damage.overwrite(store.root / "commitlog" / f"{0:020d}", first, (9).to_bytes(4, "big"))
    broker = product.audit(store.root, store.release, store.broker_conf).broker
    assert broker is not None and not broker["starts"] and f"position {first + 9}: its size is 0" in broker["refusal"]


def test_a_confirm_offset_inside_of_a_record_stops_it(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", messages=60)
    damage.set_checkpoint(store, confirm=store.records[7].at + 5)
    broker = product.audit(store.root, store.release, store.broker_conf).broker
    assert broker is not None and (broker["starts"] or f"position {store.records[7].at + 5}" in broker["refusal"])


def test_which_frames_are_thrown_over() -> None:
    def head(size: int, magic: int) -> bytes:
        return size.to_bytes(4, "big", signed=True) + magic.to_bytes(4, "big")

    assert judged(head(100, 0xDAA320A7), 100) == judged(head(100, 0xCBD43194), 100) == judged(b"\0\0", 100) == ""
    assert judged(head(101, 0), 100) == ""
    assert "V2" in judged(head(100, 0xDAA320AB), 100) and "0x00000001" in judged(head(100, 1), 100)
    assert "size is 0" in judged(head(0, 0), 100) and "size is -5" in judged(head(-5, 0xDAA320A7), 100)
