"""The options of `--storage-option`: the places of S3 and HDFS, and who asks. Standard library only: a command line is read
first.

Each option is a variable of the environment, which every client here goes by: botocore, pyarrow, delta-rs and hdfs-native, in
this process and in tasks. The driver's JVM gets a login of S3 under a name that Spark does not know (`for_jvm`). Tasks on other
machines get the options with the driver's own variables (`for_tasks`). Both are set again by `take_over`.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Mapping
from urllib.parse import urlsplit

from store_io.base.errors import UsageError
from store_io.base.locks import ProcessLock

KEYS = {
    "aws_access_key_id": "who asks, in S3",
    "aws_secret_access_key": "the secret of it",
    "aws_session_token": "of a login for some hours",
    "aws_profile": "a login of ~/.aws, in place of these",
    "aws_region": "of the buckets",
    "aws_endpoint_url": "another server than Amazon's",
    "aws_s3_addressing_style": "path, virtual or auto: whether a bucket is part of the path or of the host's name",
    "aws_ca_bundle": "a file with the certificates that the server's must come from",
    "hadoop_user_name": "who asks, in HDFS",
    "hadoop_conf_dir": "a folder with core-site.xml and hdfs-site.xml",
}
SECRETS = ("aws_secret_access_key", "aws_session_token")
_STYLES = ("path", "virtual", "auto")
_PATHS = ("aws_ca_bundle", "hadoop_conf_dir")
LOGIN = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# Variables that would win over the option that is given, or that belong to another login.
_AGAINST = {
    "aws_access_key_id": ("AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_CREDENTIAL_EXPIRATION"),
    "aws_session_token": ("AWS_SECURITY_TOKEN",),
    "aws_profile": (
        "AWS_DEFAULT_PROFILE",
        *(key.upper() for key in LOGIN),
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
    ),
    "aws_endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
}
HANDED = "STORE_AUDIT_STORAGE"  # the variable in which tasks get the driver's own ones
WITHHELD = "STORE_AUDIT_WITHHELD"  # the variable in which a JVM of Spark gets the login of S3
HADOOP_FILES = ("core-site.xml", "hdfs-site.xml")
_SESSION = ("AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
_LOGINS = (
    *("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)
# What tasks take of the driver's variables: the second ones, where their own machine has none of the first ones.
_TAKEN = (
    (_LOGINS, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", *_SESSION)),
    (("AWS_REGION", "AWS_DEFAULT_REGION"),) * 2,
    (("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),) * 2,
    (("AWS_S3_ADDRESSING_STYLE",),) * 2,
    (("HADOOP_USER_NAME",),) * 2,
)
_SHORTEST = 8  # letters of a secret that is looked for in texts
# Those of them of which an empty value still wins: they get the option's own.
_EMPTY_WINS = {"AWS_DEFAULT_PROFILE": "AWS_PROFILE"}
_used: set[str] = set()  # variables
_against: set[str] = set()  # variables that are to be unset
_of_driver: dict[str, str] = {}  # settings of Hadoop
_taking_over = ProcessLock()


def fault_of(key: str, value: str) -> str:
    """Return a sentence on the fault of a known key's value, which never shows a secret; "" without a fault."""
    if not value.isprintable():
        return f"{key}: must have no control characters"
    if key == "aws_endpoint_url":
        try:
            parts = urlsplit(value)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            sound = False
        if not sound or "@" in value:
            return f"{key}: must be http://HOST:PORT or https://HOST:PORT, without a login"
    if key == "aws_s3_addressing_style" and value not in _STYLES:
        return f"{key} {value!r}: must be {', '.join(_STYLES[:-1])} or {_STYLES[-1]}"
    if key == "aws_ca_bundle" and not os.path.isfile(_path(value)):
        return f"{key} {value!r}: there is no such file"
    if key == "hadoop_conf_dir" and not os.path.isdir(_path(value)):
        return f"{key} {value!r}: there is no such folder"
    return ""


def in_full(key: str, value: str) -> str:
    """Return the value of a known key; one that names a file or folder as an absolute path."""
    return _path(value) if key in _PATHS else value


def _path(value: str) -> str:
    return os.path.abspath(os.path.expanduser(value))


