"""Numbers and names in sentences."""

from __future__ import annotations

from store_io.base.wording import as_sentence, clause, count_text, names_text


def test_counts_clauses_and_names() -> None:
    assert [count_text(1, "message"), count_text(12345, "message"), count_text(2, "entry", "entries")] == [
        "1 message", "12,345 messages", "2 entries",
    ]  # fmt: skip
    assert clause("RocksDB finds bad bytes.") == "RocksDB finds bad bytes"
    assert clause("The body is wrong.") == "the body is wrong" and clause("CommitLog ends.") == "CommitLog ends"
    assert as_sentence("another copy lacks it.") == "Another copy lacks it."
    assert as_sentence("config/topics.json is older") == "config/topics.json is older."  # a name stays as it is
    assert names_text(["a", "b"]) == "a, b" and names_text(["a", "b", "c", "d", "e"], 2) == "a, b and 3 more"
