"""A message with torn properties that the broker wrote again: one damage, and its consequences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schemas.rows import LOSS, NOTE, Finding
from tests.support.answers import product
from tests.support.stores import builders
from tests.support.stores.builders import Message, Sizes, StoreBuilder

SIZES = Sizes(segment=2048, queue_file=400, slots=20, index_max=50)
TORN = b"UNIQ_KEY\x017F0001\x02REAL_TOPIC\x01Pay\x02REAL_QID\x010\x02PGROUP\x01g\0\0\0\0p\x02__transactionId__\x017F0001\x02"


def put_together_again(data: bytes, more: bytes = b"", without: tuple[bytes, ...] = ()) -> bytes:
    """As a broker writes a message's properties again: parsed, those of no use left out, in any order."""
    parts = [part for part in data.split(b"\x02") if b"\x01" in part and not part.startswith(without or b"\x02")]
    return more + b"".join(part + b"\x02" for part in sorted(parts, reverse=True))


def told(root: Path, *messages: Message) -> list[Finding]:
    """The findings on properties, of a store in which these messages stand apart from one another."""
    builder = StoreBuilder("5.3.3", SIZES)
    for message in messages:
        builder.put(message)
        builder.put_batch([Message("Other", body=b"x" * 60, tags="a") for _ in range(3)])
    store = builder.write(root)
    audited = product.audit(root, store.release, store.broker_conf)
    assert not [f for f in audited.above_note if f.code != "properties_malformed"]
    return [f for f in audited.findings if f.code == "properties_malformed"]


HALF = Message(builders.HALF_TOPIC, body=b"pay", born_time=1_699_999_999_000, raw_properties=TORN)
AGAIN = replace(HALF, raw_properties=put_together_again(TORN, b"TRAN_PREPARED_QUEUE_OFFSET\x010\x02"))


def test_a_half_message_put_back_three_times_and_moved_is_one_damage(tmp_path: Path) -> None:
    moved = replace(AGAIN, topic="TRANS_CHECK_MAX_TIME_TOPIC")
    found = sorted(told(tmp_path / "store", HALF, AGAIN, AGAIN, AGAIN, moved), key=lambda f: f.phy_offset or 0)
    assert [f.severity for f in found] == [LOSS, NOTE, NOTE, NOTE, NOTE]
    assert len({f.file for f in found}) > 1
    first = found[0]
    assert all(f"the message at physical offset {first.phy_offset}" in f.message for f in found[1:])
    assert all(str(first.phy_offset) in f.next for f in found[1:]) and "another copy" in first.next


def test_a_delayed_message_that_was_delivered_is_one_damage(tmp_path: Path) -> None:
    torn = b"DELAY\x011\x02REAL_TOPIC\x01Pay\x02REAL_QID\x010\x02a\x01\0\0\0\x02b\0c\x01d\x02\0\0\x02"
    delayed = Message(builders.SCHEDULE_TOPIC, 0, b"later", born_time=1_699_999_999_000, raw_properties=torn)
    delivered = replace(delayed, topic="Pay", raw_properties=put_together_again(torn, without=(b"DELAY",)))
    found = sorted(told(tmp_path / "store", delayed, delivered), key=lambda f: f.phy_offset or 0)
    assert [f.severity for f in found] == [LOSS, NOTE]


@pytest.mark.parametrize(
    "other",
    [
        replace(AGAIN, body=b"other"),
        replace(AGAIN, born_time=HALF.born_time + 1),
        replace(AGAIN, raw_properties=AGAIN.raw_properties.replace(b"g\0", b"h\0")),  # type: ignore[union-attr]
        replace(AGAIN, raw_properties=AGAIN.raw_properties + b"more\x01\0\x02"),  # type: ignore[operator]
        replace(AGAIN, raw_properties=b"no separator\x02"),
    ],
    ids=["body", "born time", "properties", "more damage", "damage that a copy cannot have"],
)
def test_what_is_no_copy_is_a_damage_of_its_own(tmp_path: Path, other: Message) -> None:
    assert [f.severity for f in told(tmp_path / "store", HALF, other)] == [LOSS, LOSS]
