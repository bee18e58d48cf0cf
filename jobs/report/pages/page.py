"""What every page is made of: its head, tables, folds. Pages load nothing and run nothing; a policy in them forbids both.

Pages are generators of pieces, so that a large one is never held whole. Whatever a store holds goes through `markup`, `name_of`
or `code_of`; every other argument that says so is markup already.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence

from jobs.report.pages.report_style import STYLE
from jobs.report.texts.text import markup

_STYLE_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; base-uri 'none'; form-action 'none'"
_MARKS = {"#": ' class="n"', "~": ' class="t"', "+": ' class="r"'}  # numbers, one line, room
_PIECE = 1 << 16  # characters handed on at once


def page(title: str, body: Iterable[str]) -> Iterator[str]:
    """A whole page in pieces of some 64 Ki characters. title: text; body: markup."""
    yield from _in_pieces(_around(title, body))


def _around(title: str, body: Iterable[str]) -> Iterator[str]:
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{markup(title, 200)}</title>\n<style>{STYLE}</style>\n'
        "</head>\n<body>\n"
    )
    yield from body
    yield "</body>\n</html>\n"


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


def name_of(text: object, limit: int = 0) -> str:
    """A name from a store: text of its own direction, whatever it is."""
    return f"<bdi>{markup(text, limit)}</bdi>"


def code_of(text: object, limit: int = 0) -> str:
    """The same for paths, codes and commands."""
    return f'<code dir="ltr">{markup(text, limit)}</code>'


def command_of(text: str) -> str:
    """A command line on its own, which breaks between its options only; nothing for an empty one."""
    if not text:
        return ""
    pieces = " ".join(f"<span>{part}</span>" for part in markup(text).replace(" --", "\n--").split("\n"))
    return f'<code class="command" dir="ltr">{pieces}</code>\n'


def hint(words: str) -> str:
    """A sentence that explains. words: markup."""
    return f'<p class="hint">{words}</p>\n'


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    total: int,
    limit: int,
    rest: str = "",
    stack: bool = False,
) -> Iterator[str]:
    """A table that scrolls by itself where it is too wide.

    caption: what it holds, for those who hear it.  heads: a leading "#" marks a column of numbers, "~" one that is not broken
    into lines, "+" one that gets more room.  rows: cells as markup, the first one the row's head; at most `limit` are shown.
    total: how many there are; rest: where to find the others.  stack: on a narrow screen a row becomes a block of its own, each
    cell named.
    """
    mark = [_MARKS.get(head[0], "") for head in heads]
    names = [head.lstrip("#~+") for head in heads]
    yield f'<div class="wide{" stack" if stack else ""}" role="region" aria-label="{markup(caption)}" tabindex="0">'
    yield f"<table><caption>{markup(caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col"{m}>{name}</th>' for name, m in zip(names, mark, strict=True))
    yield "</tr></thead><tbody>\n"
    labels = [f' data-label="{name}"' if stack else "" for name in names]
    for place, row in enumerate(rows):
        if place == limit:
            break
        first, *others = row
        cells = "".join(f"<td{m}{label}>{cell}</td>" for cell, m, label in zip(others, mark[1:], labels[1:], strict=True))
        yield f'<tr><th scope="row"{mark[0]}>{first}</th>{cells}</tr>\n'
    yield "</tbody></table></div>\n"
    if total > limit:
        yield more(total - limit, "row", rest)


def more(number: int, noun: str, where: str = "") -> str:
    """How many are not shown, and where they are. where: markup."""
    words = f"{number:,} more {noun}{'' if number == 1 else 's'} {'is' if number == 1 else 'are'} not shown here"
    return f'<p class="more">{words}{f": {where}" if where else ""}.</p>\n'


def fold(summary: str, body: Iterable[str], opened: bool = False, style: str = "") -> Iterator[str]:
    """A part that can be closed. summary, body: markup."""
    yield f"<details{_class(style)}{' open' if opened else ''}><summary>{summary}</summary>\n"
    yield from body
    yield "</details>\n"


def fact(value: str, words: str, style: str = "") -> str:
    """A value in large letters with what it is. value, words: markup."""
    return f"<div><dt>{words}</dt><dd{_class(style)}>{value}</dd></div>\n"


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""
