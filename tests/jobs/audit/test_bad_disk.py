"""Single calls of the system that fail once under a real audit, as it is typed: the true result, or code 3 and the file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT, TESTS
from tests.support.answers.repaired import content
from tests.support.stores import corpus_tools

SOURCE = TESTS / "support" / "processes" / "fault.c"
# (part of the path, calls, how many of a process's before the one that fails)
READS = [
    *(("/store/commitlog/", "read,", n) for n in (0, 2, 9, 30)), *(("/store/consumequeue/", "read,", n) for n in (0, 5, 40, 150)),
    *(("/store/index/", "read,", n) for n in (0, 1, 3, 8, 20)), ("/store/checkpoint", "read,", 0), ("/store/index/", "open,", 2),
    ("/store/consumequeue/", "open,", 60), ("/store/commitlog", "open,", 1),
]  # fmt: skip
WRITES = [
    *(("/out/store/plan.json", call, 0) for call in ("write,", "fsync,", "rename,")), ("/out/result.json", "write,", 0),
    ("/out/tables/", "write,", 0), ("/out/tables/", "create,", 1), ("/out/tables/", "fsync,", 0), ("/out/tables/", "rename,", 0),
]  # fmt: skip

pytestmark = [pytest.mark.soak, pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with fault.so and a real store."""
    made = tmp_path_factory.mktemp("bad_disk")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made / "fault.so", SOURCE, "-ldl"], check=True)
    corpus_tools.cases("g29-")[0].unpack(made)
    return made


def audited(folder: Path, fault: tuple[str, str, int] | None = None) -> tuple[int, str, dict[str, Any] | None, str]:
    """(exit code, all that was printed, the store's row of result.json, its findings)."""
    out, env = folder / "out", dict(os.environ)
    shutil.rmtree(out, ignore_errors=True)
    if fault is not None:
        env |= {"LD_PRELOAD": str(folder / "fault.so"), "FAULT_PATH": f"{folder}{fault[0]}"}
        env |= {"FAULT_CALLS": fault[1], "FAULT_N": str(fault[2])}
    words = [ROOT / "spark-submit.sh", "audit", folder / "store", "--release", "4.9.8", "--out", out]
    done = subprocess.run([*words, "--broker-conf", folder / "broker.conf"], capture_output=True, text=True, env=env, check=False)
    try:
        row = json.loads((out / "result.json").read_text())["stores"][0]
        return done.returncode, done.stdout + done.stderr, row, (out / "store" / "findings.jsonl").read_text()
    except (FileNotFoundError, IndexError):
        return done.returncode, done.stdout + done.stderr, None, ""


@pytest.fixture(scope="module")
def truth(folder: Path) -> tuple[int, str]:
    """(exit code, findings) of an audit of which no call fails."""
    code, said, row, findings = audited(folder)
    assert row is not None and row["complete"], said
    return code, findings


@pytest.mark.parametrize("fault", [*READS, *WRITES], ids=lambda fault: f"{fault[1].rstrip(',')}{fault[2]}-{fault[0].strip('/')}")
def test_a_call_that_fails_once(folder: Path, truth: tuple[int, str], fault: tuple[str, str, int]) -> None:
    before = content(folder / "store")
    code, said, row, findings = audited(folder, fault)
    assert content(folder / "store") == before
    if row is not None and row["complete"] and code == truth[0]:
        assert findings == truth[1], said
        return
    assert code in (3, truth[0]), said
    place = fault[0].removeprefix("/store/").removeprefix("/out/").strip("/")
    assert place in said + json.dumps(row), said
    assert row is None or not row["complete"] or code == 3, said
