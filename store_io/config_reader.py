"""Files in config/: the types of topics, and how far consumers and delay levels have come.

A broker keeps the state before the last as .bak and takes that where the file itself is empty or cannot be decoded.
Source: ConfigManager.load and loadBak, TopicConfigManager, ConsumerOffsetManager, ScheduleMessageService (formats.md 14).
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schemas import commitlog_layout
from schemas.rows import NOTE, Finding, QueueKey, Row
from store_io.byte_source import ByteSource
from store_io.errors import StoreError
from store_io.java_compat import parse_number
from store_io.store_dir import StoreListing

TOPICS, CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS = (
    "config/topics.json",
    "config/consumerOffset.json",
    "config/lmqConsumerOffset.json",
    "config/delayOffset.json",
)
# A text, or an integer where a key stands: fastjson writes integer keys without quotes. A text that is not closed goes to the
# end, and no part of one is given back: else each of its quotes would be a start to look from, in quadratic time.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|([{,]\s*)(-?[0-9]+)(\s*:)', re.DOTALL)


@dataclass
class StoreConfig:
    """What config/ says. topics: name -> attributes; None where there is no topics.json that can be read.

    offsets: (group, topic, queue id) -> offset; offset_files: the same -> the file that says so.  delay_offsets: level -> offset.
    read_from: file -> itself, or its .bak where that stood in.  files: all that were read; undecodable: those with a fault.
    """

    topics: dict[str, Row] | None = None
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    offset_files: dict[tuple[str, str, int], str] = field(default_factory=dict)
    delay_offsets: dict[int, int] = field(default_factory=dict)
    read_from: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    undecodable: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def batch_topics(self) -> frozenset[str]:
        """Topics of type BatchCQ (attribute queue.type)."""
        return frozenset(name for name, attributes in (self.topics or {}).items() if attributes.get("queue.type") == "BatchCQ")


class ConfigFault(ValueError):
    """What is wrong with a file; `start`: the byte at which it begins to be."""

    def __init__(self, reason: str, start: int = 0):
        super().__init__(reason)
        self.start = start


def parse_fastjson(data: bytes) -> Any:
    """JSON as fastjson 1.x writes it: integer keys may stand without quotes. Raises ConfigFault."""
    if not data.strip(b"\0"):
        raise ConfigFault(f"{len(data)} zeros")
    added: list[int] = []  # where quotes were put, in the text that is decoded

    def quoted(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[0]
        added.append(match.start() + 2 * len(added))
        return f'{match[1]}"{match[2]}"{match[3]}'

    try:
        text = _TOKEN.sub(quoted, data.decode("utf-8"))
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigFault("not UTF-8", error.start) from error
    except json.JSONDecodeError as error:
        before = len(text[: error.pos].encode("utf-8")) - 2 * sum(at < error.pos for at in added)
        raise ConfigFault(error.msg, max(0, min(before, len(data) - 1))) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a nesting of thousands of levels
        raise ConfigFault(str(error)) from error


def read_config(source: ByteSource, listing: StoreListing) -> StoreConfig:
    """All files in config/ that matter here. Never raises over bytes; a file that cannot be opened is in `problems`."""
    config = StoreConfig()
    config.topics = _load(source, listing, config, TOPICS, _topics)
    for path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        found = _load(source, listing, config, path, _offsets) or {}
        config.offsets.update(found)
        config.offset_files.update(dict.fromkeys(found, config.read_from.get(path, path)))
    config.delay_offsets = _load(source, listing, config, DELAY_OFFSETS, _delays) or {}
    return config


def _load(source: ByteSource, listing: StoreListing, config: StoreConfig, path: str, shape: Callable[[Any], Any]) -> Any:
    """The file's content, else that of its .bak, else None; with findings for what cannot be decoded."""
    faults: list[Finding] = []
    for name in (path, path + ".bak"):
        if not listing.is_file(name):
            entry = listing.get(name)
            if entry is not None and entry.kind in ("directory", "special"):  # other kinds: store_dir.unreadable_parts
                kind = "a directory" if entry.kind == "directory" else "a FIFO, socket or device"
                config.problems.append(f"{name}: {kind}, not a file, so what it should say is not known")
            continue
        try:
            data = source.read_small(name)
        except StoreError as error:
            config.problems.append(str(error))
            continue
        config.files.append(name)
        if not data:  # as if it were not there
            continue
        try:
            content = shape(parse_fastjson(data))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            config.undecodable.append(name)
            faults.append(_fault(name, data, error))
            continue
        if name != path:  # which the broker then reads as well
            faults = [replace(fault, severity=NOTE) for fault in faults]
        config.findings += faults
        config.read_from[path] = name
        return content
    config.findings += faults
    return None


def _fault(path: str, data: bytes, error: Exception) -> Finding:
    """Of everything from where the bytes stop being what a broker writes."""
    reason = str(error) if isinstance(error, ConfigFault) else "JSON of another shape"
    start = error.start if isinstance(error, ConfigFault) else 0
    message = f"{path}: cannot be decoded as what a broker writes ({reason})."
    return Finding(
        "config_damaged", path, start, len(data), expected="JSON as a broker writes it", actual=reason, message=message
    )


def _topics(content: Any) -> dict[str, Row]:
    topics = {}
    for name, topic in (content.get("topicConfigTable") or {}).items():
        attributes = topic.get("attributes") or {}
        if not isinstance(attributes, Mapping):
            raise ConfigFault("JSON of another shape")
        topics[str(name)] = dict(attributes)
    return topics


def _offsets(content: Any) -> dict[tuple[str, str, int], int]:
    found = {}
    tables = [content.get(name) or {} for name in ("offsetTable", "lmqOffsetTable")]
    for key, table in (item for each in tables for item in each.items()):
        topic, _, group = str(key).partition("@")
        if isinstance(table, Mapping):
            for queue_id, offset in table.items():
                found[group, topic, _integer(queue_id)] = _integer(offset)
        else:  # lmqConsumerOffset.json: one queue per name
            found[group, topic, 0] = _integer(table)
    return found


def _delays(content: Any) -> dict[int, int]:
    return {_integer(level): _integer(offset) for level, offset in (content.get("offsetTable") or {}).items()}


def _integer(value: Any) -> int:
    number = parse_number(str(value), 64) if isinstance(value, int | str) and not isinstance(value, bool) else None
    if number is None:
        raise ConfigFault(f"{reprlib.repr(value)} is no integer")
    return number


def groups_beyond(config: StoreConfig, ends: Mapping[QueueKey, int]) -> list[Row]:
    """Consumer groups whose offset lies beyond the end that their queue would have. Sorted.

    ends: queue -> maximum offset. A queue that is not there counts as empty where its topic is still configured; offsets of
    topics that were deleted lie around in healthy stores.
    """
    found = []
    for (group, topic, queue_id), offset in sorted(config.offsets.items()):
        end = ends.get((topic, queue_id), 0 if topic in (config.topics or {}) else None)
        if end is not None and offset > end:
            found.append({"group": group, "topic": topic, "queue_id": queue_id, "offset": offset, "new_max": end})
    return found


def delays_beyond(config: StoreConfig, ends: Mapping[QueueKey, int]) -> list[Row]:
    """Delay levels whose offset lies beyond the end of their queue (level 1 is queue 0). Sorted."""
    found = []
    for level, offset in sorted(config.delay_offsets.items()):
        end = ends.get((commitlog_layout.SCHEDULE_TOPIC, level - 1), 0)
        if offset > end:
            found.append({"level": level, "offset": offset, "new_max": end})
    return found
