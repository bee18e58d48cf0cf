"""Outcomes made by hand, with names that are hostile to terminals, pages and paths. No Spark, no store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.report.files.result_files import RunInfo
from schemas.advice import Advice, Cause, Gap, Refusal, RefusalKind, Step
from schemas.finding_codes import CATALOGUE
from schemas.losses import GroupBeyond, LevelBeyond, LossOfStart, TopicLoss
from schemas.outcome import Outcome
from schemas.repair import RepairProposal, RepairStep
from schemas.replicas import Group, GroupCopy, Lacked, LackedQueue, LackedRange, Pair, Relation
from schemas.rows import Finding, FurthestRun, PlanStep
from schemas.start_effect import (
    BrokerState,
    ConfigLoad,
    LostByStart,
    QueueEnds,
    QueueLost,
    Setting,
    Started,
    StartEffect,
    WrittenFile,
)
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.wording.gaps import gap_text
from tests.support.handmade.outcome_fields import alter, handmade

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\n'\"&"
HOSTILE_NAMES = [
    HOSTILE, "<img src=x onerror=alert(1)>", "]]>--><style>*{display:none}</style>",
    "../../etc/passwd", "a" * 255,
    "\u202egnp.exe", "x\x00y\x1b]0;t\x07", "\ud800lone", "javascript:alert(1)", "$(touch gone)`id`;|&", "-rf", "--", "'",
    '"', "é消息🚀",
]  # fmt: skip
START_MS = 1_795_209_630_000  # 2026-11-20 21:20:30 UTC

RUN = RunInfo("run-1", "1.2.3", "7", datetime(2026, 11, 21, 8, 0, 5, tzinfo=UTC), 2.5, "/out/tables")


def clean() -> Outcome:
    """A store with nothing to say."""
    return handmade(
        "calm",
        "/copies/calm",
        "5.3.3",
        0,
        **_start(truncate_at=900, lost=0),
        bytes_read=4096,
        seconds=0.21,
        segments=[_segment(0, [("message", 0, 900, 9, False, ""), ("unwritten", 900, 1024, 0, False, "")])],
        messages=9,
        first_store_time=START_MS,
        last_store_time=START_MS + 61_000,
        segment_count=1,
    )


def _found(code: str, file: str, severity: str, message: str, **more: Any) -> Finding:
    """A finding with the catalogue's own step, unless another is given."""
    return Finding(code, file, severity=severity, message=message, **{"next": CATALOGUE[code].next, **more})


def damaged() -> Outcome:
    """A store with a cut, a loss, hostile topics and findings of every severity."""
    findings = [
        Finding(
            "commitlog_damaged", "commitlog/00000000000000001024", 100, 300, "loss", 1124, expected="0x1", actual="0x2",
            message="the body's checksum does not fit", next=CATALOGUE["commitlog_damaged"].next,
        ),
        *(
            Finding(
                "queue_entry_wrong", f"consumequeue/{HOSTILE}/0/00000000000000000000", 20 * i, 20 * i + 20, "rebuildable",
                topic=HOSTILE, queue_id=0, queue_offset=i, message=f"entry of {HOSTILE}", count=2,
                next=Advice(Step.REBUILD_QUEUE),
            )
            for i in range(25)
        ),
        Finding("checkpoint_zero", "abort", severity="note", message="the abort marker is there", next=Advice(Step.NOTHING)),
    ]  # fmt: skip
    return handmade(
        "hurt-\u202e",
        f"/copies/{HOSTILE}",
        "4.9.8",
        20,
        **_start(truncate_at=1124, lost=12),
        repairs=proposed(6),
        findings=findings,
        dropped={"queue_entry_wrong": 5},
        counts={"loss": 1, "rebuildable": 25, "note": 1},
        bytes_read=1_610_613_762,
        seconds=75.0,
        segments=[
            _segment(0, [("message", 0, 1000, 10, False, ""), ("filler", 1000, 1024, 0, False, "")]),
            _segment(
                1024,
                [
                    ("message", 0, 100, 1, False, ""),
                    ("damaged", 100, 300, 0, False, "body_crc"),
                    ("message", 300, 700, 4, True, ""),
                    ("message", 700, 900, 3, False, ""),
                    ("unwritten", 900, 1024, 0, False, ""),
                ],
            ),
        ],
        queues=[{"topic": HOSTILE, "queue_id": 0, "log_messages": 14, "wrong": 25}],
        index_files=[{"file": "index/20261120212030000", "entries": 3}],
        loss=LossOfStart(
            12,
            3456,
            (TopicLoss(HOSTILE, 9, START_MS, START_MS + 5000), *(TopicLoss(f"t{i}", 1, -1, 1 << 62) for i in range(6))),
            (GroupBeyond(HOSTILE, "t", 3, 1263, 251),),
            (LevelBeyond(3, 9, 4),),
        ),
        messages=18,
        first_store_time=START_MS,
        last_store_time=START_MS + 90_000_000,
        segment_count=2,
        damaged_extents=1,
        replica_group="g",
    )


