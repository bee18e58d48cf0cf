"""Findings on a file's name or length, as the log and each kind of files make them."""

from __future__ import annotations

from schemas.finding_codes import Code
from schemas.rows import Finding, StoreFile
from schemas.severity_cases import Case, severity_in


def unrecognised(entry: StoreFile, why: str, skipped: bool = False) -> Finding:
    """Return the finding on a name that no broker makes there. skipped: the release passes over it, so it changes nothing."""
    if skipped:
        return Finding(Code.FILE_UNRECOGNISED, entry.path, message=f"{why}; the release skips it")
    return Finding(Code.FILE_UNRECOGNISED, entry.path, severity=severity_in(Code.FILE_UNRECOGNISED, Case.IN_THE_WAY), message=why)


def name_fault(start: int | None) -> str:
    """Say why a name is no place in a file's sequence. start: its number, if it is one."""
    return "its name is no number" if start is None else "its name is a negative number"


def size_finding(code: Code, entry: StoreFile, size: int, severity: str = "") -> Finding:
    """Return the finding on a file of another length than the configured one."""
    return Finding(code, entry.path, severity=severity, expected=f"{size} bytes", actual=f"{entry.size} bytes")
