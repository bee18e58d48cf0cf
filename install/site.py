"""Adds to the documents of mkdocs.yml: the pages of the project's folder, the list of all codes, and a page for each code.

A link to the catalogue of codes leads to that list. Links to other files that are no pages of the site become plain text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from jobs.report.texts import finding_words  # noqa: E402

WRITTEN = {"README.md": "index.md", **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}}
CODES = "findings.md"
PAGES = {**WRITTEN, "schemas/finding_codes.py": CODES}  # a file of the project's folder: the page to which links to it lead
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for name, place in WRITTEN.items():
        files.append(File.generated(config, place, content=linked((ROOT / name).read_text("utf-8"), name)))
    files.append(File.generated(config, CODES, content=finding_words.page(finding_words.all_codes())))
    for code, words in finding_words.all_codes().items():
        text = f"{finding_words.section(words, '#')}\n[All findings](../{CODES})\n"
        files.append(File.generated(config, f"findings/{code}.md", content=text))
    return files


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
