"""The options that choose messages, for every command that reads them. Standard library only.

Ranges are half-open. Times are store times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from jobs.cli.argument_places import read_topic
from jobs.cli.parser import Option
from store_io.base.errors import UsageError
from store_io.base.java.java_compat import MAX_LONG
from store_io.messages.message_filter import MessageFilter, Range

FILTER_OPTIONS = (
    Option("--topic", "NAME[,NAME]", "messages of these topics (write a comma in a name as \\,)"),
    Option("--topic-file", "FILE", "of the topic whose name is all that FILE holds (less one line end)", read_topic),
    Option("--queue", "ID[,ID]", "of these queue ids"),
    Option("--tag", "TAG[,TAG]", "with one of these tags, also as 'TAG || TAG'; '*' is any (write a comma in a tag as \\,)"),
    Option("--from-queue-offset", "N", "from this queue offset on"),
    Option("--to-queue-offset", "N", "below this queue offset"),
    Option("--from-phy-offset", "N", "from this physical offset on"),
    Option("--to-phy-offset", "N", "below this physical offset"),
    Option("--since", "TIME", "stored then or later: 2026-11-20T21:20:22.5 (UTC unless a zone follows), or ms since 1970"),
    Option("--until", "TIME", "stored before then"),
)

_BETWEEN_TAGS = r"\s*(?:(?<!\\),|\|\|)\s*"
_NUMBER = re.compile(r"[0-9]{1,19}")
_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3}){1,6}")
_MILLISECONDS = re.compile(r"-?[0-9]{5,19}")  # four digits are a year
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_filter(options: Mapping[str, str]) -> MessageFilter:
    """Return the filter that these options ask for; options of other names are not looked at. Raises UsageError."""
    queue_ids, topics = None, _names(options, "--topic")
    if "--queue" in options:
        queue_ids = frozenset(_number(text.strip(), "--queue", 31) for text in options["--queue"].split(","))
    if "--topic-file" in options:
        if topics is not None:
            raise UsageError("--topic and --topic-file: give one of them")
        topics = frozenset([options["--topic-file"]])
    return MessageFilter(
        topics,
        queue_ids,
        _range(options, "--from-queue-offset", "--to-queue-offset", read_number),
        _range(options, "--from-phy-offset", "--to-phy-offset", read_number),
        _range(options, "--since", "--until", read_time),
        _tags(options),
    )


def _names(options: Mapping[str, str], option: str, between: str = r"(?<!\\),") -> frozenset[str] | None:
    if option not in options:
        return None
    names = [name.replace("\\,", ",") for name in re.split(between, options[option])]
    if not all(names):
        raise UsageError(f"{option} {options[option]!r}: an empty name")
    return frozenset(names)


def _tags(options: Mapping[str, str]) -> frozenset[str] | None:
    """Return the tags to keep. Subscriptions' forms "TagA || TagB" and "*" for all are taken, too."""
    if options.get("--tag", "").strip() == "*":
        return None
    trimmed = {name: text.strip() for name, text in options.items() if name == "--tag"}
    tags = _names(trimmed, "--tag", _BETWEEN_TAGS)
    try:
        "".join(tags or ()).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"--tag {options['--tag']!r}: not UTF-8, which tags are") from None
    return tags


def _range(options: Mapping[str, str], low: str, high: str, read: Callable[[str, str], int]) -> Range:
    start, end = (read(options[name], name) if name in options else None for name in (low, high))
    if start is not None and end is not None and start >= end:
        raise UsageError(f"{low} {options[low]} and {high} {options[high]}: the range is empty")
    return start, end


def read_number(text: str, option: str) -> int:
    """Return an offset as people type it, or as results print it (530,831). Raises UsageError, naming the option."""
    return _number(text.replace(",", "") if _GROUPED.fullmatch(text) else text, option, 63)


def _number(text: str, option: str, bits: int) -> int:
    if not _NUMBER.fullmatch(text) or int(text) >= 1 << bits:
        raise UsageError(f"{option} {text!r}: not a number from 0 to {(1 << bits) - 1}")
    return int(text)


def read_time(text: str, option: str) -> int:
    """Return a moment in ms since 1970; what is finer than a ms is cut off. Raises UsageError, naming the option."""
    text = text.strip()
    if _MILLISECONDS.fullmatch(text):
        if abs(int(text)) > MAX_LONG:
            raise UsageError(f"{option} {text}: larger than 63 bits")
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text!r}: not a time (ISO-8601, such as 2026-11-20T21:20:22Z, or ms since 1970)") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - _EPOCH) // timedelta(milliseconds=1)
