"""What a cluster keeps a command waiting for is said once, when it takes too long."""

from __future__ import annotations

import io
import json

import pytest

from jobs.runtime import cluster_wait
from jobs.runtime.cluster_wait import APPLICATION, EXECUTOR, PATIENCE_SECONDS, Waiting, say, say_as_json

LATE = PATIENCE_SECONDS + 1


def test_what_is_short_is_not_said() -> None:
    waiting = Waiting("spark://m:7077")
    assert not waiting.seen(APPLICATION, 0) and not waiting.seen(APPLICATION, PATIENCE_SECONDS - 1)
    assert not waiting.seen(EXECUTOR, PATIENCE_SECONDS) and not waiting.seen(EXECUTOR, 2 * PATIENCE_SECONDS - 1)
    assert not waiting.seen("", LATE) and not waiting.seen(EXECUTOR, 3 * LATE), "time without tasks does not count"


def test_once_each_time_and_where_to_look() -> None:
    waiting = Waiting("spark://m:7077")
    waiting.seen(EXECUTOR, 0)
    said = waiting.seen(EXECUTOR, LATE, "app-1")
    assert said.startswith("waiting for an executor from spark://m:7077: look at the master's page, application app-1, whether")
    assert "--executor-memory" in said and not waiting.seen(EXECUTOR, 100 * LATE, "app-1")
    waiting.seen("", 101 * LATE)
    waiting.seen(EXECUTOR, 102 * LATE)
    assert waiting.seen(EXECUTOR, 103 * LATE, "app-1") == said, "all executors were lost later"


@pytest.mark.parametrize(
    ("master", "what", "look"),
    [
        (
            "yarn",
            APPLICATION,
            "waiting for yarn to start this application: look with 'yarn application -list' whether",
        ),
        ("yarn", EXECUTOR, "look with 'yarn application -status a'"),
        ("k8s://https://h", EXECUTOR, "waiting for an executor from k8s://https://h: look with 'kubectl describe pods'"),
        ("spark://m:1", APPLICATION, "waiting for spark://m:1 to start this application: look at the master's page whether"),
    ],
)
def test_each_kind_of_cluster(master: str, what: str, look: str) -> None:
    waiting = Waiting(master)
    waiting.seen(what, 0)
    assert look in waiting.seen(what, LATE, "a" if what == EXECUTOR else "")


def test_on_standard_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    say("waiting for x")
    say_as_json("waiting for x")
    line, row = capsys.readouterr().err.splitlines()
    assert line == f"{cluster_wait.SPEAKER}: waiting for x" and json.loads(row) == {"phase": "waiting", "said": "waiting for x"}
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    say("nobody hears it")