def proposed(by_broker: int = 18, **more: Any) -> tuple[RepairProposal, RepairProposal]:
    """What a repair that goes by each policy would do."""
    return worked_out(BROKER, **{"messages_after": by_broker, **more}), worked_out(SALVAGE, **more)


def worked_out(policy: str, **more: Any) -> RepairProposal:
    """What a repair by the policy would do, one that goes."""
    copied = RepairStep("copy", "", reason="r", kept={"files": 2})
    steps = copied, RepairStep("rebuild_queue", "consumequeue/t/0", reason="r", kept={"entries": 2})
    return RepairProposal(**{"policy": policy, "messages_before": 18, "messages_after": 18, "steps": steps, **more})


def lacking(outcome: Outcome) -> Outcome:
    """The store as the one of two copies that lacks messages."""
    ranges = tuple(
        LackedRange(100 * i, 100 * i + 50, has, 3, 900, START_MS, START_MS + 7) for i, has in enumerate(("damaged", "beyond"))
    )
    alter(outcome, replica_group="g")
    names = outcome.name, HOSTILE
    lacks = (Lacked(store, holder, ranges=ranges) for store, holder in (names, names[::-1]))
    alter(outcome, replicas=Group("g", copies=tuple(map(GroupCopy, names)), lacks=tuple(lacks)))
    return outcome


def behind(outcome: Outcome, parted: bool = False) -> Outcome:
    """The store as one of two copies that lacks 300 messages of the other; parted: as one that holds 20 others in their place."""
    alter(outcome, replica_group="g")
    pair = Pair("master", outcome.name, Relation.DIVERGED if parted else Relation.BEHIND, same_until=900)
    queue = LackedQueue("t", 0, 1, 1, 0, 0, START_MS, START_MS)
    lacks = [Lacked(outcome.name, "master", 300, 900, (queue,))]
    lacks += [Lacked("master", outcome.name, 20, 900, (queue,))] if parted else []
    copies = (
        GroupCopy(name, start=0, end=900, messages=9, lacks=lack, loses=lack)
        for name, lack in (("master", 20 * parted), (outcome.name, 300))
    )
    alter(outcome, replicas=Group("g", "master", "master would lose 0 messages.", tuple(copies), (pair,), tuple(lacks)))
    return outcome


def empty() -> Outcome:
    """A store of a broker that never got a message."""
    outcome = clean()
    alter(outcome, name="new", messages=0, segment_count=0, segments=[], counts={"note": 1})
    alter(
        outcome,
    )
    alter(outcome, findings=[_found("commitlog_empty", "commitlog", "note", "no message", actual="no message")])
    return outcome


SAW = "the audit of 2026-11-20 02:15 UTC saw 2,153 messages"


def emptied() -> Outcome:
    """A store whose CommitLog is gone; an earlier audit saw its messages."""
    outcome = empty()
    alter(outcome, name="wiped", exit_code=20, counts={"loss": 2})
    alter(outcome, furthest=FurthestRun("r1", "2026-11-20 02:15", 2153, 90_000))
    alter(outcome, queues=[{"topic": "t", "queue_id": 0, "disk_entries": 9}])
    alter(
        outcome,
        findings=[
            _found("commitlog_emptied", "commitlog", "loss", "it held some"),
            _found("commitlog_shrunk", "commitlog", "loss", SAW),
        ],
    )
    return outcome


def shrunk() -> Outcome:
    """A store whose log ends before the end that an earlier audit saw."""
    outcome = clean()
    alter(outcome, name="short", exit_code=20, counts={"loss": 1})
    alter(outcome, furthest=FurthestRun("r1", "2026-11-20 02:15", 2153, 90_000))
    alter(
        outcome,
        findings=[_found("commitlog_shrunk", "commitlog", "loss", SAW)],
    )
    return outcome


def already_damaged() -> Outcome:
    """A store with damage that no start makes worse."""
    outcome = clean()
    alter(outcome, name="scarred", exit_code=20, counts={"loss": 1})
    alter(
        outcome,
    )
    alter(
        outcome,
        findings=[_found("commitlog_damaged", f"commitlog/{0:020}", "loss", "damaged", start=100, end=300, phy_offset=100)],
    )
    return outcome


def changed() -> Outcome:
    """A store with a segment whose bytes changed under the same modification time."""
    outcome = clean()
    alter(outcome, name="turned", exit_code=20, counts={"loss": 1})
    file = f"commitlog/{0:020}"
    alter(outcome, findings=[_found("segment_changed", file, "loss", "not those of r1", expected="d1", actual="d2")])
    return outcome


def not_audited() -> Outcome:
    """A store that could not be opened."""
    gap = Gap(Cause.NOT_A_STORE, values=(f"/copies/{HOSTILE}: no commitlog folder",))
    return Outcome("gone", "/copies/gone", "5.5.0", 3, [gap_text(gap)], [gap])


def rebuild() -> Outcome:
    """A store of which only queue entries differ."""
    outcome = clean()
    alter(outcome, name="rebuild", exit_code=10, counts={"rebuildable": 1})
    alter(outcome, findings=[_found("queue_entry_wrong", "consumequeue/t/0/0", "rebuildable", "its size differs")])
    return outcome


