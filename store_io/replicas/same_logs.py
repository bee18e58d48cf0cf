"""Finds stores that are copies of one log although nobody said so: they hold the same message at the same physical offset.

A few places of a few segments are read, whatever the stores' sizes. Two logs of different brokers share no message: its header
alone has the broker's address and two times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from schemas.layouts.commitlog_layout import (
    BODY_POSITION,
    MAGIC_POSITION,
    MAGIC_V1_BYTES,
    MAGIC_V2_BYTES,
)
from schemas.rows import MappedFile
from store_io.base.paths import is_uri
from store_io.log.records.message_decode import names_place
from store_io.source.byte_source import ByteSource

_READ_AT, _READ_BYTES = (0, 1 << 20), 1 << 14  # of a segment
_SEGMENTS = 6  # of a store
_Header = tuple[int, bytes]  # of a message, with its physical offset


class OpenedLog(Protocol):
    """A store that was listed: a StoreAudit, or what is left of one."""

    @property
    def segment_files(self) -> list[MappedFile]: ...
    @property
    def source(self) -> ByteSource: ...
    def no_fault_beyond(self) -> AbstractContextManager[None]:
        """Surround reads of the copy: an error is noted as its own, and ends no other's work."""


_Edges = tuple[OpenedLog, list[MappedFile]]


def same_logs(
    audits: Sequence[OpenedLog],
    each: Callable[[Callable[[_Edges], set[_Header]], Iterable[_Edges]], Iterable[set[_Header]]] = map,
) -> list[list[int]]:
    """Return the places of audits that are copies of one log, two or more together. The first copies give the order.

    audits: opened ones. A store that is named twice, perhaps through a link, is no copy of itself. A file that cannot be read
    makes its audit incomplete.
    each: as `map`, perhaps by several threads.
    """
    files = [{file.start: file for file in reversed(audit.segment_files) if file.size} for audit in audits]
    own_edges = [[*sorted(own)[:1], *sorted(own)[-2:]] for own in files]
    edges = {base for own in own_edges for base in own}
    asked = []
    for audit, own, bases in zip(audits, files, own_edges, strict=True):
        read = list(dict.fromkeys((*bases, *sorted(own.keys() & edges))))[:_SEGMENTS]
        asked.append((audit, [own[base] for base in read]))
    group_of = list(range(len(audits)))
    met: dict[_Header, int] = {}
    roots: set[tuple[str, ...]] = set()
    for number, headers in enumerate(each(_headers_of, asked)):
        addresses = tuple(_real(audits[number].source.address(files[number][base].path)) for base in own_edges[number])
        if addresses in roots:
            continue
        roots.add(addresses)
        for header in headers:
            pair = {group_of[met.setdefault(header, number)], group_of[number]}
            if len(pair) > 1:
                group_of = [min(pair) if group in pair else group for group in group_of]
    found: dict[int, list[int]] = {}
    for number, group in enumerate(group_of):
        found.setdefault(group, []).append(number)
    return [places for places in found.values() if len(places) > 1]


def _real(address: str) -> str:
    """Follow the links in the address of a local file. So a store has one address, whatever name leads to it."""
    return address if is_uri(address) else os.path.realpath(address)


def _headers_of(asked: _Edges) -> set[_Header]:
    audit, files = asked
    found: set[_Header] = set()
    with audit.no_fault_beyond():
        for file in files:
            found.update(_headers(audit, file))
    return found


def _headers(audit: OpenedLog, file: MappedFile) -> Iterator[_Header]:
    """Yield headers of messages that name the physical offset at which they lie."""
    with audit.source.open(file.path) as opened:
        for start in _READ_AT:
            data = opened.read(start, _READ_BYTES)
            for magic in (MAGIC_V1_BYTES, MAGIC_V2_BYTES):
                at = data.find(magic)
                while at >= 0:
                    header = data[max(0, at - MAGIC_POSITION) :][:BODY_POSITION]
                    place = file.start + start + at - MAGIC_POSITION
                    if len(header) == BODY_POSITION and names_place(header, place):
                        yield place, header
                    at = data.find(magic, at + 1)
