"""A step of a repair in words: as plan.json, a dry run and a page have it."""

from __future__ import annotations

from jobs.report.texts.text import count_text
from schemas.rows import Row

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


def step_text(step: Row) -> str:
    """The step on one line, not yet made printable."""
    where = f" {step['file']}" if step["file"] else ""
    if step["start"] is not None:
        where += f" {step['start']:,} to {step['end']:,}"
    numbers = [f"{word} {numbers_text(step[word])}" for word in ("kept", "lost") if step[word]]
    return f"{VERBS[step['action']]}{where}: {'; '.join([step['reason'], *numbers])}"


def numbers_text(counts: Row) -> str:
    """ "3 messages, 12 bytes": what a step keeps or loses."""
    return ", ".join(count_text(counts[name], one, name) for name, one in _ONE.items() if name in counts)
