"""Of a server's answer no more is taken than was asked for, fewer bytes are asked for again, and everything ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from itertools import count
from types import SimpleNamespace
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from store_io.base import locks
from store_io.base.errors import StoreError, Unreadable
from store_io.source import s3_answers, s3_client, s3_folder
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.s3_answers import LONGEST
from store_io.source.s3_folder import listed
from tests.support.processes.hostile_server import SIZE, XML, Hostile, Line, entry, page, served

MOST_SENT = 16 << 20  # bytes: what is asked for, and what buffers on the way take


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    monkeypatch.setattr(locks, "FIRST_SECONDS", 0.001)
    with served() as started:
        yield started


def source() -> ByteSource:
    return open_source(StoreLocation("s3://b/s"))


def read() -> bytes:
    with source().open("a") as file:
        return file.read(0, SIZE)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda line: line.without_end(206, **line.span()), "the server's fault: it sends more than the 65,536 bytes"),
        (lambda line: line.part(b"", 6 << 30), "the server's fault: it announces 6442450944 bytes"),
        (lambda line: line.part(b"", 10**30), "the server's fault: it announces '1000000000000000000'"),
        (lambda line: line.without_end(404), "the server's fault: it sends more than the 8,388,608 bytes"),
        (lambda line: line.without_end(200), "the server's fault: it sends more than the 65,536 bytes"),
        (lambda line: line.answer(404, b"<a" * 1000), "cannot be read|is not there any more"),
        (lambda line: line.answer(206, b"x", Content_Range="bytes 5-5/10", ETag="x"), "not answer with the range"),
        (lambda line: line.part(b"", -7), "the server's fault: it announces '-7' bytes"),
        (lambda line: line.head(206, Content_Length="-1", **line.span()), "it announces '-1' bytes"),  # and the line stays open
        (lambda line: line.head(206, Content_Length="1e3", **line.span()), "it announces '1e3' bytes"),
        (lambda line: line.head(404, Content_Length="-1"), "it announces '-1' bytes"),
        (
            lambda line: line.answer(206, bytes(1 << 16), Content_Range=f"bytes 0-65535/{LONGEST + 1}", ETag="x"),
            "which no object has",
        ),
    ],
)
def test_no_more_of_an_object_is_read_than_was_asked_for(server: Hostile, answer: Callable[[Line], None], said: str) -> None:
    server.object = answer
    with pytest.raises(StoreError, match=f"^a: .*({said})"):
        source().open("a")
    assert server.sent < MOST_SENT and server.asked <= s3_answers.ATTEMPTS


SHORT: dict[str, Callable[[Line], None]] = {
    "cut": lambda line: line.cut(),
    "ended": lambda line: line.part(bytes(SIZE - 1), SIZE),
    "length": lambda line: line.part(bytes(SIZE - 1)),
    "empty": lambda line: line.part(b""),
    "busy": lambda line: line.answer(503, b"<Error><Code>SlowDown</Code></Error>"),
    "broken": lambda line: line.answer(500, b""),
}


@pytest.mark.parametrize("kind", SHORT)
def test_what_ends_too_early_is_asked_for_again(server: Hostile, kind: str) -> None:
    tries = count(1)
    server.object = lambda line: SHORT[kind](line) if next(tries) < s3_answers.ATTEMPTS else line.part(bytes(SIZE))
    assert read() == bytes(SIZE)


@pytest.mark.parametrize("kind", SHORT)
def test_what_ends_too_early_each_time_is_an_error_that_names_the_object(server: Hostile, kind: str) -> None:
    server.object = SHORT[kind]
    with pytest.raises(Unreadable, match=r"^a: cannot be read: "):
        read()
    assert server.asked == s3_answers.ATTEMPTS


def test_a_listing_that_ends_too_early_is_asked_for_again(server: Hostile) -> None:
    tries = count(1)
    original = Line.answer

    def short(line: Line, code: int, body: bytes, **headers: str) -> None:
        if next(tries) > 2:
            return original(line, code, body, **headers)
        line.head(code, Content_Length=str(len(body)))
        line.send(body[:-5])
        line.close_connection = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Line, "answer", short)
        assert [found.key for found in listed("b", "s/")] == ["s/a"]


def growing(name: Callable[[int], str]) -> Callable[[dict[str, str]], str]:
    """Pages without end, each with a token of its own."""

    def listing(asked: dict[str, str]) -> str:
        number = int(asked.get("continuation-token", 0)) + 1
        return page(name(number), token=str(number))

    return listing


def alternating(asked: dict[str, str]) -> str:
    return page("s/a", token="b" if asked.get("continuation-token") == "a" else "a")


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (alternating, "there is more, and gives nothing new"),
        (growing(lambda number: "s/a"), "there is more, and gives nothing new"),
        (growing(lambda number: f"s/{number % 3}"), "there is more, and gives nothing new"),
        (growing(lambda number: f"s/T{number}"), "nothing new"),  # T10 comes before T9
        (growing(lambda number: f"s/T{number:09}"), "gives more than 50 names"),
        (lambda asked: page("other/a"), "gives 'other/a', which does not begin so"),
        (lambda asked: page(entries=entry("s/a", "9" * 100_000)), "its answer cannot be understood"),
        (lambda asked: page(entries=entry("s/a", "-1")), "out of range"),
        (lambda asked: page(entries=entry("s/a", 1 << 63)), "out of range"),
        (lambda asked: page(entries=entry("s/a", "")), "cannot be understood"),
        (lambda asked: page(entries=entry("s/a", time="9999-01-01T00:00:00Z")), "out of range"),
        (lambda asked: page(entries=entry("s/a", time="9" * 5000)), "cannot be understood"),
        (lambda asked: page(entries="<Contents><Key>s/a</Key></Contents>"), "cannot be understood"),
        (lambda asked: XML + "<ListBucketResult>", "s3://b/s: cannot be read"),
        (lambda asked: XML + "<a/>", "no S3 server"),
        (lambda asked: " " * (9 << 20), "announces 9437184 bytes"),
    ],
)
def test_a_listing_is_bounded(
    server: Hostile, monkeypatch: pytest.MonkeyPatch, listing: Callable[[dict[str, str]], str], said: str
) -> None:
    monkeypatch.setattr(s3_folder, "MOST_KEYS", 50)
    server.listing = listing
    with pytest.raises(Unreadable, match=said):
        source().names()
    assert server.asked <= 60 and server.sent < MOST_SENT


def test_pages_with_nothing_new_are_passed_over_if_they_end(server: Hostile) -> None:
    def listing(asked: dict[str, str]) -> str:
        number = int(asked.get("continuation-token", 0)) + 1
        return page("s/z") if number == s3_folder.MOST_FRUITLESS else page(*["s/a"][: number == 1], token=str(number))

    server.listing = listing
    assert [found.key for found in listed("b", "s/")] == ["s/a", "s/z"]


class Signal(BaseException):
    """As KeyboardInterrupt, which would end the tests."""


def test_a_signal_ends_every_wait_for_a_server(server: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    came = threading.Event()

    def look() -> None:
        if came.is_set():
            raise Signal

    monkeypatch.setattr(locks, "_looks", [look])
    monkeypatch.setattr(locks, "FIRST_SECONDS", 1000.0)

    def busy(line: Line) -> None:
        came.set()
        line.answer(503, b"")

    def endless(line: Line) -> None:
        came.set()
        line.without_end(206, **line.span())

    def listing(asked: dict[str, str]) -> str:
        came.set()
        return growing(lambda number: f"s/T{number:09}")(asked)

    server.object, server.listing = busy, listing
    for wait in (lambda: source().open("a"), lambda: source().names()):
        came.clear()
        with pytest.raises(Signal):
            wait()
    came.clear()
    server.object = endless
    with pytest.raises(Signal):
        source().open("a")


def test_an_answer_that_comes_too_slowly_ends(server: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_answers, "ANSWER_SECONDS", -3600)
    with pytest.raises(Unreadable, match="the server's fault: of its answer"):
        source().open("a")


def continuing(line: Line) -> None:
    """100 Continue without end."""
    while True:
        line.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def trickling(line: Line) -> None:
    """A header without end, a letter at a time."""
    line.send(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        line.send(b"x")
        time.sleep(0.01)


@pytest.mark.parametrize("head", [continuing, trickling])
def test_a_head_without_end_ends(server: Hostile, monkeypatch: pytest.MonkeyPatch, head: Callable[[Line], None]) -> None:
    monkeypatch.setattr(s3_answers, "HEAD_SECONDS", 0.3)
    server.object = head
    with pytest.raises(Unreadable, match=r"^a: .*the server's fault: no whole head of an answer came in 0\.3 seconds"):
        source().open("a")
    assert server.asked == 1


def test_a_connection_is_used_again(server: Hostile) -> None:
    for _ in range(20):
        assert s3_client.client().get_object(Bucket="b", Key="a", Range=f"bytes=0-{SIZE - 1}")["Body"].read() == bytes(SIZE)
    pools = s3_client.client()._endpoint.http_session._manager.pools
    assert [pools[key].num_connections for key in pools.keys()] == [1]


@pytest.mark.parametrize("missing", ["_endpoint", "http_session", "send", "_pool_classes_by_scheme", "https", "ConnectionCls"])
def test_a_botocore_that_makes_its_connections_otherwise_is_refused(missing: str) -> None:
    def one(**parts: object) -> SimpleNamespace:
        return SimpleNamespace(**{name: part for name, part in parts.items() if name != missing})

    pool = type("Pool", (), {} if missing == "ConnectionCls" else {"ConnectionCls": HTTPConnection})
    pools = {scheme: pool for scheme in ("http", "https") if scheme != missing}
    session = one(send=print, _pool_classes_by_scheme=pools)
    made = one(_endpoint=one(http_session=session), meta=SimpleNamespace(events=mock.Mock()))
    with pytest.raises(Unreadable, match=r"^S3 cannot be used: botocore [0-9.]+ makes its connections in another way"):
        s3_answers.register(made)
    assert not made.meta.events.register.called and all(each is pool for each in pools.values())


@pytest.mark.parametrize("size", [0, 5])
def test_only_an_object_without_bytes_is_taken_for_empty(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that finds no byte in an object that has some would make a table of config/ an empty one."""
    client = mock.Mock()
    client.get_object.side_effect = ClientError({"Error": {"Code": "InvalidRange"}}, "GetObject")
    client.head_object.return_value = {"ContentLength": size}
    monkeypatch.setattr(s3_folder, "client", lambda: client)
    if not size:
        assert s3_folder._get("b", "k", "config/topics.json", 0, 9, None) == (b"", 0, "")
        return
    with pytest.raises(Unreadable, match=r"^config/topics\.json: cannot be read: the server says that it has no bytes, and"):
        s3_folder._get("b", "k", "config/topics.json", 0, 9, None)
