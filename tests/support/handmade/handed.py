"""A hand-over made by hand, with names that are hostile to pages and terminals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobs.report.pages.hand_over_page import HandOver, HandOverFiles
from store_io.repair.repair_steps import Steps
from tests.support.handmade.samples import HOSTILE

NEW = "/new/broker-a"
SUFFIXES = ".repair.json", ".handover.html", ".unsaved.jsonl", ".resend.jsonl", ".plan.json"
FILES = HandOverFiles(*(NEW + suffix for suffix in SUFFIXES))


def report(**more: Any) -> dict[str, Any]:
    """That of a repair by which all was saved."""
    steps = Steps()
    steps.add("copy", "", reason="all work is done on a copy", kept={"files": 2, "bytes": 4096})
    steps.add("rebuild_queue", f"consumequeue/{HOSTILE}/0", start=0, end=40, reason="queue_entry_missing", kept={"entries": 2})
    base: dict[str, Any] = {
        "policy": "salvage", "release": "5.3.3", "consistent": True, "settings": "those of the plan", "messages_before": 1700,
        "messages_after": 1700, "lost": {"messages": 0, "bytes": 0}, "log_end": 9000, "unblocked": [], "bridges": [],
        "given_up": {"messages": 0, "missing": 0, "cut": 0, "earlier": 0, "signs": []}, "dropped": [], "unserved": [],
        "removed": [], "queues": [], "index": {"reasons": []}, "moved": [], "not_copied": [], "needed_bytes": 1, "kept": [],
        "answered": [], "donor": None, "steps": steps.rows, "config": [], "config_in_copy": True,
        "config_written": False, "timers": None,
        "problems": [], "made_at": "2026-11-20 21:20:30", "positions_set_back": 0, "offsets": [], "healed": None,
    }  # fmt: skip
    return base | more


def config_row(**more: Any) -> dict[str, Any]:
    """A file of config/ that --fix-config replaces, as the report has it."""
    base: dict[str, Any] = {
        "file": "config/consumerOffset.json", "removed": False, "left_out": False, "emptied": False, "lost": 0, "reason": "r",
        "taken_from": [], "time_ms": None, "time_from": None, "entries": 0, "added": [], "added_count": 0, "not_kept": [],
        "unproven": "",
    }  # fmt: skip
    return base | more


def named(number: int, **more: Any) -> dict[str, Any]:
    """One message that could not be saved."""
    row = {"why": "missing", "topic": HOSTILE, "queue_id": 0, "queue_offset": number, "messages": 1, "phy_offset": 500 + number}
    return row | {"size": 200, "key_hashes": [7, 1029605767]} | more


def saved() -> HandOver:
    """Nothing is lost, nothing is assumed."""
    return HandOver(
        copy="/copies/a b",
        target=NEW,
        words=("/copies/a b", "--release", "5.3.3", "--broker-conf", "/conf/broker.conf"),
        report=report(),
        files=replace(FILES, unsaved="", resend=""),
        settings=[("mappedFileSizeCommitLog", "131072", "broker.conf")],
        places=[("storePathRootDir", "/data/store"), ("storePathCommitLog", "/disk2/log")],
        ends=[("TopicA", 0, 0, 300)],
        queues=1,
    )


def lossy() -> HandOver:
    """Something of every kind is lost, moved or left."""
    handed = saved()
    row = {"topic": HOSTILE, "queue_id": 0}
    bridge = {"kind": "record", "file": "commitlog/00000000000000000000", "start": 500, "end": 700, "phy_offset": 500}
    group = {"kind": "group", "group": HOSTILE, "sentence": f"group {HOSTILE} is at 90 of TopicA queue 0, which ends at 80"}
    given_up = {"messages": 133, "missing": 121, "cut": 9, "earlier": 3, "signs": []}
    healed = {"file": "commitlog/0", "position": 3672, "field": "PHYSICALOFFSET", "old": "1e", "new": "0e", "topic": "T"}
    healed |= {"queue_id": 1, "queue_offset": 283, "reason": "every check accepts it", "risk": 1e-9}
    form = {"file": "config/topics.json.bak", "time_ms": 5, "time_from": "dataVersion", "entries": [HOSTILE], "count": 1}
    told = report(
        messages_after=1691, lost={"messages": 9, "bytes": 900}, given_up=given_up, bridges=[bridge], offsets=[group],
        offsets_set_back=["config/consumerOffset.json"], positions_set_back=1, answered=[{**row, "first": 5, "end": 8}],
        moved=[{**row, "first": 3, "end": 4, "stored": 9, "phy_offset": 1}],
        unserved=[{**row, "first": 4, "end": 5, "phy_offset": 4, "reason": HOSTILE}],
        kept=[{"file": "commitlog/0", "message": HOSTILE}], topics_unknown=[HOSTILE, "TopicB"], not_copied=["fifo"],
        unblocked=["a file is too short"], healed={
            "risk": 1e-4, "total_risk": 1e-9, "records": [healed], "not_healed": [], "not_healed_count": 0, "more": 0,
        },
        donor={"path": "/donor", "sentence": "3 ranges were taken", "taken": [], "not_taken": []},
        timers={"sentence": "timers: 3 messages wait"}, config_written=True,
        config=[config_row(file="config/topics.json", taken_from=["log"], entries=1, added=[HOSTILE], added_count=1,
                           unproven="permissions", reason="it was lost", not_kept=[form])],
    )  # fmt: skip
    rows = [*(named(n) for n in range(99)), named(99, messages=21, phy_offset=None, key_hashes=None), named(200, why="cut")]
    return replace(
        handed, report=told, files=FILES, named=rows[:100], named_count=129, not_named=1, assumed=["No release was named."],
        ends=[(HOSTILE, n, 0, 300) for n in range(30)], queues=1000,
    )  # fmt: skip
