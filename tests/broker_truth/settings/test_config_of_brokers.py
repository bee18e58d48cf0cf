"""config/ of whole brokers, made anew: the corpus has what each release writes, and the audit reads it (mark: broker)."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from jobs.runtime import setup as environment
from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.configs import RELEASES, made, settings_of
from tests.broker_truth.harness.real_broker import conf_of
from tests.support.answers.real_tables import check_tables
from tests.support.stores.corpus_tools import of_kind

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_leaves_what_the_corpus_has(release: str, tmp_path: Path) -> None:
    own_network.needed()
    java = environment.java_runtime().home
    if not Path(java, "bin", "javac").exists():
        pytest.skip(f"{java} has no Java compiler")
    (tmp_path / "home").mkdir()
    consumed = made(release, tmp_path / "home")
    shutil.copytree(tmp_path / "home" / "cluster" / "store" / "config", tmp_path / "left" / "config")
    (case,) = (case for case in of_kind("config") if case.release == release)
    assert fields(tmp_path / "left") == fields(case.unpack(tmp_path / "case"))
    check_tables(tmp_path / "left", release, conf_of(settings_of(release)), consumed)


def fields(root: Path) -> dict[str, set[str]]:
    """File -> the names of its outermost fields."""
    found = {}
    for path in (root / "config").iterdir():
        if path.suffix != ".bak" and path.name != "timercheck":
            text = re.sub(r"([{,]\s*)(-?[0-9]+)(\s*:)", r'\1"\2"\3', path.read_text("utf-8"))  # names without quotes
            found[path.name] = set(json.loads(text))
    return found
