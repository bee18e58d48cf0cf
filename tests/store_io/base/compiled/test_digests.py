"""What compiled code holds of other modules is named where it is kept, or code of an older source would go on running."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
OURS = ("schemas", "store_io")
ALWAYS = {"store_io.base.compiled.native", "store_io.base.compiled.machine"}  # a part of every digest


@dataclass
class Source:
    """defined: module-level functions and constants.  imported: local name -> (module, name in it; "" for the module itself)."""

    defined: dict[str, list[ast.AST]]
    functions: set[str]
    imported: dict[str, tuple[str, str]]
    kept: dict[str, ast.Call]


def path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def source(module: str) -> Source:
    found = Source({}, set(), {}, {})
    for node in ast.parse(path_of(module).read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                target = (inner, "") if path_of(inner).exists() else (str(node.module), name.name)
                found.imported[name.asname or name.name] = target
        elif isinstance(node, ast.FunctionDef):
            found.defined[node.name] = list(node.body)
            found.functions.add(node.name)
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "kept":
                    found.kept[node.name] = mark
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.defined[name.id] = [node.value]
    return found


def needed(module: str, name: str, seen: set[tuple[str, str]]) -> set[str]:
    """The modules that a function or a constant takes something from, its own included; not what a constant's making calls."""
    if (module, name) in seen or module in ALWAYS:
        return set()
    seen.add((module, name))
    here, found = source(module), {module}
    inside = [inner for part in here.defined.get(name, []) for inner in ast.walk(part)]
    if name not in here.functions and any(isinstance(inner, ast.Call) for inner in inside):
        return found
    for node in inside:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and not here.imported.get(node.value.id, ("", "x"))[1]
        ):
            found |= needed(here.imported[node.value.id][0], node.attr, seen)
        elif isinstance(node, ast.Name) and here.imported.get(node.id, ("", ""))[1]:
            found |= needed(*here.imported[node.id], seen)
        elif isinstance(node, ast.Name) and node.id in here.defined:
            found |= needed(module, node.id, seen)
    return found


MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "store_io").rglob("*.py"))
    if "\n@kept(" in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_what_kept_code_takes_from_other_modules_is_named(module: str) -> None:
    here = source(module)
    assert here.kept
    for name, mark in here.kept.items():
        named = {here.imported[part.id][0] for part in mark.args if isinstance(part, ast.Name)}
        assert needed(module, name, set()) - {module} - named == set(), name
