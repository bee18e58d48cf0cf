"""Reads the answers of an S3 server with bounds: no more than was asked for; and asks again if an answer fails.

botocore reads answers but those of objects to their end, however far that is, and takes one that ends too early for whole. Here
each answer is read as it is sent, with a bound in bytes and in time. Too few bytes, a broken connection and a server that is busy
are asked again, with pauses that grow; one attempt too many or a bound that is passed ends it.
"""

from __future__ import annotations

import contextlib
import io
import re
import socket
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from store_io.base import locks
from store_io.base.errors import Unreadable

ATTEMPTS = 8
PATIENCE_SECONDS = 120.0  # since the first of them failed: then no further one is made
ANSWER_BYTES = 8 << 20  # of a listing, an error and all else that is no object; a page of the longest names has 3.5 MB
SLOWEST = 16 << 10  # bytes of an answer that must have come by each second, after ANSWER_SECONDS
ANSWER_SECONDS = 60
HEAD_SECONDS = 120  # from the end of a request to the last header of its answer
_PIECE_BYTES = 256 << 10
_BUSY = {429, 500, 502, 503, 504}
THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "503", "429"}
_AGAIN = {*THROTTLED, "RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete", "InternalError"}
_RANGE = re.compile(r"bytes=([0-9]+)-([0-9]+)")
_MOST_DIGITS = 19  # of a number of bytes
LONGEST = 1 << 46  # bytes of an object; Amazon's have 50 TB at most
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-[0-9]{1,19}/([0-9]{1,19})")


class BadAnswer(Exception):
    """A server sends what no server of S3 does; the text says what, in the middle of a sentence."""


def failures() -> tuple[type[Exception], ...]:
    """Return the errors that a request may raise. botocore's parser raises Python's own errors for texts that are not numbers or
    times.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    python = (ValueError, TypeError, AttributeError, ArithmeticError, LookupError, RuntimeError)
    return BotoCoreError, ClientError, ResponseParserError, HTTPError, BadAnswer, *python


def register(made: Any) -> None:
    """Have this client of botocore, which must not try again itself, read its answers so.

    Raises Unreadable if it is of a release in which that cannot be done: botocore has no public way to the connections that it
    makes.
    """
    try:
        send, pools = made._endpoint.http_session.send, made._endpoint.http_session._pool_classes_by_scheme
        bounded = {scheme: _in_time(pools[scheme]) for scheme in ("http", "https")}
    except (AttributeError, LookupError, TypeError):
        raise Unreadable(
            f"S3 cannot be used: botocore {version('botocore')} makes its connections in another way than this program knows, and"
            " nothing would bound what a server answers; install another release of botocore"
        ) from None
    pools.update(bounded)
    made.meta.events.register("before-send.s3", lambda request, **_: _answer(send, request))
    made.meta.events.register("needs-retry.s3", _again)


def _in_time(pool: Any) -> type:
    """Return the class of pools, with connections that end in time."""
    connection = type(pool.ConnectionCls.__name__, (_InTime, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


class _InTime:
    """Ends a connection on which the head of an answer takes too long. Python itself passes over any number of 100 Continue."""

    sock: socket.socket | None

    def getresponse(self) -> Any:
        late = threading.Event()

        def end() -> None:
            late.set()
            if (line := self.sock) is not None:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(line, socket.SHUT_RDWR)  # not TLS's own: another thread is reading

        timer = threading.Timer(HEAD_SECONDS, end)
        timer.daemon = True
        timer.start()
        answer = None
        try:
            answer = super().getresponse()  # type: ignore[misc]
        except Exception:
            if not late.is_set():
                raise
        finally:
            timer.cancel()
        if late.is_set():  # also if the end of the line was taken for that of the head
            raise BadAnswer(f"no whole head of an answer came in {HEAD_SECONDS} seconds")
        return answer


def _answer(send: Callable[[Any], Any], request: Any) -> Any:
    """Return the answer to botocore's request, with its body. The body of a whole object is left to the caller."""
    from botocore.exceptions import HTTPClientError

    locks.check()
    asked = _RANGE.fullmatch(_header(request.headers, "Range"))
    whole_object, request.stream_output = request.stream_output and asked is None, True  # else all of it would be read here
    try:
        answer = send(request)
    except HTTPClientError as error:
        if isinstance(bad := error.kwargs.get("error"), BadAnswer):
            raise bad from error
        raise
    if whole_object and answer.status_code < 300:
        _announced(answer)
        return answer
    most = int(asked[2]) + 1 - int(asked[1]) if asked and answer.status_code < 300 else ANSWER_BYTES
    body = answer.raw.read() if request.method == "HEAD" else _body(answer, most)
    if asked and answer.status_code == 206:
        _check_range(answer, int(asked[1]), most, len(body))
    answer.raw = _Read(body)
    return answer


