"""A store that each source has rows of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.runtime.session import PEOPLES_DEFAULTS
from tests.support.stores.builders import HALF_TOPIC, Message, Sizes, StoreBuilder


@pytest.fixture(scope="module")
def peoples_spark(spark_session: Any) -> Iterator[SparkSession]:
    """Spark with the settings that `run` and notebooks have."""
    found: SparkSession = spark_session.spark
    for name, value in PEOPLES_DEFAULTS.items():
        found.conf.set(name, value)
    yield found
    for name in PEOPLES_DEFAULTS:
        found.conf.unset(name)


@pytest.fixture
def spark(peoples_spark: SparkSession, spark: SparkSession) -> SparkSession:
    return spark


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
