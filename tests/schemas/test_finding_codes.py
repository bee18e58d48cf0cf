"""Every code and stop reason that the source uses is in the catalogue, and nothing is there twice. mypy holds that a finding has
a declared code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from schemas import finding_codes
from schemas.finding_codes import _ROWS, CATALOGUE, STOP_REASONS, Code, Cure
from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.wording.steps import advice_text
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


def named_codes(tree: ast.Module) -> set[Code]:
    """The codes that a module names, if it makes findings; what it only compares a finding's code with is left out."""
    if not any(isinstance(node, ast.Call) and ast.unparse(node.func).lower().endswith("finding") for node in nodes_of(tree)):
        return set()
    compared = {id(part) for node in nodes_of(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
    named = (node for node in nodes_of(tree) if isinstance(node, ast.Attribute | ast.Name) and id(node) not in compared)
    return {code for node in named if (code := code_of(node)) is not None}


def code_of(node: ast.Attribute | ast.Name) -> Code | None:
    """The code that `Code.NAME`, or a constant of the catalogue, is."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Code":
        return Code.__members__.get(node.attr)
    known = vars(finding_codes).get(node.attr if isinstance(node, ast.Attribute) else node.id)
    return known if isinstance(known, Code) else None


def test_each_code_has_a_row_and_is_produced() -> None:
    assert list(CATALOGUE) == list(Code)
    named = set().union(*(named_codes(tree) for _, tree in sources()))
    assert set(Code) - named == set(), "a code that is no longer produced: say so in its row"


def test_each_code_is_demanded_by_a_test() -> None:
    """By its value, or by its name in the enumeration or in the catalogue."""
    constants = {code: name for name, code in vars(finding_codes).items() if isinstance(code, Code)}
    asked = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__) and "support" not in path.parts
    )
    words = set(re.findall(r"\w+", asked))
    assert [code for code in Code if not words & {code.value, code.name, constants.get(code, code.value)}] == []


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
        for sentence in (entry.meaning, advice_text(entry.next), advice_text(entry.next_at(LOSS))):
            assert sentence[0].isupper() and sentence.endswith("."), code
    for reason, sentence in STOP_REASONS.items():
        assert reason.islower() and sentence.endswith("."), reason
