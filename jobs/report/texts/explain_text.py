"""The answer of `explain`: annotated bytes for people, or one JSON object. Rendering only.

Everything that a store holds goes through `printable`: a body that steers terminals stays letters here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from jobs.cli.terminal import BOLD, FAINT, GREEN, PLAIN, RED, YELLOW, Paint
from jobs.report.texts.text import name_text, printable
from schemas.finding_codes import STOP_REASONS
from store_io.audit.healing.changes import Change, Healing
from store_io.audit.healing.judgement import risk_text
from store_io.base.times import second_text
from store_io.base.wording import clause, count_text
from store_io.messages.explain.explain_place import AROUND_ROW, Explanation, Neighbour
from store_io.messages.explain.explain_pointers import Pointer
from store_io.messages.explain.explain_record import Field

_ROW_BYTES = 8
_HEX_WIDTH = 3 * _ROW_BYTES - 1
_ROWS = {"BODY": 16}  # of bytes shown; others: _FEW_ROWS
_FEW_ROWS = 4
_NAME_WIDTH = 26
_LEAST_VALUE = 24
_LABEL = 11


def explain_text(said: Explanation, width: int, colour: bool = False) -> str:
    """Return the whole explanation as lines of at most `width` columns, if that is possible, with the last line's end."""
    paint = Paint(colour)
    good = said.kind in ("record", "filler", "unwritten")
    head = f"physical offset {said.phy_offset:,}: {printable(said.sentence)}"
    lines = [paint(BOLD + (GREEN if good else YELLOW), line) for line in _labelled("", head, width, 0)]
    for label, text in _facts(said):
        lines += _labelled(label, text, width)
    for check in said.checks:
        what = "accepts it" if check.passes and not check.reason else f"{clause(check.sentence)}"
        if check.expected:
            what += f" (expected {printable(check.expected, 200)}, found {printable(check.actual, 200)})"
        lines += _labelled(
            "Checks" if check is said.checks[0] else "",
            f"{printable(check.who)}: {paint(GREEN if check.passes else RED, what)}",
            width + (len(RED + PLAIN) if colour else 0),
        )
    for number, healing in enumerate(said.healing):
        lines += _labelled("" if number else "Healing", printable(_healing(healing), 600), width)
    for label, neighbour in (("Before", said.before), ("After", said.after)):
        lines += _labelled(label, _neighbour(neighbour) if neighbour else "none in this copy", width)
    if said.fields:
        lines += ["", *_fields(said, width, paint)]
    if said.around:
        lines += ["", f"bytes at {said.around_start:,}:", *_dump(said.around, said.around_start)]
    if said.derived:
        lines.append("")
        for part in said.derived:
            lines += _labelled(part.name, printable(part.value, 400), width, 20)
    lines += ["", *_pointers(said, width, paint)]
    return "\n".join(lines) + "\n"


def _facts(said: Explanation) -> Iterator[tuple[str, str]]:
    if said.file is not None:
        place = f"{printable(said.file)}, position {count_text(said.position or 0)}"
        yield "Lies in", f"{place} of {count_text(said.segment_bytes, 'byte')}"
    if said.extent is not None:
        kind, start, end, reason = said.extent
        why = f": {clause(STOP_REASONS.get(reason, reason))}" if reason else ""
        words = {"message": "messages without a break", "unwritten": "unwritten", "filler": "filler", "damaged": "damaged"}
        yield "Range", f"{start:,} to {end:,}, {words[kind]}{why}"
    if said.start:
        yield "Start", printable(said.start)
    elif said.stop is not None and said.file is not None:
        stop, reason = said.stop
        here = said.record_start if said.record_start is not None else said.phy_offset
        beyond = ", before this place" if stop < here else ""
        why = clause(STOP_REASONS.get(reason, reason))
        yield "Scan", f"RocketMQ {said.release} reads this segment up to {stop:,}{beyond}: {why}"


def _healing(healing: Healing) -> str:
    """Return the words on the change, its evidence, and whether `repair --heal` makes it."""
    if healing.change is None:
        return f"none: {healing.why_not}"
    text = f"{_change_text(healing.change)} makes the record at {healing.phy_offset:,} whole"
    if healing.others:
        text += "; so would " + ", or ".join(_change_text(change) for change in healing.others[:3])
    if healing.why_not:
        return f"{text}. Not made: {healing.why_not}"
    risk = f"risk that other damage looks like this: {risk_text(healing.risk)}"
    return f"{text}: {healing.reason}; {risk}. repair --heal makes this change"


def _change_text(change: Change) -> str:
    place = f"position {change.position:,} ({change.field})"
    return (
        f"{change.new.hex(' ')} in the place of {change.old.hex(' ')} at {place}" if change.new else f"another value at {place}"
    )


