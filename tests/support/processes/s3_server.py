"""An S3 server of this machine (moto), that notes each request and can be made to refuse some."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest

from store_io.source import disk_cache, remote_file, s3_client

BUCKET = "stores"
LARGE_BYTES = 64 << 20
OTHERS = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_S3_ADDRESSING_STYLE")
LOGIN = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


class Request(NamedTuple):
    """key: without the bucket.  range: the header's value, "" without one."""

    method: str
    key: str
    listing: bool
    range: str


class Refusal(NamedTuple):
    """An answer in place of the server's own."""

    status: str
    code: str
    message: str = "it says so"

    def body(self) -> bytes:
        return f"<Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>".encode()


class S3Server:
    """Serves until `stop`. requests: all since it was last cleared. refuse: Request -> Refusal, or None.

    certificate: files with its own and its key; it then speaks HTTPS."""

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log(self, *_: Any) -> None:
                pass

        self.requests: list[Request] = []
        self.large: dict[str, tuple[Path, str]] = {}  # file and ETag by key
        self.refuse: Callable[[Request], Refusal | None] = lambda request: None
        self._answer = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._app, threaded=True, request_handler=Quiet, ssl_context=certificate
        )  # fmt: skip
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"{'https' if certificate else 'http'}://127.0.0.1:{self._server.server_port}"

    def _app(self, environ: Any, start: Any) -> Any:
        key = environ["PATH_INFO"].encode("latin-1").decode().removeprefix(f"/{BUCKET}").removeprefix("/")
        listing = "list-type" in parse_qs(environ["QUERY_STRING"])
        request = Request(environ["REQUEST_METHOD"], key, listing, environ.get("HTTP_RANGE", ""))
        self.requests.append(request)
        refusal = self.refuse(request)
        if refusal is None and request.method == "GET" and request.range and key in self.large:
            return self._part(key, request.range, environ.get("HTTP_IF_MATCH"), start)
        if refusal is None:
            return self._answer(environ, start)
        start(refusal.status, [("Content-Type", "application/xml")])
        return [refusal.body()]

    def _part(self, key: str, wanted: str, if_match: str | None, start: Any) -> list[bytes]:
        """What moto would answer; it reads the whole object for each part of it."""
        path, tag = self.large[key]
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        size = path.stat().st_size
        begin, end = int(first), min(int(last or size), size - 1)
        assert begin < size and if_match in (None, tag)
        with open(path, "rb") as file:
            file.seek(begin)
            data = file.read(end + 1 - begin)
        headers = [("Content-Range", f"bytes {begin}-{end}/{size}"), ("Content-Length", str(len(data))), ("ETag", tag)]
        start("206 Partial Content", headers)
        return [data]

    def reads(self) -> list[Request]:
        """The requests but for listings."""
        return [request for request in self.requests if not request.listing]

    def put(self, key: str, data: bytes) -> None:
        self.large.pop(key, None)
        s3_client.client().put_object(Bucket=BUCKET, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        return bytes(s3_client.client().get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def put_folder(self, folder: Path, prefix: str) -> str:
        """All files of the folder; the URI of the prefix. Large ones must stay as they are there."""
        for path in sorted(folder.rglob("*")):
            key = f"{prefix}/{path.relative_to(folder)}"
            if path.is_file() and path.stat().st_size < LARGE_BYTES:
                self.put(key, path.read_bytes())
            elif path.is_file():
                with open(path, "rb") as file:
                    self.large[key] = path, s3_client.client().put_object(Bucket=BUCKET, Key=key, Body=file)["ETag"]
        return f"s3://{BUCKET}/{prefix}"

    def environment(self) -> dict[str, str]:
        """What a command needs to reach it."""
        return {**os.environ, **LOGIN, "AWS_ENDPOINT_URL": self.endpoint}

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def served(certificate: tuple[str, str] | None = None) -> Iterator[S3Server]:
    """A server, which this process reaches by its environment."""
    server = S3Server(certificate)
    with reached_at(server.endpoint):
        yield server
    server.stop()


@contextmanager
def reached_at(endpoint: str) -> Iterator[None]:
    """This process reaches that server by its environment, and keeps nothing of another one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*OTHERS, disk_cache.PLACE):
            patch.delenv(name, raising=False)
        for name, value in {**LOGIN, "AWS_ENDPOINT_URL": endpoint, "AWS_CONFIG_FILE": "/dev/null"}.items():
            patch.setenv(name, value)
        forget()
        yield
        forget()


def emptied(server: S3Server) -> S3Server:
    """The server as it is for each test: one empty bucket, no refusals, nothing kept of it in this process."""
    from moto.moto_api._internal import moto_api_backend

    forget()
    moto_api_backend.reset()
    server.refuse = lambda request: None
    server.large.clear()
    s3_client.client().create_bucket(Bucket=BUCKET)
    server.requests.clear()
    return server


def forget() -> None:
    """Drop the client and the blocks of objects that this process keeps. What is still read ahead ends first: no test has the
    requests of the one before it."""
    remote_file._threads(os.getpid()).shutdown()
    remote_file._threads.cache_clear()
    s3_client._connection.cache_clear()
    remote_file._grains_of.cache_clear()


def windows(files: Sequence[Path]) -> int:
    """How many requests read the files once; a small file counts as one."""
    return sum(max(1, -(-path.stat().st_size // remote_file.REQUEST_BYTES)) for path in files)
