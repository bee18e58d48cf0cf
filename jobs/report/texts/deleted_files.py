"""Names the files that a start deletes: a name alone does not show whether a segment is empty."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.report.texts.text import count_text
from schemas.rows import EXTENT_DAMAGED, EXTENT_UNWRITTEN, AuditOutcome, Row
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES

_PREALLOCATED = ("empty preallocated segment", "empty preallocated segments")
_DAMAGED = ("segment with damaged bytes and no valid message", "segments with damaged bytes and no valid message")
_EMPTY = ("segment without a message", "segments without a message")
_UNREAD = ("segment that was not read", "segments that were not read")
_NOTHING_IN_IT = ("empty file in commitlog/", "empty files in commitlog/")
_OTHER = ("file in commitlog/", "files in commitlog/")
_FOLDERS = {
    folder: (f"{kind} file", f"{kind} files")
    for folder, kind in (
        (QUEUES, "ConsumeQueue"), (BATCH_QUEUES, "BatchConsumeQueue"), (EXT, "ConsumeQueueExt"), (INDEX, "index"),
    )
}  # fmt: skip
_ORDER = (_DAMAGED, _UNREAD, _EMPTY, _PREALLOCATED, _NOTHING_IN_IT, _OTHER, *_FOLDERS.values())


@dataclass
class Deleted:
    """Files of one kind.

    words: their number and what they are.
    held: whether valid messages go with them.
    """

    words: str
    files: list[str]
    held: bool = False


def deleted_files(outcome: AuditOutcome) -> list[Deleted]:
    """The files that a start deletes, by what they are; those with messages first, then the CommitLog's, then derived ones."""
    broker = outcome.plan.get("broker") or {}
    names = [str(name) for name in broker.get("deleted_files") or ()]
    segments = {str(row["file"]): row for row in outcome.segments}
    kinds: dict[tuple[str, str], list[str]] = {}
    full = [name for name in names if name in segments and segments[name].get("messages")]
    for name in names:
        if name not in full:
            kinds.setdefault(_kind(name, segments.get(name)), []).append(name)
    found = []
    if full:
        messages = sum(int(segments[name]["messages"]) for name in full)
        words = f"{count_text(len(full), 'segment')} with {count_text(messages, 'valid message')}"
        found.append(Deleted(words, full, held=True))
    for kind in sorted(kinds, key=lambda kind: (_ORDER.index(kind) if kind in _ORDER else len(_ORDER), kind)):
        found.append(Deleted(count_text(len(kinds[kind]), *kind), kinds[kind]))
    return found


def _kind(name: str, segment: Row | None) -> tuple[str, str]:
    """Return the words for a file without a valid message, one and many."""
    top = name.partition("/")[0]
    if top != COMMITLOG:
        return _FOLDERS.get(top, ("file", "files"))
    if segment is None:
        return _OTHER
    if not segment.get("size_bytes"):
        return _NOTHING_IN_IT
    extents = {str(extent["kind"]) for extent in segment.get("extents") or ()}
    if segment.get("problem") or not extents:
        return _UNREAD
    if EXTENT_DAMAGED in extents:
        return _DAMAGED
    return _PREALLOCATED if extents == {EXTENT_UNWRITTEN} else _EMPTY
