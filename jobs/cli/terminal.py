"""The colours, columns and redrawn lines of a terminal. Standard library only."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from store_io.base.exit_codes import CONSISTENT, DERIVED, GAP_CODES, LOST

RED, YELLOW, GREEN, BOLD, FAINT, PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
CLEAR_LINE = "\r\x1b[2K"
_LEAST_WIDTH = 40  # on narrower terminals a folded text cannot be read
CODE_COLOUR = {CONSISTENT: GREEN, DERIVED: YELLOW, **dict.fromkeys(GAP_CODES, YELLOW), LOST: RED}
"""Of an exit code."""


def code_colour(code: int, diverged: bool) -> str:
    """Return the colour of an exit code. Copies that have diverged are never green, sound as each may be by itself."""
    return YELLOW if diverged and CODE_COLOUR.get(code) == GREEN else CODE_COLOUR.get(code, "")


def colour_wanted() -> bool:
    """Say whether standard output is a terminal that shows colours, and nothing forbids them (NO_COLOR, TERM=dumb)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def redraws(stream: TextIO) -> bool:
    """Say whether a line can be drawn again and again there: a terminal that knows how."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def clear_line() -> str:
    """Return what takes a line that redraws itself off the terminal; with NO_COLOR without escape codes."""
    return f"\r{' ' * (shutil.get_terminal_size().columns - 1)}\r" if os.environ.get("NO_COLOR") else CLEAR_LINE


def fold_width(most: int) -> int:
    """Return where a text is folded: at the terminal's width, and at `most` on wider ones and elsewhere."""
    return min(most, max(_LEAST_WIDTH, output_width(most)))


def output_width(elsewhere: int) -> int:
    """Return the terminal's columns; `elsewhere` if standard output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else elsewhere


class Paint:
    """Colours a text, or leaves it as it is if no colour is wanted."""

    def __init__(self, colour: bool):
        self._colour = colour

    def __call__(self, code: str, text: str) -> str:
        return f"{code}{text}{PLAIN}" if self._colour and code and text else text


def in_columns(rows: Sequence[Sequence[str]], right: Sequence[int], paints: Sequence[str], paint: Paint) -> Iterator[str]:
    """Yield rows of equal width in columns; the first is the head.

    right: columns aligned to the right.
    paints: a colour per row.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row, colour in zip(rows, paints, strict=True):
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield paint(colour, "  ".join(cells).rstrip())