def use(options: Mapping[str, str]) -> None:
    """Have this process and those that it starts go by these, by known key. Raises UsageError if they do not fit together."""
    if "aws_profile" in options and (other := [key for key in LOGIN if key in options]):
        raise UsageError(f"--storage-option aws_profile does not go with {other[0]}: name one login")
    for key in options:
        for name in _AGAINST.get(key, ()):
            os.environ.pop(name, None)
            _against.add(name)
    _used.update(map(str.upper, options))
    for key, value in options.items():
        os.environ[key.upper()] = in_full(key, value)
    if any(key in options for key in LOGIN):
        missing = [key for key in LOGIN[:2] if not os.environ.get(key.upper())]
        if missing:
            raise UsageError(f"--storage-option: a login needs {missing[0]} too, or the variable {missing[0].upper()}")
        _used.update(map(str.upper, LOGIN[:2]))  # tasks need the other half, too


def variables() -> dict[str, str]:
    """Return the variables that `use` has set, and empty ones for those that it has removed: other machines may have both."""
    removed = {name: os.environ.get(_EMPTY_WINS.get(name, ""), "") for name in sorted(_against)}
    return {**removed, **{name: os.environ[name] for name in sorted(_used) if name in os.environ}}


def for_tasks(hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tasks on other machines get. They never become settings of Spark: its pages and logs, and on YARN
    and Kubernetes the definitions of containers, would show them.

    hadoop: what tasks must know of the driver's configuration.
    """
    own = {name: os.environ[name] for _, names in _TAKEN for name in names if os.environ.get(name)}
    if not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= own.keys():
        own = {name: value for name, value in own.items() if name not in _TAKEN[0][1]}
    if "HADOOP_USER_NAME" not in own and (user := _user()):  # as Spark's own files are read: as whoever typed the command
        own["HADOOP_USER_NAME"] = user
    return {**variables(), HANDED: json.dumps([own, dict(hadoop)])}


def for_jvm(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a JVM of Spark, without a login of S3.

    Spark would copy the login into its Hadoop configuration and send that to every task.
    """
    kept = {name: value for name, value in variables.items() if name.lower() not in LOGIN}
    withheld = {name: value for name, value in variables.items() if name not in kept}
    return {**kept, WITHHELD: json.dumps(withheld)} if withheld else kept


def for_workers() -> dict[str, str]:
    """Return the login that `for_jvm` has withheld, for Python workers that Spark starts without our daemon."""
    return {**{key.upper(): value for key in LOGIN if (value := os.environ.get(key.upper()))}, WITHHELD: "{}"}


def take_over() -> None:
    """Set the variables that a JVM was not to see, and those that the driver handed over.

    The latter count if this machine itself says nothing. In a process that Spark has started, before a client is made.
    """
    with _taking_over.own:  # no other thread makes a client with half of it
        os.environ.update(json.loads(os.environ.pop(WITHHELD, "{}")))
        if not (handed := os.environ.pop(HANDED, "")):
            return
        values, settings = json.loads(handed)
        if not hadoop_folder():
            _of_driver.update(settings)
        for own, names in _TAKEN:
            taken = {name: values[name] for name in names if name in values}
            if taken and not any(os.environ.get(name) for name in own):
                for name in names:  # a token that is left here belongs to another login
                    os.environ.pop(name, None)
                os.environ.update(taken)


def hadoop_folder() -> str:
    """Return the folder in which hdfs-native looks for this process's configuration.

    It is empty without one, or without a file in it.
    """
    home = os.environ.get("HADOOP_HOME")
    place = os.environ.get("HADOOP_CONF_DIR") or (f"{home}/etc/hadoop" if home else "")
    return place if place and any(os.path.isfile(f"{place}/{name}") for name in HADOOP_FILES) else ""


def hadoop_of_driver() -> dict[str, str]:
    """In a task on a machine without a Hadoop configuration: what it must know of the driver's. Else nothing."""
    return dict(_of_driver)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user without a name
        return ""


def without_secrets(text: str) -> str:
    """Return the text without what this process logs in to S3 with: a server, or a library, may repeat it."""
    for key in SECRETS:
        secret = os.environ.get(key.upper(), "")
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, "***")
    return text
