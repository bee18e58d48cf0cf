"""The two lists of steps in plan.json, as a store's page shows them: a start's effect on each file, and a repair's steps.

Neighbouring steps of a start that are of one kind are shown as one, so that a cut reads as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from jobs.report.pages.page import View
from jobs.report.texts.commands import not_shown, repair_commands, repair_withheld
from jobs.report.texts.step_text import VERBS, numbers_text
from jobs.report.texts.text import count_text
from schemas.rows import AuditOutcome, Row
from store_io.repair.proposals import proposals

MAX_RUNS = 500
_QUEUE_FOLDERS = {"consumequeue", "batchconsumequeue"}


@dataclass(frozen=True)
class StepRun:
    """Neighbouring steps of one kind."""

    steps: Sequence[Row]

    @property
    def messages(self) -> int:
        return sum(int(step.get("lost_messages") or 0) for step in self.steps)

    @property
    def bytes(self) -> int:
        return sum(int(step.get("lost_bytes") or 0) for step in self.steps)

    @property
    def actions(self) -> list[tuple[str, int]]:
        return sorted(Counter(str(step["action"]) for step in self.steps).items())

    @property
    def things(self) -> tuple[str, str]:
        """Return the words for the files on which the steps act, one and many."""
        tops = {str(step["file"]).partition("/")[0] for step in self.steps}
        if tops == {"commitlog"}:
            return "segment", "segments"
        if tops <= _QUEUE_FOLDERS:
            return ("queue", "queues") if self.steps[0]["action"] == "rebuild" else ("queue file", "queue files")
        return ("index file", "index files") if tops == {"index"} else ("file or queue", "files or queues")


def leaves_view(outcome: AuditOutcome) -> View:
    """Return the data of leaves.html."""
    steps = outcome.plan.get("steps", ())
    runs = [StepRun(list(run)) for _, run in groupby(steps, _kind_of)]
    return {
        "all_kept": all(step["action"] == "keep" for step in steps),
        "runs": runs[:MAX_RUNS],
        "not_shown": sum(len(run.steps) for run in runs[MAX_RUNS:]),
    }


def repair_view(outcome: AuditOutcome, words: Sequence[str], plan: str, to: str, in_use: str = "") -> View:
    """What repair.html shows. words, plan, to: as `repair_commands` takes them.  in_use: as `next_steps`."""
    repairs, planned = [] if in_use else repair_commands(outcome, words, plan, to), outcome.plan.get("repair") or {}
    return {
        "withheld": repair_withheld(outcome) or in_use,
        "unshown": not_shown(words, [("--plan", plan)]) if repairs else "",
        "repairs": repairs,
        "policies": [_policy(one.policy, planned[one.policy]) for one in proposals(planned) if repairs],
    }


def _policy(name: str, part: Row) -> View:
    """Return the steps of a repair by one policy, for repair.html."""
    rows = [
        {
            **step, "verb": VERBS[step["action"]], "kept": numbers_text(step["kept"]), "lost": numbers_text(step["lost"]),
            "gives_up": not step["lost"].keys().isdisjoint(("messages", "positions")),
        }
        for step in part["steps"]
    ]  # fmt: skip
    return {**part, "policy": name, "steps": rows, "keeps": _keeps(part) if part["refused"] is None else ""}


def _keeps(part: Row) -> str:
    """How many messages a repair keeps, against those that are valid in the copy; healed ones are not."""
    kept, before = part["messages_after"] - part["healed"], part["messages_before"]
    valid = count_text(before, "valid message")
    own = (
        f"all {valid}"
        if kept == before
        else f"{kept:,} of {valid}"
        if kept < before
        else f"{valid} and {kept - before:,} of a donor"
    )
    return f"{own} and {part['healed']:,} healed" if part["healed"] else own


def _kind_of(step: Row) -> tuple[str, str, str]:
    """Return the key by which steps are put together.

    Segments with the same key have the same action, queue files are all those that a cut takes.
    """
    top = str(step["file"]).partition("/")[0]
    return top, str(step["reason"]), "" if top in _QUEUE_FOLDERS and step["action"] != "rebuild" else str(step["action"])
