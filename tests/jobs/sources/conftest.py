"""A store that each source has rows of."""

from __future__ import annotations

import json

import pytest

from tests.support.stores.builders import HALF_TOPIC, Message, Sizes, StoreBuilder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with rows of all sources."""
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 12))
    for number in range(30):
        builder.put(
            Message(f"T{number % 3}", number % 2, b"x" * 60, keys=f"k{number} all", tags=f"g{number % 4}", uniq=f"U{number}")
        )
    for number in range(3):
        builder.put(Message(HALF_TOPIC, uniq=f"half{number}", properties=(("REAL_TOPIC", "T0"), ("REAL_QID", "0"))))
    groups = {f"T{number}@g{number}": {"0": 3, "1": 1} for number in range(3)}
    config = {"consumerOffset.json": json.dumps({"offsetTable": groups})}
    return str(builder.write(tmp_path_factory.mktemp("asked") / "store", config=config).root)
