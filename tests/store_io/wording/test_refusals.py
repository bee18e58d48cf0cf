"""Each cause of a refusal has its words, and nothing can be read out of them again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.advice import Advice, Cause, Gap, Refusal, RefusalKind, Step
from store_io.base.wording import Sentence
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_cause, refusal_row, refusal_sentence
from tests import ROOT

CASES = [Refusal(kind, "commitlog/{x}: y", 1_000, 2_000, "a=b", 30, 4_000, ("T:0", 7)) for kind in RefusalKind]


@pytest.mark.parametrize("refusal", CASES, ids=lambda refusal: refusal.kind)
def test_every_kind_has_words_of_its_own(refusal: Refusal) -> None:
    text = str(refusal_sentence(refusal))
    assert not re.search(r"\{(path|expected|actual|position|at|queue)", text) and not text.endswith(".")
    assert text.startswith(str(refusal_cause(refusal)))
    if "commitlog/" in text:
        assert text.startswith("commitlog/{x}: y")  # the path comes first, as contract.md promises
    others = [str(refusal_sentence(other)) for other in CASES if other.kind != refusal.kind]
    assert text not in others


def test_a_sentence_says_the_values_and_the_kind_goes_beside_it() -> None:
    refusal = Refusal(RefusalKind.FILE_LENGTH, "commitlog/0", expected=4096, actual=1000)
    words = "commitlog/0: length 1,000, where the broker expects a file of 4,096 bytes"
    assert refusal_row(refusal) == {"refusal": words, "refusal_kind": "file_length"}
    assert refusal_row(None) == {"refusal": None, "refusal_kind": None}


def test_the_broker_ends_over_its_own_tables() -> None:
    refusal = Refusal(RefusalKind.CONFIG_DATABASE_FAMILIES, "config/rdb")
    cause = "config/rdb/: a later release's database, with families that this one does not open"
    assert (str(refusal_cause(refusal)), str(refusal_sentence(refusal))) == (cause, f"{cause}, so the broker ends")


def test_what_may_be_a_refusal_is_said_with_its_doubt() -> None:
    for cause, kind, words in (
        (Cause.ROCKSDB_BAD_OFFSET, RefusalKind.LIGHT_OFFSET, "what RocksDB gets then is not modelled"),
        (Cause.ROCKSDB_TRUNCATION_THROWS, RefusalKind.QUEUE_TRUNCATION, "What the broker does then is not modelled"),
        (Cause.DOUBLE_WRITE_RACE, RefusalKind.DOUBLE_WRITE_ENDS_DIFFER, "a race inside the broker decides"),
    ):
        refusal = Refusal(kind, "commitlog/0", actual="x", queue=("T", 0))
        text = gap_text(Gap(cause, "commitlog/0", refusal=refusal))
        assert words in text and str(refusal_sentence(refusal)) in text


def test_the_line_to_correct_is_the_refusals_own() -> None:
    assert Refusal(RefusalKind.DOUBLE_WRITE_LIGHT, setting="k=v").correct_line == Advice(Step.CORRECT_LINE, ("k=v",))


READERS = (
    "sentence.startswith('x')",
    "'x' in sentence",
    "sentence == 'x'",
    "bool(sentence.partition(':'))",
    "sentence[0] == 'x'",
)


def test_code_that_reads_a_sentence_does_not_pass_mypy(tmp_path: Path) -> None:
    """The words themselves are for pages and writers alone."""
    head = "from store_io.base.wording import Sentence\n"
    module = tmp_path / "reader.py"
    module.write_text(head + "".join(f"def f{n}(sentence: Sentence) -> bool: return {x}\n" for n, x in enumerate(READERS)))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(module)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = {int(line) for line in re.findall(rf"^{re.escape(str(module))}:(\d+): error:", done.stdout, re.MULTILINE)}
    assert lines == set(range(2, 2 + len(READERS))), done.stdout
    assert str(Sentence("x")) == "x"
