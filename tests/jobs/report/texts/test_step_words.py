"""A step of a repair in words, and the names of files that a start deletes."""

from __future__ import annotations

from jobs.report.texts.step_words import VERBS, deleted_files, step_text
from store_io.repair.repair_steps import ACTIONS
from tests.support.handmade import samples


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


def test_files_are_told_by_what_they_hold_those_with_messages_first() -> None:
    outcome = samples.clean()
    assert deleted_files(outcome) == []
    full = outcome.segments[0]
    unwritten = {**full, "file": "commitlog/1", "messages": 0, "extents": [{"kind": "unwritten", "start": 0, "end": 1024}]}
    damaged = {**unwritten, "file": "commitlog/2", "extents": [{"kind": "damaged", "start": 0, "end": 1024}]}
    empty = {**unwritten, "file": "commitlog/3", "size_bytes": 0}
    outcome.segments += [unwritten, damaged, empty]
    names = ["index/20", "consumequeue/t/0/0", "commitlog/1", "commitlog/2", "commitlog/3", "commitlog/4", full["file"], "odd"]
    outcome.plan["broker"]["deleted_files"] = names
    found = deleted_files(outcome)
    assert [(deleted.words, deleted.held) for deleted in found] == [
        ("1 segment with 9 valid messages", True),
        ("1 segment with damaged bytes and no valid message", False),
        ("1 empty preallocated segment", False),
        ("1 empty file in commitlog/", False),
        ("1 file in commitlog/", False),
        ("1 ConsumeQueue file", False),
        ("1 index file", False),
        ("1 file", False),
    ]
    assert sorted(name for deleted in found for name in deleted.files) == sorted(names)
