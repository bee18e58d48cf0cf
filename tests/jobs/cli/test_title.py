"""A secret of a command line is not shown by `ps`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jobs.installation import ROOT

CODE = """
import sys
from jobs.cli import options as title
title.hide([sys.argv[1].partition("=")[2], "", "ä"])
print(open("/proc/self/cmdline", "rb").read().split(b"\\0")[-4:-1], sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process change its title so")
def test_words_are_overwritten_for_others_and_not_for_itself() -> None:
    words = ["key=s3cr3t", "and-s3cr3t-again", "ä"]
    done = subprocess.run([sys.executable, "-c", CODE, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[b'key=******', b'and-******-again', b'**']} {words}\n"
