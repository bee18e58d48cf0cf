"""What --storage-option sets wins over the environment, and a login is never a mixture of two."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.session import get_session

from store_io.base.errors import UsageError
from store_io.source import storage_options
from store_io.source.storage_options import (
    HANDED,
    KEYS,
    LOGIN,
    SECRETS,
    WITHHELD,
    for_jvm,
    for_tasks,
    hadoop_of_driver,
    take_over,
    use,
    variables,
    without_secrets,
)

HADOOP = {"dfs.ha.namenodes.a": "one"}
Handed = Callable[[dict[str, str]], None]

GIVEN = {"aws_access_key_id": "AKIA1", "aws_secret_access_key": "wJalrXUtnFEMI"}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without variables of this machine; what a test sets is gone after it."""
    others = ["AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "HADOOP_HOME", HANDED, WITHHELD]
    for name in {*map(str.upper, KEYS), *storage_options._LOGINS, *others}:
        monkeypatch.setenv(name, "of this machine")
        monkeypatch.delenv(name)
    monkeypatch.setattr(storage_options, "_used", set())
    monkeypatch.setattr(storage_options, "_against", set())


def test_each_is_a_variable_for_every_client_and_for_executors() -> None:
    given = {**GIVEN, "aws_region": "eu-1", "hadoop_user_name": "me"}
    use(given)
    there = {name: value for name, value in variables().items() if value}
    assert there == {key.upper(): value for key, value in given.items()}
    assert {name: os.environ[name] for name in there} == there


def test_a_jvm_of_spark_does_not_see_a_login_and_its_workers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "AWS_SESSION_TOKEN": "t"}
    there = {**own, "AWS_PROFILE": "p", "AWS_REGION": "eu-1", "PATH": "/bin"}
    given = for_jvm(there)
    assert not given.keys() & own.keys() and given["AWS_PROFILE"] == "p" and given["PATH"] == "/bin"
    monkeypatch.setenv(WITHHELD, given[WITHHELD])
    take_over()
    assert {name: os.environ[name] for name in own} == own and WITHHELD not in os.environ, "beside a profile, as in the driver"
    assert for_jvm({"PATH": "/bin"}) == {"PATH": "/bin"}


def test_what_would_win_over_them_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://other")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another login")
    use({**GIVEN, "aws_endpoint_url": "http://minio:9000"})
    assert "AWS_ENDPOINT_URL_S3" not in os.environ and "AWS_SESSION_TOKEN" not in os.environ
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "other")
    use({"aws_profile": "backups"})
    assert os.environ["AWS_PROFILE"] == "backups" and "AWS_DEFAULT_PROFILE" not in os.environ
    assert variables()["AWS_DEFAULT_PROFILE"] == "backups", "an empty one would be the name of a profile"
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & os.environ.keys(), "they would win over the profile"


def test_a_profile_wins_over_every_other_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As botocore sees it: here, where the others are removed, and on executors, where they can only be empty."""
    logins, token = tmp_path / "credentials", tmp_path / "token"
    logins.write_text("[backups]\naws_access_key_id=AKIAPROFILE\naws_secret_access_key=of-the-profile\n")
    token.write_text("token")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(logins))
    others = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(token), "AWS_ROLE_ARN": "arn:aws:iam::1:role/x", "AWS_DEFAULT_PROFILE": "other"}
    others |= {key.upper(): "of another login" for key in LOGIN}
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    use({"aws_profile": "backups"})
    assert get_session().get_credentials().access_key == "AKIAPROFILE"
    for name, value in {**others, **variables()}.items():
        monkeypatch.setenv(name, value)
    assert get_session().get_credentials().access_key == "AKIAPROFILE"


def test_a_login_is_not_mixed_with_another_on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    use(GIVEN)
    for name, value in {"AWS_SECURITY_TOKEN": "old", "AWS_SESSION_TOKEN": "old", **variables()}.items():
        monkeypatch.setenv(name, value)
    found = get_session().get_credentials()
    assert (found.access_key, found.token) == ("AKIA1", None)


# ---- what tasks on other machines get --------------------------------------------------------------------------------


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Handed:
    """Become a task's process, on a machine with these variables, whose driver was this process."""

    def become_a_task(own: dict[str, str]) -> None:
        for name, value in {**dict.fromkeys(DRIVERS, ""), **own, **for_tasks(HADOOP)}.items():
            monkeypatch.setenv(name, value)
            if not value:
                monkeypatch.delenv(name)
        take_over()

    monkeypatch.setattr(storage_options, "_of_driver", {})
    return become_a_task


