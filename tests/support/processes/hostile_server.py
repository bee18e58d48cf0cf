"""A server that answers each request as a test says, by whole HTTP: also what no server should send."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from tests.support.processes.s3_server import reached_at

XML = '<?xml version="1.0" encoding="UTF-8"?>'
TIME = "2025-01-01T00:00:00.000Z"
SIZE = 1000


class Hostile:
    """What it does: `.object(self, line)` and `.listing(asked)`; `.sent` bytes and `.asked` requests until now."""

    def __init__(self, port: int):
        self.port, self.sent, self.asked = port, 0, 0
        self.object: Callable[[Line], None] = lambda line: line.part(bytes(SIZE))
        self.listing: Callable[[dict[str, str]], str] = lambda asked: page("s/a")


class Line(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hostile: Hostile

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        asked = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        self.hostile.asked += 1
        if "list-type" in asked:
            self.answer(200, self.hostile.listing(asked).encode())
        else:
            self.hostile.object(self)

    do_HEAD = do_GET

    def head(self, code: int, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.hostile.sent += len(data)

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        self.head(code, Content_Length=str(len(body)), **headers)
        self.send(body)

    def span(self) -> dict[str, str]:
        """The headers of a right answer about an object of SIZE bytes."""
        return {"Content_Range": f"bytes 0-{SIZE - 1}/{SIZE}", "ETag": '"x"'}

    def part(self, body: bytes, announced: int | None = None) -> None:
        """An object's bytes. announced: the length in the header; the line ends after the bytes."""
        self.head(206, Content_Length=str(len(body) if announced is None else announced), **self.span())
        self.send(body)
        self.close_connection = announced is not None

    def without_end(self, code: int, **headers: str) -> None:
        self.head(code, Transfer_Encoding="chunked", **headers)
        with contextlib.suppress(OSError):
            while True:
                self.send(b"10000\r\n" + bytes(1 << 16) + b"\r\n")

    def cut(self) -> None:
        """Half of the object and then a reset."""
        self.head(206, Content_Length=str(SIZE), **self.span())
        self.send(bytes(SIZE // 2))
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()
        self.close_connection = True


def entry(key: str, size: object = 1, time: str = TIME) -> str:
    return f"<Contents><Key>{key}</Key><LastModified>{time}</LastModified><ETag>x</ETag><Size>{size}</Size></Contents>"


def page(*keys: str, token: str = "", entries: str = "") -> str:
    """A page of a listing; there is more if it has a token."""
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return f"{XML}<ListBucketResult><Name>b</Name>{more}{''.join(map(entry, keys))}{entries}</ListBucketResult>"


@contextlib.contextmanager
def served() -> Iterator[Hostile]:
    """A server, which this process reaches by its environment."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneLine", (Line,), {}))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # whoever stops to read is no fault
    hostile = Hostile(server.server_port)
    server.RequestHandlerClass.hostile = hostile  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    with reached_at(f"http://127.0.0.1:{hostile.port}"):
        yield hostile
    server.shutdown()
    server.server_close()
