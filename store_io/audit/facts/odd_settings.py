"""Lines of a broker.conf that a broker takes otherwise than they read: "true " is false, and "1024 " leaves the default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from store_io.formats.properties import Property, properties_of
from store_io.rules.releases import (
    ALL_DEFAULTS,
    DECISIVE,
    NEWEST_RELEASE,
    SIZE_DEFAULTS,
    BrokerRules,
    Setting,
    parse_known,
    taken_setting,
)
from store_io.rules.settings.given_settings import FIRST_KNOWN

MOST_NAMED = 8
MOST_LETTERS = 80
_KINDS = {"storeType": "(?i:default|defaultRocksDB)", "configManagerVersion": "v1|v2"}  # whatever else is its default
_PLAIN = {re.sub(r"[^a-z0-9]", "", key.lower()): key for key in ALL_DEFAULTS}


class _Odd(NamedTuple):
    key: str
    sentence: str


def odd_settings(broker_conf: str | None, rules: BrokerRules) -> list[str]:
    """A sentence for each, without a full stop, of sizes and of what moves the log's end first; the last counts those beyond
    MOST_NAMED."""
    lines = list(properties_of(broker_conf or ""))
    odd = [*_values(rules), *_repeated(lines), *_misspelt(lines)]
    odd.sort(key=lambda line: line.key not in SIZE_DEFAULTS and line.key not in DECISIVE)
    found = [line.sentence for line in odd]
    left = len(found) - MOST_NAMED
    return found[:MOST_NAMED] + (
        [f"broker.conf has {left} more lines that RocketMQ takes otherwise than they read"] if left > 0 else []
    )


def _values(rules: BrokerRules) -> Iterator[_Odd]:
    for key, setting in sorted(rules.settings.items()):
        taken = _taken(key, setting, rules) if setting.text is not None else ""
        if taken:
            yield _Odd(key, f"broker.conf has {key}={_quoted(setting.text or '')}: RocketMQ {rules.release} {taken}")


def _taken(key: str, setting: Setting, rules: BrokerRules) -> str:
    """What the release makes of a value that reads as another one; "" of any other value."""
    text, default = setting.text or "", ALL_DEFAULTS[key]
    meant = taken_setting(key, text.strip(), parse_known(NEWEST_RELEASE)).value
    if parse_known(FIRST_KNOWN.get(key, "0")) > rules.version:
        return "" if meant == default else f"has no such setting and behaves as with {_shown(default)}"
    if isinstance(default, bool):
        if text.strip().lower() in ("true", "false"):
            return "" if setting.value == meant else f"takes that for {_shown(setting.value)}, because of the white space"
        return f"takes that for {_shown(setting.value)}, as all that is not true"
    if setting.origin != "broker.conf":
        why = "knows no such role" if key == "brokerRole" else "cannot read that as a number"
        return f"{why} and keeps its default, {_shown(default)}"
    if isinstance(default, int):
        return "" if str(setting.value) == text.lstrip("+0") or not setting.value else f"makes {_shown(setting.value)} of that"
    if isinstance(default, str) and setting.value != meant and (key != "messageDelayLevel" or setting.value.rstrip(" ") != meant):
        return "keeps the white space, which makes it another value"
    if key in _KINDS and not re.fullmatch(_KINDS[key], str(setting.value)):
        return f"knows no such kind and does as with its default, {_shown(default)}"
    return ""


def _repeated(lines: list[Property]) -> Iterator[_Odd]:
    last = {line.key: line.value for line in lines}
    given = {key: {line.value.strip() for line in lines if line.key == key} for key in last.keys() & ALL_DEFAULTS.keys()}
    for key in sorted(key for key, values in given.items() if len(values) > 1):
        yield _Odd(key, f"broker.conf has {key} more than once: the last line counts, {key}={_quoted(last[key])}")


def _misspelt(lines: list[Property]) -> Iterator[_Odd]:
    """Keys that differ in case, or by characters that may not be seen, from one that changes a verdict."""
    given = {line.key for line in lines}
    for key in sorted(given - ALL_DEFAULTS.keys()):
        meant = _PLAIN.get(re.sub(r"[^a-z0-9]", "", key.lower()))
        if meant is not None and meant not in given:
            yield _Odd(meant, f"broker.conf has {_quoted(key)}, which RocketMQ does not know: the setting is {meant}")


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    """In quotes, so that white space at an end is seen."""
    return json.dumps(text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + "...", ensure_ascii=False)
