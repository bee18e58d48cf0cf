"""No room under --out: the verdict is on the terminal, the error there once, and the exit code says that results are missing."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import results
from jobs.audit import run_audit as audit
from jobs.cli import options
from jobs.commands.audit import guarded
from jobs.runtime import output
from jobs.runtime.session import Session
from tests.support import damage
from tests.support.stores.small_repairs import small_store

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("fits", "damaged", "code"),
    [((), False, 3), (("plan.json", "findings.jsonl"), False, 3), ((), True, 20), (("plan.json", "result.json"), False, 3)],
)
def test_a_full_disk_leaves_the_verdict_and_one_sentence(
    spark_session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fits: tuple[str, ...],
    damaged: bool,
    code: int,
) -> None:
    root, conf = small_store(tmp_path)
    (tmp_path / "broker.conf").write_text(conf)
    if damaged:
        segment = sorted((root / "commitlog").iterdir())[0]
        damage.zero_range(segment, 150, 190)
    out, real = tmp_path / "out", output.write_local

    def full(path: str, parts: Iterable[bytes], **words: Any) -> None:
        if not path.endswith(fits or ("/",)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        real(path, parts, **words)

    monkeypatch.setattr(output, "write_local", full)
    words = ["audit", str(root), "--release", "5.3.3", "--broker-conf", str(tmp_path / "broker.conf"), "--out", str(out)]
    asked = options.parse(words).audit
    assert asked is not None
    assert guarded(asked, lambda asked: audit.run_with(spark_session, asked)) == code
    said = capsys.readouterr()
    both = said.out + said.err
    assert both.count(os.strerror(errno.ENOSPC)) == 1 and "  Why  " in said.out
    assert f"  Exit code  {code} (" in said.out
    repairs = "  Repair " in said.out, "before a repair" in said.out  # a repair needs plan.json
    assert repairs == (False, True)
    result = results.read_result(str(out), asked.run_id)
    assert (result is not None) == ("result.json" in fits) == (f"{out}/result.json" in said.out)
    if result is not None:
        assert json.loads((out / "result.json").read_text())["exit_code"] == 3 and len(result["problems"]) == 1
