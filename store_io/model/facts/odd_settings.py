"""Lines of a broker.conf that a broker takes otherwise than they read: "true " is false, an unknown name is ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from store_io.base.java.java_compat import parse_double
from store_io.base.java.java_properties import Property, properties_of
from store_io.base.wording import names_text
from store_io.broker.releases import (
    ALL_DEFAULTS,
    DECISIVE,
    NEWEST_RELEASE,
    SIZE_DEFAULTS,
    TIERED_PLUG_IN,
    BrokerRules,
    Setting,
    parse_known,
    taken_setting,
)
from store_io.broker.settings.day_settings import JVM_PROPERTIES, LEDGER_CHECK, LEDGER_CLEAN
from store_io.broker.settings.known_keys import OF_TEMPLATES, RENAMED, known_span, meant_by, reads

MOST_NAMED = 8
MOST_LETTERS = 80
_MOST_COMPARED = 64  # unknown names that are compared with all known ones
_KINDS = {"storeType": "(?i:default|defaultRocksDB)", "configManagerVersion": "v1|v2"}  # whatever else is its default

_KNOWN = ALL_DEFAULTS.keys() | JVM_PROPERTIES


class _Odd(NamedTuple):
    key: str
    sentence: str


class UnknownName(NamedTuple):
    """A line whose name the release does not read. meant: the name that it reads and that was probably meant, else ""."""

    key: str
    value: str
    meant: str

    def said(self, rules: BrokerRules) -> _Odd:
        """Return a clause on the line that is ignored and on the name that was meant."""
        probably = "" if self.key in RENAMED or self.key.lower() == self.meant.lower() else "probably "
        return _Odd(
            self.meant,
            f"broker.conf has {shown_name(self.key)}={shown_name(self.value)}, a name that RocketMQ {rules.release} does not"
            f" know; {self.meant} was {probably}meant",
        )


def unknown_names(broker_conf: str | None, rules: BrokerRules) -> list[UnknownName]:
    """Return the lines of a broker.conf that the release ignores for their names, each name once, in order."""
    last = {line.key: line.value for line in properties_of(broker_conf or "")}
    unknown = [key for key in sorted(last) if key not in _KNOWN and not reads(key, rules.version)]
    compared = [key for key in unknown if key not in OF_TEMPLATES][:_MOST_COMPARED]
    meant = {key: name for key in compared if (name := meant_by(key, rules.version)) not in last}
    return [UnknownName(key, last[key], meant.get(key, "")) for key in unknown]


def ignored_lines(broker_conf: str | None, rules: BrokerRules) -> list[str]:
    """Return a sentence for each reason, without a full stop, of lines that a release ignores and that change no verdict."""
    unknown = unknown_names(broker_conf, rules)
    told = {line.key for line in unknown if _changes(line, rules)} | set(OF_TEMPLATES)
    others = [line for line in unknown if line.key not in told]
    found = []
    if others:
        named = [f"{shown_name(line.key)}{_known_elsewhere(line, rules)}" for line in others[:MOST_NAMED]]
        left = len(others) - MOST_NAMED
        names = ", ".join(named) + (f" and {left:,} more" if left > 0 else "")
        plug_in = str(rules.value("messageStorePlugIn"))
        reader = ", unless the messageStorePlugIn reads it" if plug_in and plug_in != TIERED_PLUG_IN else ""
        found.append(f"broker.conf has what is not known to RocketMQ {rules.release}, which ignores it{reader}: {names}")
    of_templates = [line.key for line in unknown if line.key in OF_TEMPLATES]
    if of_templates:
        names = names_text(of_templates, len(OF_TEMPLATES))
        found.append(f"broker.conf has {names}, which RocketMQ ignores in every release: these parts lie below storePathRootDir")
    return found


def _known_elsewhere(line: UnknownName, rules: BrokerRules) -> str:
    """Return in brackets the name that was meant, or the releases that know this name; "" if nothing is known."""
    if line.meant:
        return f" ({line.meant} was probably meant)"
    span = known_span(line.key)
    if span is None:
        return ""
    return f" (known from {span[0]} on)" if parse_known(span[0]) > rules.version else f" (known up to {span[1]})"


def _changes(line: UnknownName, rules: BrokerRules) -> bool:
    """Say whether the line would change what a start does if its name were the one that was meant."""
    if line.meant not in ALL_DEFAULTS:
        return False
    return bool(taken_setting(line.meant, line.value.strip(), rules.version).value != ALL_DEFAULTS[line.meant])


def odd_settings(broker_conf: str | None, rules: BrokerRules) -> list[str]:
    """Return a sentence, without a full stop, for each line of broker.conf that the release takes otherwise than it reads.

    Sizes and settings that move the log's end come first; the last sentence counts the lines beyond MOST_NAMED.
    """
    lines = list(properties_of(broker_conf or ""))
    odd = [*_values(rules), *_no_ratios(lines, rules), *_repeated(lines), *_misnamed(broker_conf, rules)]
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


def _no_ratios(lines: list[Property], rules: BrokerRules) -> Iterator[_Odd]:
    """Yield ratios of the JVM that are no numbers to it."""
    used = JVM_PROPERTIES if rules.settings["enableDLegerCommitLog"].value else JVM_PROPERTIES - {LEDGER_CHECK, LEDGER_CLEAN}
    last = {line.key: line.value for line in lines}
    for key in sorted(used & last.keys()):
        if last[key] and parse_double(last[key]) is None:
            said = "a JVM reads no number in that, and a broker started with it fails; here it counts as not set"
            yield _Odd(key, f"broker.conf has {key}={_quoted(last[key])}: {said}")


def _taken(key: str, setting: Setting, rules: BrokerRules) -> str:
    """Return a clause on the release's reading of a value that reads as another one; "" for any other value."""
    text, default = setting.text or "", ALL_DEFAULTS[key]
    meant = taken_setting(key, text.strip(), parse_known(NEWEST_RELEASE)).value
    if not reads(key, rules.version):
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


def _misnamed(broker_conf: str | None, rules: BrokerRules) -> Iterator[_Odd]:
    """Return names that the release does not know, if the one that was meant changes a verdict."""
    return (line.said(rules) for line in unknown_names(broker_conf, rules) if _changes(line, rules))


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown_name(text: str) -> str:
    """Return a plain name as it is, any other in quotes."""
    return text if re.fullmatch(r"[\w./:;,-]{1,80}", text, re.ASCII) else _quoted(text)


def _quoted(text: str) -> str:
    """Put the text in quotes, so that white space at an end is seen."""
    return json.dumps(text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + "...", ensure_ascii=False)
