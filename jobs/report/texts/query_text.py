"""Messages as a table for people, as JSON lines or as CSV, and sentences on what an answer leaves out.

Rendering only; what a store holds is escaped (`printable`).
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs.cli.terminal import BOLD, PLAIN, YELLOW
from jobs.report.files.json_text import row_line
from jobs.report.texts.text import name_text, printable
from schemas.rows import Row
from store_io.base.wording import count_text
from store_io.messages.lost.segment_loss import UNSURE
from store_io.messages.question import ByKeys, ByTimes, Narrowing

if TYPE_CHECKING:  # what audits is loaded where an audit is wanted
    from store_io.messages.lost.lost_places import LostPlaces
    from store_io.messages.only_here import OnlyHere

FIRST_ROWS = 200  # by which a table's widths are chosen
LONGEST = 300  # characters of a cell, however wide the terminal is
LEAST = 6  # characters that a text is cut to, before the table is wider than the terminal
SENTENCE = 500  # letters of a reason
_GAP = "  "
_NUMBERS = int | float
# What begins one, at the start of a cell, of whatever spreadsheet: tabs and line ends are escapes before they are looked at.
_FORMULA = re.compile(r'^(?= *[=+\-@＝＋－＠])|(?<=[,;])(?=[ "]*[=+\-@＝＋－＠])')


class JsonLines:
    """One object a line, keys in the order of the columns; times as ISO-8601 in UTC, None as null."""

    def __init__(self, columns: Sequence[str], body: str, write: Callable[[str], object]):
        self._columns, self._body, self._write = columns, body, write

    def add(self, row: Row) -> None:
        """Write one row."""
        shown = {name: _plain(row[name], self._body) for name in self._columns}
        self._write(row_line(shown))

    def finish(self) -> None:
        """Do nothing: no row is held back."""


class Csv:
    """A head and a record a line, as RFC 4180 has them: CRLF, quotes doubled. Texts are in quotes, so that null, which is empty
    and without, is no empty text. Invisible characters are escapes, so a record is one line.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, and so does each part of it that a
    spreadsheet with another separator takes for a cell: producers choose tags, keys and bodies. Base64 stays as it is, to be
    decoded.
    """

    def __init__(self, columns: Sequence[str], body: str, write: Callable[[str], object]):
        self._columns, self._body, self._write, self._begun = columns, body, write, False

    def add(self, row: Row) -> None:
        """Write one row."""
        self.finish()
        self._write(",".join(self._cell(row[name]) for name in self._columns) + "\r\n")

    def finish(self) -> None:
        """Write the head if it is not there."""
        if not self._begun:
            self._write(",".join(self._columns) + "\r\n")
        self._begun = True

    def _cell(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        shown = _plain(value, self._body)
        if isinstance(value, _NUMBERS | datetime):
            return str(shown)
        text = printable(row_line(shown).rstrip("\n") if isinstance(shown, dict) else shown)
        exact = isinstance(value, bytes) and self._body == "base64"  # without "(", "|" and "!", which formulas do harm with
        if not exact:
            text = _FORMULA.sub("'", text)
        return '"' + text.replace('"', '""') + '"'


def _plain(value: Any, body: str) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii") if body == "base64" else value.decode("utf-8", "replace")
    if isinstance(value, list):
        return dict(value)  # an Arrow map
    return value


class Table:
    """A row a line, no wider than `width` while texts can be cut; numbers and times never are."""

    def __init__(self, columns: Sequence[str], body: str, width: int, colour: bool, write: Callable[[str], object]):
        self._columns, self._body, self._width, self._colour, self._write = list(columns), body, width, colour, write
        self._first: list[list[str]] = []
        self._widths: list[int] = []
        self._right = [False] * len(self._columns)
        self._fixed = [False] * len(self._columns)
        self._marked: list[bool] = []

    def add(self, row: Row) -> None:
        """Take one row; the first ones are held back until the widths are known."""
        cells = [self._cell(number, row[name]) for number, name in enumerate(self._columns)]
        marked = row.get("status") not in (None, "valid", "served") or bool(row.get("note"))
        if self._widths:
            self._line(cells, marked)
            return
        self._first.append(cells)
        self._marked.append(marked)
        if len(self._first) == FIRST_ROWS:
            self._begin()

    def finish(self) -> None:
        """Write what is held back."""
        if not self._widths and self._first:
            self._begin()

    def _cell(self, number: int, value: Any) -> str:
        if isinstance(value, bool) or value is None:
            return "" if value is None else str(value).lower()
        if isinstance(value, _NUMBERS):
            self._right[number] = self._fixed[number] = True
            return str(value)
        if isinstance(value, datetime):
            self._fixed[number] = True
            return value.strftime("%Y-%m-%d %H:%M:%S.") + f"{value.microsecond // 1000:03d}"
        value = _plain(value, self._body)
        if value == "" and self._columns[number] != "note":
            return name_text(value)
        return printable(" ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value, LONGEST)

    def _begin(self) -> None:
        empty = [not any(cells[n] for cells in self._first) for n in range(len(self._columns))]
        if "note" in self._columns and empty[self._columns.index("note")] and len(self._first) < FIRST_ROWS:
            self._drop(self._columns.index("note"))
        heads = self._columns
        self._widths = [max(len(heads[n]), *(_width(cells[n]) for cells in self._first)) for n in range(len(heads))]
        room = self._width - len(_GAP) * (len(heads) - 1)
        while sum(self._widths) > room:
            cuttable = [n for n in range(len(heads)) if not self._fixed[n] and self._widths[n] > LEAST]
            if not cuttable:
                break
            self._widths[max(cuttable, key=lambda n: self._widths[n])] -= 1
        self._line(heads, False, BOLD)
        for cells, marked in zip(self._first, self._marked, strict=True):
            self._line(cells, marked)
        self._first, self._marked = [], []

    def _drop(self, number: int) -> None:
        for cells in (self._columns, self._right, self._fixed, *self._first):
            del cells[number]  # type: ignore[attr-defined]

    def _line(self, cells: Sequence[str], marked: bool, code: str = "") -> None:
        shown = []
        for number, cell in enumerate(cells):
            width = self._widths[number]
            text = cell if self._fixed[number] else _cut(cell, width)
            space = " " * (width - _width(text))
            shown.append(space + text if self._right[number] else text + space)
        line = _GAP.join(shown).rstrip()
        code = code or (YELLOW if marked else "")
        self._write((f"{code}{line}{PLAIN}" if self._colour and code else line) + "\n")


def _width(text: str) -> int:
    """Return columns on a terminal: Chinese letters and most emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) >= width:
        text = text[:-1]
    return text + "…"


