"""Every code and stop reason that the source uses stands in the catalogue, and nothing stands there twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

from schemas import finding_codes
from schemas.finding_codes import _ROWS, CATALOGUE, STOP_REASONS, Cure
from schemas.rows import LOSS, NOTE, REBUILDABLE
from tests import ROOT
from tests.support.texts import own_code
from tests.support.texts.own_code import nodes_of


def teardown_module() -> None:
    own_code.forget()


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for package in ("store_io", "jobs"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, own_code.tree(path)


def texts(node: ast.AST) -> Iterator[str]:
    """The string constants that an expression can be: itself, or either arm of a condition."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def first_arguments(tree: ast.Module, called: set[str], keyword: str, place: int = 0) -> Iterator[str]:
    for node in nodes_of(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in called:
                if len(node.args) > place:
                    yield from texts(node.args[place])
                yield from (text for k in node.keywords if k.arg == keyword for text in texts(k.value))


class Produced:
    """The codes that one module's findings can have: constants, aliases, tables, and what its helpers are called with."""

    def __init__(self, tree: ast.Module):
        self.tree = tree
        self.calls = [node for node in nodes_of(tree) if isinstance(node, ast.Call)]
        self.assigned: dict[str, list[ast.expr]] = {}
        self.places: dict[str, list[tuple[str, int]]] = {}  # a parameter -> (function or class, its place in a call)
        self.unknown: list[str] = []
        for node in nodes_of(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.assigned.setdefault(node.targets[0].id, []).append(node.value)
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple):
                self.assigned.setdefault(node.target.id, []).extend(node.iter.elts)
            elif isinstance(node, ast.Assign | ast.For):
                target, value = (node.targets[0], node.value) if isinstance(node, ast.Assign) else (node.target, node.iter)
                rows = value.value if isinstance(value, ast.Subscript) else value
                for place, part in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
                    if isinstance(part, ast.Name) and isinstance(rows, ast.Name):
                        self.assigned.setdefault(part.id, []).extend(self._appended(rows.id, place))
            elif isinstance(node, ast.FunctionDef):
                names = [argument.arg for argument in node.args.args if argument.arg != "self"]
                self._parameters(node.name, names)
            elif isinstance(node, ast.ClassDef):
                fields = [f.target.id for f in node.body if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)]
                self._parameters(node.name, fields)
        self.has_aliases = any(isinstance(n, ast.ImportFrom) and n.module == "schemas" for n in nodes_of(tree))

    def _appended(self, rows: str, place: int) -> Iterator[ast.expr]:
        """What the tuples that are appended to a list have in that place."""
        for call in self.calls:
            if ast.unparse(call.func) == f"{rows}.append" and isinstance(call.args[0], ast.Tuple):
                yield from call.args[0].elts[place : place + 1]

    def _parameters(self, called: str, names: list[str]) -> None:
        for place, name in enumerate(names):
            self.places.setdefault(name, []).append((called, place))

    def codes(self) -> set[str]:
        found = {getattr(finding_codes, n.attr) for n in nodes_of(self.tree) if is_alias(n) and n.attr != "STOP_REASONS"}
        for argument in self._arguments("Finding", "code", 0):
            found |= self._values(argument, ())
        return found

    def _arguments(self, called: str, keyword: str, place: int) -> Iterator[ast.expr]:
        for call in self.calls:
            if called == getattr(call.func, "attr", getattr(call.func, "id", "")):
                yield from call.args[place : place + 1]
                yield from (k.value for k in call.keywords if k.arg == keyword)

    def _values(self, node: ast.expr, seen: tuple[str, ...]) -> set[str]:
        """The texts that an expression can be; one that cannot be followed counts as unknown."""
        if isinstance(node, ast.Constant):
            return {str(node.value)} - {""}
        if isinstance(node, ast.IfExp):
            return self._values(node.body, seen) | self._values(node.orelse, seen)
        if isinstance(node, ast.Tuple | ast.List):
            return set().union(*(self._values(one, seen) for one in node.elts))
        if isinstance(node, ast.Dict):
            return set().union(*(self._values(one, seen) for one in node.values))
        if isinstance(node, ast.Subscript):
            return self._values(node.value, seen)
        if is_alias(node):
            return set()  # counted with all of them
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            return self._values(node.func.value, seen)
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in seen:
            return set()
        given = [*self.assigned.get(name, [])] if isinstance(node, ast.Name) else []
        for called, place in self.places.get(name, []):
            given += self._arguments(called, name, place)
        if not given and not self.has_aliases:
            self.unknown.append(ast.unparse(node))
        return set().union(*(self._values(one, (*seen, name)) for one in given))


