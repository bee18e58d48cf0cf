"""Why an audit is not complete."""

from __future__ import annotations

from store_io.audit.shortcomings import Shortcomings


def test_a_sentence_that_is_there_is_not_added_again() -> None:
    short = Shortcomings(["a"])
    short.add_new(["b", "a", "c"])
    assert (short.sentences, short.broken) == (["a", "b", "c"], False)


def test_what_cannot_be_read_ends_any_prediction() -> None:
    short = Shortcomings()
    short.cannot_read("x: refused")
    assert (short.sentences, short.broken) == (["x: refused"], True)
