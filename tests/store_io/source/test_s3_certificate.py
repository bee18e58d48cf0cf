"""A server whose certificate comes from an authority of one's own: every client takes AWS_CA_BUNDLE, and without it says so."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from store_io.base.errors import Unreadable
from store_io.source import s3_client
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.processes.s3_server import BUCKET, S3Server, emptied, forget, served


def certificate(name: str, own: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey, ca: bool) -> bytes:
    """A certificate of this machine's address, or of an authority."""
    now = datetime.datetime.now(datetime.UTC)
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(issuer, subject, own.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca, None), True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
    )
    return made.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, server.pem and server.key."""
    folder = tmp_path_factory.mktemp("authority")
    ca, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    (folder / "ca.pem").write_bytes(certificate("authority", ca, ca, ca=True))
    (folder / "server.pem").write_bytes(certificate("server", own, ca, ca=False))
    kind = serialization.PrivateFormat.PKCS8
    (folder / "server.key").write_bytes(own.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()))
    return folder


@pytest.fixture(scope="module")
def serving(authority: Path) -> Iterator[S3Server]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            patch.delenv(name, raising=False)
        patch.setenv("SSL_CERT_FILE", os.devnull)  # so that what the product sets there is taken back
        patch.setenv("AWS_CA_BUNDLE", str(authority / "ca.pem"))
        with served((str(authority / "server.pem"), str(authority / "server.key"))) as server:
            yield server


def test_every_client_takes_it(serving: S3Server) -> None:
    server = emptied(serving)
    server.put("s/commitlog/00000000000000000000", b"abc")
    with open_source(StoreLocation(f"s3://{BUCKET}/s")).open("commitlog/00000000000000000000") as file:
        assert file.read(0, 3) == b"abc"
    with s3_client.arrow_file_system().open_output_stream(f"{BUCKET}/arrow") as stream:
        stream.write(b"by pyarrow")
    assert server.get("arrow") == b"by pyarrow"
    from deltalake import DeltaTable, write_deltalake

    table = f"s3://{BUCKET}/table"
    write_deltalake(table, pa.table({"a": [1]}), storage_options=s3_client.delta_options(BUCKET))
    assert DeltaTable(table, storage_options=s3_client.delta_options(BUCKET)).version() == 0


def test_without_it_the_sentence_names_it(serving: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE")
    forget()
    said = "the server's certificate is not trusted .*; AWS_CA_BUNDLE names a file with the certificates that it must come from"
    with pytest.raises(Unreadable, match=said):
        list(open_source(StoreLocation(f"s3://{BUCKET}/s")).list_tree("commitlog"))
    forget()


@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize(
    ("bundle", "said"),
    [("none.pem", "'none.pem', which AWS_CA_BUNDLE or the profile names, cannot be read"), ("", "AWS_CA_BUNDLE")],
)
def test_a_bundle_that_is_not_there(
    serving: S3Server, monkeypatch: pytest.MonkeyPatch, name: str, bundle: str, said: str
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE")
    monkeypatch.setenv(name, bundle)
    forget()
    with pytest.raises(Unreadable, match=f"^S3 cannot be used: .*{said}"):
        s3_client.client()
    monkeypatch.undo()
    forget()
