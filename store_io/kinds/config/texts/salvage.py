"""Reads a file of config/ that no parser takes: torn, with zeros or garbage in it, of an unknown syntax.

    found = salvaged(data, LAYOUTS[path])

Each whole pair of key and value counts, and no half of one: a number counts if a comma or a bracket follows it. After bytes
that are no JSON the brackets that were open are not trusted: an entry is then known by its own key, by the table that was named
last, and by its shape. It does not count if another table of that shape may begin in bytes that cannot be read.
One pass over the bytes, without recursion: time and memory grow with the file and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS
from store_io.broker.texts.fastjson import WORDS, decimal_of, refuse_constant

TEXT, INT = "text", "int"  # kinds of keys
PULL_OFFSETS, FORBIDDEN = "pullOffsetTable", "forbiddenTable"
OFFSETS, LIGHT_OFFSETS, FILTERS = "offsetTable", "lmqOffsetTable", "filterDataByTopic"
MOST_BROKEN = 1000  # names that are kept of entries without a whole value
_MOST_DEPTH = 64  # of brackets; a broker writes at most 8
MOST_TOKENS = 16_000_000  # and no part that is read at once; a broker's largest file has 12 million
_MOST_GARBAGE = 7  # bytes that cannot hide the end of one entry and the begin of another one: },"a@b":{
_INT, _LONG = 1 << 31, 1 << 63
_STRING_BODY = rb"(?:[^%s\\\x00-\x1f]|\\[\x20-\xff])*+"
_TOKEN = re.compile(
    rb"(?P<space>[\t\n\f\r\b ]++|//[^\n]*+)"
    rb'|(?P<string>"' + _STRING_BODY % b'"' + rb"\"?|'" + _STRING_BODY % b"'\"{}" + rb"'?)"
    rb"|(?P<number>[+-]?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?[LSBFD]?(?![0-9A-Za-z_.$\x80-\xff]))"
    rb"|(?P<word>[A-Za-z_$][0-9A-Za-z_$]*+)"
    rb"|(?P<sign>[{}\[\]:,])"
    rb"|\\.|[^\t\n\f\r\b \"'{}\[\]:,/\\]++|.",
    re.DOTALL,
)
# Two of the commonest parts at once, as a broker writes them: a queue with its offset, and an entry with one level in it.
_PAIR = re.compile(rb"[\t\n\r ]*+(-?[0-9]{1,19})[\t\n\r ]*+:[\t\n\r ]*+(-?[0-9]{1,19})[\t\n\r ]*+(?=[,}])")
_FLAT = rb'(?:[^{}"\x00-\x08]|"(?:[^"\\\x00-\x1f]|\\[\x20-\xff])*+")'
_ROW = re.compile(rb"\{(?:" + _FLAT + rb"|\{" + _FLAT + rb"*+\})*+\}")
# A release that writes PULL_OFFSETS begins a line for each queue's offset; earlier ones write them on one line.
_OLDER_FORM = re.compile(rb"@[^@\"\n]*+\":\{-?[0-9]{1,10}:-?[0-9]{1,19}(?:,-?[0-9]{1,10}:-?[0-9]{1,19})*+\r?\n\t\t\}")
_NEWER_FORM = re.compile(rb"[{,]\r?\n\t*-?[0-9]{1,10}:-?[0-9]")
_NUMBER = re.compile(r"([+-]?[0-9]{1,40})(\.[0-9]*)?([eE][+-]?[0-9]+)?[LSBFD]?")
_QUOTE = re.compile(r"(\\.)|\"", re.DOTALL)


@dataclass(frozen=True)
class Layout:
    """One table of a file.

    levels: the kinds of key that lead from the table to an entry: TEXT, INT, or a name that all have.
    fields: the names of which an entry has at least one; none if an entry is a number.
    own: the fields of an entry that repeat its place.
    """

    name: str
    levels: tuple[str, ...]
    fields: frozenset[str] = frozenset()
    own: tuple[str, ...] = ()


_OFFSET_LAYOUTS = (Layout(OFFSETS, (TEXT, INT)), Layout(LIGHT_OFFSETS, (TEXT,)), Layout(PULL_OFFSETS, (TEXT, INT)))
_TOPIC_FIELDS = frozenset({"topicName", "readQueueNums", "writeQueueNums", "perm", "topicSysFlag"})
_GROUP_FIELDS = frozenset({"groupName", "consumeEnable", "retryQueueNums", "retryMaxTimes", "consumeFromMinEnable"})
LAYOUTS: Mapping[str, tuple[Layout, ...]] = {
    TOPICS: (Layout("topicConfigTable", (TEXT,), _TOPIC_FIELDS),),
    GROUPS: (Layout("subscriptionGroupTable", (TEXT,), _GROUP_FIELDS), Layout(FORBIDDEN, (TEXT, TEXT))),
    CONSUMER_OFFSETS: _OFFSET_LAYOUTS,
    LMQ_OFFSETS: _OFFSET_LAYOUTS,
    DELAY_OFFSETS: (Layout(OFFSETS, (INT,)),),
    "config/consumerFilter.json": (
        Layout(FILTERS, (TEXT, "groupFilterData", TEXT), frozenset({"expression"}), ("topic", "consumerGroup")),
    ),
    "config/consumerOrderInfo.json": (Layout("table", (TEXT, INT), frozenset({"popTime", "i", "o"})),),
    "config/topicQueueMapping.json": (Layout("topicQueueMappingInfoMap", (TEXT,), frozenset({"totalQueues", "hostedQueues"})),),
    "config/timermetrics": (Layout("timingCount", (TEXT,), frozenset({"count", "timeStamp"})),),
}
"""Of each file that a repair may write: its own table, then what else is kept in it."""


@dataclass
class Salvaged:
    """The entries that are whole in a damaged file.

    tables: name -> the whole entries, nested as in the file.
    whole: nothing else is in the text.
    before: how many entries of the file's own table precede the first damage.
    broken, broken_count: (table, keys) of entries without a whole value, or of `UNKNOWN_TABLE`, and how many.
    version: fields of dataVersion.
    """

    tables: dict[str, dict[Any, Any]] = field(default_factory=dict)
    whole: bool = False
    before: int = 0
    broken: list[tuple[Layout, tuple[Any, ...]]] = field(default_factory=list)
    broken_count: int = 0
    version: dict[str, Any] = field(default_factory=dict)


def salvaged(data: bytes, layouts: Sequence[Layout]) -> Salvaged:
    """Read the entries of damaged bytes, and never raise over them."""
    data = data.rstrip(b"\0").removeprefix(b"\xef\xbb\xbf")
    named = frozenset(layout.name for layout in layouts if _is_named(layout, data))
    reader = _Reader(data, layouts, named)
    found = reader.read()
    if not named <= reader.named:  # damage beside a name, so that it names nothing
        named = named & reader.named
        reader = _Reader(data, layouts, named)
        found = reader.read()
    if layouts[0].name in (*found.tables, *reader.named):
        return found
    return _Reader(data, layouts, named, by_shape=True).read()


def entries_of(table: Mapping[Any, Any], layout: Layout) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (keys, value) of each entry of a nested table."""
    yield from _entries(table, len(layout.levels), ())


