"""A check takes the text of an option and returns its value, or says what it must be."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.cli import option_values
from store_io.broker.releases import KNOWN_RELEASES
from tests.support.handmade.history_rows import NOW


def test_what_is_right_becomes_a_value() -> None:
    assert option_values.duration(" 1.5h ") == 5400
    assert [option_values.hours(text) for text in ("36h", "7d", " 1w ")] == [36, 168, 168]
    assert option_values.release(" 5.3.3 ") == "5.3.3"
    assert option_values.releases(" all ") == KNOWN_RELEASES and option_values.releases("5.4.0, 4.9.8,5.4.0") == (
        "5.4.0",
        "4.9.8",
    )
    assert option_values.some_of("parts", "a", "b")("b, a") == {"a", "b"}
    assert option_values.one_of(("a", "b"))("b") == "b"
    assert option_values.storage_option("AWS_Region=eu-1") == ("aws_region", "eu-1")
    assert option_values.storage_option("aws_secret_access_key=a=b/+") == ("aws_secret_access_key", "a=b/+")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", datetime(2026, 11, 14, 8, tzinfo=UTC)),
        ("90m", datetime(2026, 11, 21, 6, 30, tzinfo=UTC)),
        ("12h", datetime(2026, 11, 20, 20, tzinfo=UTC)),
        ("2w", datetime(2026, 11, 7, 8, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
    ],
)
def test_moments(text: str, expected: datetime) -> None:
    assert option_values.moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "d", "7 days", "-1d", "2026-13-01", "999999w", "yesterday"])
def test_no_moments(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a span"):
        option_values.moment(text, NOW)


@pytest.mark.parametrize(
    ("check", "text", "said"),
    [
        (option_values.one_of(("a", "b")), "c", "'c': must be a or b"),
        (option_values.one_of(("a", "b", "c")), "d", "'d': must be one of a, b, c"),
        (
            option_values.some_of("parts", "scan", "audit"),
            "scan,audti",
            r"'audti' \(did you mean audit\?\): the parts are scan, audit",
        ),
        (option_values.duration, "90", "'90': must be a number with s, m or h"),
        (option_values.hours, "90m", "'90m': must be a span, such as 7d or 36h"),
        (option_values.run_id, "..", "must be at most 100 letters"),
        (
            option_values.storage_option,
            "aws_regoin=x",
            r"'aws_regoin' \(did you mean aws_region\?\): the keys are aws_access_key_id, ",
        ),
        (option_values.storage_option, "wJalr/K7MDENG", "^must be KEY=VALUE with one of these keys: aws_access_key_id, "),
        (option_values.storage_option, "wJalr/K7MDENG==", "^must be KEY=VALUE with one of these keys: aws_access_key_id, "),
        (option_values.storage_option, "aws_profile=", "^aws_profile: needs a value"),
        (option_values.storage_option, "aws_secret_access_key=a\nb", "^aws_secret_access_key: must have no control characters$"),
        (
            option_values.storage_option,
            "aws_endpoint_url=minio:9000",
            "must be http://HOST:PORT or https://HOST:PORT, without a login$",
        ),
        (
            option_values.storage_option,
            "aws_endpoint_url=http://me:pw@minio",
            "must be http://HOST:PORT or https://HOST:PORT, without",
        ),
        (option_values.storage_option, "aws_ca_bundle=/nowhere/ca.pem", "aws_ca_bundle '/nowhere/ca.pem': there is no such file"),
        (option_values.storage_option, "hadoop_conf_dir=/nowhere", "hadoop_conf_dir '/nowhere': there is no such folder"),
        (option_values.earlier_run, "", "or last"),
    ],
)
def test_what_is_wrong_is_one_sentence(check: object, text: str, said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=said):
        check(text)  # type: ignore[operator]


def test_the_path_of_a_storage_option_is_absolute_for_a_driver_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.pem").touch()
    monkeypatch.chdir(tmp_path)
    assert option_values.storage_option("aws_ca_bundle=ca.pem") == ("aws_ca_bundle", str(tmp_path / "ca.pem"))
    assert option_values.storage_option("hadoop_conf_dir=.") == ("hadoop_conf_dir", str(tmp_path))
