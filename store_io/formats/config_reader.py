"""Files in config/: the types of topics, and how far consumers and delay levels have come.

A broker keeps the state before the last as .bak and takes that where the file itself is empty or cannot be decoded.
Source: ConfigManager.load and loadBak, TopicConfigManager, ConsumerOffsetManager, ScheduleMessageService (formats.md 14).
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from schemas import commitlog_layout
from schemas.rows import NOTE, Finding, QueueKey, Row
from schemas.store_names import CONFIG
from store_io.base.errors import StoreError
from store_io.base.java_compat import parse_number
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

TOPICS = f"{CONFIG}/topics.json"
CONSUMER_OFFSETS = f"{CONFIG}/consumerOffset.json"
LMQ_OFFSETS = f"{CONFIG}/lmqConsumerOffset.json"
DELAY_OFFSETS = f"{CONFIG}/delayOffset.json"
# A text, or an integer in the place of a key: fastjson writes integer keys without quotes. A text that is not closed goes to the
# end, and no part of one is given back: else each of its quotes would be a start to look from, in quadratic time.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|([{,]\s*)(-?[0-9]+)(?=\s*:)', re.DOTALL)
# What is read of a file at most, as a value may take a hundred bytes of memory: a million topics are some 230 MB and 21 million
# values, the offsets of a group in four queues of each of them some 110 MB and 10 million.
MAX_FILE_BYTES = 256 << 20
MAX_TOPIC_VALUES, MAX_VALUES = 24_000_000, 12_000_000
_SEPARATORS = b",:{["  # one for each value
_MAYBE = b"{[}\"'/nN\x1a\xef\0"  # with which a text may begin that one of the releases' parsers takes
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


Offset = tuple[str, str, int]  # group, topic, queue id


@dataclass
class StoreConfig:
    """What config/ says. topics: name -> attributes; None where there is no topics.json that can be read.

    offsets: (group, topic, queue id) -> offset; `offset_file` gives the file that says so.  delay_offsets: level -> offset.
    read_from: file -> itself, or the .bak that was read in its place.  files: all that were read.  loads: file -> how that went.
    """

    topics: dict[str, Row] | None = None
    offsets: dict[Offset, int] = field(default_factory=dict)
    offsets_from: list[tuple[str, Set[Offset]]] = field(default_factory=list)
    delay_offsets: dict[int, int] = field(default_factory=dict)
    read_from: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    loads: dict[str, Load] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def batch_topics(self) -> frozenset[str]:
        """Topics of type BatchCQ (attribute queue.type)."""
        return frozenset(name for name, attributes in (self.topics or {}).items() if attributes.get("queue.type") == "BatchCQ")

    def offset_file(self, offset: Offset) -> str:
        """The file that says so; of several the last one read."""
        return next(path for path, offsets in reversed(self.offsets_from) if offset in offsets)


@dataclass
class BadFile:
    """A file that is not what a broker writes, `start`: from where on.  refused: by the parser of every release."""

    name: str
    size: int
    reason: str
    start: int
    refused: bool


@dataclass
class Load:
    """How the load of a file went. name: that of the file taken, else empty.  problems: why it is not known what a file holds."""

    name: str = ""
    files: list[str] = field(default_factory=list)
    bad: list[BadFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class ConfigFault(ValueError):
    """What is wrong with a file; `start`: the byte at which it begins to be."""

    def __init__(self, reason: str, start: int = 0):
        super().__init__(reason)
        self.start = start


def parse_fastjson(data: bytes, hook: Callable[[Row], Any] | None = None) -> Any:
    """JSON as fastjson 1.x writes it: integer keys may be without quotes. Raises ConfigFault.

    hook: gets each object once it is read; what it gives takes the object's place.
    """
    if not data.strip(b"\0"):
        raise ConfigFault(f"{len(data)} zeros")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigFault("not UTF-8", error.start) from error
    del text
    quoted = bytearray()
    at = 0
    for match in _TOKEN.finditer(data):
        if match[2] is not None:
            quoted += data[at : match.start(2)] + b'"' + match[2] + b'"'
            at = match.end(2)
    text = (quoted + data[at:]).decode("utf-8")
    del quoted
    try:
        return json.loads(text, object_hook=hook)
    except json.JSONDecodeError as error:
        raise ConfigFault(error.msg, _position_of(error.pos, text, data)) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a nesting of thousands of levels
        raise ConfigFault(str(error)) from error


def _position_of(fault: int, text: str, data: bytes) -> int:
    """The byte of `data` at that place of the text, which has quotes around the keys that came without."""
    after, added = len(text[:fault].encode("utf-8")), 0
    for match in _TOKEN.finditer(data):
        if match[2] is not None:
            for quote in (match.start(2), match.end(2)):
                added += quote + added < after
    return max(0, min(after - added, len(data) - 1))


def cannot_be_parsed(data: bytes) -> bool:
    """Whether every release's parser refuses this text: zeros, something that is no JSON from its first letter, or an object
    that is never closed. The parsers are tolerant, each in its own way: of other faults nothing is said."""
    text = data.rstrip(b"\0").lstrip(b" \t\r\n")
    if not text:
        return not data.strip(b"\0")  # white space alone is taken by some
    if text[:1] not in _MAYBE:
        return True
    if text[:1] != b"{":
        return False
    depth = 0
    for token in _STRUCTURE.finditer(text):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth == 0:
            return False
    return True


def read_bounded(source: ByteSource, name: str) -> bytes:
    """A file of config/, or a .bak. Raises StoreError, also where it holds more than is read of such a file."""
    data = source.read_small(name, MAX_FILE_BYTES)
    values = sum(data.count(separator) for separator in _SEPARATORS)
    most = MAX_TOPIC_VALUES if name.removesuffix(".bak") == TOPICS else MAX_VALUES
    if values > most:
        raise StoreError(f"{name}: {values} values, more than the {most} that are read of such a file")
    return data


def load(
    source: ByteSource,
    listing: StoreListing,
    path: str,
    shape: Callable[[Any], Any],
    hook: Callable[[Row], Any] | None = None,
) -> tuple[Any, Load]:
    """ConfigManager.load: the file's content, where that is empty or cannot be decoded that of its .bak, else None.

    Never raises over bytes. Of a file that could not be read nobody knows what it holds: then its .bak is not taken either.
    """
    done = Load()
    for name in (path, path + ".bak"):
        if not listing.is_file(name):
            entry = listing.get(name)
            if entry is not None and entry.kind in ("directory", "special"):  # other kinds: store_dir.unreadable_parts
                kind = "a directory" if entry.kind == "directory" else "a FIFO, socket or device"
                done.problems.append(f"{name}: {kind}, not a file: its content is not known")
            continue
        try:
            data = read_bounded(source, name)
        except StoreError as error:
            done.problems.append(str(error))
            break
        done.files.append(name)
        if not data:  # as if it were not there
            continue
        try:
            content = shape(parse_fastjson(data, hook))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            fault = error if isinstance(error, ConfigFault) else ConfigFault("JSON of another shape")
            done.bad.append(BadFile(name, len(data), str(fault), fault.start, cannot_be_parsed(data)))
            continue
        done.name = name
        return content, done
    return None, done


def load_form(source: ByteSource, listing: StoreListing, path: str) -> Load:
    """`load` of a file of which only is asked whether it holds an object: nothing of it is kept."""
    return load(source, listing, path, _object, _nothing)[1]


def _object(content: Any) -> Any:
    if not isinstance(content, dict):
        raise ConfigFault("JSON of another shape")
    return content


_NOTHING: Row = {}


def _nothing(read: Row) -> Row:
    return _NOTHING


def read_config(source: ByteSource, listing: StoreListing) -> StoreConfig:
    """All files in config/ that matter here. Never raises over bytes; a file that cannot be opened is in `problems`."""
    config = StoreConfig()
    config.topics = _read(source, listing, config, TOPICS, _topics)
    for path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        found = _read(source, listing, config, path, _offsets) or {}
        config.offsets_from.append((config.read_from.get(path, path), found.keys()))
        config.offsets = config.offsets | found if config.offsets and found else config.offsets or found
    config.delay_offsets = _read(source, listing, config, DELAY_OFFSETS, _delays) or {}
    return config


def _read(source: ByteSource, listing: StoreListing, config: StoreConfig, path: str, shape: Callable[[Any], Any]) -> Any:
    """What `load` gives; with findings for what cannot be decoded."""
    content, done = load(source, listing, path, shape, _without_settings if path == TOPICS else None)
    config.loads[path] = done
    config.files += done.files
    config.problems += done.problems
    faults = [_finding(bad) for bad in done.bad]
    if done.name:
        config.read_from[path] = done.name
        if done.name != path:  # which the broker then reads as well
            faults = [replace(fault, severity=NOTE) for fault in faults]
    config.findings += faults
    return content


def _finding(bad: BadFile) -> Finding:
    """Of everything from where the bytes stop being what a broker writes."""
    message = f"{bad.name}: does not hold what a broker writes ({bad.reason})."
    return Finding(
        "config_damaged",
        bad.name,
        bad.start,
        bad.size,
        expected="JSON as a broker writes it",
        actual=bad.reason,
        message=message,
    )


def _without_settings(read: Row) -> Row:
    """A topic without what is not looked at: of a million topics that would be most of the memory."""
    if not isinstance(read.get("topicName"), str):
        return read
    attributes = read.get("attributes")
    return {"attributes": attributes} if attributes else _PLAIN_TOPIC


_PLAIN_TOPIC: Row = {"attributes": {}}


def _topics(content: Any) -> dict[str, Row]:
    topics: dict[str, Row] = {}
    for name, topic in (content.get("topicConfigTable") or {}).items():
        attributes = topic.get("attributes") or _PLAIN_TOPIC["attributes"]
        if not isinstance(attributes, dict):
            raise ConfigFault("JSON of another shape")
        topics[str(name)] = attributes
    return topics


def _offsets(content: Any) -> dict[Offset, int]:
    found: dict[Offset, int] = {}
    texts: dict[str, str] = {}  # each topic and group once, though many keys name it
    tables = [content.get(name) or {} for name in ("offsetTable", "lmqOffsetTable")]
    for each in tables:
        if not isinstance(each, dict):
            raise ConfigFault("JSON of another shape")
        for key in list(each):
            table = each.pop(key)  # so that what is read is not kept twice
            topic, _, group = str(key).partition("@")
            topic, group = texts.setdefault(topic, topic), texts.setdefault(group, group)
            if isinstance(table, Mapping):
                for queue_id, offset in table.items():
                    found[group, topic, _integer(queue_id)] = _integer(offset)
            else:  # lmqConsumerOffset.json: one queue per name
                found[group, topic, 0] = _integer(table)
    return found


def _delays(content: Any) -> dict[int, int]:
    return {_integer(level): _integer(offset) for level, offset in (content.get("offsetTable") or {}).items()}


def _integer(value: Any) -> int:
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    number = parse_number(str(value), 64) if isinstance(value, int | str) and not isinstance(value, bool) else None
    if number is None:
        raise ConfigFault(f"{reprlib.repr(value)} is no integer")
    return number


def is_offset(value: Any, offset: int) -> bool:
    """Whether a value of such a file is this offset, as a number or as a text, which fastjson takes as well."""
    try:
        return _integer(value) == offset
    except ConfigFault:
        return False


def groups_beyond(config: StoreConfig, ends: Mapping[QueueKey, int]) -> list[Row]:
    """Consumer groups whose offset lies beyond the end that their queue would have. Sorted.

    ends: queue -> maximum offset. A queue that is not there counts as empty where its topic is still configured; offsets of
    topics that were deleted lie around in healthy stores.
    """
    found = []
    for (group, topic, queue_id), offset in config.offsets.items():
        end = ends.get((topic, queue_id), 0 if topic in (config.topics or {}) else None)
        if end is not None and offset > end:
            found.append({"group": group, "topic": topic, "queue_id": queue_id, "offset": offset, "new_max": end})
    return sorted(found, key=lambda row: (row["group"], row["topic"], row["queue_id"]))


def delays_beyond(config: StoreConfig, ends: Mapping[QueueKey, int]) -> list[Row]:
    """Delay levels whose offset lies beyond the end of their queue (level 1 is queue 0). Sorted."""
    found = []
    for level, offset in sorted(config.delay_offsets.items()):
        end = ends.get((commitlog_layout.SCHEDULE_TOPIC, level - 1), 0)
        if offset > end:
            found.append({"level": level, "offset": offset, "new_max": end})
    return found