def _entries(held: Mapping[Any, Any], depth: int, above: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for key, value in held.items():
        if depth == 1:
            yield (*above, key), value
        elif isinstance(value, dict):
            yield from _entries(value, depth - 1, (*above, key))


def put_entry(table: dict[Any, Any], keys: Sequence[Any], value: Any, keep: bool = False) -> None:
    """Put an entry at its place. keep: an older one stays."""
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    if not keep or keys[-1] not in table:
        table[keys[-1]] = value


def entry_at(table: Mapping[Any, Any], keys: Sequence[Any]) -> Any:
    """Return the entry at that place; None without one."""
    for key in keys[:-1]:
        table = table.get(key) or {}
    return table.get(keys[-1])


def entry_name(layout: Layout, keys: Sequence[Any]) -> str:
    """Return an entry as a list names it, by its variable keys."""
    shown = [str(key) for key, level in zip(keys, layout.levels, strict=False) if level in (TEXT, INT)]
    return ", ".join(shown)


_KEY, _COLON, _VALUE, _AFTER, _SKIP = range(5)  # what comes next; _SKIP: nothing before the next comma, but a key in quotes


class _Frame:
    """An open bracket.

    table, path: its place; table is None if nothing says which.
    held: its content, or None if that is not kept.
    key: the key of the value that comes next.
    broken: a part of the content is not readable.
    """

    __slots__ = ("broken", "held", "is_object", "key", "path", "pending", "state", "table")

    def __init__(self, is_object: bool, table: Layout | None, path: tuple[Any, ...], keeps: bool):
        self.is_object, self.table, self.path = is_object, table, path
        self.held: Any = ({} if is_object else []) if keeps else None
        self.key: Any = None
        self.pending: Any = _NONE
        self.broken = False
        self.state = _KEY if is_object else _VALUE


_NONE = object()
_OTHER = Layout("", ())  # a part of the text that is no table
UNKNOWN_TABLE = Layout("?", (TEXT, INT))  # of two of one shape


class _Reader:
    def __init__(self, data: bytes, layouts: Sequence[Layout], named: Set[str], by_shape: bool = False):
        """Take the text and the tables that it may hold.

        named: tables whose names are whole in the text.
        by_shape: a table whose name is not known is the file's own, if its entries look so.
        """
        self._by_shape = by_shape
        self.named: set[str] = set()  # tables that are named in the text
        self.found = Salvaged()
        self._data, self._layouts = data, layouts
        self._by_name = {layout.name: layout for layout in layouts} | {"dataVersion": _OTHER}
        self._section = layouts[0]  # the table that was named last
        unwritten = {PULL_OFFSETS} if _OLDER_FORM.search(data) and not _NEWER_FORM.search(data) else set[str]()
        may_hide = [each for each in layouts if each.name not in named | unwritten]
        self._mistakable = [each for each in layouts if any(other is not each and _alike(other, each) for other in may_hide)]
        self._frames = [_Frame(False, None, (), False)]
        self._damaged = self._lost = self._ended = False  # lost: the second frame is for all that were open
        self._garbage = 0  # bytes since the last whole pair
        self._open_comment = False
        self._texts: dict[bytes, str] = {}

    def read(self) -> Salvaged:
        data, at, size, tokens = self._data, 0, len(self._data), 0
        while at < size and tokens < MOST_TOKENS:
            tokens += 1
            frame = self._frames[-1]
            if frame.table is not None and (frame.state == _KEY or frame.state == _VALUE and frame.is_object):
                at = self._common_parts(frame, at)
            match = _TOKEN.match(data, at)
            if match is None:
                break
            kind, end = match.lastgroup, match.end()
            if kind == "space":
                pass
            elif kind == "sign":
                self._sign(data[at])
            elif kind == "string" and (end - at < 2 or data[end - 1] != data[at]):
                self._damage(1)
                end = at + 1  # what follows a quote that is not closed may be no text
            elif kind is None:
                end = self._comment_end(at) or end
                if end == match.end():
                    self._damage(end - at)
            elif not self._scalar(kind, data[at:end], end):
                end = at + 1  # a quote that opens nothing: what follows may be no text
            at = end
        self.found.whole = at >= size and self._ended and not self._damaged and len(self._frames) == 1 and not self._by_shape
        self._give_up_open()
        if not self._unsure:
            self.found.before = self._count()
        return self.found

    def _count(self) -> int:
        own = self._layouts[0]
        return sum(1 for _ in entries_of(self.found.tables.get(own.name, {}), own))

    def _common_parts(self, frame: _Frame, at: int) -> int:
        """Read queues with their offsets, or one whole entry, as a broker writes them; return the position after them."""
        layout = frame.table
        if layout is None or layout is _OTHER or len(frame.path) != len(layout.levels) - 1:
            return at
        if not layout.fields:
            if frame.state == _KEY and layout.levels[-1] == INT:
                at = self._pairs(frame, layout, at)
        elif frame.state == _VALUE and (match := _ROW.match(self._data, at)) is not None:
            try:
                held = json.loads(match[0], parse_float=decimal_of, parse_constant=refuse_constant)
            except (ValueError, RecursionError):
                return at
            self._offer(frame, frame.key, held)
            frame.state, frame.pending = _AFTER, held
            return match.end()
        return at

    def _pairs(self, frame: _Frame, layout: Layout, at: int) -> int:
        data, comma, keep = self._data, ord(","), self._damaged
        held: dict[int, int] | None = None
        while (match := _PAIR.match(data, at)) is not None:
            if held is None:
                if _keys_of(layout, (*frame.path, 0)) is None:
                    return at
                held = self.found.tables.setdefault(layout.name, {})
                for key in frame.path:
                    held = held.setdefault(key, {})  # type: ignore[arg-type, assignment]
                self._garbage = 0
            number, value = int(match[1]), int(match[2])
            if -_INT <= number < _INT and -_LONG <= value < _LONG and not (keep and number in held):
                held[number] = value
            at = match.end()
            if data[at] != comma:
                frame.state = _AFTER
                return at
            at += 1
        return at

    def _comment_end(self, at: int) -> int:
        if self._open_comment or not self._data.startswith(b"/*", at):
            return 0
        end = self._data.find(b"*/", at + 2)
        self._open_comment = end < 0
        return end + 2 if end >= 0 else 0

    # ---- tokens ----------------------------------------------------------------------------------------------------

    def _sign(self, sign: int) -> None:
        frame = self._frames[-1]
        if sign in b"{[":
            self._open(frame, sign == ord("{"))
        elif sign in b"}]":
            if sign == ord("}"):
                frame = self._leave_lists(frame)
            if self._lost and len(self._frames) == 2:  # of what was open before
                self._commit(frame)
                frame.state = _SKIP
            elif len(self._frames) > 1 and frame.is_object == (sign == ord("}")):
                self._close(frame)
            else:
                self._damage(1)
        elif sign == ord(","):
            if len(self._frames) == 1 and not self._damaged:
                self._damage(1)
            elif frame.state in (_COLON, _VALUE) and frame.is_object:
                self._drop(frame)
            else:
                self._commit(frame)
            frame = self._frames[-1]
            frame.state = _KEY if frame.is_object else _VALUE
        elif frame.state == _COLON:
            frame.state = _VALUE
        elif frame.state != _SKIP:
            self._damage(1)

    def _leave_lists(self, frame: _Frame) -> _Frame:
        """Return the object around lists whose bracket is missing."""
        while not frame.is_object and len(self._frames) > 2:
            self._damage(1)
            if self._frames[-1] is not frame:
                break
            self._frames.pop()
            self._frames[-1].broken, self._frames[-1].state = True, _SKIP
            frame = self._frames[-1]
        return self._frames[-1]

    def _scalar(self, kind: str, token: bytes, end: int) -> bool:
        """Take a text, number or word. Return False if a text is not in its place."""
        frame = self._frames[-1]
        if not frame.is_object and self._follows(end, b":"):
            if len(self._frames) == 1:
                self._damage(1)
            frame = self._leave_lists(self._frames[-1])
        if frame.is_object and (frame.state == _KEY or frame.state == _SKIP and kind == "string"):
            if not self._follows(end, b":"):
                if frame.state == _KEY or kind == "string":
                    self._damage(1)
                return kind != "string"
            key = self._key(kind, token)
            if self._damaged and not _is_entry_key(token.decode("utf-8", "replace") if key is None else key):
                self._doubt_tables()  # it may be the damaged name of a table
            if key is None:
                self._damage(_bad_bytes(token))
            else:
                frame.key, frame.state = key, _COLON
            return True
        if frame.state == _SKIP:
            return kind != "string" or self._follows(end, b",}]")
        if frame.state == _VALUE and (frame.is_object or len(self._frames) > 1):
            value = self._value(kind, token) if kind != "string" or self._follows(end, b",}]") else _NONE
            if value is not _NONE:
                frame.pending, frame.state = value, _AFTER
                return True
        self._damage(_bad_bytes(token) if kind == "string" else len(token))
        return kind != "string"

    def _follows(self, at: int, signs: bytes) -> bool:
        while (match := _TOKEN.match(self._data, at)) is not None and match.lastgroup == "space":
            at = match.end()
        return at < len(self._data) and self._data[at] in signs

    def _key(self, kind: str, token: bytes) -> Any:
        if kind == "string":
            return self._text(token)
        text = token.decode("ascii")
        return text if kind == "word" else _number(text)

    def _value(self, kind: str, token: bytes) -> Any:
        if kind == "string":
            text = self._text(token)
            return _NONE if text is None else text
        text = token.decode("ascii")
        if kind == "word":
            return WORDS.get(text, _NONE)
        number = _number(text)
        return _NONE if number is None else number

    def _text(self, token: bytes) -> str | None:
        known = self._texts.get(token)
        if known is not None:
            return known
        body = token[1:-1]
        try:
            text = body.decode("utf-8")
            if b"\\" in body:
                if token[:1] == b"'":
                    text = _QUOTE.sub(lambda match: match[1] or '\\"', text.replace("\\'", "'"))
                text = json.loads(f'"{text}"')
        except ValueError:
            return None
        if len(token) <= 40 and len(self._texts) < 1000:  # of fields, which each entry has
            self._texts[token] = text
        return text

    # ---- brackets ----------------------------------------------------------------------------------------------------

    def _open(self, frame: _Frame, is_object: bool) -> None:
        if len(self._frames) >= _MOST_DEPTH:
            self._damage(_MOST_GARBAGE + 1)
            return
        if frame.state != _VALUE or len(self._frames) == 1 and (self._ended or not is_object):
            self._damage(1)
            if is_object:
                self._frames.append(_Frame(is_object, None, (), False))
            return
        if len(self._frames) == 1:
            self._frames.append(_Frame(is_object, None, (), False))
            return
        table, path = self._place(frame)
        if (
            self._damaged and path and not (table or self._section).fields
        ):  # of two with one name the later may be another table's
            known = entry_at(self.found.tables.get((table or self._section).name, {}), path)
            table = _OTHER if known is not None else table
        keeps = table is None or len(path) >= len(table.levels) and (bool(table.fields) or table is _OTHER)
        self._frames.append(_Frame(is_object, table, path, keeps))

    def _place(self, frame: _Frame) -> tuple[Layout | None, tuple[Any, ...]]:
        """Return (the table, the keys below it) of the value that opens there."""
        if not frame.is_object:
            return frame.table, (*frame.path, 0)
        named = self._by_name.get(frame.key) if isinstance(frame.key, str) else None
        first = self._layouts[0]
        if named is None and self._by_shape and len(self._frames) == 2 and not self._damaged and first not in self._mistakable:
            named = first
        if frame.table is not None and _misplaced(frame.table, (*frame.path, frame.key)):  # a bracket before is lost
            self._begin_damage()
            self._doubt_tables()
        if named is not None and (len(self._frames) == 2 or self._damaged):
            self.named.add(named.name)
            self._section = named if named is not _OTHER else self._section
            return named, (frame.key,) if named is _OTHER else ()
        if self._damaged and self._is_past(frame.table):
            return None, (frame.key,)
        if self._damaged and frame.path == ("dataVersion",):  # whose bracket is missing: no object is in it
            return None, (frame.key,)
        if frame.table is not None:
            return frame.table, (*frame.path, frame.key)
        return (None if self._unsure else _OTHER), (*frame.path, frame.key)

    def _is_past(self, table: Layout | None) -> bool:
        """Say whether another table of its shape was named since it was, so that a bracket before was lost."""
        return table is not None and table is not self._section and _alike(table, self._section)

    def _close(self, frame: _Frame) -> None:
        self._commit(frame)
        self._frames.pop()
        above = self._frames[-1]
        if len(self._frames) == 1:
            self._ended = True
            return
        if above.state != _VALUE:  # it opened where no value belongs
            above.broken = True
            return
        above.broken |= frame.broken and above.held is not None
        above.pending, above.state = (_NONE if frame.broken else frame.held), _AFTER
        if frame.broken:
            self._note_broken(frame.table, frame.path)
        elif frame.held is not None:
            self._offer(above, above.key, frame.held)

    def _commit(self, frame: _Frame) -> None:
        """Take the pair over that ends here."""
        value, frame.pending = frame.pending, _NONE
        if frame.state != _AFTER or value is _NONE or value is None and frame.held is None:
            return
        self._garbage = 0
        if frame.held is None:
            if frame.is_object and not isinstance(value, dict | list):
                self._offer(frame, frame.key, value)
        elif frame.is_object:
            frame.held[frame.key] = value
            if self._damaged and frame.table is None:
                self._offer(frame, frame.key, value)
            elif frame.path == ("dataVersion",) and frame.table is _OTHER:
                self.found.version[frame.key] = value
        else:
            frame.held.append(value)

    def _offer(self, frame: _Frame, key: Any, value: Any) -> None:
        """Take the pair as an entry, if it is one."""
        if not frame.is_object or frame.table is _OTHER:
            return
        path = (*frame.path, key)
        if frame.table is not None:
            layouts: tuple[Layout, ...] = (frame.table,)
        elif self._unsure:
            layouts = tuple(each for each in (self._section, *self._layouts) if each.name != FORBIDDEN)
        else:
            return
        for layout in layouts:
            keys = _keys_of(layout, path[-len(layout.levels) :] if self._unsure else path)
            if keys is None and self._damaged and isinstance(value, dict) and layout.own:
                texts = [value.get(name) for name in layout.own]
                keys = (texts[0], layout.levels[1], texts[1]) if all(isinstance(text, str) for text in texts) else None
            if keys is not None and self._fits(layout, keys, value):
                if frame.table is None and layout in self._mistakable:
                    self._note_broken(UNKNOWN_TABLE, keys)
                    return
                put_entry(self.found.tables.setdefault(layout.name, {}), keys, value, keep=self._damaged)
                return

    def _fits(self, layout: Layout, keys: Sequence[Any], value: Any) -> bool:
        if not layout.fields:
            named = not self._unsure or layout.levels[0] == INT or layout.name == FORBIDDEN or "@" in keys[0]
            return named and type(value) is int and -_LONG <= value < _LONG
        return isinstance(value, dict) and (not self._unsure or not layout.fields.isdisjoint(value))

    # ---- damage --------------------------------------------------------------------------------------------------------

    def _damage(self, size: int) -> None:
        """Note bytes that are no JSON, or not in their place: the pair there does not count.

        After many the brackets do not either.
        """
        self._garbage += size
        self._drop(self._frames[-1])
        if self._garbage > _MOST_GARBAGE or len(self._frames) == 1:
            self._give_up_open()
            self._frames = [self._frames[0], _Frame(True, None, (), False)]
            self._lost = True
        self._frames[-1].state = _SKIP

    def _drop(self, frame: _Frame) -> None:
        """Leave out the pair that is read."""
        self._note_pair(frame)
        self._begin_damage()
        frame.broken, frame.pending = True, _NONE

    def _begin_damage(self) -> None:
        if not self._unsure:
            self.found.before = self._count()
        self._damaged = True

    def _doubt_tables(self) -> None:
        """Forget in which table the open brackets are, if it may be another one of that shape."""
        for frame in self._frames:
            if frame.table in self._mistakable:
                frame.table = None

    @property
    def _unsure(self) -> bool:
        """Say whether the place of an entry alone does not say what it is."""
        return self._damaged or self._by_shape

    def _give_up_open(self) -> None:
        for frame in self._frames:
            if frame.table is not None and frame.table is not _OTHER:
                if len(frame.path) == len(frame.table.levels) and frame.table.fields:
                    self._note_broken(frame.table, frame.path)
        self._note_pair(self._frames[-1])

    def _note_pair(self, frame: _Frame) -> None:
        """Note the pair that is read as broken, if it is an entry."""
        if frame.state in (_COLON, _VALUE, _AFTER) and frame.is_object and frame.table is not None:
            keys = _keys_of(frame.table, (*frame.path, frame.key))
            if keys is not None and not isinstance(frame.pending, dict):
                self._note_broken(frame.table, keys)

    def _note_broken(self, table: Layout | None, keys: Sequence[Any]) -> None:
        if table is None or table is _OTHER or len(keys) != len(table.levels):
            return
        self.found.broken_count += 1
        if len(self.found.broken) < MOST_BROKEN:
            self.found.broken.append((table, tuple(keys)))


def _bad_bytes(text: bytes) -> int:
    """Return the number of bytes in a quoted text that are no UTF-8, at least 1.

    The text may be two texts, of which these bytes were the middle.
    """
    return max(1, text.decode("utf-8", "replace").count("\ufffd"))


def _alike(one: Layout, other: Layout) -> bool:
    return (one.levels, one.fields) == (other.levels, other.fields)


def _misplaced(layout: Layout, path: Sequence[Any]) -> bool:
    """Say whether no broker writes an object there in a table of offsets."""
    return layout.levels == (TEXT, INT) and not layout.fields and (len(path) > 1 or not _is_entry_key(path[0]))


def _is_named(layout: Layout, data: bytes) -> bool:
    """Say whether the name of the table is whole somewhere in the text.

    Then no unreadable bytes hide it, as a text has it once.
    """
    return re.search(rb"""[{,\s]["']?%b["']?\s*:\s*\{""" % layout.name.encode(), data) is not None


def _is_entry_key(key: Any) -> bool:
    """Say whether a key of offsets is one of topic and group, or of a queue. Any other key is a damaged name of a table."""
    return not isinstance(key, str) or "@" in key or key.isdecimal()


def _keys_of(layout: Layout, path: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the path as keys of an entry; None if it leads to none."""
    if len(path) != len(layout.levels):
        return None
    keys = []
    for key, level in zip(path, layout.levels, strict=True):
        if level == INT:
            key = _number(key) if isinstance(key, str) else key
            if not isinstance(key, int) or not -_INT <= key < _INT:
                return None
        elif level == TEXT:
            if not isinstance(key, str):
                return None
        elif key != level:
            return None
        keys.append(key)
    return tuple(keys)


def _number(text: str) -> int | Decimal | None:
    """Return the number of a text; None if the text has too many digits, or is no number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    try:
        return int(match[1]) if not (match[2] or match[3]) else decimal_of(text.rstrip("LSBFD"))
    except ValueError:
        return None
