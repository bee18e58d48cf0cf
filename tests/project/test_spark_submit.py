"""The one entry as people call it: a real bash, the environment that runs these tests, one real audit of the example store."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime import setup as environment
from tests.support.processes.children import PATIENCE_SECONDS, until

ROOT = environment.ROOT
SCRIPT = ROOT / "spark-submit.sh"
TOOLS = ("bash", "sh", "dirname", "readlink", "cmp", "env")
EXAMPLE = ROOT / "examples" / "damaged-store"
needs_environment = pytest.mark.skipif(
    not environment.is_ready(), reason="these tests do not run in the environment that spark-submit.sh makes"
)


def run(words: list[str], script: Path = SCRIPT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script with little more than a PATH, as a fresh login would."""
    clean = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "STORE_AUDIT_HOME": str(environment.home())}
    return subprocess.run([str(script), *words], env={**clean, **variables}, capture_output=True, text=True, timeout=300)


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder for the PATH with the few tools that the script itself needs, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


def fake_python(folder: Path, name: str, answer: str, version: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo Python {version} || {answer} {version[0]}\n')
    (folder / name).chmod(0o755)


def test_an_environment_whose_python_is_another_users_is_said_as_that() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        private, home = folder / "private", folder / "home"
        (home / "bin").mkdir(parents=True)
        private.mkdir()
        (private / "python3").touch(0o755)
        (home / "bin" / "python").symlink_to(private / "python3")
        shutil.copy(SCRIPT, folder)
        private.chmod(0)
        home.chmod(0o555)
        folder.chmod(0o755)
        other: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(
            [str(folder / SCRIPT.name), "audit"],
            env={"PATH": os.environ["PATH"], "STORE_AUDIT_HOME": str(home)},
            capture_output=True, text=True, timeout=60, **other,
        )  # fmt: skip
        home.chmod(0o755)
        private.chmod(0o755)
    assert done.returncode == 3 and done.stdout == ""
    assert f"leads to {private}/python3, which you may not run" in done.stderr and "STORE_AUDIT_HOME" in done.stderr


# ---- finding a Python ------------------------------------------------------------------------------------------


NEEDED = "Python 3.11 to 3.14 is needed on the PATH\n"


@pytest.mark.parametrize(
    ("name", "answer", "version", "said"),
    [
        ("", "", "", "no Python on the PATH; Python 3.11 to 3.14 is needed\n"),
        ("python3", "echo False", "3.9.2", f"{{}}/python3 is Python 3.9.2; {NEEDED}"),
        ("python", "exit", "2.7.18 >&2", f"{{}}/python is Python 2.7.18; {NEEDED}"),  # as Python 2, which has no -I, and says so
        ("python3", "echo lacking", "3.12.1", "{}/python3 has no venv module; install it (Debian, Ubuntu: apt-get install"),
    ],
    ids=["none", "old", "cannot be asked", "without venv"],
)
def test_no_fitting_python(name: str, answer: str, version: str, said: str, bare_path: Path, tmp_path: Path) -> None:
    if name:
        fake_python(bare_path, name, answer, version)
    done = run(["audit"], PATH=str(bare_path), STORE_AUDIT_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert done.stderr.startswith(f"spark-submit.sh: {said.format(bare_path)}")


def test_a_fitting_python_behind_an_old_one_is_found(bare_path: Path, tmp_path: Path) -> None:
    fake_python(bare_path, "python3", "echo False", "3.9.2")
    (bare_path / "python3.12").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (bare_path / "python3.12").chmod(0o755)
    done = run(["audit", "x", "--ot", "y"], PATH=str(bare_path), STORE_AUDIT_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stderr) == (2, "spark-submit.sh: unknown option '--ot' (did you mean --out?)\n")
    assert not (tmp_path / "home").exists()


HOSTILE = "open({!r}, 'w').close()\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with modules and programs that are run there, each of which makes the file `ran`."""
    folder = tmp_path / "store"
    folder.mkdir()
    for name in ("ensurepip", "venv", "sys", "site", "sitecustomize", "json", "encodings", "jobs"):
        (folder / f"{name}.py").write_text(HOSTILE.format(str(tmp_path / "ran")))
    for name in ("python3", "python3.12", "python", "dirname", "readlink", "cmp", "java"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_python_is_asked_without_the_code_of_the_current_folder(bare_path: Path, tmp_path: Path, hostile: Path) -> None:
    """A Python of before 3.11 does not know PYTHONSAFEPATH. So this one forgets it, but for the set-up, which needs a new one."""
    (bare_path / "python3").write_text(
        f'#!/bin/sh\necho "$PWD $1" >>{tmp_path}/asked\n[ "$1" = -m ] || unset PYTHONSAFEPATH\nexec "{sys.executable}" "$@"\n'
    )
    (bare_path / "python3").chmod(0o755)
    variables = {"PATH": f".:{bare_path}::store:", "HOME": str(tmp_path), "STORE_AUDIT_HOME": str(tmp_path / "home")}
    plain = subprocess.run([bare_path / "python3", "-c", "import ensurepip"], cwd=hostile, env=variables, capture_output=True)
    assert plain.returncode == 0 and (tmp_path / "ran").exists(), "what it is about"
    (tmp_path / "ran").unlink()
    done = subprocess.run([SCRIPT, "audit", "x", "--ot", "y"], cwd=hostile, env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "spark-submit.sh: unknown option '--ot' (did you mean --out?)\n")
    assert (tmp_path / "asked").read_text().splitlines()[1] == f"{hostile} -I" and not (tmp_path / "ran").exists()


def test_the_command_line_is_checked_with_the_standard_library_alone() -> None:
    """Before there is an environment, nothing else is there."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); import jobs.entry, jobs.runtime.setup",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


# ---- calling it ------------------------------------------------------------------------------------------------


@needs_environment
def test_it_answers_at_once_from_anywhere(tmp_path: Path) -> None:
    """Through links, from a folder with modules of our names, with a foreign Spark and foreign packages."""
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "first").symlink_to(SCRIPT)
    (tmp_path / "second").symlink_to("a folder/first")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in ("jobs", "numpy", "json"):
        (foreign / f"{name}.py").write_text("raise SystemExit(99)\n")
    variables = {"PYTHONPATH": str(foreign), "SPARK_HOME": str(foreign), "PYTHONHOME": str(foreign)}
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    clean = {"PATH": os.environ["PATH"], "STORE_AUDIT_HOME": str(environment.home()), **variables}
    done = subprocess.run([tmp_path / "second", "--help"], cwd=foreign, env=clean, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nusage: ./spark-submit.sh COMMAND " in done.stdout
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # time of the processor, which others may keep busy
    assert ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime < 5


@needs_environment
@pytest.mark.parametrize("words", [[], ["audti"], ["audit", "x"], ["--mastr", "local", "audit"]])
def test_a_usage_error_is_one_sentence_and_2(words: list[str]) -> None:
    done = run(words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("spark-submit.sh: ") and done.stderr.count("\n") == 1


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """An audit that has begun: it has removed an earlier run's result, and Spark is starting."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "result.json").write_text("{}")
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [SCRIPT, "audit", EXAMPLE / "store", "--out", out, "--max-rate", "1MB/s"],  # it takes its time
        env={"PATH": os.environ["PATH"], "STORE_AUDIT_HOME": str(environment.home()), "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # signals as a terminal sends them: to the whole group
    )
    until(
        lambda: (
            process.poll() is not None
            or not (out / "result.json").exists()
            and any(name_of(pid) == "java" for pid in session_of(process.pid))
        ),
        "the audit has begun",
    )
    yield process, out
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@needs_environment
@pytest.mark.spark
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_audit_says_so(running: tuple[subprocess.Popen[str], Path], number: signal.Signals, code: int) -> None:
    process, out = running
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert errors == "spark-submit.sh: interrupted before it was done\n"
    result = json.loads((out / "result.json").read_text())
    assert (result["exit_code"], result["complete"]) == (3, False)
    assert [store["code"] for store in result["stores"]] == [3]
    assert ".lock" not in os.listdir(out)
    until(lambda: not in_session(process.pid), "no JVM is left behind")


@needs_environment
@pytest.mark.spark
def test_an_audit_whose_jvm_is_killed_says_so(running: tuple[subprocess.Popen[str], Path]) -> None:
    process, out = running
    until(lambda: any((out.parent / "tmp").glob("store-audit-scratch-*/blockmgr-*")), "Spark is there")
    machines = [pid for pid in session_of(process.pid) if name_of(pid) == "java"]
    assert machines
    for pid in machines:
        os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 3, errors
    assert errors.startswith("spark-submit.sh: Spark") and errors.count("\n") == 1
    result = json.loads((out / "result.json").read_text())
    assert (result["exit_code"], result["complete"]) == (3, False)
    left = [name for name in os.listdir(out.parent / "tmp") if not name.startswith("store-audit-rate-")]
    assert left == []  # --max-rate keeps its file for the next run


def session_of(leader: int) -> list[int]:
    """Processes that belong to this session: those that the command has started, and what they did."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(folder.name))
    return found


def name_of(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


def in_session(leader: int) -> list[str]:
    return [name_of(process) for process in session_of(leader)]
