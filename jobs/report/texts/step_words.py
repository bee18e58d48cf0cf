"""A step of a repair in words, for plan.json, a dry run and a page. Also the names of the files that a start deletes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from schemas.outcome import Outcome
from schemas.repair import RepairStep
from schemas.rows import EXTENT_DAMAGED, EXTENT_UNWRITTEN
from store_io.base.wording import count_text
from store_io.outcome.segments_read import SegmentRead, segments_read

VERBS = {
    "copy": "copy the store", "take": "take from the donor", "heal": "heal",
    "remove": "remove", "rename": "rename", "resize": "resize",
    "create": "create", "cut": "cut", "zero": "zero", "bridge": "bridge", "fill": "put a filler into", "add_segment": "add",
    "rebuild_queue": "rebuild", "rebuild_index": "rebuild", "write_entry": "write an entry into",
    "write_header": "write a header into", "write_checkpoint": "write", "write_epochs": "write", "write_config": "write",
    "rebuild_timers": "rebuild",
    "correct_offsets": "set back offsets in", "rebuild_database": "rebuild the database",
    "rebuild_tables": "rebuild the database",
}  # fmt: skip
_ONE = {"messages": "message", "bytes": "byte", "entries": "entry", "files": "file", "queues": "queue", "positions": "position"}
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


def step_text(step: RepairStep) -> str:
    """Return the step on one line, not yet made printable."""
    where = f" {step.file}" if step.file else ""
    if step.start is not None:
        where += f" {step.start:,} to {step.end:,}"
    numbers = [f"{word} {numbers_text(counts)}" for word, counts in (("kept", step.kept), ("lost", step.lost)) if counts]
    return f"{VERBS[step.action]}{where}: {'; '.join([step.reason, *numbers])}"


def numbers_text(counts: Mapping[str, int]) -> str:
    """ "3 messages, 12 bytes": what a step keeps or loses."""
    return ", ".join(count_text(counts[name], one, name) for name, one in _ONE.items() if name in counts)


@dataclass
class Deleted:
    """Files of one kind.

    words: their number and what they are.
    held: whether valid messages go with them.
    """

    words: str
    files: list[str]
    held: bool = False


def deleted_files(outcome: Outcome) -> list[Deleted]:
    """Return the files that a start deletes, by what they are.

    Those with messages come first, then the CommitLog's, then derived files.
    """
    names = outcome.started.deleted_files if outcome.started is not None else ()
    segments = {segment.path: segment for segment in segments_read(outcome.rows.segments)} if names else {}
    kinds: dict[tuple[str, str], list[str]] = {}
    full = [name for name in names if name in segments and segments[name].messages]
    for name in names:
        if name not in full:
            kinds.setdefault(_kind(name, segments.get(name)), []).append(name)
    found = []
    if full:
        messages = sum(segments[name].messages for name in full)
        words = f"{count_text(len(full), 'segment')} with {count_text(messages, 'valid message')}"
        found.append(Deleted(words, full, held=True))
    for kind in sorted(kinds, key=lambda kind: (_ORDER.index(kind) if kind in _ORDER else len(_ORDER), kind)):
        found.append(Deleted(count_text(len(kinds[kind]), *kind), kinds[kind]))
    return found


def _kind(name: str, segment: SegmentRead | None) -> tuple[str, str]:
    """Return the words for a file without a valid message, one and many."""
    top = name.partition("/")[0]
    if top != COMMITLOG:
        return _FOLDERS.get(top, ("file", "files"))
    if segment is None:
        return _OTHER
    if not segment.size:
        return _NOTHING_IN_IT
    extents = {extent.kind for extent in segment.extents}
    if segment.problem or not extents:
        return _UNREAD
    if EXTENT_DAMAGED in extents:
        return _DAMAGED
    return _PREALLOCATED if extents == {EXTENT_UNWRITTEN} else _EMPTY