def refused() -> Outcome:
    """A store on which the release would not start."""
    outcome = clean()
    alter(outcome, name="stuck", exit_code=20)
    alter(outcome, counts={"loss": 1, "rebuildable": 1})
    with_refusal(outcome, Refusal(RefusalKind.FILE_NAME, "commitlog/x.swp"))
    alter(outcome, repairs=(worked_out(BROKER, messages_after=6), worked_out(SALVAGE, messages_after=9)))
    alter(
        outcome,
        findings=[
            _found(
                "file_unrecognised",
                "commitlog/x.swp",
                "rebuildable",
                "a name that stops the broker",
                next=Advice(Step.REMOVE_FILE),
            ),
            _found("broker_refuses", "commitlog/x.swp", "loss", "it has no number"),
        ],
    )
    return outcome


def _segment(base: int, extents: list[tuple[str, int, int, int, bool, str]]) -> dict[str, object]:
    names = ("kind", "start", "end", "message_count", "plausible", "reason")
    return {
        "file": f"commitlog/{base:020}",
        "base_offset": base,
        "size_bytes": 1024,
        "digest": "d",
        "messages": sum(e[3] for e in extents),
        "damaged_bytes": sum(e[2] - e[1] for e in extents if e[0] == "damaged"),
        "extents": [dict(zip(names, e, strict=True)) for e in extents],
    }


def _start(truncate_at: int, lost: int) -> dict[str, Any]:
    """Fields of an outcome on a start that loses so many messages."""
    queues = [QueueEnds("t", 0, 0, 9, truncate_at)]
    state = BrokerState((WrittenFile(f"{0:020}", 900),), queues, ())
    started = Started(
        f"{0:020}",
        "body_crc" if lost else "unwritten",
        0,
        truncate_at,
        [f"commitlog/{4096:020}"] if lost else [],
        state,
        state,
        lost=LostByStart(lost, 3456 if lost else 0, []),
    )
    config = ConfigLoad("", None, {"topics.json": "topics.json"}, 2, 1, 3)
    settings = {"storeType": Setting("default", "default"), "maxIndexNum": Setting(1000, "broker.conf")}
    return {
        "effect": StartEffect(started, not lost, config=config),
        "steps": [PlanStep("keep", f"commitlog/{0:020}", 0, 900, "sound")],
        "settings": {**settings, "checkCRCOnRecover": Setting(True, "default")},
        "inputs": [{"digest": "d", "file": f"commitlog/{0:020}", "size": 1024}],
    }


def start_changed(outcome: Outcome, **more: Any) -> None:
    """Let the start have these fields."""
    assert outcome.effect is not None and outcome.effect.started is not None
    alter(outcome, effect=replace(outcome.effect, started=replace(outcome.effect.started, **more)))


def with_refusal(outcome: Outcome, refusal: Refusal) -> None:
    """Let the release not start."""
    alter(outcome, effect=StartEffect(None, refusal=refusal))


def hostile_outcome(name: str) -> Outcome:
    """Every text that can come from a store holds it."""
    outcome = damaged()
    alter(outcome, name=name, location_text=name, replica_group=name)
    alter(outcome, incomplete=[name])
    step = Advice(Step.TAKE_OVER_OR_COPY, (name, name, name))
    alter(
        outcome,
        findings=[
            Finding(code, f"consumequeue/{name}/0/0", 0, 20, severity, 5, name, 0, 7, name, name, name, step, 3)
            for code, severity in (
                ("queue_entry_wrong", "rebuildable"),
                ("commitlog_damaged", "loss"),
                ("file_unrecognised", "note"),
            )
        ],
    )
    alter(
        outcome,
        queues=[{"topic": name, "queue_id": 0, "wrong": 3, "problem": name, "log_end_offset": 9, "dispatch_max_offset": 1}],
    )
    alter(outcome, index_files=[{"file": f"index/{name}", "findings": 1, "problem": name}])
    alter(outcome, loss=LossOfStart(1, 2, (TopicLoss(name, 1, 1, 2),), (GroupBeyond(name, name, 0, 9, 1),)))
    outcome.rows.segments[0] |= {"problem": name, "file": f"commitlog/{name}"}
    outcome.rows.segments[1]["extents"][1]["reason"] = name
    start_changed(
        outcome, deleted_files=[name], start_segment=name, stop_reason=name, lost=LostByStart(1, 2, [QueueLost(name, 0, 1, 1, 2)])
    )
    alter(outcome, steps=[PlanStep("delete", name, 0, 1, name)] * 2)
    alter(outcome, settings={name: Setting(name, name)})
    return outcome


def every_kind() -> list[Outcome]:
    """Outcomes of every kind and code, alone and as copies that lack messages of their group."""
    made = (clean, already_damaged, changed, damaged, not_audited, refused, empty, emptied, shrunk)
    alone = [make() for make in (*made, rebuild)]
    return alone + [behind(replace(make(), name=f"{make().name}-{parted}"), parted) for make in made for parted in (False, True)]


MAKERS = [clean, damaged, not_audited, refused]
"""One of each answer: the golden files' stores."""
