"""The map of a CommitLog: every byte range of every segment by its kind, as bars from left to right.

A bar is made of cells, each showing the worst kind of bytes in it, so that no damage is too small to be seen. Kinds differ by
pattern and are named in words beside, never by colour alone. Of a long log, neighbouring segments are folded into one bar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise

from markupsafe import Markup

from jobs.report.pages.page import View
from schemas.finding_codes import STOP_REASONS
from schemas.outcome import Outcome
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent
from store_io.base.times import span_text
from store_io.base.wording import bytes_text, clause, count_text
from store_io.outcome.segments_read import SegmentRead, segments_read

CELLS = 240  # of a bar
MAX_SHOWN = 120  # segments with a bar of their own; the others are folded with their neighbours
MAX_RANGES = 40  # listed of one segment
MAX_RANGES_IN_ALL = 2000
MISSING, UNREAD, PLAUSIBLE, BEYOND = "missing", "unread", "plausible", "beyond"
_WORST = (EXTENT_DAMAGED, UNREAD, MISSING, PLAUSIBLE, BEYOND, EXTENT_MESSAGE, EXTENT_FILLER, EXTENT_UNWRITTEN)
_RANK = {kind: rank for rank, kind in enumerate(_WORST)}
_BY_KIND = {EXTENT_FILLER, EXTENT_UNWRITTEN, EXTENT_DAMAGED}
KIND_WORDS = {
    EXTENT_MESSAGE: ("messages", "whole messages that pass every check"),
    BEYOND: ("beyond the cut", "valid messages that a start cuts"),
    PLAUSIBLE: ("after damage", "messages found after damaged bytes; where they begin is plausible, not proven"),
    EXTENT_DAMAGED: ("damaged", "no valid message, filler or unwritten space"),
    EXTENT_FILLER: ("filler", "the frame that closes a full segment"),
    EXTENT_UNWRITTEN: ("unwritten", "zeros, where nothing was written yet"),
    UNREAD: ("not read", "a file that could not be read"),
    MISSING: ("no file", "a part of the log for which this copy has no file"),
}
_LEGEND = (EXTENT_MESSAGE, EXTENT_FILLER, EXTENT_UNWRITTEN, BEYOND, EXTENT_DAMAGED, PLAUSIBLE, MISSING, UNREAD)
_MARKED = frozenset({EXTENT_DAMAGED, PLAUSIBLE, MISSING, UNREAD, BEYOND})  # drawn with a pattern: worth a look
BarPart = tuple[int, int, str]  # [start, end) of a bar, kind
_MOST = 5  # ticks
_NEAREST = 1.0  # per cent of the bar between two ticks
_ROOM = 46  # characters of labels beside each other on the narrowest phone
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")


@dataclass
class _Part:
    """A stretch of the log: a segment, a gap (no segment), or neighbours folded together."""

    start: int  # physical offset
    end: int
    size: int  # bytes that its bar shows
    pieces: list[BarPart]
    segments: list[SegmentRead] = field(default_factory=list)
    gaps: int = 0
    notes: list[str | Markup] = field(default_factory=list)
    cut: int | None = None  # where in the bar
    marked: bool = False
    weight: int = 0  # of those with more, fewer are folded


@dataclass(frozen=True)
class Rect:
    kind: str
    left: str
    width: str


@dataclass(frozen=True)
class Bar:
    """A bar of the map: rectangles, and words for those who cannot see them.

    words: the same in words.
    cut: where, "" for none.
    """

    words: str
    rects: list[Rect]
    cut: str = ""


@dataclass(frozen=True)
class Item:
    """A part as it is shown.

    files: the first and the last, none of a gap; several: their number, 0 for one.
    missing: bytes that have no file.
    """

    bar: Bar
    words: list[str | Markup]
    files: list[str]
    marked: bool
    several: int = 0
    missing: int = 0


def map_view(outcome: Outcome) -> View:
    """Return the data of map.html."""
    segments = segments_read(outcome.rows.segments)
    if not segments:
        return {"parts": []}
    started = outcome.started
    cut = started.log_end if started is not None else None
    parts = _parts(segments, cut, started.start_segment or "" if started is not None else "")
    kinds = {kind for part in parts for _, _, kind in part.pieces}
    shown = _folded(parts)
    size = sum(segment.size for segment in segments)
    ranges, left = _ranges(segments)
    return {
        "legend": [(kind, *KIND_WORDS[kind]) for kind in _LEGEND if kind in kinds],
        "whole": _whole(parts) if len(parts) > 1 else None,
        "ticks": axis_ticks([Stretch(part.start, part.end, part.size) for part in parts]),
        "held": f"{count_text(len(segments), 'segment')}, {bytes_text(size)}",
        "span": (parts[0].start, parts[-1].end),
        "shortened": any(part.size < part.end - part.start for part in parts),
        "cut": cut,
        "parts": list(map(_item, shown)),
        "of_parts": len(parts),
        "folded": len(parts) - sum(1 for part in shown if len(part.segments) + part.gaps == 1),
        "ranges": ranges,
        "ranges_left": left,
    }


# ---- what is where -------------------------------------------------------------------------------------------------


def bar_parts(segment: SegmentRead, cut: int | None) -> list[BarPart]:
    """Return a segment's bytes by kind, ascending. cut: the physical offset from which a start drops everything."""
    size = segment.size
    if segment.problem:
        return [(0, size, UNREAD)]
    edge = size if cut is None else min(size, max(0, cut - segment.base_offset))
    pieces: list[BarPart] = []
    for extent in segment.extents:
        start, end, kind = extent.start, extent.end, extent.kind
        if kind == EXTENT_MESSAGE and extent.plausible:
            pieces.append((start, end, PLAUSIBLE))
        elif kind == EXTENT_MESSAGE and end > edge:
            pieces += [piece for piece in ((start, edge, kind), (max(start, edge), end, BEYOND)) if piece[0] < piece[1]]
        else:
            pieces.append((start, end, kind if kind in _BY_KIND else EXTENT_MESSAGE))
    return pieces


