"""The colours of answers and severities, the same on every page."""

from __future__ import annotations

from jobs.report.texts.judgement import SHAPE_OF
from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.base.exit_codes import GAP_CODES, LOST

SEVERITY_STYLE = {LOSS: "stop", REBUILDABLE: "care", NOTE: "unknown"}
_CODE_STYLE = {LOST: "stop", **dict.fromkeys(GAP_CODES, "unknown")}


def style_of(kind: str, exit_code: int) -> str:
    """The colour of an answer: a worse exit code never gets a milder colour."""
    return _CODE_STYLE.get(exit_code, SHAPE_OF[kind])
