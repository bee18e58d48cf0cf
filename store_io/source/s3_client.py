"""Connects this process to an S3-compatible server: login, endpoint, and faults as sentences.

Credentials, region and endpoint come from where every AWS tool looks: AWS_ACCESS_KEY_ID and so on in the environment,
AWS_PROFILE and ~/.aws, a container's or machine's role; AWS_ENDPOINT_URL names another server.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from store_io.base.errors import Denied, StoreChanged, StoreError, Unreached, Unreadable
from store_io.base.locks import made_once
from store_io.base.paths import without_login
from store_io.source import s3_answers
from store_io.source.storage_options import take_over, without_secrets

CONNECT_SECONDS = 10
READ_SECONDS = 60
_THREADS = 32
_SAID = 300  # letters of what a server says
_LOGIN = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws with AWS_PROFILE"
_CERTIFICATE = "AWS_CA_BUNDLE names a file with the certificates that it must come from"
_NO_TLS = re.compile(r"wrong.version.number|record.layer.failure|http.request|packet length too long", re.IGNORECASE)
_REGION = "set AWS_REGION to the region of the bucket"
_WRONG_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
_ELSEWHERE = {"301", "302", "307", "308"}  # an answer of HTTP's own, without a word of S3's
_REFUSED = {"AccessDenied", "AllAccessDisabled", "403", "Forbidden", "AccountProblem"}
_WRITING = ("Put", "Delete", "Create", "Upload", "Complete", "Abort")  # beginnings of operations
_UNKNOWN_LOGIN = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "ExpiredTokenException"}
_ABSENT = {"NoSuchKey", "NotFound", "404"}


def client() -> Any:
    """Return the client of this process. Threads may share it; a process that was forked makes its own. Raises StoreError."""
    return _connection(os.getpid())[1]


@made_once(1)
def _connection(process: int) -> tuple[Any, Any]:
    """Return botocore's session and client for this process: a forked process must not use its parent's connections."""
    import botocore.session  # 0.2 s: only where something lies in S3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    take_over()
    session = botocore.session.get_session()
    region = os.environ.get("AWS_REGION") or None  # botocore itself asks for AWS_DEFAULT_REGION alone
    try:
        region = region or session.get_config_variable("region") or "us-east-1"
        options: dict[str, Any] = {
            "retries": {"mode": "standard", "total_max_attempts": 1},  # `s3_answers` tries again
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "max_pool_connections": _THREADS,
            # Other servers than Amazon's do not know the checksums that botocore would ask for by itself.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
        if style := os.environ.get("AWS_S3_ADDRESSING_STYLE"):  # else the profile's; else path where an endpoint is named
            options["s3"] = {"addressing_style": style}
        made = session.create_client("s3", region_name=region, config=Config(**options))
        if not (urlsplit(made.meta.endpoint_url).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn")):
            made.meta.events.register("before-call.s3.HeadBucket", _without_region)
        s3_answers.register(made)
        _take_certificates(session)
        return session, made
    except (BotoCoreError, ValueError) as error:
        raise Unreadable(f"S3 cannot be used: {_plain(error)}") from error


def _style(made: Any) -> str:
    """Return how the client names a bucket, if that is set."""
    return str((made.meta.config.s3 or {}).get("addressing_style") or "")


def _without_region(**_: Any) -> tuple[Any, dict[str, Any]]:
    """Answer a question for a bucket's region, which is not sent.

    botocore asks it if an answer leads elsewhere, and again if the answer to the question does, without end. Amazon's answers
    have the region; no other server need be asked.
    """
    from botocore.awsrequest import AWSResponse

    answer = AWSResponse("", 404, {}, None)
    return answer, {"Error": {"Code": "404"}, "ResponseMetadata": {"HTTPStatusCode": 404, "HTTPHeaders": {}}}


def _bundle(session: Any) -> str | None:
    """Return the file with the certificates that a server's must come from; None: those of the system.

    It is where botocore looks. An empty name is one: older releases of botocore then take any certificate.
    """
    named: str | None = session.get_config_variable("ca_bundle")
    return os.environ.get("REQUESTS_CA_BUNDLE") if named is None else named


def _take_certificates(session: Any) -> None:
    """Have delta-rs take the certificates that botocore takes: besides the system's it knows those of this variable alone."""
    if (bundle := _bundle(session)) is not None:
        if not os.path.isfile(bundle) or not os.access(bundle, os.R_OK):
            raise Unreadable(f"S3 cannot be used: {_text(bundle)!r}, which AWS_CA_BUNDLE or the profile names, cannot be read")
        os.environ["SSL_CERT_FILE"] = bundle


def delta_options(bucket: str) -> dict[str, str]:
    """Return login, server and region as options for delta-rs. Raises StoreError."""
    made = client()
    endpoint = str(made.meta.endpoint_url)
    virtual = _style(made) == "virtual"
    if virtual:  # delta-rs wants the bucket in the address
        endpoint = endpoint.replace("://", f"://{bucket}.", 1)
    options = {"AWS_REGION": str(made.meta.region_name), "AWS_ENDPOINT_URL": endpoint}
    if endpoint.startswith("http:"):
        options["AWS_ALLOW_HTTP"] = "true"
    if virtual:
        options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = "true"
    login = _login()
    if login is not None:
        options |= {"AWS_ACCESS_KEY_ID": login.access_key, "AWS_SECRET_ACCESS_KEY": login.secret_key}
        if login.token:
            options["AWS_SESSION_TOKEN"] = login.token
    return options