def _parts(segments: Sequence[SegmentRead], cut: int | None, start_segment: str) -> list[_Part]:
    """Return segments and the gaps between them, in the log's order."""
    parts: list[_Part] = []
    for segment in sorted(segments, key=lambda segment: (segment.base_offset, segment.path)):
        base, size = segment.base_offset, segment.size
        if parts and parts[-1].end < base:
            gap = base - parts[-1].end
            drawn = min(gap, max(parts[-1].size, 1))
            parts.append(_Part(parts[-1].end, base, drawn, [(0, drawn, MISSING)], gaps=1, weight=3))
        part = _Part(base, segment.end, size, bar_parts(segment, cut), [segment])
        kinds = {kind for _, _, kind in part.pieces}
        if start_segment and segment.name == start_segment:
            part.notes.append("recovery begins here")
            part.weight = 2
        part.weight = max(part.weight, 4 if kinds & {EXTENT_DAMAGED, UNREAD, PLAUSIBLE} else 0)
        parts.append(part)
    _mark_ends(parts, cut)
    parts[0].weight, parts[-1].weight = max(parts[0].weight, 2), max(parts[-1].weight, 2)
    return parts


def _mark_ends(parts: Sequence[_Part], cut: int | None) -> None:
    """Mark the cut if something lies beyond it, and zeros if they are not the log's end."""
    closing = (EXTENT_UNWRITTEN, EXTENT_FILLER, MISSING)
    last = max((part.start + end for part in parts for _, end, kind in part.pieces if kind not in closing), default=0)
    for part in parts:
        if cut is not None and part.segments and part.start <= cut < part.end and cut < last:
            part.cut = cut - part.start
            part.notes.append(Markup("<b>cut</b> at byte {:,}, physical offset {:,}").format(part.cut, cut))
            part.weight = 5
        if part.end < last and part.pieces and part.pieces[-1][2] == EXTENT_UNWRITTEN:
            part.notes.append(Markup("<b>zeros</b>, although later segments hold messages"))
            part.weight = max(part.weight, 4)
            part.marked = True


def _folded(parts: list[_Part]) -> list[_Part]:
    """Return at most about 2 * MAX_SHOWN of them: the weightiest stay, those between are joined."""
    if len(parts) <= MAX_SHOWN:
        return parts
    ranked = sorted(range(len(parts)), key=lambda i: (-parts[i].weight, i))
    kept = {i for i in ranked[:MAX_SHOWN] if parts[i].weight}
    runs = groupby(enumerate(parts), key=lambda numbered: numbered[0] if numbered[0] in kept else None)
    return [part for _, run in runs for part in _joined([part for _, part in run])]


def _joined(run: list[_Part]) -> list[_Part]:
    if len(run) < 2:
        return run
    pieces, size = _side_by_side(run)
    segments = [segment for part in run for segment in part.segments]
    notes = [note for part in run for note in part.notes]
    return [_Part(run[0].start, run[-1].end, size, pieces, segments, sum(part.gaps for part in run), notes)]


def _side_by_side(parts: Sequence[_Part]) -> tuple[list[BarPart], int]:
    """Return the parts' pieces in one bar, and its size."""
    at, pieces = 0, []
    for part in parts:
        pieces += [(at + start, at + end, kind) for start, end, kind in part.pieces]
        at += part.size
    return pieces, at


# ---- how it looks --------------------------------------------------------------------------------------------------


