"""The tests; `builders`, `damage`, `strategies`, `corpus_tools` and `second_witness` are their tools."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
