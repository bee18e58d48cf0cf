"""--storage-option of a whole command: it reaches the server by these alone, and shows no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import entry
from store_io.source import storage_options
from tests.support.processes.s3_server import Refusal, S3Server, forget
from tests.support.stores.corpus_tools import cases

SECRET = "wJalrXUtnFEMI/K7MDENG"


@pytest.fixture
def words(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command over a store there, with all that it needs in its options."""
    uri = server.put_folder(cases("g04")[0].unpack(tmp_path), "store")
    given = {
        "aws_access_key_id": "AKIA1",
        "aws_secret_access_key": SECRET,
        "aws_region": "us-east-1",
        "aws_endpoint_url": server.endpoint,
    }
    monkeypatch.setattr(storage_options, "_used", set())
    monkeypatch.setattr(storage_options, "_against", set())
    for key in given:
        monkeypatch.delenv(key.upper())
    forget()
    return ["manifest", uri, *(word for key, value in given.items() for word in ("--storage-option", f"{key}={value}"))]


def test_it_reaches_the_server(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(words) == 0
    shown = capsys.readouterr()
    assert "commitlog/00000000000000000000" in shown.out and SECRET not in shown.out + shown.err


def test_a_server_that_repeats_the_secret(server: S3Server, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    server.refuse = lambda request: Refusal("403 Forbidden", "AccessDenied", f"not with {SECRET}")
    assert entry.main(words) == 3
    said = capsys.readouterr().err
    assert "access is denied (AccessDenied: not with ***)" in said and SECRET not in said


def test_faults_of_the_words_show_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["manifest", "s3://b/s", "--storage-option", f"aws_secret_acces_key={SECRET}"]) == 2
    assert entry.main(["manifest", "s3://b/s", "--storage-option", SECRET]) == 2
    twice = ["--storage-option", f"aws_secret_access_key={SECRET}"] * 2
    assert entry.main(["manifest", "s3://b/s", *twice]) == 2
    said = capsys.readouterr().err
    assert SECRET not in said and "did you mean aws_secret_access_key?" in said
    assert "--storage-option aws_secret_access_key is given twice" in said
