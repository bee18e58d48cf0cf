"""What a repair's report counts."""

from __future__ import annotations

from pathlib import Path

from store_io.repair.repair_report import lost_beyond
from tests.support.stores.small_repairs import copied, small_store


def test_messages_beyond_the_new_end(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (_, audit):
        messages, size = lost_beyond(audit, 0)
        assert messages == audit.outcome.messages and size > 0
        assert lost_beyond(audit, audit.last_message + 1) == (0, 0)
        base = audit.segments[-1].base_offset
        last = sum(e.message_count for e in audit.segments[-1].extents)
        assert lost_beyond(audit, base)[0] == last < messages
