"""What a start reads and this audit does not judge: files whose load() refuses, what is visibly broken, and the names to tell.

Nothing here says what a sound file holds. A verdict over a store that has any of these names them (`StartFiles.names`).
Source: BrokerController.initialize (the order of the loaders), ConfigManager.load, TimerWheel, TimerLog, TimerCheckpoint.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from schemas import timer_layout
from schemas.rows import REBUILDABLE, Finding
from store_io.byte_source import ByteSource
from store_io.config_reader import DELAY_OFFSETS, LMQ_OFFSETS, StoreConfig, parse_fastjson
from store_io.errors import StoreError
from store_io.rules.releases import BrokerRules
from store_io.store_dir import StoreListing

# (file, first release that loads it, after recovery): a broker ends where both the file and its .bak cannot be parsed.
_LOADERS = (
    ("config/topics.json", "4.8.0", False),
    ("config/topicQueueMapping.json", "5.0.0", False),
    ("config/consumerOffset.json", "4.8.0", False),
    ("config/subscriptionGroup.json", "4.8.0", False),
    ("config/consumerFilter.json", "4.8.0", False),
    ("config/consumerOrderInfo.json", "5.0.0", False),
    ("config/timermetrics", "5.0.0", True),
    (DELAY_OFFSETS, "4.8.0", True),
)
_JUDGED = frozenset({"config/topics.json", "config/consumerOffset.json", LMQ_OFFSETS, DELAY_OFFSETS})
_TIMER_FILES = frozenset({"config/timercheck", "config/timermetrics"})
_READ = (
    *((file, since) for file, since, _ in _LOADERS),
    ("config/timercheck", "5.0.0"),  # the last three stop no broker
    ("config/messageRequestMode.json", "5.0.0"),
    ("config/transactionMetrics", "5.3.0"),
)
_MAYBE = b"{[}\"'/nN\x1a\xef\0"  # with which a text may begin that one of the releases' parsers takes
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_TIMERS = "timerWheelEnable"
NEXT_STEP = (
    "Restore the file or its .bak, or set both aside, before any start: one that fails here overwrites other files in config/."
)

MISSING, GOOD, BAD, UNCLEAR = "missing", "good", "bad", "unclear"


@dataclass
class StartFiles:
    """refusal, late_refusal: the sentence with which the release ends before, or after, recovery; else empty.

    broken: sentences about what is visibly broken and not modelled.  names: what is there, is read, and was not judged;
    config/ last.
    """

    refusal: str = ""
    late_refusal: str = ""
    broken: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def start_files(
    source: ByteSource, listing: StoreListing, config: StoreConfig, rules: BrokerRules, given: Mapping[str, str]
) -> StartFiles:
    """given: broker.conf's keys and values. Never raises over bytes; a file that cannot be opened is in `broken`."""
    found = StartFiles()
    timers = rules.at_least("5.0.0") and given.get(_TIMERS, "").strip().lower() != "false"
    for file, since, late in _LOADERS:
        if not rules.at_least(since) or file in _TIMER_FILES and not timers:
            continue
        path = LMQ_OFFSETS if file == "config/consumerOffset.json" and _lmq(rules) else file
        _load(source, listing, config, path, late, found)
    if timers:
        found.broken += _timer_faults(source, listing)
    found.names = sorted(_names(listing, rules, timers), key=lambda name: (name.startswith("config/"), name))
    return found


def _lmq(rules: BrokerRules) -> bool:
    return bool(rules.value("enableLmq")) and rules.at_least("4.9.3")


# ---- config/ -------------------------------------------------------------------------------------------------------


def _load(source: ByteSource, listing: StoreListing, config: StoreConfig, path: str, late: bool, found: StartFiles) -> None:
    """One loader's decision (ConfigManager.load): the file, where that cannot be taken its .bak, where there is none nothing."""
    first = _state(source, listing, config, path, found)
    if first == GOOD:
        return
    second = _state(source, listing, config, path + ".bak", found)
    if second in (MISSING, GOOD):
        return
    if UNCLEAR in (first, second):
        found.broken.append(
            f"{path}: neither it nor its .bak is what a broker writes, and what this release makes of it is not known"
        )
        return
    sentence = f"{path}: neither it nor its .bak can be parsed, so the broker ends"
    if late:
        found.late_refusal = found.late_refusal or sentence
    else:
        found.refusal = found.refusal or sentence