def is_alias(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "codes" and node.attr.isupper()
    )


def test_every_code_that_is_produced_is_declared_aliases_included() -> None:
    used, unknown = set(), []
    for path, tree in sources():
        text = path.read_text(encoding="utf-8")
        if "Finding(" not in text and "finding_codes" not in text:
            continue
        produced = Produced(tree)
        used |= {(code, path.name) for code in produced.codes()}
        unknown += [(path.name, text) for text in produced.unknown]
    assert unknown == [], "say these codes so that the test can follow them"
    assert sorted((code, name) for code, name in used if code not in CATALOGUE) == []
    assert CATALOGUE.keys() - {code for code, _ in used} == set(), "a code that is no longer produced: say so in its row"


# Notes that stay notes, of modules that raise others.
ALWAYS_NOTES = {
    "checkpoint_behind", "checkpoint_bytes_behind", "filler_not_zero", "replica_diverged", "replica_holds", "store_host_odd",
    "opened_database_gone", "opened_database_unused", "queue_begins_again", "store_time_back", "timer_messages_again",
    "timer_messages_wait", "timer_start_late",
}  # fmt: skip


def gives_severities(tree: ast.Module) -> bool:
    """Whether findings of the module can be above a note by their own severity; comparing severities gives none."""
    compared = {id(name) for node in nodes_of(tree) if isinstance(node, ast.Compare) for name in ast.walk(node)}
    names = (node for node in nodes_of(tree) if isinstance(node, ast.Name) and id(node) not in compared)
    return any(name.id in ("LOSS", "REBUILDABLE") for name in names)


def test_every_note_that_a_producer_raises_has_a_step_for_that() -> None:
    produced = {code for _, tree in sources() if gives_severities(tree) for code in Produced(tree).codes() & CATALOGUE.keys()}
    notes = {code for code in produced if CATALOGUE[code].severity == NOTE}
    assert notes >= ALWAYS_NOTES
    assert {code for code, row in CATALOGUE.items() if row.raised_step} == notes - ALWAYS_NOTES


@pytest.mark.parametrize(
    "text",
    [
        "Finding('made_up', file)",
        "NAME = 'made_up'\nFinding(NAME, file)",
        "Finding('live_copy' if live else 'made_up', file)",
        "names = ('', 'live_copy', 'made_up')\nname = names[kind]\nFinding(name, file)",
        "rows.append((1, 'made_up', 3))\nfor at, name, end in rows:\n    Finding(name, file)",
        "def add(path, code):\n    return Finding(code, path)\nadd(file, 'made_up')",
        "@dataclass\nclass Fault:\n    code: str\nFault(code='made_up')\nFinding(fault.code, file)",
    ],
)
def test_an_undeclared_code_is_found_however_it_is_said(text: str) -> None:
    assert "made_up" in Produced(ast.parse(text)).codes()


def test_a_code_that_cannot_be_followed_is_reported() -> None:
    produced = Produced(ast.parse("Finding(ask(), file)"))
    assert (produced.codes(), produced.unknown) == (set(), ["ask()"])


def test_nothing_is_decided_by_how_a_code_is_spelled() -> None:
    taken_apart = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find"}
    spelled = [
        (path.name, ast.unparse(node))
        for path, tree in sources()
        for node in nodes_of(tree)
        if isinstance(node, ast.Attribute) and node.attr in taken_apart and getattr(node.value, "attr", "") == "code"
    ]
    assert spelled == []


def test_every_stop_reason_of_the_source_is_in_the_list() -> None:
    used = {(r, path.name) for path, tree in sources() for r in first_arguments(tree, {"_Refused"}, "reason")}
    used |= {(r, path.name) for path, tree in sources() for r in first_arguments(tree, {"BrokerStop"}, "reason", 2)}
    used |= {(r, path.name) for path, tree in sources() for r in first_arguments(tree, {"Verdict"}, "reason", 2)}
    assert len(used) > 10, "the scan finds nothing"
    assert sorted((reason, name) for reason, name in used if reason and reason not in STOP_REASONS) == []


def test_the_catalogue_is_sound() -> None:
    assert len(_ROWS) == len(CATALOGUE)
    for code, entry in CATALOGUE.items():
        assert code == entry.code and code.replace("_", "").isalpha() and code.islower()
        assert entry.severity in (NOTE, REBUILDABLE, LOSS)
        assert (entry.cure is Cure.NOTHING) <= (entry.severity == NOTE), code
        for sentence in (entry.meaning, entry.next, entry.raised_step or entry.next):
            assert sentence[0].isupper() and sentence.endswith("."), code
    for reason, sentence in STOP_REASONS.items():
        assert reason.islower() and sentence.endswith("."), reason
