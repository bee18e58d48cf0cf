"""Every code and stop reason that the source uses stands in the catalogue, and nothing stands there twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from schemas.finding_codes import _ROWS, CATALOGUE, STOP_REASONS
from schemas.rows import LOSS, NOTE, REBUILDABLE
from tests import ROOT


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for package in ("store_io", "jobs"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def texts(node: ast.AST) -> Iterator[str]:
    """The string constants that an expression can be: itself, or either arm of a condition."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def first_arguments(tree: ast.Module, called: set[str], keyword: str, place: int = 0) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in called:
                if len(node.args) > place:
                    yield from texts(node.args[place])
                yield from (text for k in node.keywords if k.arg == keyword for text in texts(k.value))


def test_every_finding_code_of_the_source_is_in_the_catalogue() -> None:
    used = {(code, path.name) for path, tree in sources() for code in first_arguments(tree, {"Finding"}, "code")}
    assert len(used) > 10, "the scan finds nothing"
    assert sorted((code, name) for code, name in used if code not in CATALOGUE) == []


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
        for sentence in (entry.meaning, entry.next):
            assert sentence[0].isupper() and sentence.endswith("."), code
    for reason, sentence in STOP_REASONS.items():
        assert reason.islower() and sentence.endswith("."), reason
