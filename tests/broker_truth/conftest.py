"""One JVM per release for all tests that want one (mark: broker), started when the first of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker_truth.harness.real_broker import Jvm, Jvms


@pytest.fixture(scope="session")
def jvm_of() -> Iterator[Callable[[str], Jvm]]:
    """The JVM of a release. A test that kills it harms nobody: the next gets a new one."""
    with Jvms() as running:
        yield running.of
