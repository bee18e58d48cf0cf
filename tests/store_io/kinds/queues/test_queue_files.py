"""The files of queues, before entries are written into them."""

from __future__ import annotations

from pathlib import Path

from schemas.rows import MappedFile
from store_io.kinds.queues.queue_files import prepare_queues, remove_strays
from store_io.kinds.queues.queue_plan import QueuePlan
from tests.support.stores.small_repairs import copied, small_store

FOLDER = "consumequeue/TopicA/0"


def test_the_files_that_are_needed_are_there_and_empty_but_for_what_stays(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, _):
        size = work.rules.queue_file_bytes
        kept = MappedFile(f"{FOLDER}/{0:020d}", 0, size)
        old = work.source.read_small(kept.path)
        count = size // 20
        plan = QueuePlan(("TopicA", 0), FOLDER, keep=2, keep_files=[kept], first=2, end=count + 1, reasons=["queue_entry_wrong"])
        plan.answered = [{"first": 2, "end": 5}]
        prepare_queues(work, [plan])
        assert [e.path for e in work.tree.children(FOLDER)] == [f"{FOLDER}/{0:020d}", f"{FOLDER}/{size:020d}"]
        assert work.source.read_small(kept.path) == old[:40] + bytes(size - 40) and any(old[40:])
        (step,) = work.steps.rows
        assert (step["action"], step["file"], step["start"], step["end"]) == ("rebuild_queue", FOLDER, 40, 20 * (count + 1))
        assert (step["kept"], step["lost"], step["reason"]) == ({"entries": count - 1}, {"positions": 3}, "queue_entry_wrong")


def test_what_is_no_queue_goes(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    (root / "consumequeue" / "file").write_bytes(b"x")
    (root / "consumequeue" / "TopicA" / "x").write_bytes(b"xyz")
    with copied(root, conf, tmp_path / "new") as (work, audit):
        remove_strays(work, audit)
        assert {(step.file, step.lost["bytes"]) for step in work.steps.done} == {
            ("consumequeue/file", 1),
            ("consumequeue/TopicA/x", 3),
        }
        assert not {"consumequeue/file", "consumequeue/TopicA/x"} & work.tree.by_path.keys()
        assert work.tree.children(FOLDER)