def _neighbour(n: Neighbour) -> str:
    when = second_text(n.store_time)
    return (
        f"message at {n.phy_offset:,}, {count_text(n.size, 'byte')}: {name_text(n.topic, 60)}, queue {n.queue_id},"
        f" offset {n.queue_offset:,}, {when}"
    )


def _fields(said: Explanation, width: int, paint: Paint) -> Iterator[str]:
    assert said.record_start is not None
    base = said.record_start - said.segment_start
    place = max(8, len(str(base + max(f.at + f.size for f in said.fields))))
    yield paint(BOLD, f"{'record':>8} {'segment':>{place}}  {'bytes':<{_HEX_WIDTH}}  {'field':<{_NAME_WIDTH}} value")
    room = max(_LEAST_VALUE, width - (8 + 1 + place + 2 + _HEX_WIDTH + 2 + _NAME_WIDTH + 1))
    for field in said.fields:
        rows = list(_hex_rows(field))
        value = printable(field.value) or ("" if field.size or field.wrong else "(empty)")
        values = [value[i : i + room] for i in range(0, len(value), room)] or [""]
        wrong = f"{'<- ' if not value else ''}{printable(field.wrong, 300)}" if field.wrong else ""
        marks = [wrong[i : i + room] for i in range(0, len(wrong), room)]
        name = printable(field.name, _NAME_WIDTH)
        for number in range(max(len(rows), len(values) + len(marks))):
            left = f"{field.at:>8} {base + field.at:>{place}}" if number == 0 else " " * (9 + place)
            data = rows[number] if number < len(rows) else ""
            text = values[number] if number < len(values) else ""
            if number >= len(values) and number - len(values) < len(marks):
                text = paint(RED, marks[number - len(values)])
            shown = f"{name if number == 0 else '':<{_NAME_WIDTH}}"
            line = f"{left}  {paint(FAINT, f'{data:<{_HEX_WIDTH}}')}  {paint(RED if field.wrong else '', shown)} {text}"
            yield line.rstrip()


def _hex_rows(field: Field) -> Iterator[str]:
    data, most = field.data, _ROWS.get(field.name, _FEW_ROWS) * _ROW_BYTES
    if not data and field.size:
        yield f"({count_text(field.size, 'byte')})"
    for i in range(0, min(len(data), most), _ROW_BYTES):
        yield data[i : i + _ROW_BYTES].hex(" ")
    if field.size > min(len(data), most) and data:
        yield f"... {field.size - min(len(data), most):,} more"


def _dump(data: bytes, start: int) -> Iterator[str]:
    for i in range(0, len(data), AROUND_ROW):
        row = data[i : i + AROUND_ROW]
        letters = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in row)
        yield f"  {start + i:>12}  {row.hex(' '):<{3 * AROUND_ROW}} {letters}"


def _pointers(said: Explanation, width: int, paint: Paint) -> Iterator[str]:
    yield paint(BOLD, "What leads here" if said.pointers else "Nothing leads here")
    colours = {"equal": GREEN, "absent": RED, "differs": RED, "into the middle": YELLOW}
    for p in said.pointers:
        state = paint(colours.get(p.state, ""), p.state)
        yield f"  {state}: {_pointer(p)}"
        for difference in p.differences:
            yield from _labelled("", printable(difference, 300), width, 4)
    if said.more_pointers:
        yield f"  and {count_text(said.more_pointers, 'more entry', 'more entries')}"
    for sentence in said.searched:
        yield from (paint(FAINT, line) for line in _labelled("", printable(sentence), width, 2))


def _pointer(p: Pointer) -> str:
    what = {"queue": "its queue's entry", "lmq": "its multi-dispatch queue's entry", "batch": "its batch queue's entry"}
    kind = {"index": "index entry", "other queue": "entry"}.get(p.kind) or what[p.kind]
    name = f" of {printable(p.name, 120)}" if p.name else ""
    place = "under its key" if p.position is None else f"at {p.position:,}"
    where = f"{printable(p.file)} {place}" if p.values else printable(p.file)
    held = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in p.values.items())
    return f"{kind} {p.number:,}{name}, {where}" + (f" ({held})" if held else "")


def _labelled(label: str, text: str, width: int, indent: int = _LABEL + 2) -> Iterator[str]:
    head = f"  {label:<{indent - 3}} " if indent > _LABEL else " " * indent
    room = max(_LEAST_VALUE, width - len(head))
    first = True
    while first or text:
        cut = len(text)
        if len(text) > room:
            cut = text.rfind(" ", room // 2, room + 1)
            cut = cut if cut > 0 else room
        yield (head if first else " " * len(head)) + text[:cut]
        text, first = text[cut:].lstrip(" "), False


# ---- JSON ----------------------------------------------------------------------------------------------------------


def explain_json(said: Explanation) -> str:
    """Return the explanation as one JSON object on one line.

    Bytes are hexadecimal, at most as many as the text shows of a field.
    """
    return json.dumps(asdict(said), ensure_ascii=True, allow_nan=False, default=bytes.hex) + "\n"
