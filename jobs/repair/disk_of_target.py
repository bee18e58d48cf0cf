"""The disk on which a new store will lie."""

from __future__ import annotations

import os
from dataclasses import replace

from schemas.first_day import StartMoment


def on_its_disk(moment: StartMoment, target: str, more: int) -> StartMoment:
    """Return the moment with the disk of the target. What is named stays.

    more: bytes that the new store will take of it.
    """
    status = os.statvfs(os.path.dirname(target))
    used = (status.f_blocks - status.f_bfree) * status.f_frsize + more
    size = used + status.f_bavail * status.f_frsize - more  # as df counts: without the part that is root's alone
    if not size:
        return moment
    return replace(
        moment,
        disk_used=moment.disk_used if moment.disk_used is not None else round(min(100.0, 100 * used / size), 2),
        disk_size=moment.disk_size if moment.disk_size is not None else size,
    )
