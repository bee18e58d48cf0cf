"""How a bucket is named is the user's choice; a server that speaks http is called so; before each further attempt is a pause."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.base import locks
from store_io.base.errors import Denied, Unreadable
from store_io.base.failed_reads import unless_denied
from store_io.source import s3_answers, s3_client
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.processes.hostile_server import SIZE, Line
from tests.support.processes.hostile_server import served as hostile_served
from tests.support.processes.s3_server import S3Server, forget


def address() -> str:
    """Where the client would ask for an object."""
    forget()
    asked = {"Bucket": "copies", "Key": "k"}
    return str(s3_client.client().generate_presigned_url("get_object", Params=asked)).partition("?")[0]


def test_the_name_of_a_bucket_is_part_of_the_path_unless_somebody_says_otherwise(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    in_host, in_path = "http://copies.minio:9000/k", "http://minio:9000/copies/k"
    assert address() == in_path
    (tmp_path / "config").write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert address() == in_host
    options = s3_client.delta_options("copies")
    assert (options["AWS_ENDPOINT_URL"], options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"]) == ("http://copies.minio:9000", "true")
    s3_client.arrow_file_system()
    monkeypatch.setenv("AWS_S3_ADDRESSING_STYLE", "path")
    assert address() == in_path, "the option wins"
    assert "AWS_VIRTUAL_HOSTED_STYLE_REQUEST" not in s3_client.delta_options("copies")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_S3_ADDRESSING_STYLE", "virtual")
    assert address() == in_host
    monkeypatch.setenv("AWS_S3_ADDRESSING_STYLE", "sideways")
    with pytest.raises(Unreadable, match=r"S3 cannot be used: .*sideways"):
        address()
    forget()


def test_a_server_that_speaks_http(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_answers, "ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint.replace("http:", "https:"))
    forget()
    with pytest.raises(Unreadable, match=r"^a: cannot be read: the server speaks http there, not https .*: name it by http://"):
        open_source(StoreLocation("s3://b/s")).open("a")
    forget()


@pytest.mark.parametrize("kind", ["cut", "short", "busy"])
def test_there_is_a_pause_before_each_further_attempt(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(locks, "pause", pauses.append)
    answers = {
        "cut": Line.cut,
        "short": lambda line: line.part(bytes(SIZE // 2)),
        "busy": lambda line: line.answer(503, b"<Error><Code>SlowDown</Code></Error>"),
    }
    with hostile_served() as server:
        server.object = answers[kind]
        with pytest.raises(Unreadable, match=r"^a: cannot be read: "):
            open_source(StoreLocation("s3://b/s")).open("a")
        assert server.asked == s3_answers.ATTEMPTS and pauses == list(range(1, s3_answers.ATTEMPTS))


def test_a_pause_grows_and_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(locks.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(locks.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    taken = []
    for attempts in (1, 1, 1, 4, 4, 4):
        before = now[0]
        locks.pause(attempts)
        taken.append(now[0] - before)
    assert len(set(taken)) == 6 and max(taken[:3]) <= locks.FIRST_SECONDS < min(taken[3:])


def test_who_is_denied_a_file_asks_once_more_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(locks, "pause", pauses.append)
    answers = iter([Denied("not now"), b"x"])

    def read() -> bytes:
        answer = next(answers)
        if isinstance(answer, Denied):
            raise answer
        return answer

    assert unless_denied(read) == b"x" and pauses == [1]
