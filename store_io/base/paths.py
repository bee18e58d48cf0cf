"""What a path or an address is, by its text. Standard library only: the command line is read before anything is installed."""

from __future__ import annotations

import re

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_uri(text: str) -> bool:
    """Whether the text is a URI and no local path: a scheme of two letters or more, then ":/"."""
    return _URI.match(text) is not None


def is_inner_path(path: str) -> bool:
    """Whether a relative path stays below its folder: names joined by "/", none of them empty, "." or ".."."""
    return "\0" not in path and not any(name in ("", ".", "..") for name in path.split("/"))