def _state(source: ByteSource, listing: StoreListing, config: StoreConfig, name: str, found: StartFiles) -> str:
    if not listing.is_file(name):
        return MISSING
    if name in config.read_from.values():
        return GOOD
    try:
        data = source.read_small(name)
    except StoreError as error:
        found.broken.append(str(error))
        return UNCLEAR
    if not data:
        return MISSING
    if name not in config.undecodable:  # of those the reader has told
        try:
            if isinstance(parse_fastjson(data), dict):
                return GOOD
            reason = "JSON of another shape"
        except ValueError as error:
            reason = str(error)
        message = f"{name}: cannot be parsed as what a broker writes ({reason})."
        found.findings.append(
            Finding("config_damaged", name, 0, len(data), REBUILDABLE, expected="JSON as a broker writes it", message=message)
        )
    return BAD if cannot_be_parsed(data) else UNCLEAR


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


# ---- timers --------------------------------------------------------------------------------------------------------


def _timer_faults(source: ByteSource, listing: StoreListing) -> Iterator[str]:
    """What no broker leaves of its timers. The timers themselves are not modelled."""
    wheel = listing.get("timerwheel")
    if wheel is not None and wheel.kind == "file" and wheel.size not in (0, timer_layout.WHEEL_BYTES):
        yield f"timerwheel: {wheel.size} bytes, where a timer wheel has {timer_layout.WHEEL_BYTES}; timers are not judged"
    try:
        yield from _log_faults(source, listing)
        yield from _check_faults(source, listing)
    except StoreError as error:
        yield str(error)


def _log_faults(source: ByteSource, listing: StoreListing) -> Iterator[str]:
    for entry in listing.files:
        if entry.kind == "file" and entry.path.startswith("timerlog/") and entry.size >= timer_layout.UNIT_BYTES:
            with source.open(entry.path) as file:
                size, _, magic = struct.unpack(timer_layout.UNIT_HEAD_FORMAT, file.read(0, timer_layout.UNIT_HEAD_BYTES))
            unit = size == timer_layout.UNIT_BYTES and 0 <= magic <= timer_layout.LARGEST_MAGIC
            if not unit and (size, magic) != (0, 0) and magic != timer_layout.BLANK_MAGIC:
                yield f"{entry.path}: begins with no unit of a timer log; timers are not judged"
                return


def _check_faults(source: ByteSource, listing: StoreListing) -> Iterator[str]:
    path = "config/timercheck"
    entry = listing.get(path)
    if entry is None or entry.kind != "file" or not entry.size:
        return
    with source.open(path) as file:
        data = file.read(0, timer_layout.CHECK_FIELDS_BYTES)
    if len(data) < timer_layout.CHECK_FIELDS_BYTES:
        yield f"{path}: {entry.size} bytes, too few for its fields; timers are not judged"
        return
    read_time, *offsets = struct.unpack(timer_layout.CHECK_FIELDS_FORMAT, data)
    if not 0 <= read_time <= timer_layout.LARGEST_TIME or any(not -1 <= offset < 1 << 62 for offset in offsets):
        yield f"{path}: holds values that no broker writes; timers are not judged"


# ---- names ---------------------------------------------------------------------------------------------------------


def _names(listing: StoreListing, rules: BrokerRules, timers: bool) -> set[str]:
    """Files and folders with something in them that this release reads, and of which at most the form was looked at."""
    wanted = {file for file, since in _READ if rules.at_least(since)} - _JUDGED - (set() if timers else _TIMER_FILES)
    found = set()
    for entry in listing.files:
        path, top = entry.path, entry.path.partition("/")[0]
        base = path.removesuffix(".bak")
        if entry.kind == "directory":
            if path == "rocksdbstore" and rules.at_least("5.4.0") or path == "transaction":
                found.add(path)
        elif not entry.size:
            continue
        elif base in wanted:
            found.add(base)
        elif timers and (top == "timerlog" or re.fullmatch(r"timerwheel(\.[0-9]+)?", path)):
            found.add(top if top == "timerlog" else path)
        elif top == "config" and path.count("/") > 1:  # a database of a manager's
            found.add("/".join(path.split("/")[:2]))
    return found


def names_text(names: list[str], most: int = 3) -> str:
    """Some of the names and how many others."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
