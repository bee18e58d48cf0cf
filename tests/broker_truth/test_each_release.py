"""Each published release by its own jars: stores of the corpus, and random ones, against what its load() and start() do.

The releases of `real_broker.RELEASES` meet far more stores in the other modules; here no release is held against a neighbour
alone. `-m soak` takes all stores of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker_truth.harness.real_broker import Jvm, pinned_releases
from tests.broker_truth.test_random_damage import Made, hold, random_made
from tests.support.stores.corpus_tools import of_kind, plain_cases

CASES = [case for case in (*plain_cases(), *of_kind("releases")) if "enableControllerMode=true" not in case.broker_conf]
EACH = pinned_releases()
RANDOM = 12


def _of_the_corpus(folder: Path, first: int, step: int) -> Iterator[Made]:
    for case in CASES[first::step]:
        yield case.unpack(folder / case.name), case.broker_conf, case.name


@pytest.mark.broker
@pytest.mark.parametrize("release", EACH)
def test_a_spread_of_stores_under_each(release: str, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    place = EACH.index(release)
    hold(release, _of_the_corpus(tmp_path / "corpus", place % 2, 2), jvm_of, least=5)
    hold(release, (random_made(tmp_path / f"{number}", release, number, "") for number in range(RANDOM)), jvm_of, least=5)
    jvm_of(release).close()  # there are two dozen


@pytest.mark.soak
@pytest.mark.parametrize("release", EACH)
def test_all_stores_of_the_corpus_under_each(release: str, jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    hold(release, _of_the_corpus(tmp_path, 0, 1), jvm_of, least=10)
