"""Conditions as sources take them over: never a row less than the whole condition keeps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from jobs.sources.conditions import as_contents, as_message_filter, as_text, from_text, of_spark
from jobs.sources.file_sources import ConsumeQueueSource, ExtentsSource, IndexSource
from jobs.sources.group_sources import OffsetsSource, TransactionsSource
from jobs.sources.message_source import MessagesSource
from jobs.sources.store_source import StoreSource
from store_io.base.errors import UsageError
from store_io.messages.message_filter import EVERY_MESSAGE, Contents, MessageFilter
from tests.store_io.messages.test_message_rows import odd_store
from tests.support.stores.builders import Message, StoreBuilder

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOON_MS = 1_795_176_000_000
TAKEN = set("topic tags queue_id queue_offset phy_offset store_time_ms store_time unique_key msg_id keys group kind".split())


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (EqualTo(("topic",), "a"), MessageFilter(topics=frozenset("a"))),
        (In(("topic",), ("a", "b")), MessageFilter(topics=frozenset("ab"))),
        (EqualTo(("topic",), 1), EVERY_MESSAGE),
        (EqualTo(("queue_id",), 3), MessageFilter(queue_ids=frozenset({3}))),
        (EqualTo(("queue_id",), "3"), EVERY_MESSAGE),
        (EqualTo(("phy_offset",), 5), MessageFilter(phy_offsets=(5, 6))),
        (GreaterThan(("phy_offset",), 5), MessageFilter(phy_offsets=(6, None))),
        (LessThan(("queue_offset",), 5), MessageFilter(queue_offsets=(None, 5))),
        (LessThanOrEqual(("store_time_ms",), 5), MessageFilter(store_times=(None, 6))),
        (GreaterThanOrEqual(("store_time_ms",), 5), MessageFilter(store_times=(5, None))),
        (In(("queue_offset",), (9, 2)), MessageFilter(queue_offsets=(2, 10))),
        (GreaterThan(("store_time",), NOON), MessageFilter(store_times=(NOON_MS, None))),
        (LessThan(("store_time",), NOON), MessageFilter(store_times=(None, NOON_MS + 1))),
        (EqualTo(("store_time",), NOON), MessageFilter(store_times=(NOON_MS, NOON_MS + 1))),
        (GreaterThan(("topic",), "a"), EVERY_MESSAGE),
        (EqualTo(("tags",), "a"), MessageFilter(tags=frozenset("a"))),
        (EqualTo(("keys",), "a"), EVERY_MESSAGE),
        (EqualTo(("inner_batch",), True), EVERY_MESSAGE),
    ],
)
def test_what_a_condition_asks_of_messages(condition: Filter, wanted: MessageFilter) -> None:
    found = of_spark([condition])
    assert [as_message_filter(one) for one in found] in ([wanted], [] if wanted == EVERY_MESSAGE else [wanted])
    assert from_text(as_text(found)) == found


@pytest.mark.parametrize(
    "condition",
    [
        Not(EqualTo(("topic",), "a")),
        IsNotNull(("topic",)),
        StringStartsWith(("topic",), "a"),
        EqualTo(("properties", "key"), "a"),
        EqualTo(("topic",), None),
        In(("topic",), ("a", None)),
        In(("topic",), ()),
        EqualTo(("topic",), ("a", "b")),
    ],
)
def test_what_no_source_can_use_is_left_to_spark(condition: Filter) -> None:
    assert of_spark([condition]) == []


@pytest.mark.parametrize(
    ("condition", "contents"),
    [
        (StringContains(("keys",), "a b"), Contents(in_keys=("a b",))),
        (EqualTo(("keys",), "a"), Contents(in_keys=("a",))),
        (In(("keys",), ("a", "b")), None),
        (EqualTo(("unique_key",), "u"), Contents(unique_keys=frozenset("u"))),
        (In(("unique_key",), ("u", "v")), Contents(unique_keys=frozenset("uv"))),
        (In(("msg_id",), ("u", "v")), Contents(msg_ids=frozenset("uv"))),
        (StringContains(("topic",), "a"), None),
        (EqualTo(("queue_id",), 1), None),
    ],
)
def test_what_a_condition_asks_of_contents(condition: Filter, contents: Contents | None, tmp_path: Path) -> None:
    (found,) = of_spark([condition])
    assert as_contents(found) == contents
    builder = StoreBuilder("5.3.3")
    builder.put(Message())
    source = MessagesSource({"path": str(builder.write(tmp_path / "store").root), "conditions": as_text([found])})
    reader: Any = source.reader(source.schema())
    assert reader.contents == (contents or Contents())
    source = MessagesSource({**source.given, "redact": "hide"})  # Spark sees other texts in these columns
    hidden: Any = source.reader(source.schema())
    assert (hidden.contents, hidden.wanted == EVERY_MESSAGE) == (Contents(), condition.attribute not in (("queue_id",),))


@pytest.mark.parametrize(
    "kind", [MessagesSource, ConsumeQueueSource, IndexSource, ExtentsSource, OffsetsSource, TransactionsSource]
)
def test_a_condition_leaves_out_no_row_that_shows_its_value(kind: type[StoreSource], tmp_path: Path) -> None:
    """Odd texts, too."""
    root = odd_store(tmp_path / "store").root
    (root / "config").mkdir(exist_ok=True)
    table = {"T@g\ud800": {"0": 3}, "T\ud800@g": {"0": 3}, "T@\0": {"1": 3}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))

    def rows(**more: str) -> list[dict[str, Any]]:
        source = kind({"path": str(root), "release": "5.3.3", **more})
        reader: Any = source.reader(source.schema())
        return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]

    every = rows()
    assert every or kind in (IndexSource, TransactionsSource)
    fewer = 0
    for name in TAKEN & set(every[0] if every else ()):
        for value in sorted({row[name] for row in every if row[name] is not None})[-2:]:
            found = rows(conditions=as_text(of_spark([EqualTo((name,), value)])))
            fewer += len(found) < len(every)
            wanted = [row for row in every if row[name] == value]
            assert [row for row in found if row[name] == value] == wanted, (name, value)
    assert fewer or kind in (ExtentsSource, IndexSource, TransactionsSource)


@pytest.mark.parametrize(
    "text", ["", "{}x", "7", '[["EqualTo", "topic"]]', '[["Like", "topic", ["a"]]]', '[["EqualTo", 7, ["a"]]]']
)
def test_an_option_that_read_did_not_make(text: str) -> None:
    with pytest.raises(UsageError, match=r"only sources\.read sets it"):
        MessagesSource({"path": "here", "conditions": text})