def cells_of(pieces: Sequence[BarPart], size: int) -> list[tuple[int, int, str]]:
    """Return the bar as (first cell, cells, kind), with neighbouring equal cells as one.

    A cell shows the worst kind of bytes in it.
    """
    if size <= 0:
        return []
    cells = [_RANK[EXTENT_UNWRITTEN]] * CELLS
    for start, end, kind in sorted(pieces, key=lambda piece: -_RANK[piece[2]]):  # the worst last: it stays
        if start < end:
            first, last = start * CELLS // size, (end * CELLS - 1) // size + 1
            cells[first:last] = [_RANK[kind]] * (last - first)
    edges = [0, *(i for i in range(1, CELLS) if cells[i] != cells[i - 1]), CELLS]
    return [(a, b - a, _WORST[cells[a]]) for a, b in pairwise(edges)]


def _bar(pieces: Sequence[BarPart], size: int, cut: int | None, head: str = "") -> Bar:
    rects = [
        Rect(kind, f"{first * 100 / CELLS:.4g}%", f"{count * 100 / CELLS:.4g}%") for first, count, kind in cells_of(pieces, size)
    ]
    place = "" if cut is None or not size else f"{min(99.6, max(0.4, cut * 100 / size)):.4g}%"
    return Bar(head + _in_words(pieces), rects, place)


def _whole(parts: Sequence[_Part]) -> Bar:
    pieces, size = _side_by_side(parts)
    starts = accumulate((part.size for part in parts), initial=0)
    cuts = [start + part.cut for start, part in zip(starts, parts, strict=False) if part.cut is not None]
    return _bar(pieces, size, cuts[-1] if cuts else None, "The whole log from left to right: ")


def _in_words(pieces: Sequence[BarPart]) -> str:
    """Return bytes by kind, in words."""
    sizes: Counter[str] = Counter()
    for start, end, kind in pieces:
        sizes[kind] += end - start
    order = (EXTENT_MESSAGE, BEYOND, PLAUSIBLE, EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_UNWRITTEN, UNREAD)
    shown = [f"{KIND_WORDS[kind][0]} {bytes_text(sizes[kind])}" for kind in order if sizes[kind]]
    if sizes[MISSING]:
        shown.append("a part without a file")
    return ", ".join(shown) or "no bytes"


def _item(part: _Part) -> Item:
    bar = _bar(part.pieces, part.size, part.cut)
    marked = part.marked or bool({kind for _, _, kind in part.pieces} & _MARKED)
    if not part.segments:
        return Item(
            bar, [f"physical offsets {part.start:,} to {part.end:,}", *part.notes], [], marked, missing=part.end - part.start
        )
    files = [part.segments[i].name for i in (0, -1)]
    words: list[str | Markup] = [count_text(sum(segment.messages for segment in part.segments), "message"), bar.words]
    if len(part.segments) > 1 or part.gaps:
        gaps = [f"{count_text(part.gaps, 'gap')} among them"] if part.gaps else []
        return Item(bar, words + gaps + part.notes, list(dict.fromkeys(files)), marked, several=len(part.segments))
    (segment,) = part.segments
    if segment.problem:
        words = [segment.problem]
    if segment.first_store_time is not None and segment.last_store_time is not None:
        words.insert(1, span_text(segment.first_store_time, segment.last_store_time))
    return Item(bar, words + part.notes, files[:1], marked)


@dataclass(frozen=True)
class Range:
    """A range of a segment.

    start, end: places in the segment that begins at the physical offset base.
    """

    file: str
    base: int
    start: int
    end: int
    what: str


def _ranges(segments: Sequence[SegmentRead]) -> tuple[list[Range], int]:
    """Return (byte ranges of the segments that hold damage or plausible messages, how many more ranges there are)."""
    ranges: list[Range] = []
    left = 0
    for segment in segments:
        extents = segment.extents
        if not any(extent.kind == EXTENT_DAMAGED or extent.plausible for extent in extents):
            continue
        room = min(MAX_RANGES, MAX_RANGES_IN_ALL - len(ranges))
        left += max(0, len(extents) - room)
        ranges += [Range(segment.name, segment.base_offset, e.start, e.end, _what(e)) for e in extents[:room]]
    return ranges, left


def _what(extent: Extent) -> str:
    kind, reason = PLAUSIBLE if extent.plausible else extent.kind, extent.reason
    what = KIND_WORDS.get(kind, (kind, ""))[0]
    if extent.message_count:
        messages = count_text(extent.message_count, "message")
        what = f"{messages} {what}" if kind == PLAUSIBLE else messages
    return f"{what}: {clause(STOP_REASONS.get(reason, reason))}" if reason else what


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
    """Return the ticks of the axis, from left to right.

    None inside of a gap that is drawn shorter than it is. stretches: as they are drawn, side by side.
    """
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
    """Return the smallest 1, 2 or 5 with zeros by which the size has at most so many parts."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power * parts >= size:
                return digit * power
        power *= 10


def _multiples(stretches: Sequence[Stretch], step: int) -> Iterator[tuple[int, int]]:
    """Yield (physical offset, byte of the bar) of each multiple of the step; the bar's end is among them."""
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
    """Return the marks with those labels that leave room for each other."""
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
