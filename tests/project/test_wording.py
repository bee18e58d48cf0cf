"""Words and turns that a tired operator reads twice stay out of every text that a user can see."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.options import usage, usage_of
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from store_io.base.exit_codes import SEVERITIES
from store_io.wording.steps import advice_text
from tests import ROOT
from tests.support.handmade import samples
from tests.support.texts.own_code import said_in

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
    "1 messages": r"(?<!- )\b1 (messages|segments|files|entries|bytes|stores|queues|findings|damaged ranges)\b",
}

# Further turns: banned where whole texts are read, docstrings and comments too.
FURTHER = {
    "tells": r"\b(tells?|telling)\b",  # shows, says, decides
    "stood": r"\b(stood|standing)\b(?! out)",  # was, is
    "going on": r"\b(going|went|gone) on\b",  # continuing
    "for good": r"\bfor good\b",  # and nothing undoes that
    "its like": r"\b(its|their) like\b",  # others of its kind
    "in force": r"\bin force\b",  # that apply
    "that is there": r"\bthat (is|are|was|were) there\b",  # present, existing
    "nobody's": r"\bnobody's\b",
    "as ever": r"\bas ever\b",  # as usual
    "for ever": r"\bfor ever\b",  # without end
    "to be had": r"\bto be had\b",  # available
    "hands on": r"\bhands? on\b",  # passes on
    "begun": r"\bbegun\b",  # started
    "of no use": r"\bof no use\b",  # not usable
    "that is none": r"\bthat (is|are) none\b",  # say what it is instead
    "of today": r"\bof today\b",  # current
}
# Folders whose docstrings, comments, documents, templates and schemas are read too.
READ_WHOLE = ("jobs", "schemas", "store_io", "dev", "docs", "examples", "notebooks", ".ci")
HASH_COMMENTS = (".conf", ".service", ".sh", ".timer", ".toml", ".yaml", ".yml")  # and files without a suffix that a person reads
READ = (".md", ".html", ".json", ".py", ".ipynb", ".java", *HASH_COMMENTS)
NO_SUFFIX = ("crontab", "run")
QUOTED = re.compile(r"`[^`]*`|\"[^\" ]*\"")  # names, values
PLAIN = {  # turns that have their plain meaning in a file
    "jobs/report/pages/templates/macros.html": {"begun"},  # "Run ID, begun TIME"
}


def found(text: str, banned: Mapping[str, str] = BANNED) -> list[str]:
    return [word for word, pattern in banned.items() if re.search(pattern, text, re.IGNORECASE)]


def prose(document: str) -> str:
    """A document without code: blocks, spans, addresses."""
    return re.sub(r"```.*?```|^ {4}.*?$|`[^`]*`|\]\([^)]*\)", " ", document, flags=re.DOTALL | re.MULTILINE)


def texts_of(path: Path) -> Iterator[str]:
    """All that a person reads in a file, as pieces that may be searched."""
    content = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from prose(content).split("\n\n")
    elif path.suffix == ".html":
        yield re.sub(r"\{\{.*?\}\}|\{%.*?%\}|<[^>]+>", " ", content, flags=re.DOTALL)
    elif path.suffix == ".json":
        yield from (value for value in strings_of(json.loads(content)) if " " in value)
    elif path.suffix == ".py":
        said = said_in(path)
        yield from (text for _, text in said.literals)
        yield from said.comments
        yield from said.docstrings
    elif path.suffix == ".ipynb":
        for cell in json.loads(content)["cells"]:  # not what they show
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield from prose(text).split("\n\n")
            else:
                yield from re.findall(r"(?:^|\s)#.*|\"[^\"\n]* [^\"\n]*\"", text)
    elif path.suffix == ".java":
        yield from re.findall(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]* [^\"\n]*\"", content, re.DOTALL)
    else:
        yield from re.findall(r"(?:^|\s)#.*", content)


def strings_of(value: object) -> Iterator[str]:
    """The texts in a JSON value, keys apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_of(item)


@pytest.mark.parametrize("banned", [BANNED, FURTHER])
def test_each_pattern_finds_what_it_bans(banned: Mapping[str, str]) -> None:
    assert {word: found(f"A sentence: {word} here.", banned) for word in banned} == {word: [word] for word in banned}


def test_the_catalogue() -> None:
    steps = {row.next_at(severity) for row in CATALOGUE.values() for severity in SEVERITIES}
    texts = [*(row.meaning for row in CATALOGUE.values()), *map(advice_text, steps), *STOP_REASONS.values()]
    assert [(text, found(text)) for text in texts if found(text)] == []
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


@pytest.mark.parametrize("folder", ["jobs", "schemas", "store_io", "dev"])
def test_sentences_in_the_code(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 3
    told = [(str(p.relative_to(ROOT)), line, text, found(text)) for p in files for line, text in said_in(p).literals]
    assert [row for row in told if row[3]] == []


PATHS = sorted(
    path
    for folder in READ_WHOLE
    for path in (ROOT / folder).rglob("*")
    if (path.suffix in READ or path.name in NO_SUFFIX) and path.is_file() and path.stat().st_size
)


def test_whole_texts() -> None:
    wrong, needless = [], []
    for path in [*PATHS, *sorted(ROOT.glob("*.md"))]:
        name = str(path.relative_to(ROOT))
        plain = PLAIN.get(name, set())
        rows = [(text, set(found(QUOTED.sub(" ", text), BANNED | FURTHER))) for text in texts_of(path)]
        wrong += [(name, *row) for row in rows if row[1] - plain]
        needless += [(name, word) for word in plain - set().union(*(words for _, words in rows))]
    assert wrong == [] and needless == []
