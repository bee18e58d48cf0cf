"""Object files of compiled code in the folder for such code, and the sources of which they are made; no file of a store."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from glob import escape, glob
from pathlib import Path
from typing import Any, NamedTuple

DIGEST_BYTES = 16


@cache
def source_of(module: str) -> bytes:
    """A module's source; numba forgets kept code when the function's own changes, and knows nothing of other modules."""
    found = importlib.util.find_spec(module) if module not in sys.modules else sys.modules[module].__spec__
    if found is None:
        return b""
    try:
        return importlib.util.decode_source(Path(found.origin or "").read_bytes()).encode()
    except OSError:  # in a zip
        loader: Any = found.loader
        return (loader.get_source(module) or "").encode()


class _Quickly:
    asked = False


def start_quickly(asked: bool = True) -> None:
    """Have this process take object files: it answers one question, and numba would take most of its time."""
    _Quickly.asked = asked


def takes_files() -> bool:
    """Whether it does."""
    return _Quickly.asked


class CodeFile(NamedTuple):
    """An object file and how its function is called, as `machine.MachineCode`."""

    symbol: str
    result: str
    code: bytes


def read_code(path: str) -> CodeFile | None:
    """What `write_code` has written there; None where it is not whole."""
    try:
        with open(path, "rb") as file:
            digest, data = file.read(DIGEST_BYTES), file.read()
        if hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() != digest:
            return None
        head, _, code = data.partition(b"\n")
        symbol, result = json.loads(head)
        return CodeFile(symbol, result, code)
    except (OSError, ValueError):
        return None


def write_code(path: str, code: CodeFile) -> None:
    """Keep it, whole or not at all."""
    data = json.dumps([code.symbol, code.result]).encode() + b"\n" + code.code
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".object-")
        try:
            with open(descriptor, "wb") as file:
                file.write(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() + data)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        for older in glob(f"{escape(path.rpartition('-')[0])}-*.object"):  # of sources that have changed
            if older != path:
                os.unlink(older)
