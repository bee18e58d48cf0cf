"""Each cause of a refusal has its words, and nothing can be read out of them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from schemas.advice import Advice, Cause, Gap, Refusal, RefusalKind, Step
from store_io.base.wording import Sentence
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_cause, refusal_row, refusal_sentence

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


def test_no_words_can_be_read_out_of_a_sentence() -> None:
    """The words themselves are for pages and writers alone."""
    sentence: Any = Sentence("x")
    readers: list[Callable[[], object]] = [
        lambda: sentence.startswith("x"), lambda: "x" in sentence, lambda: sentence.partition(":"), lambda: sentence[0],
    ]  # fmt: skip
    for read in readers:
        with pytest.raises((AttributeError, TypeError)):
            read()
    assert sentence != "x" and str(sentence) == "x"
