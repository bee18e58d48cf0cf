"""The plan's steps as a page shows them."""

from __future__ import annotations

from typing import Any

from tests.support import samples
from tests.support.pages import page_of


def test_what_one_cut_takes_from_many_queues_is_told_as_one() -> None:
    def step(action: str, file: str, reason: str = "cut") -> dict[str, Any]:
        return {"action": action, "file": file, "start": 0, "end": 20, "reason": reason, "lost_messages": 2, "lost_bytes": 9}

    outcome = samples.damaged()
    queues = [step("delete" if i % 2 else "truncate", f"consumequeue/t{i}/0/0") for i in range(10)]
    outcome.plan["steps"] = [
        step("keep", "commitlog/0", "sound"),
        step("delete", "commitlog/1"),
        *queues,
        step("rebuild", "index/1"),
    ]
    text = page_of(outcome).text.partition("made consistent, step by step")[2]
    assert (
        "1. keep commitlog/0, bytes 0 to 20" in text and "2. delete commitlog/1, bytes 0 to 20, gives up 2 messages, 9 B" in text
    )
    assert "3 to 12. delete 5 queue files, truncate 5 queue files, gives up 20 messages, 90 B" in text
    assert "13. rebuild index/1" in text
