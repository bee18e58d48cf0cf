"""Finds stores that are copies of one log although nobody said so: they hold the same message at the same physical offset.

A few places of a few segments are read, whatever the stores' sizes. Two logs of different brokers share no message: its header
alone has the broker's address and two times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schemas.commitlog_layout import (
    BODY_POSITION,
    MAGIC_POSITION,
    MAGIC_V1_BYTES,
    MAGIC_V2_BYTES,
    PHY_OFFSET_POSITION,
    SYS_FLAG_POSITION,
)
from schemas.rows import MappedFile
from store_io.audit.audit_store import StoreAudit

_READ_AT, _READ_BYTES = (0, 1 << 20), 1 << 14  # of a segment
_SEGMENTS = 16  # of a store
_Header = tuple[int, bytes]  # of a message, with its physical offset


def same_logs(audits: Sequence[StoreAudit]) -> list[list[int]]:
    """Return the places of audits that are copies of one log, two or more together, in the order of the first of each.

    audits: opened ones. A store that is named twice is no copy of itself. What cannot be read makes its audit incomplete.
    """
    files = [{file.start: file for file in reversed(audit.segment_files) if file.size} for audit in audits]
    edges = {base for own in files for base in (*sorted(own)[:1], *sorted(own)[-2:])}
    group_of = list(range(len(audits)))
    met: dict[_Header, int] = {}
    roots: set[tuple[str, ...]] = set()
    for number, (audit, own) in enumerate(zip(audits, files, strict=True)):
        addresses = tuple(sorted(audit.source.address(file.path) for file in own.values()))
        if addresses in roots:
            continue
        roots.add(addresses)
        with audit.no_fault_beyond():
            for base in sorted(own.keys() & edges)[:_SEGMENTS]:
                for header in _headers(audit, own[base]):
                    other = group_of[met.setdefault(header, number)]
                    mine = group_of[number]
                    if other != mine:
                        group_of = [min(other, mine) if group in (other, mine) else group for group in group_of]
    found: dict[int, list[int]] = {}
    for number, group in enumerate(group_of):
        found.setdefault(group, []).append(number)
    return [places for places in found.values() if len(places) > 1]


def _headers(audit: StoreAudit, file: MappedFile) -> Iterator[_Header]:
    """Headers of messages that name the physical offset at which they lie."""
    with audit.source.open(file.path) as opened:
        for start in _READ_AT:
            data = opened.read(start, _READ_BYTES)
            for magic in (MAGIC_V1_BYTES, MAGIC_V2_BYTES):
                at = data.find(magic)
                while at >= 0:
                    header = data[max(0, at - MAGIC_POSITION) :][:BODY_POSITION]
                    place = file.start + start + at - MAGIC_POSITION
                    named = int.from_bytes(header[PHY_OFFSET_POSITION:SYS_FLAG_POSITION], "big")
                    if len(header) == BODY_POSITION and named == place:
                        yield place, header
                    at = data.find(magic, at + 1)
