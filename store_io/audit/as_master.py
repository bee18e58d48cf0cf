"""What a copy lacks of its group, as a verdict: whether it should be started as master.

A slave whose log ends earlier is normal, and no finding. But as master it loses what it lacks, so it is never called safe
to start. Nor is a copy that has parted from another, where each holds messages at the same physical offsets: whichever of them
becomes master, the other's are lost. No start drops any of them from its own copy, so the exit code does not show it.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.rows import Row
from store_io.base.wording import count_text


@dataclass(frozen=True)
class AsMaster:
    """A copy that lacks messages of its group.

    lacks: how many.  holder, holds: the other copy that has most of these, and how many.  parted: the copy with which it has
    parted, "" without one; parted_at: physical offset of the first message that differs, None where that is not known;
    parted_lacks: messages of this copy that the other lacks.  best: whether no copy of the group would lose fewer.
    """

    lacks: int
    holder: str
    holds: int
    parted: str = ""
    parted_at: int | None = None
    parted_lacks: int = 0
    best: bool = False

    def headline(self) -> str:
        """The answer, short."""
        yet = " yet" if self.best else ""
        if self.parted:
            return f"Do not start this copy as master{yet}: it and {self.parted} each hold messages that the other lacks"
        though = ", though no other copy would lose fewer" if self.best else ""
        return f"Do not start this copy as master{yet}: it lacks {count_text(self.lacks, 'message')} of its group{though}"

    def verdict(self) -> str:
        """The same with the numbers and which copy holds what, a sentence without its full stop."""
        yet = " yet" if self.best else ""
        lacks = count_text(self.lacks, "message")
        if self.holds == self.lacks:
            held = f"{self.holder} holds {lacks} that this copy lacks"
        else:
            held = f"other copies hold {lacks} that this copy lacks, {self.holder} {self.holds:,} of them"
        if self.parted:
            since = f" from physical offset {self.parted_at} on" if self.parted_at is not None else ""
            held += (
                f"; it and {self.parted} differ{since}, where this copy holds {count_text(self.parted_lacks, 'message')}"
                f" that {self.parted} lacks"
            )
        return f"Do not start this copy as master{yet}: {held}"


def as_master(group: Row, store: str) -> AsMaster | None:
    """What the copy lacks. group: its row of replicas.json, or {}.  None where it lacks nothing that another copy holds."""
    copy = next((row for row in group.get("copies", ()) if row["store"] == store), None)
    if copy is None or not copy["lacks"]:
        return None
    own = sorted((row for row in group["lacks"] if row["store"] == store), key=lambda row: (-row["messages"], row["holder"]))
    best = group["best"] == store
    for pair in group["pairs"]:
        if pair["relation"] == "diverged" and store in (pair["left"], pair["right"]):
            other = pair["right"] if pair["left"] == store else pair["left"]
            theirs = sum(row["messages"] for row in group["lacks"] if (row["store"], row["holder"]) == (other, store))
            first = (pair["first_difference"] or {}).get("message")
            return AsMaster(copy["lacks"], own[0]["holder"], own[0]["messages"], other, first, theirs, best)
    return AsMaster(copy["lacks"], own[0]["holder"], own[0]["messages"], best=best)
