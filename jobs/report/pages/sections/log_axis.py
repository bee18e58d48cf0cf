"""The axis below the bar of a whole CommitLog: round physical offsets with a unit, as many as there is room for on a phone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_MOST = 5  # ticks
_NEAREST = 1.0  # per cent of the bar between two ticks
_ROOM = 46  # characters of labels beside each other on the narrowest phone
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")


@dataclass(frozen=True)
class Stretch:
    """Physical offsets [start, end) of a log, drawn as `drawn` bytes: fewer if a gap is shortened."""

    start: int
    end: int
    drawn: int


@dataclass(frozen=True)
class Tick:
    """A tick of the axis.

    left: its place on the bar, in per cent.
    label: "" if there is no room.
    anchor: the part of the label that lies at that place: its start, middle or end.
    """

    left: str
    label: str
    anchor: str


def axis_ticks(stretches: Sequence[Stretch]) -> list[Tick]:
    """From left to right. None inside of a gap that is drawn shorter than it is. stretches: as they are drawn, side by side."""
    size = sum(stretch.drawn for stretch in stretches)
    if size <= 0:
        return []
    for most in range(_MOST, 0, -1):
        step = _round_step(size, most)
        marks = list(_apart((100 * at / size, _label(offset, step)) for offset, at in _multiples(stretches, step)))
        if sum(len(label) + 2 for _, label in marks) <= _ROOM:
            break
    return list(_placed(marks))


def _round_step(size: int, parts: int) -> int:
    """The smallest 1, 2 or 5 with zeros by which the size has at most so many parts."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power * parts >= size:
                return digit * power
        power *= 10


def _multiples(stretches: Sequence[Stretch], step: int) -> Iterator[tuple[int, int]]:
    """(physical offset, byte of the bar) of each multiple of the step; the bar's end is among them."""
    at = 0
    for number, stretch in enumerate(stretches, 1):
        if stretch.drawn == stretch.end - stretch.start:
            end = stretch.end + (number == len(stretches))
            for offset in range(-(-stretch.start // step) * step, end, step):
                yield offset, at + offset - stretch.start
        at += stretch.drawn


def _apart(marks: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Leave out marks that would be drawn upon each other. A log of thousands of small files has a round offset in each."""
    free = 0.0
    for left, label in marks:
        if left >= free:
            free = left + _NEAREST
            yield left, label


def _label(offset: int, step: int) -> str:
    unit = min((len(str(step)) - 1) // 3, len(_UNITS) - 1)
    return f"{offset // 1000**unit:,} {_UNITS[unit]}" if offset else "0"


def _placed(marks: Sequence[tuple[float, str]]) -> Iterator[Tick]:
    """With those labels that leave room for each other."""
    free = 0.0
    for left, label in marks:
        width = 100 * (len(label) + 1) / _ROOM
        anchor, begins = "middle", left - width / 2
        if begins < 0:
            anchor, begins = "start", left
        elif begins + width > 100:
            anchor, begins = "end", left - width
        if begins < free:
            label = ""
        else:
            free = begins + width
        yield Tick(f"{left:.4g}%", label, anchor)
