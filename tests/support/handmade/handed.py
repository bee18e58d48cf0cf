"""A hand-over made by hand, with names that are hostile to pages and terminals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobs.report.pages.hand_over_page import HandOver, HandOverFiles, NewDisk
from schemas.repair import (
    Bridge,
    ConfigFile,
    DonorReport,
    FindingKept,
    FormLeft,
    GivenUp,
    HealReport,
    LeftMessages,
    MovedRange,
    PositionBeyond,
    QueueRange,
    RepairReport,
    RepairStep,
    SearchedRecord,
    TimersMade,
    UnsavedMessages,
    UnservedRange,
)
from store_io.broker.releases import broker_rules
from store_io.broker.settings.day_settings import DAY_DEFAULTS
from store_io.first_day.cleaning_rules import cleaning_rules
from tests.support.handmade.samples import HOSTILE

NEW = "/new/broker-a"
SUFFIXES = ".repair.json", ".handover.html", ".unsaved.jsonl", ".resend.jsonl", ".plan.json"
FILES = HandOverFiles(*(NEW + suffix for suffix in SUFFIXES))


def report(**more: Any) -> RepairReport:
    """That of a repair by which all was saved."""
    steps = (
        RepairStep("copy", "", reason="all work is done on a copy", kept={"files": 2, "bytes": 4096}),
        RepairStep("rebuild_queue", f"consumequeue/{HOSTILE}/0", 0, 40, "queue_entry_missing", {"entries": 2}),
    )
    base = RepairReport(
        "salvage", "5.3.3", "those of the plan", needed_bytes=1, messages_before=1700, messages_after=1700, log_end=9000,
        steps=steps, made_at="2026-11-20 21:20:30",
    )  # fmt: skip
    return replace(base, **more)


def config_row(**more: Any) -> ConfigFile:
    """A file of config/ that --fix-config replaces, as the report has it."""
    return ConfigFile(**{"file": "config/consumerOffset.json", "reason": "r", **more})


def named(number: int, **more: Any) -> UnsavedMessages:
    """One message that could not be saved."""
    return replace(UnsavedMessages("missing", HOSTILE, 0, number, 1, 500 + number, 200, (7, 1029605767)), **more)


def disk(used: float | None, copy_used: float | None = None, release: str = "5.3.3", **settings: Any) -> NewDisk:
    """That of the new store, and what its broker makes of it."""
    return NewDisk(used, copy_used, cleaning_rules(broker_rules(release), {**DAY_DEFAULTS, **settings}))


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
        disk=disk(61.3, 30.2),
    )


def lossy() -> HandOver:
    """Something of every kind is lost, moved or left."""
    handed = saved()
    row = HOSTILE, 0
    bridge = Bridge("commitlog/00000000000000000000", 500, 700, 500, "record")
    group = PositionBeyond("group", f"group {HOSTILE} is at 90 of TopicA queue 0, which ends at 80", group=HOSTILE)
    change = "PHYSICALOFFSET", 3672, "1e", "0e", "every check accepts it", 1e-9
    healed = SearchedRecord("commitlog/0", 0, 0, 0, *change, "T", 1, 283)
    form = FormLeft("config/topics.json.bak", 5, "dataVersion", (HOSTILE,), 1)
    told = report(
        messages_after=1691, lost=LeftMessages(9, 900), given_up=GivenUp(133, 121, 9, 3), bridges=(bridge,), offsets=(group,),
        offsets_set_back=("config/consumerOffset.json",), positions_set_back=1, answered=(QueueRange(*row, 5, 8, 0),),
        moved=(MovedRange(*row, 3, 4, 1, 9),), unserved=(UnservedRange(*row, 4, 5, 4, HOSTILE, True),),
        kept=(FindingKept("message_lost", "commitlog/0", message=HOSTILE),), topics_unknown=(HOSTILE, "TopicB"),
        not_copied=("fifo",), unblocked=("a file is too short",), healed=HealReport(1e-4, 1e-9, (healed,), 0, (), 0),
        donor=DonorReport("/donor", sentence="3 ranges were taken"),
        timers=TimersMade(True, 3, 0, "timers: 3 messages wait"), config_written=True,
        config=(config_row(file="config/topics.json", taken_from=("log",), entries=1, added=(HOSTILE,), added_count=1,
                           unproven="permissions", reason="it was lost", not_kept=(form,)),),
    )  # fmt: skip
    rows = [*(named(n) for n in range(99)), named(99, messages=21, phy_offset=None, key_hashes=None), named(200, why="cut")]
    return replace(
        handed, report=told, files=FILES, named=rows[:100], named_count=129, not_named=1, assumed=["No release was named."],
        ends=[(HOSTILE, n, 0, 300) for n in range(30)], queues=1000,
    )  # fmt: skip
