"""Connects this process to an HDFS: the NameNode, the user, and faults as sentences.

The client is hdfs-native, which needs no Hadoop on this machine. Name services, Kerberos and the like come from where every
Hadoop tool looks: core-site.xml and hdfs-site.xml in HADOOP_CONF_DIR or HADOOP_HOME/etc/hadoop. Without Kerberos the user is
HADOOP_USER_NAME, else the one of this process.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from store_io.base.errors import Denied, StoreChanged, StoreError, Unreached, Unreadable
from store_io.base.locks import ProcessLock
from store_io.source.storage_options import hadoop_of_driver, take_over

if TYPE_CHECKING:
    from hdfs_native import Client

_SAID = 300  # letters of what a server says
# For an address with a port, which is one NameNode: else a wrong one is tried 15 times, for minutes.
_ONE_NAME_NODE = {"dfs.client.failover.max.attempts": "4", "dfs.client.failover.sleep.max.millis": "2000"}
_NO_NAME_SERVICE = "No NameNode hosts found"
_USER = "the user is HADOOP_USER_NAME, or with Kerberos the one of kinit"
_LIBRARY = "install libgssapi-krb5-2 (Debian) or krb5-libs (Red Hat)"
_KERBEROS = "set HADOOP_CONF_DIR to a configuration with it and log in with kinit"
_DENIED = ("AccessControlException", "AuthorizationException")

_UNREACHED = re.compile(r"lookup address|Connection refused|No route to host|unreachable|timed out", re.IGNORECASE)

_making = ProcessLock()
_clients: dict[tuple[int, str], Client] = {}  # by process: one that was forked has its own, and never ends those of its parent
_data_moved_by: int | None = None  # the process that has read or written files


def client(server: str) -> Client:
    """Return this process's client for HOST:PORT or a name service, to ask the NameNode.

    Threads may share it. Raises StoreError.
    """
    key = os.getpid(), server
    with _making.own:
        if key not in _clients:
            _clients[key] = _new(server)
        return _clients[key]


def data_client(server: str) -> Client:
    """Return the client to read and write files. Raises StoreError also in a process forked from one that did so.

    The library would use connections to DataNodes that belong to the other process.
    """
    global _data_moved_by
    process = os.getpid()
    if _data_moved_by not in (None, process):
        raise Unreadable("HDFS cannot be used in a process that was forked from one that used it: start a new process")
    _data_moved_by = process
    return client(server)


def _new(server: str) -> Client:
    from hdfs_native import Client  # only where something lies in HDFS

    take_over()
    with failing(f"hdfs://{server}/", "cannot be reached"):
        one = _ONE_NAME_NODE if re.search(r":[0-9]+$", server) else {}
        return Client(f"hdfs://{server}", {**hadoop_of_driver(), **one})


@contextlib.contextmanager
def failing(what: str, verb: str = "cannot be read") -> Iterator[None]:
    """Raise StoreError for what the client raises, as a sentence that begins with `what`."""
    try:
        yield
    except StoreError:
        raise
    except BaseException as error:
        if not is_from_client(error):
            raise
        raise problem(error, what, verb) from error


def is_from_client(error: BaseException) -> bool:
    """Say whether the error may be one of the client: its own kinds, Python's, or an end of its compiled code."""
    return isinstance(error, (OSError, RuntimeError, NotImplementedError)) or type(error).__name__ == "PanicException"


def problem(error: BaseException, what: str, verb: str = "cannot be read") -> StoreError:
    """Return the error to raise if `what` could not be read."""
    if isinstance(error, FileNotFoundError):
        return StoreChanged(f"{what}: is not there any more")
    if _UNREACHED.search(str(error)) or _NO_NAME_SERVICE in str(error):
        return Unreached(f"{what}: {reason(error)}")
    return (Denied if is_denied(error) else Unreadable)(f"{what}: {verb}: {reason(error)}")


def is_denied(error: BaseException) -> bool:
    """Say whether the NameNode refuses the user."""
    return any(name in str(error) for name in _DENIED)


def reason(error: BaseException) -> str:
    """Explain the client's error, and the setting to change, in the middle of a sentence."""
    said = _said(error)
    if _NO_NAME_SERVICE in said:
        return (
            "this is no name service of the Hadoop configuration in HADOOP_CONF_DIR; a NameNode is named with its port,"
            " mostly hdfs://HOST:8020/FOLDER"
        )
    if "lookup address" in said:
        return f"no host of this name is known ({said}); an address is hdfs://HOST:PORT/FOLDER"
    if _UNREACHED.search(str(error)):
        return f"no NameNode answers there ({said}); an address is hdfs://HOST:PORT/FOLDER with the port of fs.defaultFS"
    if "libgssapi" in str(error):
        return f"the NameNode wants Kerberos, and this machine has no library for it ({said}); {_LIBRARY}"
    if "RPC listener disconnected" in said:
        return f"the NameNode ends the connection ({said}): where it wants Kerberos, {_KERBEROS}"
    if re.search(r"SIMPLE authentication is not enabled|NoSASLMechanism|GSSAPI", str(error)):
        return f"the NameNode wants Kerberos ({said}); {_KERBEROS}"
    if is_denied(error):
        return f"access is denied ({said}); {_USER}"
    if "SafeModeException" in str(error):
        return f"the NameNode is in safe mode ({said}); try again when it has left it"
    if "StandbyException" in str(error):
        return f"this NameNode is on standby ({said}); name the name service, or the active one"
    if "BlocksNotFound" in str(error) or "All DataNodes failed" in str(error):
        return f"no DataNode that has its blocks can be reached ({said})"
    if "Cannot read past end" in said:
        return "it is still being written"
    return said


def _said(error: BaseException) -> str:
    """Return the first line of what the client or the server says, without Java's names: a line that can be shown."""
    text = str(error.strerror or error) if isinstance(error, OSError) else str(error)
    quoted = re.fullmatch(r'\w+\((?:"[\w.$]+", |GssMajorCodes .*, [0-9]+, )?"(.*)"\)', text, re.DOTALL)
    if quoted:  # Rust's form of an error with its values
        text = re.sub(r'\\(["\\])', r"\1", re.split(r"\\n|\\r", quoted[1])[0])
    text = "".join(letter if letter.isprintable() else " " for letter in text.partition("\n")[0][: 4 * _SAID])
    return " ".join(text.split())[:_SAID] or type(error).__name__
