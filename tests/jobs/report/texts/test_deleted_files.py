"""What the files are that a start deletes."""

from __future__ import annotations

from jobs.report.texts.step_words import deleted_files
from tests.support.handmade import samples


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
