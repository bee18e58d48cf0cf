"""The part of a store's page about controller mode: the fenced broker, and what its election as master changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report.pages.page import View
from schemas.rows import Row

MAX_ROWS = 100


@dataclass(frozen=True)
class QueueEnds:
    """A queue's ends while the broker is fenced and after its election; None if it has no such queue then."""

    topic: str
    queue_id: int
    fenced: int | None
    elected: int


@dataclass(frozen=True)
class Moment:
    """The figures of the broker at one moment."""

    name: str
    log_end: int
    queues: int
    entries: int
    keys: int


def controller_view(broker: Row) -> View:
    """Return the data of controller.html.

    broker: of a store in controller mode that would start.
    """
    controller, fenced, elected = broker["controller"], broker["after_dispatch"], broker["after_election"]
    moments = [_moment("fenced, before the controller has answered", fenced, broker["truncate_at"])]
    cut_at = None
    if elected is not None:
        cut_at = controller["election"]["cut_at"]
        moments.append(_moment("elected as master", elected, broker["truncate_at"] if cut_at is None else cut_at))
    return {
        "identity": controller.get("identity"),
        "confirmed": controller["confirm_offset"],
        "epochs": controller["epochs"][-MAX_ROWS:],
        "of_epochs": len(controller["epochs"]),
        "election": controller["election"],
        "moments": moments,
        "queues": _ends(fenced["queues"], elected["queues"]) if elected is not None else [],
        "left": (broker.get("lost") or {}).get("messages", 0) if elected is not None and cut_at is None else 0,
    }


def _moment(name: str, state: Row, log_end: int) -> Moment:
    entries = sum(max(0, q["max_offset"] - q["min_offset"]) for q in state["queues"])
    keys = sum(max(0, f["index_count"] - 1) for f in state["index"])
    return Moment(name, log_end, len(state["queues"]), entries, keys)


def _ends(fenced: Sequence[Row], elected: Sequence[Row]) -> list[QueueEnds]:
    before = {(q["topic"], q["queue_id"]): q["max_offset"] for q in fenced}
    rows = [QueueEnds(q["topic"], q["queue_id"], before.get((q["topic"], q["queue_id"])), q["max_offset"]) for q in elected]
    return [row for row in rows if row.fenced != row.elected]
