"""The disk on which a new store will lie."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from schemas.first_day import StartMoment
from store_io.repair.repair_copy import SPARE_BYTES
from store_io.source.byte_source import StoreLocation


def on_its_disk(moment: StartMoment, target: str, more: int, copy: StoreLocation | None = None) -> StartMoment:
    """Return the moment with the disk of the target. What is named stays.

    more: bytes that the new store will take of it, SPARE_BYTES among them.
    copy: the damaged copy, which takes as much of the disk if all of the copy lies on this disk.
    """
    folder = os.path.dirname(target)
    status = os.statvfs(folder)
    used = (status.f_blocks - status.f_bfree) * status.f_frsize + more
    size = used + status.f_bavail * status.f_frsize - more  # as df counts: without the part that is root's alone
    if not size:
        return moment
    roots = [copy.root, *(each for _, folders in copy.parts for each in folders)] if copy is not None else []
    beside = bool(roots) and moment.disk_used is None and all(map(partial(_same_disk, folder), roots))
    return replace(
        moment,
        disk_used=moment.disk_used if moment.disk_used is not None else round(min(100.0, 100 * used / size), 2),
        copy_used=round(min(100.0, 100 * max(0, more - SPARE_BYTES) / size), 2) if beside else None,
        disk_size=moment.disk_size if moment.disk_size is not None else size,
    )


def _same_disk(folder: str, other: str) -> bool:
    return os.path.exists(other) and os.stat(other).st_dev == os.stat(folder).st_dev
