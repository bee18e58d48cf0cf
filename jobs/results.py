"""result.json: the one file that is there, whole, whenever a run has ended. Local folders, and URIs that pyarrow knows."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from jobs.options import is_uri
from store_io.errors import StoreError

NAME = "result.json"


def write_text(folder: str, name: str, text: str) -> None:
    """Write a file under that folder so that no reader ever sees part of it. `name` may hold "/". Raises StoreError."""
    try:
        if is_uri(folder):
            _write_remote(folder, name, text)
        else:
            _write_local(Path(folder, name), text)
    except OSError as problem:
        raise StoreError(f"cannot write {os.path.join(folder, name)!r}: {problem.strerror or problem}") from None


def write_result(folder: str, result: dict[str, Any]) -> None:
    """Write result.json. Raises StoreError."""
    write_text(folder, NAME, json.dumps(result, indent=2, sort_keys=True) + "\n")


def remove_result(folder: str) -> None:
    """Remove an earlier run's result.json, making the folder where it is missing. Raises StoreError."""
    try:
        if is_uri(folder):
            system, path = _remote(folder)
            with contextlib.suppress(FileNotFoundError):
                system.delete_file(f"{path}/{NAME}")
        else:
            os.makedirs(folder, exist_ok=True)
            Path(folder, NAME).unlink(missing_ok=True)
    except OSError as problem:
        raise StoreError(f"cannot write to {folder!r}: {problem.strerror or problem}") from None


def read_result(folder: str, run_id: str) -> dict[str, Any] | None:
    """That run's result; None while there is none. Raises StoreError."""
    try:
        if is_uri(folder):
            system, path = _remote(folder)
            with system.open_input_stream(f"{path}/{NAME}") as stream:
                content = stream.read()
        else:
            content = Path(folder, NAME).read_bytes()
        result: dict[str, Any] = json.loads(content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(f"cannot read {folder!r}'s {NAME}: {problem}") from None
    return result if result.get("run_id") == run_id else None


def _write_local(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(fresh, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _write_remote(folder: str, name: str, text: str) -> None:
    """An object store shows an object when it is closed; a file system gets a name of its own first."""
    system, path = _remote(folder)
    content = text.encode("utf-8", "surrogateescape")
    target = f"{path}/{name}"
    if system.type_name in ("s3", "gcs", "abfs"):
        with system.open_output_stream(target) as stream:
            stream.write(content)
        return
    system.create_dir(target.rpartition("/")[0], recursive=True)
    fresh = f"{target}.{os.getpid()}"
    with system.open_output_stream(fresh) as stream:
        stream.write(content)
    system.move(fresh, target)


def _remote(uri: str) -> Any:
    from pyarrow import ArrowInvalid, fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
    except ArrowInvalid as problem:
        raise OSError(str(problem)) from None
    return system, path.rstrip("/")
