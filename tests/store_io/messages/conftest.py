"""One small store of which the explorers are asked."""

from __future__ import annotations

import pytest

from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Twelve messages of one queue of TopicA, in two segments, with a key each; the eighth has a key of its own."""
    builder = StoreBuilder("5.3.3", Sizes(segment=1024, queue_file=400))
    for number in range(12):
        builder.put(Message("TopicA", 1, b"body %d" % number, tags="t", keys="special" if number == 7 else f"k{number}"))
    return builder.write(tmp_path_factory.mktemp("small") / "store")
