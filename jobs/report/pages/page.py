"""The frame of every page. Pages load nothing; a policy in them forbids that, and to run anything but tools.js, which is in those
with a long table alone.

The modules here compute what a page says, the templates beside them how it looks. Whatever a template shows is made `printable`
and escaped, unless it is markup already; a name that a template uses and the view lacks is an error. A page comes in pieces, so
that a large one is never held whole.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from jobs.report.texts.finding_words import all_codes
from jobs.report.texts.history_text import when_text
from jobs.report.texts.safety_text import SHAPE_OF
from jobs.report.texts.text import name_text, printable, seconds_text
from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.base.compiled.code_files import FOLDER, trusted
from store_io.base.exit_codes import GAP_CODES, LOST
from store_io.base.times import span_text
from store_io.base.wording import bytes_text, count_text

View = dict[str, object]
"""What a template shows, by the names that it uses."""
MAX_ROWS = 300  # of a table
MOST_SHOWN = 100  # of a list
TOOLS_FROM = 12  # rows from which a table of stores gets a filter and sorting
_MARKS = {"#": Markup(' class="n"'), "~": Markup(' class="t"'), "+": Markup(' class="r"')}  # numbers, one line, room
_WHOLE = re.compile(
    r"(?<![\w-])(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-])(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?: to\b| UTC\b)?)?|--[a-z][a-z-]{1,30}\b)"
)
_SLASH = Markup("/<wbr>")
_PIECE = 1 << 16  # characters passed on at once
SEVERITY_STYLE = {LOSS: "stop", REBUILDABLE: "care", NOTE: "unknown"}
_CODE_STYLE = {LOST: "stop", **dict.fromkeys(GAP_CODES, "unknown")}


def page(template: str, view: View) -> Iterator[str]:
    """Yield a whole page in pieces of some 64 Ki characters. view: what the template calls by these names."""
    yield from _in_pieces(_environment().get_template(template).generate(view))


def _in_pieces(parts: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= _PIECE:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates beside the compiled decoders, by their text's digest; they are not kept if that folder is full."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(template_text),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_CompiledTemplates(folder) if (folder := os.environ.get(FOLDER)) and trusted(folder) else None,
    )
    made.filters |= {
        "name": name_of,
        "code": code_of,
        "command": command_of,
        "cut": printable,
        "number": number_text,
        "known": lambda value: "not known" if value is None else number_text(value),
        "count": count_text,
        "bytes": bytes_text,
        "seconds": seconds_text,
        "whole": whole,
        "moment": when_text,
        "mark": lambda head: _MARKS.get(head[0], ""),
        "unmarked": lambda head: head.lstrip("#~+"),
    }
    made.globals |= {
        "span": lambda first, last: whole(span_text(first, last)),
        "tools": False,
        "codes": all_codes(),
        "max_rows": MAX_ROWS,
    }
    for name in ("style.css", "tools.js"):
        text, kind = template_text(name), name.partition(".")[0]
        made.globals |= {f"{kind}_text": Markup(text), f"{kind}_digest": _digest(text)}  # they are ours, no store's
    return made


def _digest(text: str) -> str:
    """Return the digest of a text as a content security policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def template_text(name: str) -> str:
    """Return a template's text, also if the packages lie in a zip."""
    return resources.files(__package__).joinpath("templates", *name.split("/")).read_text("utf-8")


def _shown(value: object) -> object:
    return value if hasattr(value, "__html__") else printable(value)


def name_of(text: object, limit: int = 0) -> Markup:
    """Return a name from a store: text of its own direction, whatever it is."""
    return Markup("<bdi>{}</bdi>").format(name_text(text, limit))


def code_of(text: object, limit: int = 0) -> Markup:
    """Return a path or code as markup; a path breaks after its slashes if it must."""
    return Markup('<code dir="ltr">{}</code>').format(_SLASH.join(map(escape, printable(text, limit).split("/"))))


def command_of(text: str) -> Markup:
    """Return a command line on its own, which breaks between its options only; nothing for an empty one."""
    if not text:
        return Markup()
    parts = printable(text).replace(" --", "\n--").split("\n")
    return Markup('<code class="command" dir="ltr">{}</code>').format(
        Markup(" ").join(map(Markup("<span>{}</span>").format, parts))
    )


def whole(text: object) -> Markup:
    """Return the text with its dates, times and options each on one line."""
    return Markup(_WHOLE.sub(r'<span class="w">\g<0></span>', str(escape(_shown(text)))))


def number_text(value: object) -> str:
    """Return a whole number with its thousands apart; 0 for none."""
    return f"{int(value):,}" if value else "0"  # type: ignore[call-overload]


def style_of(kind: str, exit_code: int) -> str:
    """Return the colour of an answer: a worse exit code never gets a milder colour."""
    return _CODE_STYLE.get(exit_code, SHAPE_OF[kind])
