"""Options in, conditions on messages out."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import options
from jobs.cli.argument_places import read_topic
from jobs.cli.message_filters import read_filter, read_time
from store_io.base.errors import UsageError
from store_io.messages.message_filter import MessageFilter


def test_no_option_is_no_condition() -> None:
    assert read_filter({"--release": "5.3.3"}) == MessageFilter()


def test_all_options() -> None:
    asked = {
        "--topic": r"A,b\,c,%RETRY%g",
        "--queue": "0, 7",
        "--from-queue-offset": "5",
        "--to-queue-offset": "9",
        "--from-phy-offset": "1,100",
        "--to-phy-offset": "9223372036854775807",
        "--since": "2026-11-20T21:20:22Z",
        "--until": "1795209622001",
    }
    assert read_filter(asked) == MessageFilter(
        frozenset({"A", "b,c", "%RETRY%g"}),
        frozenset({0, 7}),
        (5, 9),
        (1100, 9223372036854775807),
        (1795209622000, 1795209622001),
    )


@pytest.mark.parametrize("topic", ["", " ", "--", "a\nb", "a\n", "a\r", "\0", "a,b", "消", "\ufffd"])
def test_a_topic_in_a_file_is_taken_letter_by_letter(topic: str, tmp_path: Path) -> None:
    (tmp_path / "topic").write_bytes(topic.encode() + (b"" if topic.endswith("\r") else b"\n"))
    asked = options.parse(["query", "/s", "--topic-file", str(tmp_path / "topic")]).options
    assert read_filter(asked) == MessageFilter(frozenset({topic}))
    with pytest.raises(UsageError, match="give one of them"):
        read_filter({**asked, "--topic": "t"})


@pytest.mark.parametrize("content", [b"T\r\n", b"\r\n", b"a\r\r\n"])
def test_a_topic_file_with_the_line_end_of_windows_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "topic").write_bytes(content)
    with pytest.raises(UsageError, match="ends in CR and LF, as Windows ends a line: end it in LF alone"):
        read_topic(str(tmp_path / "topic"))


def test_a_topic_file_is_read_as_a_broker_reads_a_record(tmp_path: Path) -> None:
    (tmp_path / "topic").write_bytes(b"a\xff")
    assert read_topic(str(tmp_path / "topic")) == "a\ufffd"
    (tmp_path / "topic").write_bytes(b"a" * 40_000)
    for path in (tmp_path / "topic", tmp_path / "gone", tmp_path):
        with pytest.raises(UsageError, match="--topic-file"):
            options.parse(["query", "/s", "--topic-file", str(path)])


@pytest.mark.parametrize(
    ("text", "tags"),
    [("a,b", "ab"), (" a || b ", "ab"), ("a||b,c", "abc"), ("*", None), (" * ", None), (r"\, || |", ",|"), ("a , b", "ab")],
)
def test_tags_as_subscriptions_have_them(text: str, tags: str | None) -> None:
    assert read_filter({"--tag": text}) == MessageFilter(tags=None if tags is None else frozenset(tags))


@pytest.mark.parametrize("text", ["a ||", "|| a", "a,,b", " "])
def test_an_empty_tag_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="an empty name"):
        read_filter({"--tag": text})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:00.0019", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999", -1),
        ("12345", 12345),
        ("-12345", -12345),
        ("2026", None),
        ("yesterday", None),
        ("2026-13-01", None),
        ("9" * 19, None),
    ],
)
def test_times(text: str, wanted: int | None) -> None:
    if wanted is None:
        with pytest.raises(UsageError, match="--since"):
            read_time(text, "--since")
    else:
        assert read_time(text, "--since") == wanted


@pytest.mark.parametrize(
    "asked",
    [
        {"--topic": "a,"},
        {"--queue": "x"},
        {"--queue": "-1"},
        {"--queue": "2147483648"},
        {"--from-phy-offset": "9223372036854775808"},
        {"--from-phy-offset": "1,00"},
        {"--from-phy-offset": "5", "--to-phy-offset": "5"},
        {"--since": "2026-01-02", "--until": "2026-01-01"},
    ],
)
def test_what_makes_no_sense_is_a_usage_error(asked: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(asked))):
        read_filter(asked)


def test_segments_by_name() -> None:
    wanted = MessageFilter(phy_offsets=(100, 200))
    assert [wanted.may_be_in(base, 100) for base in (0, 100, 200)] == [False, True, False]
    assert MessageFilter().may_be_in(0, 1)


def test_both_filters() -> None:
    one = MessageFilter(frozenset("ab"), None, (3, None), (0, 9))
    other = MessageFilter(frozenset("bc"), frozenset({1}), (5, 7), (None, 4), (1, 2))
    assert one.narrowed(other) == MessageFilter(frozenset("b"), frozenset({1}), (5, 7), (0, 4), (1, 2))
