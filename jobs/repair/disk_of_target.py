"""The disk on which a new store will lie."""

from __future__ import annotations

import os
from dataclasses import replace

from schemas.first_day import StartMoment
from store_io.repair.repair_copy import SPARE_BYTES


def on_its_disk(moment: StartMoment, target: str, more: int, copy: str = "") -> StartMoment:
    """Return the moment with the disk of the target. What is named stays.

    more: bytes that the new store will take of it, SPARE_BYTES among them.
    copy: the damaged copy's root, which takes as much; "" without one.
    """
    folder = os.path.dirname(target)
    status = os.statvfs(folder)
    used = (status.f_blocks - status.f_bfree) * status.f_frsize + more
    size = used + status.f_bavail * status.f_frsize - more  # as df counts: without the part that is root's alone
    if not size:
        return moment
    beside = moment.disk_used is None and os.path.exists(copy) and os.stat(copy).st_dev == os.stat(folder).st_dev
    return replace(
        moment,
        disk_used=moment.disk_used if moment.disk_used is not None else round(min(100.0, 100 * used / size), 2),
        copy_used=round(min(100.0, 100 * max(0, more - SPARE_BYTES) / size), 2) if beside else None,
        disk_size=moment.disk_size if moment.disk_size is not None else size,
    )
