"""Each single read of the copy fails once while it is rescued: the same new store, or code 3 and the file."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from jobs import entry
from tests.support import damage
from tests.support.answers.repaired import content
from tests.support.failing_reads import failing_reads
from tests.support.stores.small_repairs import SIZES, small_store

FEW, MANY = 6, 150  # reads that are made to fail, by default and under the mark soak


def rescue(folder: Path, root: Path) -> int:
    words = ["rescue", str(root), "--release", "5.3.3", "--broker-conf", str(folder / "broker.conf")]
    return entry.main([*words, "--to", str(folder / "new" / "s"), "--yes"])


@pytest.mark.parametrize("most", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
def test_a_read_of_a_rescue_fails_once(most: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, conf = small_store(tmp_path)
    (tmp_path / "broker.conf").write_text(conf)
    segment = root / "commitlog" / f"{3 * SIZES.segment:020d}"
    body = segment.read_bytes().index(bytes([57]) * 60)
    damage.zero_range(segment, body, body + 40)
    before, around = content(root), tmp_path / "new"
    around.mkdir()
    with failing_reads(root) as reads:
        assert rescue(tmp_path, root) == 0
    whole = content(around / "s")
    came: Counter[str] = Counter()
    step = max(1, reads.count // most)
    for fail_at in range(step // 2, reads.count, step):
        shutil.rmtree(around)
        around.mkdir()
        capsys.readouterr()
        with failing_reads(root, fail_at) as failing:
            code = rescue(tmp_path, root)
        path, call = failing.failed
        said = "".join(capsys.readouterr())
        named = (str(root) if path == "." else path) in said
        if code:
            assert code == 3 and named and not (around / "s").exists(), (path, call, said)
            came["named"] += 1
        else:
            assert content(around / "s") == whole, (path, call)
            assert (around / "s.handover.html").exists(), (path, call, said)
            came["truth"] += 1
    assert content(root) == before
    print(f"rescue: {reads.count} reads, {dict(came)}")
