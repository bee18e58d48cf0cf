"""A step of a repair in words, and the names of files that a start deletes."""

from __future__ import annotations

from jobs.report.texts.step_words import VERBS, step_text
from schemas.repair import RepairStep
from store_io.repair.repair_steps import ACTIONS


def test_every_action_has_a_verb() -> None:
    assert set(VERBS) == set(ACTIONS)


def test_a_step_says_what_it_keeps_and_loses() -> None:
    kept, lost = {"entries": 60}, {"positions": 1, "entries": 2}
    step = RepairStep("rebuild_queue", "consumequeue/t/0", 0, 1200, "queue_entry_wrong", kept, lost)
    said = "rebuild consumequeue/t/0 0 to 1,200: queue_entry_wrong; kept 60 entries; lost 2 entries, 1 position"
    assert step_text(step) == said
    assert step_text(RepairStep("rebuild_queue", "", reason="queue_entry_wrong")) == "rebuild: queue_entry_wrong"
