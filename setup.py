"""Makes the wheel (`pip install .`). What is in it besides the packages is in pyproject.toml.

In this folder the packages are jobs, store_io and schemas. Beside other people's code these names would meet theirs: `jobs` and
`schemas` are usual ones in projects with Spark. So in the wheel they are inside `rocketmq_store_audit`, and each import of them
names them there. Nothing else of a module is changed: one that needs another's name as text asks `jobs.installation`.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).resolve().parent
PACKAGE = "rocketmq_store_audit"
OWN = ("jobs", "schemas", "store_io")
FILES = (".html", ".css", ".js", ".json", ".java")  # that modules read: templates, JSON Schemas, a class
SPARK_FINDS = {  # source -> its class: `format("rocketmq.SOURCE")` finds it without a line of Python
    "messages": ("message_source", "MessagesSource"),
    "consumequeue": ("file_sources", "ConsumeQueueSource"),
    "index": ("file_sources", "IndexSource"),
    "extents": ("file_sources", "ExtentsSource"),
    "offsets": ("group_sources", "OffsetsSource"),
    "transactions": ("group_sources", "TransactionsSource"),
}
EXTRA = ("pyproject.toml", "examples/damaged-store")  # the jars and their digests; the store that fills the caches
_FROM = re.compile(rf"from\s+({'|'.join(OWN)})\b")


def renamed(source: str, name: str) -> str:
    """A module's source with imports of our packages as they are named in the wheel. name: for errors."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and node.module.split(".")[0] in OWN:
            line = lines[node.lineno - 1].encode()
            before, statement = line[: node.col_offset].decode(), line[node.col_offset :].decode()
            changed, count = _FROM.subn(rf"from {PACKAGE}.\1", statement, count=1)
            if not count:
                raise SystemExit(f"{name}, line {node.lineno}: write the import as `from PACKAGE import NAME`")
            lines[node.lineno - 1] = before + changed
        elif isinstance(node, ast.Import) and any(alias.name.split(".")[0] in OWN for alias in node.names):
            raise SystemExit(f"{name}, line {node.lineno}: write the import as `from PACKAGE import NAME`")
    return "".join(lines)


def packages() -> dict[str, str]:
    """The wheel's packages: their names, and the folders of their modules here."""
    found = {PACKAGE: f"install/{PACKAGE}"}
    for top in OWN:
        for path in sorted((ROOT / top).rglob("__init__.py")):
            folder = path.parent.relative_to(ROOT)
            found[".".join((PACKAGE, *folder.parts))] = folder.as_posix()
    return found


def spark_packages() -> dict[str, str]:
    """Packages that Spark looks for, pyspark_*: their names, and their one module."""
    return {
        f"pyspark_rocketmq_{source}": f"from jobs.sources.{module} import {name} as DefaultSource  # noqa: F401\n"
        for source, (module, name) in SPARK_FINDS.items()
    }


class BuildRenamed(build_py):
    def run(self) -> None:
        target = Path(self.build_lib, PACKAGE)
        shutil.rmtree(target, ignore_errors=True)  # an earlier build's: a module that is gone would stay in the wheel
        super().run()
        for path in target.rglob("*.py"):
            path.write_text(renamed(path.read_text("utf-8"), str(path)), "utf-8")
        for top in OWN:
            for path in (ROOT / top).rglob("*"):
                if path.suffix in FILES:
                    self._copy(path, target)
        for name in EXTRA:
            whole = ROOT / name
            for path in [whole] if whole.is_file() else whole.rglob("*"):
                if path.is_file():
                    self._copy(path, target)

        for name, text in spark_packages().items():
            package = Path(self.build_lib, name)
            package.mkdir(exist_ok=True)
            (package / "__init__.py").write_text(renamed(text, name), "utf-8")

    def _copy(self, path: Path, target: Path) -> None:
        place = target / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


class NotEditable(editable_wheel):
    def run(self) -> None:
        sys.exit("an editable installation cannot rename the packages: use ./spark-submit.sh in this folder instead")


if __name__ == "__main__":
    setup(
        packages=list(packages()),
        package_dir=packages(),
        cmdclass={"build_py": BuildRenamed, "editable_wheel": NotEditable},
    )