# ---- what an answer leaves out -------------------------------------------------------------------------------------------


def narrowing_text(fact: Narrowing) -> str:
    """Return the sentence on what was left out, or on why nothing was."""
    if isinstance(fact, ByKeys):
        return f"a lookup by key gives at most {fact.most} messages"
    if isinstance(fact, ByTimes):
        skipped = f"{fact.segments - fact.read} of {fact.segments} segments not read"
        seen = f"{skipped}: as run {fact.times.run_id} saw them, they hold no message of these store times"
        return printable(f"{fact.times.refused}: no segment is skipped" if fact.times.refused else seen, SENTENCE)
    if fact.refused:
        return f"the ConsumeQueues do not answer this, and the whole log is read: {printable(fact.refused, SENTENCE)}"
    return f"answered from the ConsumeQueues: {fact.read} of {fact.segments} segments read; --scan reads the whole log"


def loss_text(places: LostPlaces) -> str:
    """Return the store's totals, as plan.json counts them."""
    text = f"a start of RocketMQ {places.release} would lose {places.messages:,} of the messages in this copy"
    if places.undelivered:
        text += f", and never deliver {places.undelivered:,} timer messages that it keeps"
        if places.listed_timers < places.undelivered:
            text += "; these are not listed: there are too many timers to be held together"
    if len(places.spared.places):
        text += f"; {len(places.spared.places):,} delayed and timer messages of these are not to be sent again, as why_not says"
    if places.spared.unsure_from is not None:
        text += f"; from physical offset {places.spared.unsure_from} on {UNSURE}: why_not is set for all of them"
    return text


def only_here_text(alone: OnlyHere, other: str) -> str:
    """Return how many messages only this copy holds by place, and which others are not listed."""
    name = name_text(other)
    if not alone.messages:
        text = f"{name} holds every message of this copy at its place"
    else:
        text = f"{name} lacks {count_text(alone.messages, 'message')} of this copy, compared by place"
    if alone.before:
        text += f"; {count_text(alone.before, 'older message')} of this copy not listed: from before the begin of its log"
    if alone.other_forms:
        text += f"; {count_text(alone.other_forms, 'message')} not listed, which it holds in another form"
    if not alone.one_log:
        text += "; nothing shows that both are copies of one log"
    return text
