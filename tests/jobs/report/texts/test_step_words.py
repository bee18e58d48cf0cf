"""A step of a repair in words, and the names of files that a start deletes."""

from __future__ import annotations

from jobs.report.texts.step_words import VERBS, step_text
from store_io.repair.repair_steps import ACTIONS


def test_every_action_has_a_verb() -> None:
    assert set(VERBS) == set(ACTIONS)


def test_a_step_says_what_it_keeps_and_loses() -> None:
    step = {
        "number": 7, "action": "rebuild_queue", "file": "consumequeue/t/0", "start": 0, "end": 1200,
        "reason": "queue_entry_wrong", "kept": {"entries": 60}, "lost": {"positions": 1, "entries": 2},
    }  # fmt: skip
    said = "rebuild consumequeue/t/0 0 to 1,200: queue_entry_wrong; kept 60 entries; lost 2 entries, 1 position"
    assert step_text(step) == said
    assert step_text({**step, "file": "", "start": None, "kept": {}, "lost": {}}) == "rebuild: queue_entry_wrong"
