"""Adds pages to the documents of mkdocs.yml: those of the project's folder, one for each code, the lists of codes and columns.

A link to the catalogue of codes, or to declarations of columns, leads to its list. Links to other files that are no pages of the
site become plain text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from jobs.report.texts import finding_words  # noqa: E402
from schemas.sources import SOURCES  # noqa: E402
from schemas.tables import DATASETS, TABLES, Column, ColumnType  # noqa: E402

WRITTEN = {"README.md": "index.md", **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}}
CODES, COLUMNS = "findings.md", "columns.md"
LISTS = {"schemas/finding_codes.py": CODES, "schemas/tables.py": COLUMNS, "schemas/sources.py": COLUMNS}
PAGES = {**WRITTEN, **LISTS}  # a file of the project's folder: the page to which links to it lead
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for name, place in WRITTEN.items():
        files.append(File.generated(config, place, content=linked((ROOT / name).read_text("utf-8"), name)))
    files.append(File.generated(config, CODES, content=finding_words.page(finding_words.all_codes())))
    files.append(File.generated(config, COLUMNS, content="\n".join(columns_page())))
    for code, words in finding_words.all_codes().items():
        text = f"{finding_words.section(words, '#')}\n[All findings](../{CODES})\n"
        files.append(File.generated(config, f"findings/{code}.md", content=text))
    return files


def columns_page() -> Iterator[str]:
    """Yield the lines of the list of columns, as they are declared: tables, datasets of `--write`, data sources."""
    yield "# Columns\n\nEach table and dataset also has the run, `run_id`. Unless a column says otherwise it may be null.\n"
    for name, table in (*TABLES.items(), *DATASETS.items()):
        yield f"## {'Dataset' if name in DATASETS else 'Table'} `{name}`\n\n{table.about}\n"
        yield from _columns(table)
    for name, columns in SOURCES.items():
        yield f"## Data source `rocketmq.{name}`\n"
        yield from _columns(columns)


def _columns(columns: Iterable[Column]) -> Iterator[str]:
    yield "| column | type | |\n|---|---|---|"
    yield from (f"| `{column.name}` | {_type(column.type)} | {column.comment.replace('|', '&#124;')} |" for column in columns)
    yield ""


def _type(of: ColumnType) -> str:
    if isinstance(of, str):
        return of
    if of["type"] == "struct":
        return ", ".join(f"`{field['name']}` {_type(field['type'])}" for field in of["fields"])
    return f"list of {_type(of['elementType'])}" if of["type"] == "array" else "map of texts"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The same links from a document to the project's folder."""
    return markdown if page.file.generated_by else linked(markdown, f"docs/{page.file.src_uri}")


def linked(markdown: str, name: str) -> str:
    """A page's text with links as the site has them. name: of its file, from the project's folder."""

    def replaced(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in path or not path:
            return found[0]
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        place = PAGES.get(inside, inside.removeprefix("docs/") if inside.startswith("docs/") else "")
        here = posixpath.dirname(PAGES.get(name, name.removeprefix("docs/")))
        return f"{picture}[{text}]({posixpath.relpath(place, here or '.')}{hash_}{anchor})" if place else text

    return _LINK.sub(replaced, markdown)
