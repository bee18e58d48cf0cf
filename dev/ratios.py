"""Ratios that are kept in a file: a change that makes one more than 10 % worse is seen beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from dev.bench_stores import BenchFailed
from jobs.cli.terminal import Paint, in_columns
from jobs.report.texts.text import printable
from jobs.runtime.output import write_local
from store_io.base.errors import UsageError

WORSE = 1.10  # times the kept ratio


def read(path: str) -> dict[str, dict[str, float]]:
    """Return kind of processor -> name -> ratio. Raises UsageError for any other file."""
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)["processors"]
        return {str(kind): {str(name): float(ratio) for name, ratio in of.items()} for kind, of in kept.items()}
    except OSError as problem:
        raise UsageError(f"bench: cannot read {path!r}: {problem.strerror or problem}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(f"bench: {path!r} holds no ratios of processors; --write with a new FILE makes such a file") from None


def of_processor(path: str, kind: str) -> dict[str, float]:
    """Return name -> ratio of that kind of processor. Raises UsageError if there are none: those of others say nothing."""
    kept = read(path)
    if kind not in kept:
        others = printable("; ".join(sorted(kept)) or "none")
        what = f"{printable(path)!r} has no ratios of this processor ({kind}), only of: {others}"
        raise UsageError(f"bench: {what}. --write FILE adds them")
    return kept[kind]


def write(path: str, kind: str, measured: Mapping[str, float]) -> None:
    """Put these ratios of a processor into the file, beside those that it has already. Raises UsageError, BenchFailed."""
    kept = read(path) if os.path.exists(path) else {}
    kept[kind] = {**kept.get(kind, {}), **measured}
    text = json.dumps({"processors": kept}, indent=2, sort_keys=True) + "\n"
    try:
        write_local(path, [text.encode()])
    except OSError as problem:
        raise BenchFailed(f"{path}: cannot write: {problem.strerror or problem}") from None


def compared(kept: Mapping[str, float], measured: Mapping[str, float]) -> tuple[str, bool]:
    """Return (a table of both, whether one that was measured is worse by more than 10 %).

    All ratios are the better the smaller.
    """
    rows = [("ratio", "kept", "now", "change", "")]
    worse = False
    for name, ratio in measured.items():
        before = kept.get(name)
        if before is None:
            rows.append((name, "", f"{ratio:g}", "", "new"))
            continue
        fails = ratio > before * WORSE
        worse |= fails
        rows.append((name, f"{before:g}", f"{ratio:g}", f"{ratio / before - 1:+.0%}", "WORSE" if fails else ""))
    return "\n".join(in_columns(rows, range(1, 4), [""] * len(rows), Paint(False))), worse
