"""No ratio of the benchmark has become worse by more than a tenth: on a quiet machine, so not by default."""

from __future__ import annotations

import subprocess

import pytest

from dev import ratios, this_machine
from dev.measures import command_variables
from jobs.installation import command_words
from tests import ROOT

KEPT = str(ROOT / "bench" / "ratios.json")


@pytest.mark.speed
def test_no_ratio_is_a_tenth_worse_than_the_kept_one() -> None:
    if this_machine.kind() not in ratios.read(KEPT):
        pytest.skip(f"bench/ratios.json has no ratios of {this_machine.kind()}; bench --write adds them")
    words = [*command_words(), "bench", "--only", "scan,cold,repair", "--compare", KEPT]
    done = subprocess.run(words, capture_output=True, text=True, env=command_variables())
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
