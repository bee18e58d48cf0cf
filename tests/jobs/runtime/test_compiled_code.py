"""Compiled code is kept where it can be written to, and where nobody else can."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobs.runtime import compiled_code
from jobs.runtime import setup as environment
from tests.jobs.runtime.conftest import make

COMPILE = """
import os, sys
from jobs.runtime import compiled_code
if sys.argv[1] == "told":
    os.environ["NUMBA_CACHE_DIR"] = compiled_code.numba_cache()
sys.path.insert(0, sys.argv[2])
import compiled
print(compiled.more(1), os.environ.get("NUMBA_CACHE_DIR"))
"""
LOCKED = """
for folder in "$1" "$2" "$3"; do mount --bind "$folder" "$folder" && mount -o remount,ro,bind "$folder" || exit 9; done
shift 3
exec "$@"
"""

UNSHARE = shutil.which("unshare")
MOUNTS = UNSHARE is not None and subprocess.run([UNSHARE, "-m", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not MOUNTS, reason="only root may mount")
def test_code_is_compiled_where_neither_the_environment_nor_the_home_can_be_written_to(place: Path, tmp_path: Path) -> None:
    """On file systems that are mounted read-only, which stop root too."""
    code, home, free = tmp_path / "code", tmp_path / "home", tmp_path / "free"
    for folder in (code, home, free, place / "store-audit"):
        folder.mkdir(parents=True)
    (code / "compiled.py").write_text("import numba\n@numba.njit(cache=True)\ndef more(x):\n    return x + 1\n")

    def run(how: str, **more: str) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(home), "TMPDIR": str(free)}
        variables |= {"STORE_AUDIT_HOME": str(place), "PYTHONPATH": str(environment.ROOT), **more}
        words = [str(UNSHARE), "-m", "sh", "-c", LOCKED, "sh", *map(str, (place, home, code)), sys.executable, "-c", COMPILE]
        return subprocess.run([*words, how, str(code)], env=variables, capture_output=True, text=True)

    assert "cannot cache function" in run("not told").stderr, "what it is about"
    cache = free / f"store-audit-numba-{os.geteuid()}"
    done = run("told", NUMBA_CACHE_DIR=f"{home}/numba", XDG_CACHE_HOME=f"{home}/cache")
    assert (done.returncode, done.stdout) == (0, f"2 {cache}\n"), done.stderr
    assert done.stderr.startswith(f"spark-submit.sh: compiled code is kept in {cache}: ") and done.stderr.count("\n") == 1
    assert list(cache.rglob("*.nbc")), "kept for the next run"
    done = run("told", XDG_CACHE_HOME=str(free / "mine"))
    assert (done.stdout, done.stderr) == (f"2 {free}/mine/store-audit/numba\n", "")


def test_a_temporary_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies there is run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = tmp_path / f"store-audit-numba-{os.geteuid()}"
    assert compiled_code._own_temporary_folder() == compiled_code._own_temporary_folder() == str(shared)
    shared.chmod(0o777)
    assert compiled_code._own_temporary_folder() not in (str(shared), "")
    shared.rmdir()
    shared.symlink_to(tmp_path)
    assert Path(compiled_code._own_temporary_folder()).stat().st_mode & 0o777 == 0o700


def test_the_environments_own_folder_comes_before_the_users(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert compiled_code.numba_cache() == f"{tmp_path}/cache/store-audit/numba"
    assert not place.exists()
    make(place)
    assert compiled_code.numba_cache() == f"{place}/store-audit/numba"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert compiled_code.numba_cache() == f"{tmp_path}/mine"
    assert (tmp_path / "mine").stat().st_mode & 0o777 == (0o700 if os.geteuid() else 0o755)


def test_a_folder_that_others_may_write_to_is_not_used(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the one that is named nor the environment's: the next one is, and each is said once."""
    make(place)
    named, own = tmp_path / "shared", place / "store-audit" / "numba"
    for folder in (named, own):
        folder.mkdir()
        folder.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(named))
    for _ in range(2):
        found = compiled_code.numba_cache()
        assert found == f"{tmp_path}/cache/store-audit/numba"
        monkeypatch.setenv("NUMBA_CACHE_DIR", found)  # as `jobs.entry` sets it
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0] == (
        f"spark-submit.sh: compiled code in {str(named)!r} is not run, because another user may have put code there"
        f" (see the owner and the mode of {str(named)!r}); remove that folder, or have NUMBA_CACHE_DIR name a folder that only"
        " you can write to"
    )
    assert repr(str(own)) in said[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to others")
def test_a_folder_inside_of_another_users_is_passed_over_and_said_only_if_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That user can put another folder in its place."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(compiled_code, "user_cache", lambda: tmp_path / "theirs")
    monkeypatch.setattr(compiled_code, "state", lambda: tmp_path / "none")
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    for named in ("", f"{tmp_path}/theirs/mine"):
        monkeypatch.setenv("NUMBA_CACHE_DIR", named)
        assert compiled_code.numba_cache() == f"{tmp_path}/store-audit-numba-0"
        said = capsys.readouterr().err
        assert ("is not run" in said) is bool(named) and "compiled code is kept in" in said


def test_if_no_folder_is_left_a_private_one_is_used(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "store-audit" / "numba"
    (cache / "inside").mkdir(parents=True)
    (cache / "inside").chmod(0o777)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = compiled_code.numba_cache()
    assert found == f"{tmp_path}/store-audit-numba-{os.geteuid()}" and Path(found).stat().st_mode & 0o777 == 0o700
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "inside" in said[0] and found in said[1]


CACHED = """
import compiled
from store_io.base.compiled.machine import dispatcher_of
print(dispatcher_of(compiled.twice)(1))
"""


class Hostile:
    """What, read as a pickle or run as code, makes a file."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def test_code_that_another_user_may_have_put_there_is_not_run(tmp_path: Path) -> None:
    """By whatever way numba is told of the folder: not by this program's commands alone."""
    shared, mark = tmp_path / "shared", tmp_path / "ran"
    (tmp_path / "compiled.py").write_text("def twice(x):\n    return x + x\n")
    variables = {"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": str(shared)}
    variables["PYTHONPATH"] = os.pathsep.join([str(environment.ROOT), str(tmp_path)])

    def twice() -> str:
        done = subprocess.run([sys.executable, "-P", "-c", CACHED], env=variables, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
        return done.stderr

    assert twice() == ""
    indexes = list(shared.rglob("*.nbi"))
    assert indexes
    for index in indexes:
        index.write_bytes(pickle.dumps(Hostile(mark)))
    shared.chmod(0o777)
    said = twice()
    assert "compiled code in" in said and str(shared) in said and not mark.exists()
    shared.chmod(0o755)
    subprocess.run([sys.executable, "-P", "-c", CACHED], env=variables, capture_output=True)
    assert mark.exists(), "what it is about"
