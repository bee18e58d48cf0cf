"""Which keys examples/resend takes out of a file: its own pattern, which Python reads as Java does. The program: test_resend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "resend" / "Resend.java"
TEXT = re.search(r'Pattern KEY = Pattern\.compile\(\s*"(.*)"\);', PROGRAM.read_text("utf-8"))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("accessKey: rocketmq2", "rocketmq2"),
        ("secretKey: 12345678  # of the cluster in the cellar", "12345678"),
        ("secretKey: '1 #2' # and so on", "1 #2"),
        ("secretKey: 's3cret: #'x'", "s3cret: #'x"),
        ('  secretKey = "a#b"  ', "a#b"),
        ("secretKey: a#b", "a#b"),
        ("secretKey=#b", "#b"),
        ("secretKey:  # none", ""),
        ("# secretKey: 1", None),
    ],
)
def test_a_comment_is_no_part_of_a_key(line: str, key: str | None) -> None:
    assert TEXT is not None
    found = re.fullmatch(TEXT[1].replace(r"\\", "\\").replace(r"\"", '"'), line)
    assert (found[3] if found else None) == key
