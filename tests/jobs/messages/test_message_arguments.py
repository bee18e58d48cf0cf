"""A topic without a queue is told with the nearest names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jobs.messages.message_arguments import unknown_topics
from store_io.base.errors import StoreError


def store(*topics: str) -> Any:
    return SimpleNamespace(queues=lambda: [SimpleNamespace(key=(topic, 0)) for topic in topics])


def test_one_name_with_the_nearest() -> None:
    said = unknown_topics(store("orders", "payments"), ["ordres"])
    assert said == "this copy has no queue of the topic ordres; it has orders"


def test_several_names_and_none_near() -> None:
    said = unknown_topics(store("orders"), ["xx", "yy", "orders"])
    assert said.startswith("this copy has no queue of these topics: xx") and "; it has" not in said


def test_nothing_is_said_where_all_are_there_or_nothing_is_known() -> None:
    def unreadable() -> Any:
        raise StoreError("cannot be read")

    assert unknown_topics(store("a", "b"), ["a"]) == ""
    assert unknown_topics(store(), ["a"]) == unknown_topics(store("a"), None) == ""
    assert unknown_topics(SimpleNamespace(queues=unreadable), ["a"]) == ""  # type: ignore[arg-type]


def test_hostile_names_stay_text() -> None:
    assert "\x1b" not in unknown_topics(store("a\x1b[2J"), ["a\x1b[3J"])
