"""The colours of answers and severities, the same on every page."""

from __future__ import annotations

from jobs.report.texts.judgement import CARE, EMPTY, GONE, LACKS, PARTED, REBUILD, REFUSES, SAFE, STOP, UNKNOWN
from schemas.rows import LOSS, NOTE, REBUILDABLE

SHAPE_OF = {
    STOP: "stop",
    GONE: "stop",
    UNKNOWN: "unknown",
    REFUSES: "stop",
    PARTED: "care",
    LACKS: "care",
    CARE: "care",
    REBUILD: "care",
    EMPTY: "unknown",
    SAFE: "safe",
}
"""The sign of an answer of this kind (`icon` in macros.html), and its colour where no exit code forbids it."""

SEVERITY_STYLE = {LOSS: "stop", REBUILDABLE: "care", NOTE: "unknown"}
_CODE_STYLE = {20: "stop", 3: "unknown"}


def style_of(kind: str, exit_code: int) -> str:
    """The colour of an answer: no store is in a milder one than another of a better exit code."""
    return _CODE_STYLE.get(exit_code, SHAPE_OF[kind])
