"""A NameNode and a DataNode on loopback, each in a JVM of its own, which end with the process that started them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hdfs_native import Client

from store_io.source import hdfs_client, remote_file
from tests.support.processes.hadoop import HadoopServers, free_port

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_PIECE_BYTES = 64 << 20  # of a large file
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
_SETTINGS = {
    "dfs.replication": 1,
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.datanode.hostname": "127.0.0.1",
    "dfs.namenode.safemode.extension": 0,
    "dfs.heartbeat.interval": 1,  # s; blocks of files that are deleted go with one
    "hadoop.http.authentication.simple.anonymous.allowed": "true",
}


class SmallHdfs(HadoopServers):
    """Serves until `stop`. server: HOST:PORT of the NameNode."""

    def __init__(self) -> None:
        super().__init__("small-hdfs", ("hadoop",))
        try:
            self.server = f"127.0.0.1:{free_port()}"  # a NameNode must know its own port when it is formatted
            settings = {**_SETTINGS, "fs.defaultFS": self.uri, "hadoop.tmp.dir": self.home / "data"}
            self.configure(settings, "core-site.xml", "hdfs-site.xml")
            self.run(NAME_NODE, "-format", "-nonInteractive")
            self.start(NAME_NODE, r"NameNode RPC up at")
            self.start_data_node()
        except BaseException:
            self.stop()
            raise

    @property
    def uri(self) -> str:
        return f"hdfs://{self.server}"

    def start_data_node(self) -> None:
        self.start(DATA_NODE, r"successfully registered with NN")

    def kill_data_node(self) -> None:
        """kill -9."""
        self.end(DATA_NODE)

    def admin(self, *words: str) -> str:
        """What `hdfs dfsadmin` answers."""
        return self.run(ADMIN, *words)

    def client(self) -> Client:
        return hdfs_client.data_client(self.server)

    def put(self, path: str, data: bytes) -> None:
        with self.client().create(path) as writer:
            writer.write(data)

    def get(self, path: str) -> bytes:
        reader = self.client().read(path)
        return bytes(reader.read_range(0, len(reader))) if len(reader) else b""

    def put_folder(self, folder: Path, path: str) -> str:
        """All files and folders of it, with the times of the files; the URI of the path."""
        client = self.client()
        client.mkdirs(path, create_parent=True)
        found = sorted(folder.rglob("*"))
        for own in found:
            if own.is_dir():
                client.mkdirs(f"{path}/{own.relative_to(folder)}")

        def put(own: Path) -> None:
            there = f"{path}/{own.relative_to(folder)}"
            with own.open("rb") as file, client.create(there) as writer:
                while piece := file.read(_PIECE_BYTES):
                    writer.write(piece)
            changed = own.stat().st_mtime_ns // 1_000_000
            client.set_times(there, changed, changed)

        with ThreadPoolExecutor(32) as threads:  # each waits half a second for the NameNode to hear of a file's last block
            list(threads.map(put, (own for own in found if not own.is_dir())))
        return f"{self.uri}{path}"

    def names(self, path: str) -> list[str]:
        """All files below the folder."""
        return sorted(entry.path.removeprefix(path) for entry in self.client().list_status(path, True) if not entry.isdir)

    def empty(self) -> None:
        for entry in list(self.client().list_status("/")):
            self.client().delete(entry.path, recursive=True)


def forget() -> None:
    """Drop the clients and the blocks of files that this process keeps."""
    hdfs_client._clients.clear()
    remote_file._grains_of.cache_clear()


@contextlib.contextmanager
def user(name: str) -> Iterator[None]:
    """This process asks as another user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", name)
        forget()
        yield
    forget()
