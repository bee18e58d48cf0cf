"""What the client of HDFS says becomes a sentence that tells what to set. The real servers are in tests/hdfs (mark: hdfs)."""

from __future__ import annotations

import pytest

from store_io.base.errors import Denied, NotAStore, StoreChanged, StoreError, Unreached, Unreadable
from store_io.source import hdfs_client
from store_io.source.byte_source import check_root
from store_io.source.hdfs_client import failing

KERBEROS = (
    '"org.apache.hadoop.security.AccessControlException", "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"'
)
NO_TICKET = (
    'GSSAPIError(GssMajorCodes { raw: "0x00070000", calling_error: "none", routine_error: "GSS_S_NO_CRED" }, 2529639053,'
    ' "No credentials were supplied: none (default cache: FILE:/tmp/c)")'
)
DENIED = (
    'RPCError("org.apache.hadoop.security.AccessControlException",'
    ' "Permission denied: user=u, inode=\\"/s\\":root\\n\\tat a.B(C.java:1)")'
)
STANDBY = 'RPCError("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state standby")'


class PanicException(BaseException):
    """As compiled code's own is called."""


@pytest.mark.parametrize(
    ("problem", "kind", "said"),
    [
        (
            RuntimeError(f"FatalRPCError({KERBEROS})"),
            Denied,
            "f: cannot be read: the NameNode wants Kerberos (SIMPLE authentication",
        ),
        (
            RuntimeError("NoSASLMechanism"),
            Unreadable,
            "f: cannot be read: the NameNode wants Kerberos (NoSASLMechanism); set HADOOP_CONF",
        ),
        (
            RuntimeError(NO_TICKET),
            Unreadable,
            "wants Kerberos (No credentials were supplied: none (default cache: FILE:/tmp/c)); set HADOOP_CONF_DIR",
        ),
        (
            RuntimeError("RPC listener disconnected"),
            Unreadable,
            "the NameNode ends the connection (RPC listener disconnected): where it wants Kerberos, set HADOOP_CONF_DIR",
        ),
        (
            RuntimeError('OperationFailed("Failed to load libgssapi_krb")'),
            Unreadable,
            "this machine has no library for it (Failed to load libgssapi_krb); install libgssapi-krb5-2",
        ),
        (
            RuntimeError(DENIED),
            Denied,
            'access is denied (Permission denied: user=u, inode="/s":root); the user is HADOOP_USER_NAME',
        ),
        (RuntimeError(STANDBY), Unreadable, "this NameNode is on standby (Operation category READ"),
        (
            OSError("Connection refused (os error 111)"),
            Unreached,
            "f: no NameNode answers there (Connection refused (os error 111))",
        ),
        (OSError(28, "No space left on device"), Unreadable, "f: cannot be read: No space left on device"),
        (RuntimeError("a \x1b[31mred\nand a second line"), Unreadable, "f: cannot be read: a [31mred"),
        (RuntimeError('BlocksNotFound("f")'), Unreadable, "no DataNode that has its blocks can be reached (f)"),
        (FileNotFoundError("/s/f\n\tat a.B(C.java:1)"), StoreChanged, "f: is not there any more"),
        (PanicException("Cannot read past end of the file"), Unreadable, "f: cannot be read: it is still being written"),
        (NotImplementedError("encryption"), Unreadable, "f: cannot be read: encryption"),
    ],
)
def test_sentences(problem: BaseException, kind: type[StoreError], said: str) -> None:
    with pytest.raises(StoreError) as raised, failing("f"):
        raise problem
    assert type(raised.value) is kind and said in str(raised.value) and "\tat" not in str(raised.value)


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), ValueError("our own mistake")])
def test_other_errors_stay_what_they_are(problem: BaseException) -> None:
    with pytest.raises(type(problem)), failing("f"):
        raise problem


def test_an_address_without_a_server_is_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_client, "_ONE_NAME_NODE", {"dfs.client.failover.max.attempts": "0"})
    with pytest.raises(NotAStore, match=r"no NameNode answers there \(.*fs\.defaultFS"):
        check_root("hdfs://127.0.0.1:1/s")
