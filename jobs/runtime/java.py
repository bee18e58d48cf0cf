"""The Java runtimes of a machine, and what one must be given to reach the network. Standard library only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JAVA_RELEASES = ("17", "21")  # what Spark 4.2 is tested with; the wheel's own release is tried by us


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime on this machine.

    home: the value that JAVA_HOME must have.
    build: the runtime's own full version, which names its class archive.
    """

    home: str
    build: str


def find_java(kept: Path) -> JavaRuntime | None:
    """Return JAVA_HOME's Java or the one on PATH, if it is of a tested release.

    kept: as for `ask_java`.
    """
    named = os.environ.get("JAVA_HOME")
    # A relative folder on the PATH, as ".", is another one wherever the command is typed.
    absolute = os.pathsep.join(filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep)))
    there = shutil.which("java", path=absolute)
    candidates = [path for path in (named and os.path.join(named, "bin", "java"), there) if path]
    return next((found for path in candidates if (found := ask_java(path, kept)) is not None), None)


def ask_java(path: str, kept: Path, any_release: bool = False) -> JavaRuntime | None:
    """Ask this java for its release; None if it is no java or has another release.

    kept: the file that remembers its answer, as long as this java stays as it is.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    key = f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"
    try:
        known: dict[str, Any] = json.loads(kept.read_text("utf-8"))
    except (OSError, ValueError):
        known = {}
    if key not in known:
        try:
            shown = subprocess.run(
                [path, "-XshowSettings:properties", "-version"], capture_output=True, text=True, errors="replace", timeout=60
            ).stderr
        except (OSError, subprocess.TimeoutExpired):
            return None
        pairs = (line.partition("=") for line in shown.splitlines())
        properties = {name.strip(): value.strip() for name, _, value in pairs}
        known[key] = {name: properties.get(f"java.{name}", "") for name in ("home", "specification.version", "vm.version")}
        with contextlib.suppress(OSError):  # only a memory: a read-only environment does without
            fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
            fresh.write_text(json.dumps(known), "utf-8")
            fresh.replace(kept)
    answer = known[key]
    if not answer["home"] or not (any_release or answer["specification.version"] in JAVA_RELEASES):
        return None
    # The wrapper's folder, not the one that the wheel's java calls its home: Spark starts JAVA_HOME/bin/java.
    place = os.path.dirname(os.path.dirname(path)) if any_release else answer["home"]
    return JavaRuntime(place, answer["vm.version"])


def write_java_wrapper(path: Path, runtime: str) -> None:
    """Put a `java` that runs the wheel's at the place of JAVA_HOME/bin/java.

    Spark asks for the module jdk.incubator.vector, which that small runtime lacks and would refuse to start for; Spark itself
    does without it. So the wrapper drops that one argument.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    quoted = "'" + f"{runtime}/bin/java".replace("'", "'\\''") + "'"
    path.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        '  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {quoted} "$@"\n',
        "utf-8",
    )
    path.chmod(0o755)


def proxy_options() -> list[str]:
    """Return the proxy that the usual variables name, as Java options."""
    options = []
    for scheme, address in urllib.request.getproxies().items():
        host = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
        if scheme in ("http", "https") and host.hostname:
            options += [f"-D{scheme}.proxyHost={host.hostname}", f"-D{scheme}.proxyPort={host.port or 80}"]
    return options


def write_trust_store(path: Path) -> Path | None:
    """Write the authorities that this Python trusts as a Java key store (JKS); return None if it lists none."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return None

    def text(value: str) -> bytes:
        return len(value).to_bytes(2, "big") + value.encode("ascii")

    content = bytes.fromhex("feedfeed00000002") + len(certificates).to_bytes(4, "big")
    for number, certificate in enumerate(certificates):
        content += (2).to_bytes(4, "big") + text(f"authority-{number}") + bytes(8) + text("X.509")
        content += len(certificate).to_bytes(4, "big") + certificate
    # The format ends with a digest keyed by the store's password: none here, which leaves the keyed part empty.
    path.write_bytes(content + hashlib.sha1(b"Mighty Aphrodite" + content).digest())
    return path
