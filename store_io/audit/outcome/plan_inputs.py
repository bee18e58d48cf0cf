"""Every file that a plan depends on, with a digest that notices a changed byte."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from schemas import checkpoint_layout
from schemas.dledger_layout import CHECKPOINT, TERM
from schemas.rows import Row
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, IDENTITY_FILE, INDEX, QUEUES
from store_io.audit.evidence import Evidence
from store_io.base.errors import StoreError
from store_io.base.packed import packed
from store_io.formats import config_reader
from store_io.formats.controller import epoch_file


def plan_inputs(evidence: Evidence) -> Sequence[Row]:
    """plan.json's `inputs`, by path. The digest is empty where the file was not read."""
    copy = evidence.copy
    rows = {s.path: (s.size, s.digest) for s in evidence.segments}
    for file in [*evidence.unread, *(f for files in copy.queue_files.values() for f in files), *copy.index_files]:
        known = evidence.earlier.reused_segment(file.path)
        rows.setdefault(file.path, (file.size, known.row.get("digest") or "" if known is not None else ""))
    for units in evidence.units.values():
        rows[units.path] = (units.size, units.digest)
    for queue in evidence.every_queue:
        for path, digest in queue.digests.items():
            entry = copy.listing.get(path)
            rows[path] = (entry.size if entry else 0, digest)
    for index in evidence.index.values():
        rows[index.path] = (index.size, index.digest)
    for compacted in evidence.compacted:
        for path, digest in compacted.digests.items():
            entry = copy.listing.get(path)
            rows[path] = (entry.size if entry else 0, digest)
    if evidence.timer_results.files is not None:
        rows |= evidence.timer_results.files.digests
    small = [checkpoint_layout.CHECKPOINT_FILE, checkpoint_layout.ABORT_FILE]
    small += [*epoch_file.FILES, IDENTITY_FILE] if copy.rules.controller_mode else []
    small += [e.path for e in copy.tree.children("config") if e.kind == "file"]
    if copy.loaded.ledger is not None:
        small += [f"{copy.loaded.ledger.folder}/{name}" for name in (CHECKPOINT, TERM)]
    # Whatever load() looks at by its name alone: files that stop it, or that it skips.
    looked_at = (COMMITLOG, QUEUES, BATCH_QUEUES, EXT, INDEX)
    small += [e.path for e in copy.listing.files if e.path not in rows and e.path.partition("/")[0] in looked_at]
    for path in small:
        if copy.listing.is_file(path):
            try:
                data = copy.source.read_small(path, config_reader.MAX_FILE_BYTES)
            except StoreError:
                continue
            rows[path] = (len(data), digest_of(data))
    return packed({"file": path, "size": size, "digest": digest} for path, (size, digest) in sorted(rows.items()))


def digest_of(data: bytes) -> str:
    """The digest of a small file in plan.json."""
    return "blake2b-128:" + hashlib.blake2b(data, digest_size=16).hexdigest()
