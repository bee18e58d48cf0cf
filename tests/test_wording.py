"""Words and turns that a tired operator reads twice stay out of every text that a user can see."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.command_line.command_table import COMMAND_TABLE
from jobs.command_line.options import usage, usage_of
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from tests import ROOT
from tests.support import samples

BANNED = {
    "behind": r"\bbehind\b",  # after, beyond
    "told": r"\btold\b",  # reported, listed
    "goes on": r"\bgo(es)? on\b",  # continues
    "stands": r"\bstands?\b(?! out)",  # is
    "wholly": r"\bwholly\b",  # fully
    "handed on": r"\bhanded on\b",  # passed on
    "those first that": r"\bthose first that\b",  # most dangerous first
    "loses nothing more": r"\bnothing more\b",  # makes nothing worse
    "makes good": r"\bmakes? good\b",  # mends
    "has come": r"\bhas come\b",  # ends
    "is none that": r"\bis none that\b",  # does not
    "as far as": r"\bas far as\b",
    "no entry leads": r"\bno entry (would )?leads?\b",  # without a queue entry
    "1 messages": r"\b1 (messages|segments|files|entries|bytes|stores|queues|findings|damaged ranges)\b",
}


def found(text: str) -> list[str]:
    return [word for word, pattern in BANNED.items() if re.search(pattern, text, re.IGNORECASE)]


def prose(document: str) -> str:
    """A document without code: blocks, spans, addresses."""
    return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", document, flags=re.DOTALL)


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """String literals that hold a sentence, or a part of one: not docstrings, not single words, which are keys and codes."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("word", BANNED)
def test_each_pattern_finds_what_it_bans(word: str) -> None:
    assert found(f"A sentence: {word} here.") == [word]


def test_the_catalogue() -> None:
    texts = [text for row in CATALOGUE.values() for text in (row.meaning, row.next)] + list(STOP_REASONS.values())
    assert [(text, found(text)) for text in texts if found(text)] == []
    assert all(text[0].isupper() or text[0].islower() for text in texts)
    assert [text for text in texts if not text.endswith(".")] == []


def test_usage_texts() -> None:
    for text in (usage(), *map(usage_of, COMMAND_TABLE)):
        assert found(text) == []
        assert [line for line in text.splitlines() if len(line) > 132] == []


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "golden").iterdir()), ids=lambda path: path.name)
def test_what_is_rendered(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    if path.suffix == ".html":
        text = html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL))
    assert found(text.replace(samples.HOSTILE, "")) == []


@pytest.mark.parametrize("folder", ["jobs", "schemas", "store_io"])
def test_sentences_in_the_code(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 3
    told = [(str(p.relative_to(ROOT)), line, text, found(text)) for p in files for line, text in literals(p)]
    assert [row for row in told if row[3]] == []


@pytest.mark.parametrize("name", ["README.md", "INCIDENT.md"])
def test_documents(name: str) -> None:
    assert found(prose((ROOT / name).read_text("utf-8"))) == []
