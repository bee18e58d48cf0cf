"""A port that no address has in a header: the broker hands the message out, and a client drops what it pulled from there on."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.finding_codes import Code
from schemas.rows import LOSS
from tests.broker_truth.harness.real_broker import Jvm, Put, conf_of
from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.builders import decode, field_position

pytestmark = pytest.mark.broker
SETTINGS = {"mappedFileSizeCommitLog": 1 << 20}


@pytest.mark.parametrize("field", ["bornHost", "storeHost"])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3", "5.5.1"])
def test_a_client_gets_nothing_from_that_message_on(
    release: str, field: str, tmp_path: Path, jvm_of: Callable[[str], Jvm]
) -> None:
    jvm, root = jvm_of(release), tmp_path / "store"
    with jvm.broker(root, SETTINGS) as broker:
        broker.begin()
        put = broker.put([Put("T", b"body", keys=f"k{number}") for number in range(10)])
        broker.catch_up()
        broker.shutdown()
    segment = root / "commitlog" / f"{0:020d}"
    at, size = field_position(decode(segment.read_bytes(), put[4].phy_offset), field)
    overwrite(segment, put[4].phy_offset + at + size - 4, struct.pack(">i", 70_000))
    (found,) = product.audit(root, release, conf_of(SETTINGS)).above_note
    assert (found.code, found.severity, found.phy_offset) == (Code.MESSAGE_HEADER_ODD, LOSS, put[4].phy_offset)
    with jvm.broker(root, SETTINGS) as broker:
        broker.begin()
        records = broker.pull("T", 0)
        java = jvm.gateway.jvm
        client = java.org.apache.rocketmq.common.message.MessageDecoder
        decoded = client.decodes(java.java.nio.ByteBuffer.wrap(b"".join(records)), True)
        assert (len(records), len(decoded)) == (10, 4)
        assert [len(each) for each in broker.query([("T", f"k{number}") for number in range(10)])] == [1] * 4 + [0] + [1] * 5
