"""Servers where stores and results lie, as a command sees them: an S3 server, an HDFS."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from store_io.source import s3_client
from tests.hdfs.small_hdfs import SmallHdfs
from tests.support.processes.s3_server import BUCKET, S3Server


@dataclass
class Place:
    """A server. uri: of its root.  put: a folder of this machine -> its URI there.  get, names: by path below the root.

    variables: the environment of a command that reaches it.
    """

    uri: str
    put: Callable[[Path, str], str]
    get: Callable[[str], bytes]
    names: Callable[[str], set[str]]
    variables: dict[str, str]


def in_hdfs(hdfs: SmallHdfs) -> Place:
    return Place(
        hdfs.uri,
        lambda folder, name: hdfs.put_folder(folder, f"/{name}"),
        lambda path: hdfs.get(f"/{path}"),
        lambda folder: {name.removeprefix("/") for name in hdfs.names(f"/{folder}")},
        dict(os.environ),
    )


def in_s3(server: S3Server) -> Place:
    def names(folder: str) -> set[str]:
        pages = s3_client.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{folder}/")
        return {entry["Key"].removeprefix(f"{folder}/") for page in pages for entry in page.get("Contents", ())}

    return Place(f"s3://{BUCKET}", server.put_folder, server.get, names, server.environment())
