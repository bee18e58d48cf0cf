"""From which size on Spark is started unasked."""

from __future__ import annotations

import pytest

from jobs.runtime.spark_start import SPARK_BYTES, worth_spark


@pytest.mark.parametrize(("size", "worth"), [(0, False), (SPARK_BYTES, False), (SPARK_BYTES + 1, True)])
def test_more_than_eight_gigabytes_are_worth_it(size: int, worth: bool) -> None:
    assert worth_spark(size) == worth and SPARK_BYTES == 8 * 1024**3
