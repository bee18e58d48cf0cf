"""A store and an audit's command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli.options import AuditOptions, parse


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    (path / "commitlog").mkdir(parents=True)
    return path


def audit(*words: str) -> AuditOptions:
    asked = parse(["audit", *map(str, words)]).audit
    assert asked is not None
    return asked
