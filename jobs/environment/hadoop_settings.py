"""The driver's Hadoop settings for tasks on other machines: the NameNodes of a name service, and how to speak to servers. Nothing
else of it: there may be secrets.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from store_io.source.storage_options import HADOOP_FILES, hadoop_folder

_NEEDED = (
    *("dfs.ha.namenodes.", "dfs.namenode.rpc-address.", "dfs.client.", "fs.viewfs.mounttable."),
    *("dfs.data.transfer.protection", "hadoop.security.authentication"),
)


def needed() -> dict[str, str]:
    """Return the settings that hdfs-native asks for.

    A file that cannot be read is left out: whoever opens a store names its fault.
    """
    found: dict[str, str] = {}
    if place := hadoop_folder():
        for name in HADOOP_FILES:
            with suppress(OSError, ElementTree.ParseError):
                for one in ElementTree.fromstring(Path(place, name).read_bytes()).iter("property"):
                    key, value = one.findtext("name", "").strip(), one.findtext("value", "").strip()
                    if key.startswith(_NEEDED):
                        found[key] = value
    return found