def _header(headers: Any, name: str) -> str:
    value = headers.get(name, "")
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _announced(answer: Any) -> int | None:
    """Return how many bytes the answer announces; None if it announces none. Raises BadAnswer if that is no such number."""
    text = _header(answer.headers, "Content-Length").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS:
        answer.raw.close()  # http.client takes it for no length, and would read until the line ends
        raise BadAnswer(f"it announces {text[:_MOST_DIGITS]!r} bytes")
    return int(text)


def _body(answer: Any, most: int) -> bytes:
    """Return all bytes of the answer, at most `most` and one more of them read.

    Raises BadAnswer if there are more, or if they come too slowly; botocore's own errors if fewer come than the answer announces.
    """
    from botocore.exceptions import IncompleteReadError, ResponseStreamingError
    from urllib3.exceptions import HTTPError

    announced = _announced(answer)
    if announced is not None and announced > most:
        answer.raw.close()
        raise BadAnswer(f"it announces {announced} bytes in an answer that may have {most:,}")
    read = getattr(
        answer.raw, "read1", answer.raw.read
    )  # pieces as they arrive, if this urllib3 can: a signal is looked for between two
    parts: list[bytes] = []
    size, began = 0, time.monotonic()
    try:
        while size <= most and (part := read(min(_PIECE_BYTES, most + 1 - size))):
            parts.append(part)
            size += len(part)
            locks.check()
            if size < (time.monotonic() - began - ANSWER_SECONDS) * SLOWEST:
                raise BadAnswer(f"of its answer {size:,} bytes came in {ANSWER_SECONDS} seconds and more")
    except HTTPError as error:
        raise ResponseStreamingError(error=error) from error
    finally:
        if size > most or (announced is not None and size < announced):
            answer.raw.close()  # what is left must not be taken for the next answer
    if size > most:
        raise BadAnswer(f"it sends more than the {most:,} bytes that its answer may have")
    if announced is not None and size < announced:
        raise IncompleteReadError(actual_bytes=size, expected_bytes=announced)
    return b"".join(parts)


def _check_range(answer: Any, start: int, most: int, size: int) -> None:
    """Raise botocore's error if fewer bytes came than the object has there. Whoever asked looks at the rest of the answer."""
    from botocore.exceptions import IncompleteReadError

    told = CONTENT_RANGE.fullmatch(_header(answer.headers, "Content-Range"))
    if told is not None and int(told[1]) == start and size < (expected := min(most, int(told[2]) - start)):
        raise IncompleteReadError(actual_bytes=size, expected_bytes=expected)


class _Read(io.BytesIO):
    """A body that was read, as botocore asks for it."""

    def stream(self) -> list[bytes]:
        return [self.read()]


def _again(response: Any, attempts: int, caught_exception: Any, request_dict: Any, **_: Any) -> int | None:
    """Return 0, after a pause, if a request is to be sent again."""
    if attempts >= ATTEMPTS or not _may_pass(response, caught_exception):
        return None
    now = time.monotonic()
    if now - request_dict["context"].setdefault("first_failed", now) > PATIENCE_SECONDS:
        return None
    locks.pause(attempts)
    return 0


def _may_pass(response: Any, error: Any) -> bool:
    from botocore.exceptions import ConnectionError, HTTPClientError, IncompleteReadError

    if response is None:
        return isinstance(error, ConnectionError | HTTPClientError | IncompleteReadError)
    http, parsed = response
    return http.status_code in _BUSY or parsed.get("Error", {}).get("Code") in _AGAIN
