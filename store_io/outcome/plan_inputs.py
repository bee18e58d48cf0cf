"""Every file that a plan depends on, with a digest that notices a changed byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain, groupby

from schemas.layouts import checkpoint_layout
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from schemas.rows import Row
from store_io.base.errors import StoreError
from store_io.base.failed_reads import unless_denied
from store_io.base.packed import in_order, packed
from store_io.broker.settings.config_rules import MAX_FILE_BYTES
from store_io.kinds.all_kinds import KINDS
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import OpenedCopy

_NAMED, _KNOWN, _SMALL = range(3)  # what is said of a path: one of these counts, the greatest
_Said = tuple[str, int, int, int, str]  # (path, one of these, number: a later one counts, size, digest)


def plan_inputs(evidence: Evidence) -> Sequence[Row]:
    """Return plan.json's `inputs`, by path. The digest is empty if the file was not read.

    There may be millions: they are put in order by their paths, and never held together.
    """
    found = (_input(evidence, path, list(said)) for path, said in groupby(_said(evidence), key=lambda said: said[0]))
    return packed({"file": path, "size": size, "digest": digest} for path, size, digest in filter(None, found))


def _said(evidence: Evidence) -> Iterator[_Said]:
    """Return all that is said of each file, by path."""
    known = ((path, _KNOWN, number, size, digest) for number, (path, size, digest) in enumerate(_known(evidence)))
    small = ((path, _SMALL, 0, 0, "") for path in _small(evidence.copy) if evidence.copy.listing.is_file(path))
    # Whatever load() looks at by its name alone: files that stop it, or that it skips. They are read if nothing else is said.
    looked_at = (COMMITLOG, QUEUES, BATCH_QUEUES, EXT, INDEX)
    named = (
        (entry.path, _NAMED, 0, 0, "")
        for entry in evidence.copy.listing.files
        if entry.kind == "file" and entry.path.partition("/")[0] in looked_at
    )
    return merge(in_order(chain(known, small)), named)


def _input(evidence: Evidence, path: str, said: list[_Said]) -> tuple[str, int, str] | None:
    """Return (path, size, digest); None if the file cannot be read."""
    kind, _, size, digest = said[-1][1:]
    if kind == _KNOWN:
        return path, size, digest
    try:
        data = unless_denied(lambda: evidence.copy.source.read_small(path, MAX_FILE_BYTES))
    except StoreError:
        return next(((path, one[3], one[4]) for one in reversed(said) if one[1] == _KNOWN), None)
    return path, len(data), digest_of(data)


def _small(copy: OpenedCopy) -> Iterator[str]:
    """Yield files that are read as a whole, whether they are there or not."""
    yield checkpoint_layout.ABORT_FILE
    for kind in KINDS:
        yield from kind.plan_inputs(copy)


def _known(evidence: Evidence) -> Iterator[tuple[str, int, str]]:
    """Yield (path, size, digest) of each file; an unread one comes first, with an empty digest.

    If a path comes twice the last one counts.
    """
    for file in evidence.unread:
        known = evidence.earlier.reused_segment(file.path)
        yield file.path, file.size, known.row.get("digest") or "" if known is not None else ""
    yield from ((segment.path, segment.size, segment.digest) for segment in evidence.segments)
    for kind in KINDS:
        yield from kind.digests(evidence)


def digest_of(data: bytes) -> str:
    """Return the digest of a small file in plan.json."""
    return "blake2b-128:" + hashlib.blake2b(data, digest_size=16).hexdigest()
