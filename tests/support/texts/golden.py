"""Golden files: what was rendered once, looked at, and kept."""

from __future__ import annotations

import os

from jobs.installation import ROOT
from tests import TESTS

GOLDEN = TESTS / "golden"


def check(name: str, text: str) -> None:
    """Equal to the golden file. UPDATE_GOLDEN=1 writes it anew: then look at the difference before it is committed."""
    path, text = GOLDEN / name, text.replace(f"{ROOT}/", "./")  # this machine's folders
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    assert text == path.read_bytes().decode("utf-8")
