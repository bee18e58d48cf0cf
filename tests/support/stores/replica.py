"""Stores of a replica in controller mode, and their epoch files, byte by byte. Imports nothing of the project."""

from __future__ import annotations

import zlib
from pathlib import Path

from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=2048, queue_file=200, slots=10, index_max=30)


def epoch_text(*epochs: tuple[int, int], count: int | None = None, checksum: int | None = None) -> bytes:
    """An epoch file with these (epoch, start). count, checksum: what its first lines say, if not the truth."""
    lines = "".join(f"{epoch}-{start}\n" for epoch, start in epochs)
    truth = zlib.crc32(lines.encode()) & 0x7FFFFFFF
    return f"{len(epochs) if count is None else count}\n{truth if checksum is None else checksum}\n{lines}".encode()


def replica(
    root: Path, release: str = "5.3.3", *, messages: int = 40, confirmed: int = 0, undispatched: int = 0, clean: bool = True
) -> Store:
    """A replica's store. confirmed: the checkpoint's confirmPhyOffset.  undispatched: messages at its end without entries."""
    builder = StoreBuilder(release, SIZES, settings={"enableControllerMode": "true"})
    for n in range(messages):
        builder.put(Message(f"Topic{n % 2}", n % 3 % 2, b"body %d " % n, tags="TagA", keys=f"k{n}", uniq=f"7F0000010{n:08X}"))
    store = builder.write(root, clean=clean, undispatched=undispatched, checkpoint={"confirm": confirmed})
    (root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (2, store.records[9].at)))
    (root / "brokerIdentity").write_bytes(b"DefaultCluster#broker-a#1")
    return store


def with_a_light_queue(root: Path, release: str) -> Store:
    """A replica's store after a crash, 20 of 40 messages confirmed. The 26th says of its light queue a number that is none."""
    builder = StoreBuilder(release, SIZES, settings={"enableControllerMode": "true", "enableMultiDispatch": "true"})
    for n in range(40):
        light = ("INNER_MULTI_DISPATCH", "light"), ("INNER_MULTI_QUEUE_OFFSET", "x" if n == 25 else str(n))
        builder.put(Message("Topic", 0, b"body %d " % n, uniq=f"7F0000010{n:08X}", properties=light))
    confirmed = builder.records[20].at
    store = builder.write(root, clean=False, undispatched=20, checkpoint={"confirm": confirmed})
    (root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0)))
    return store
