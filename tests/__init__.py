"""The tests. They mirror the folders of what they test; what several tests use lies in `support`."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
