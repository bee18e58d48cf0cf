"""result.json: the one file that is there, whole, whenever a run has ended."""

from __future__ import annotations

import json
from typing import Any

from jobs.output import RESULT, OutputFailed, OutputFolder


def write_result(folder: str, result: dict[str, Any]) -> None:
    """Write result.json. Raises OutputFailed."""
    OutputFolder(folder).write(RESULT, json.dumps(result, indent=2, sort_keys=True) + "\n")


def remove_result(folder: str) -> None:
    """Remove an earlier run's result.json, making the folder where it is missing. Raises OutputFailed."""
    OutputFolder(folder).begin(())


def read_result(folder: str, run_id: str) -> dict[str, Any] | None:
    """That run's result; None while there is none. Raises OutputFailed."""
    content = OutputFolder(folder).read(RESULT)
    if content is None:
        return None
    try:
        result: dict[str, Any] = json.loads(content)
    except ValueError as problem:
        raise OutputFailed(f"{folder}/{RESULT}: cannot read: {problem}") from None
    return result if result.get("run_id") == run_id else None
