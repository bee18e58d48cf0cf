"""The lines to paste that make a master of a copy, and the one that shows how far a group has read. See `commands`.

They write settings, tables of another copy, topics and offsets. NAMESRV, BROKER, TOPIC and TIME are for a person to replace: no
copy says them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from jobs.report.texts.commands import not_shown, shell_word
from jobs.report.texts.text import name_text
from schemas.advice import Advice, Step
from schemas.outcome import Outcome
from store_io.answer.promotion import is_file_to_copy
from store_io.base.paths import is_uri

_LONGEST = 100  # letters of a name in a sentence
_CONF = "--broker-conf"
# Two line ends: the file's last line may lack its own, and may end with a backslash, which continues it.
_MASTER = "printf '\\n\\nbrokerRole=ASYNC_MASTER\\nbrokerId=0\\n' >>"
_LONG = {"-t": "--topic", "-g": "--group"}
_ADMIN = ("-n", "NAMESRV:9876")
_OF_GROUP = {
    Step.SET_GROUP: ("resetOffsetByTime", ("-t", "TOPIC", "-s", "TIME")),
    Step.LET_GROUPS_READ: ("consumerProgress", ()),
}


def master_command(outcome: Outcome, advice: Advice, words: Sequence[str]) -> tuple[str, str]:
    """Return (the command of a step that makes a master or waits for a group, why there is none); ("", "") for any other step.

    words: those of the audited copy.
    """
    if advice.step == Step.MAKE_MASTER:
        file = next((value for option, value in pairwise(words) if option == _CONF), "")
        if not file or is_uri(file) or file == "broker.conf":  # which one that is, is not known here
            return "", ""
        return _line([_MASTER], [file], not_shown((_CONF, file)))
    if advice.step == Step.TAKE_TABLE and is_file_to_copy(outcome, advice):
        path, holder = str(advice.values[0]), str(advice.values[1]).rstrip("/")
        if is_uri(holder) or is_uri(words[0]):
            return "", ""
        return _line(["cp", "-p", "--"], [f"{holder}/{path}", f"{words[0].rstrip('/')}/{path}"], not_shown((holder, words[0])))
    if advice.step == Step.CREATE_TOPIC:
        topic, read, write, _, attributes = map(str, advice.values)
        given = "-r", read, "-w", write, *(("-a", attributes) if attributes else ())
        return _line(
            ["mqadmin updateTopic"], [*_ADMIN, "-b", "BROKER:10911", *_named("-t", topic), *given], _unnamed("topic", topic)
        )
    if advice.step in _OF_GROUP:
        group, (asks, more) = str(advice.values[0]), _OF_GROUP[advice.step]
        return _line([f"mqadmin {asks}"], [*_ADMIN, *_named("-g", group), *more], _unnamed("group", group))
    return "", ""


def _line(plain: list[str], words: Sequence[str], why_not: str) -> tuple[str, str]:
    shown = [*plain, *map(shell_word, words)]
    return ("", why_not) if "" in shown else (" ".join(shown), "")


def _named(option: str, name: str) -> tuple[str, ...]:
    """Return the option with a name; one that begins with a dash would be taken for an option of its own."""
    return (f"{_LONG[option]}={name}",) if name.startswith("-") else (option, name)


def _unnamed(noun: str, name: str) -> str:
    return f"No command line can show the {noun} {name_text(name, _LONGEST)}."