DRIVERS = {
    "AWS_ACCESS_KEY_ID": "AKIADRIVER",
    "AWS_SECRET_ACCESS_KEY": "of-the-driver",
    "AWS_SESSION_TOKEN": "for-an-hour",
    "AWS_DEFAULT_REGION": "eu-1",
    "AWS_ENDPOINT_URL": "http://minio:9000",
    "HADOOP_USER_NAME": "me",
}


def with_variables_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in DRIVERS.items():
        monkeypatch.setenv(name, value)


def test_tasks_go_by_the_drivers_environment(handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    with_variables_of_the_driver(monkeypatch)
    handed({})
    assert {name: os.environ[name] for name in DRIVERS} == DRIVERS and HANDED not in os.environ


def test_their_own_machines_variables_win(handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a login or nothing of it: not even the token of another one."""
    with_variables_of_the_driver(monkeypatch)
    own = {"AWS_ACCESS_KEY_ID": "AKIATASK", "AWS_SECRET_ACCESS_KEY": "of-the-task", "AWS_ENDPOINT_URL_S3": "http://inside:9000"}
    handed({**own, "AWS_REGION": "us-1"})
    assert {name: os.environ[name] for name in own} == own and os.environ["AWS_REGION"] == "us-1"
    assert not {"AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"} & os.environ.keys()
    assert os.environ["HADOOP_USER_NAME"] == "me"


@pytest.mark.parametrize("own", ["AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"])
def test_a_role_or_profile_of_their_machine_wins(own: str, handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    with_variables_of_the_driver(monkeypatch)
    handed({own: "theirs"})
    assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_a_token_that_is_left_on_their_machine_goes(handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    with_variables_of_the_driver(monkeypatch)
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    handed({"AWS_SESSION_TOKEN": "of another login", "AWS_SECURITY_TOKEN": "of another login"})
    assert os.environ["AWS_ACCESS_KEY_ID"] == "AKIADRIVER"
    assert not {"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"} & os.environ.keys()


def test_options_win_over_their_machine(handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the other half of the login is in the driver's environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-driver")
    use({"aws_access_key_id": "AKIADRIVER", "aws_endpoint_url": "http://minio:9000"})
    theirs = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")
    for name, value in {**dict.fromkeys(theirs, "theirs"), **for_tasks(HADOOP)}.items():
        monkeypatch.setenv(name, value)
    take_over()
    assert [os.environ[name] for name in theirs] == ["AKIADRIVER", "of-the-driver", "", ""]
    assert os.environ["AWS_ENDPOINT_URL"] == "http://minio:9000"


def test_half_a_login_of_the_environment_is_none(handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIADRIVER")
    assert "AKIADRIVER" not in for_tasks({})[HANDED]


def test_in_hdfs_tasks_are_who_the_driver_is(handed: Handed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the user that their machine runs executors as."""
    monkeypatch.setenv("HADOOP_USER_NAME", "")
    handed({})
    assert os.environ["HADOOP_USER_NAME"] == pwd.getpwuid(os.geteuid()).pw_name


def test_hadoops_settings_are_for_machines_without_any(handed: Handed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed({})
    assert hadoop_of_driver() == HADOOP
    monkeypatch.setattr(storage_options, "_of_driver", {})
    (tmp_path / "hdfs-site.xml").touch()
    handed({"HADOOP_CONF_DIR": str(tmp_path)})
    assert hadoop_of_driver() == {}


def test_nothing_changes_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "kept")
    before = dict(os.environ)
    use({})
    assert dict(os.environ) == before and variables() == {}


def test_half_a_login_is_refused_unless_the_environment_has_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="a login needs aws_secret_access_key too, or the variable AWS_SECRET_ACCESS_KEY"):
        use({"aws_access_key_id": "AKIA1"})
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    use({"aws_access_key_id": "AKIA1"})
    with pytest.raises(UsageError, match="aws_profile does not go with aws_access_key_id: name one login"):
        use({**GIVEN, "aws_profile": "backups"})


def test_paths_hold_wherever_tasks_run(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    use({"aws_ca_bundle": "ca.pem"})
    assert os.environ["AWS_CA_BUNDLE"] == f"{tmp_path}/ca.pem"


def test_texts_lose_secrets() -> None:
    assert set(SECRETS) < KEYS.keys()
    use(GIVEN)
    assert without_secrets("the key wJalrXUtnFEMI of AKIA1") == "the key *** of AKIA1"
