"""One JVM per release for all tests that want one (mark: broker), started when the first of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker_truth.real_broker import Jvm


@pytest.fixture(scope="session")
def jvm_of() -> Iterator[Callable[[str], Jvm]]:
    """The JVM of a release. A test that kills it, or whose store never lets go of it, harms nobody: the next gets a new one."""
    running: dict[str, Jvm] = {}

    def of(release: str) -> Jvm:
        if release not in running or not running[release].alive:
            running[release] = Jvm(release)
        return running[release]

    try:
        yield of
    finally:
        for jvm in running.values():
            jvm.close()
