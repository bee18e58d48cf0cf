"""The project's own modules as the tests read them: what a module says is taken from it once, however many tests ask."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Said:
    """What a module says to people.

    literals: (line, text) of string literals that hold a sentence, or a part of one: not docstrings, not single words, which
    are keys and codes.
    """

    docstrings: tuple[str, ...]
    comments: tuple[str, ...]
    literals: tuple[tuple[int, str], ...]


@cache
def said_in(path: Path) -> Said:
    source = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = tuple(text for node in nodes if isinstance(node, _OWNERS) and (text := ast.get_docstring(node)))
    expressions = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    literals = tuple(
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in expressions and " " in node.value
    )
    return Said(docstrings, tuple(_comments(source)), literals)


def _comments(source: str) -> Iterator[str]:
    if "#" in source:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.string


@cache
def tree(path: Path) -> ast.Module:
    """The module parsed; nobody changes it. A file of tests has all trees forgotten after its last test: they are large."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(parsed: ast.Module) -> tuple[ast.AST, ...]:
    """All its nodes, as `ast.walk` gives them."""
    return tuple(ast.walk(parsed))


def forget() -> None:
    tree.cache_clear()
    nodes_of.cache_clear()
