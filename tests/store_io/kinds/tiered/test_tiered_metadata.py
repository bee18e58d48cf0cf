"""The metadata of a tiered store: what it claims, and any bytes."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store_io.kinds.tiered.tiered_store import TieredMetadata, read_tiered
from store_io.source.byte_source import ByteSource
from tests.support.handmade.evidence import FakeSource

PATH = "config/tieredStoreMetadata.json"
# As fastjson writes it: keys of maps with numbers stand without quotes.
WRITTEN = b"""{"commitLogFileSegmentTable":{"a/b/T/0":{0:{"path":"a","type":0,"baseOffset":0,"status":1,"size":4096},
4096:{"path":"a","type":0,"baseOffset":4096,"status":0,"size":100},8192:{"status":2,"size":5}}},"consumeQueueFileSegmentTable":{},
"queueMetadataTable":{"T":{0:{"maxOffset":500,"minOffset":20,"queue":{"brokerName":"b","queueId":0,"topic":"T"}},
1:{"maxOffset":0,"minOffset":0,"queue":{"brokerName":"b","queueId":1,"topic":"T"}}}},"topicMetadataTable":{},"topicSerialNumber":1}"""


def read(data: bytes) -> TieredMetadata:
    return read_tiered(cast(ByteSource, FakeSource({PATH: data})))


def test_what_a_broker_writes() -> None:
    found = read(WRITTEN)
    assert found.queues == {("T", 0): (20, 500), ("T", 1): (0, 0)}
    assert (found.fault, found.odd) == ("", 0)


@pytest.mark.parametrize("end", [0, 1, 100, len(WRITTEN) - 1])
def test_a_torn_file_has_a_fault(end: int) -> None:
    assert read(WRITTEN[:end]).fault


@pytest.mark.parametrize(
    "queues",
    [5, {"T": 5}, {"T": {"x": {"minOffset": 0, "maxOffset": 1}}}, {"T": {"0": {"minOffset": 1e9, "maxOffset": 1 << 64}}}],
)
def test_rows_of_another_form_are_counted(queues: Any) -> None:
    found = read(json.dumps({"queueMetadataTable": queues}).encode())
    assert (found.queues, found.odd, found.fault) == ({}, 1, "")


@given(st.binary(max_size=300) | st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.dictionaries(
    st.sampled_from(["queueMetadataTable", "T", "0", "minOffset", "maxOffset"]), inner,
)).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_bytes(data: bytes) -> None:
    found = read(data)
    assert found.odd >= 0 and all(isinstance(end, int) for _, end in found.queues.values())