def arrow_file_system() -> Any:
    """Return login, server and region as a file system of pyarrow. Raises StoreError."""
    from pyarrow import fs

    session, made = _connection(os.getpid())
    login = _login()
    scheme, _, host = str(made.meta.endpoint_url).partition("://")
    options: dict[str, Any] = {"region": made.meta.region_name, "endpoint_override": host, "scheme": scheme}
    options |= {"force_virtual_addressing": True} if _style(made) == "virtual" else {}
    if login is not None:
        options |= {"access_key": login.access_key, "secret_key": login.secret_key, "session_token": login.token}
    if (bundle := _bundle(session)) is not None:
        options["tls_ca_file_path"] = bundle
    try:
        return fs.S3FileSystem(**options)
    except TypeError as error:
        raise Unreadable(f"S3 cannot be used: this pyarrow takes no certificates of AWS_CA_BUNDLE ({_plain(error)})") from error


def _login() -> Any:
    """Return the current credentials, or None."""
    held = _connection(os.getpid())[0].get_credentials()
    return held.get_frozen_credentials() if held is not None else None


def reason(error: Exception) -> str:
    """Explain one of `s3_answers.failures`, and the setting to change, in the middle of a sentence."""
    from botocore import exceptions as known

    if isinstance(error, s3_answers.BadAnswer):
        return f"the server's fault: {error}"
    if isinstance(error, known.IncompleteReadError):
        return f"the server's answers end too early, also after {s3_answers.ATTEMPTS} attempts ({_plain(error)})"
    if not isinstance(error, known.BotoCoreError | known.ClientError):
        said = _plain(error).partition(";")[0]  # then Python advises programmers
        return f"the server's fault: its answer cannot be understood ({said})"
    if isinstance(error, known.ClientError):
        return _answer(error)
    if isinstance(error, known.NoCredentialsError | known.PartialCredentialsError):
        return f"no credentials were found; {_LOGIN}"
    if isinstance(error, known.CredentialRetrievalError | known.UnauthorizedSSOTokenError | known.SSOTokenLoadError):
        return f"the credentials of the profile cannot be had ({_plain(error)}); {_LOGIN}"
    if isinstance(error, known.SSLError) and _NO_TLS.search(str(error)):
        return f"the server speaks http there, not https ({_plain(error)}): name it by http:// in AWS_ENDPOINT_URL"
    if isinstance(error, known.SSLError):
        return f"the server's certificate is not trusted ({_plain(error)}); {_CERTIFICATE}"
    if isinstance(error, known.ConnectionError | known.HTTPClientError | known.ReadTimeoutError | known.ConnectTimeoutError):
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        named = "AWS_ENDPOINT_URL names it" if endpoint else "AWS_ENDPOINT_URL would name another than Amazon's"
        return f"the server does not answer ({_plain(error)}); {named}"
    return _plain(error)


@contextlib.contextmanager
def asking(made: Callable[[Exception], Exception]) -> Iterator[None]:
    """Use around requests: raise what is made of a failure, see `reason`."""
    try:
        yield
    except s3_answers.failures() as error:
        raise made(error) from error


def problem(error: Exception, what: str) -> StoreError:
    """Return the error to raise if `what` could not be read, as a sentence that begins with it."""
    code = _code(error)
    if code == "PreconditionFailed" or code == "412":
        return StoreChanged(f"{what}: was replaced by another object while it was read")
    if code in _ABSENT:
        return StoreChanged(f"{what}: is not there any more")
    if code == "NoSuchBucket":
        return Unreached(f"{what}: {reason(error)}")
    return (Denied if code in _REFUSED else Unreadable)(f"{what}: cannot be read: {reason(error)}")


def _code(error: Exception) -> str:
    answer = getattr(error, "response", None) or {}
    return _text(answer.get("Error", {}).get("Code") or answer.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))


def is_code(error: Exception, *codes: str) -> bool:
    """Say whether the server's answer had one of these codes."""
    return _code(error) in codes


def _answer(error: Any) -> str:
    code, said = _code(error), _text(error.response.get("Error", {}).get("Message", ""))
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = error.response.get("Error", {}).get("Region") or headers.get("x-amz-bucket-region")
    quoted = f"{code}: {said}" if said else code or "the server's answer is none of S3's"
    if code == "NoSuchBucket":
        return "there is no bucket of this name on that server"
    if code in _ELSEWHERE and "x-amz-bucket-region" not in headers:
        place = _server_of(str(headers.get("location", ""))) or "and does not say where"
        return (
            f"what answers there is no S3 server: it leads elsewhere ({place}); set AWS_ENDPOINT_URL to the server's own address"
        )
    if code in _WRONG_REGION:
        return f"the bucket is in another region ({quoted}); {_REGION}" + (f": {region}" if region else "")
    if code in _UNKNOWN_LOGIN:
        return f"the server does not take these credentials ({quoted}); {_LOGIN}"
    if code in _REFUSED:
        writes = error.operation_name.startswith(_WRITING)
        rights = "s3:PutObject and s3:DeleteObject" if writes else "s3:ListBucket and s3:GetObject"
        return f"access is denied ({quoted}); these credentials need {rights} there"
    if code in s3_answers.THROTTLED:
        attempts = s3_answers.ATTEMPTS
        return f"the server throttles ({quoted}), also after {attempts} attempts; try again later, or with fewer tasks at a time"
    return quoted


def _plain(error: Exception) -> str:
    return _text(without_login(str(error))) or type(error).__name__


def _server_of(address: str) -> str:
    """Return the server of an address, without a login."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return _text(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}") if parts.netloc else ""


def _text(said: object) -> str:
    """Return a server's or a client's words as a line that can be shown."""
    text = "".join(letter if letter.isprintable() else " " for letter in without_secrets(str(said))[: 4 * _SAID])
    return " ".join(text.split())[:_SAID]
