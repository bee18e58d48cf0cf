"""The verdict on a copy that lacks messages of its group: whether it should be started as master.

A slave whose log ends earlier is normal, and no finding. But as master it loses what it lacks, so it is never called safe
to start. Nor is a copy that has diverged from another, where each holds messages at the same physical offsets: whichever of them
becomes master, the other's are lost. Nor is one of two copies with two forms of a message, while nothing shows which is right. No
start drops any of them from its own copy, so the exit code does not show it.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.rows import Row
from store_io.base.wording import count_text


@dataclass(frozen=True)
class AsMaster:
    """A copy that lacks messages of its group.

    lacks: how many.
    holder, holds: the other copy that has most of these, and how many.
    diverged_from: the copy with other messages at the same offsets, "" without one.
    diverged_at: the physical offset of the first message that differs, None if it is not known.
    other_lacks: messages of this copy that the other lacks.
    undecided: messages of which the two hold two forms, and nothing shows which is right.
    best: no copy of the group would lose fewer.
    """

    lacks: int
    holder: str
    holds: int
    diverged_from: str = ""
    diverged_at: int | None = None
    other_lacks: int = 0
    best: bool = False
    undecided: int = 0

    def headline(self) -> str:
        """The answer, short."""
        yet = " yet" if self.best else ""
        if self.undecided:
            return f"Do not start this copy as master yet: {self._two_forms()}"
        if self.diverged_from:
            return f"Do not start this copy as master{yet}: it and {self.diverged_from} each hold messages that the other lacks"
        though = ", though no other copy would lose fewer" if self.best else ""
        return f"Do not start this copy as master{yet}: it lacks {count_text(self.lacks, 'message')} of its group{though}"

    def _two_forms(self) -> str:
        messages = count_text(self.undecided, "message")
        return f"it and {self.diverged_from} differ in {messages}, and nothing shows which copy is right"

    def verdict(self) -> str:
        """Return the answer with its numbers and holders, a sentence without its full stop."""
        if self.undecided:
            more = f"; other copies hold {count_text(self.lacks, 'message')} that this copy lacks" if self.lacks else ""
            return f"Do not start this copy as master yet: {self._two_forms()}{more}"
        yet = " yet" if self.best else ""
        lacks = count_text(self.lacks, "message")
        if self.holds == self.lacks:
            held = f"{self.holder} holds {lacks} that this copy lacks"
        else:
            held = f"other copies hold {lacks} that this copy lacks, {self.holder} {self.holds:,} of them"
        if self.diverged_from:
            since = f" from physical offset {self.diverged_at} on" if self.diverged_at is not None else ""
            held += (
                f"; it and {self.diverged_from} differ{since}, where this copy holds {count_text(self.other_lacks, 'message')}"
                f" that {self.diverged_from} lacks"
            )
        return f"Do not start this copy as master{yet}: {held}"


def as_master(group: Row, store: str) -> AsMaster | None:
    """Return the facts on messages that the copy lacks; None if it lacks nothing that another copy holds.

    group: its row of replicas.json, or {}.
    """
    copy = next((row for row in group.get("copies", ()) if row["store"] == store), None)
    if copy is None or not (copy["lacks"] or copy.get("undecided")):
        return None
    own = sorted((row for row in group["lacks"] if row["store"] == store), key=lambda row: (-row["messages"], row["holder"]))
    best = group["best"] == store
    for pair in group["pairs"]:
        if pair["relation"] == "diverged" and store in (pair["left"], pair["right"]):
            other = pair["right"] if pair["left"] == store else pair["left"]
            theirs = sum(row["messages"] for row in group["lacks"] if (row["store"], row["holder"]) == (other, store))
            first = (pair["first_difference"] or {}).get("message")
            return AsMaster(copy["lacks"], own[0]["holder"], own[0]["messages"], other, first, theirs, best)
    holder, holds = (own[0]["holder"], own[0]["messages"]) if own else ("", 0)
    if copy.get("undecided"):
        pair = next((p for p in group["pairs"] if p["relation"] == "disputed" and store in (p["left"], p["right"])), None)
        other = "another copy" if pair is None else pair["right"] if pair["left"] == store else pair["left"]
        return AsMaster(copy["lacks"], holder, holds, other, best=best, undecided=copy["undecided"])
    return AsMaster(copy["lacks"], holder, holds, best=best)
