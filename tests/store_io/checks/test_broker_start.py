"""What a start would do to a copy, as findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jobs.report.files.result_files import finding_row
from schemas.advice import Refusal, RefusalKind, Step
from schemas.rows import NOTE, REBUILDABLE, Finding, MappedFile, QueueKey
from store_io.broker.epochs import Elected, Epoch
from store_io.broker.prediction import Fenced, Memory, Prediction
from store_io.broker.queues.combination import combination_refusal, late_combination_refusal
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS
from store_io.checks.broker_start import broker_findings as found
from store_io.kinds.config.config_reader import Load, StoreConfig
from store_io.model.evidence import Evidence
from store_io.model.loss import Loss, QueueLoss
from store_io.wording.refusals import refusal_sentence
from store_io.wording.steps import next_text
from tests.support.handmade.evidence import QUEUE_FILE, copy_of, evidence_of, queue_path

KEY: QueueKey = ("T", 0)
LENGTH = Refusal(RefusalKind.FILE_LENGTH, "commitlog/0", expected=2, actual=1)
LIGHT_OFFSET = Refusal(RefusalKind.LIGHT_OFFSET, "commitlog/0", actual="x", phy_offset=400)


def started(
    loss: Loss, *, entries: int = 5, hangs_at: int = -1, hangs_why: Refusal | None = None, config: StoreConfig | None = None
) -> Evidence:
    """Evidence of a start that cuts the log at 700 and keeps so many entries."""
    queue = QueueState(KEY, False, "consumequeue/T/0", broker_rules(), lambda *_: np.zeros(0))
    queue.set_recovered([MappedFile(queue_path(0), 0, QUEUE_FILE)], 20 * entries, -1)
    prediction = Prediction(
        True, False, stop_segment="commitlog/0", stop_position=700, truncate_at=700, stop_reason="size",
        hangs_at=hangs_at, hangs_why=hangs_why, after_dispatch=Memory([], {KEY: queue}, []),
    )  # fmt: skip
    copy = copy_of({CONSUMER_OFFSETS: 30, DELAY_OFFSETS: 20}, config=config or StoreConfig())
    return evidence_of(copy, prediction=prediction, loss=loss)


def test_what_is_not_known_is_not_told() -> None:
    assert found(evidence_of()) == []


def test_a_refusal_names_the_file_and_a_step_for_config() -> None:
    def refused(**more: Any) -> Finding:
        tables = StoreConfig(loads={"config/topics.json": Load()})
        copy = copy_of({"config/topics.json": 1, "commitlog/0": 1}, config=tables)
        (finding,) = found(evidence_of(copy, prediction=Prediction(False, False, **more)))
        return finding

    log, config = refused(refusal=LENGTH), refused(refusal=Refusal(RefusalKind.CONFIG_FILE, "config/topics.json"))
    assert (log.code, log.file, log.next) == ("broker_refuses", "commitlog/0", None)
    assert config.file == "config/topics.json" and config.next is not None and config.next.step == Step.RESTORE_REFUSED


@pytest.mark.parametrize(
    ("release", "given", "line"),
    [
        ("5.5.0", {}, "rocksdbCQDoubleWriteEnable=true"),
        ("5.5.0", {"combineCQUseRocksdbForLmq": False}, "combineCQUseRocksdbForLmq=false"),
        ("5.4.0", {"combineCQLoadingCQTypes": "x"}, "combineCQLoadingCQTypes=x"),
        ("5.4.0", {"combineCQPreferCQType": "rocksdb"}, "combineCQPreferCQType=rocksdb"),
        ("5.5.0", {"combineCQUseRocksdbForLmq": True, "combineCQLoadingCQTypes": "default"}, "combineCQLoadingCQTypes=default"),
        (
            "5.5.0",
            {"combineCQUseRocksdbForLmq": True, "combineAssignOffsetCQType": "defaultRocksDB"},
            "combineAssignOffsetCQType=",
        ),
        (
            "5.5.1",
            {"rocksdbCQSelectiveDoubleWriteEnable": True, "combineCQPreferCQType": "defaultRocksDB"},
            "rocksdbCQSelectiveDoubleWriteEnable=true",
        ),
    ],
)
def test_a_setting_that_stops_the_start_is_to_be_corrected(release: str, given: dict[str, Any], line: str) -> None:
    settings = {key: Setting(value, "broker.conf") for key, value in {"rocksdbCQDoubleWriteEnable": True, **given}.items()}
    rules = broker_rules(release, settings)
    why = combination_refusal(rules) or late_combination_refusal(rules)
    (finding,) = found(evidence_of(replace(copy_of(), rules=rules), prediction=Prediction(False, False, refusal=why)))
    assert next_text(finding.next).startswith(f"Correct this line of broker.conf, the copy is not at fault: {line}")
    assert finding.file == "" and finding_row(finding)["file"] is None  # no file of the copy is to blame
    other = Prediction(False, False, refusal=LENGTH)
    assert found(evidence_of(replace(copy_of(), rules=rules), prediction=other))[0].next is None


def test_messages_that_a_start_cuts_and_messages_that_it_never_serves() -> None:
    loss = Loss({KEY: QueueLoss(messages=5, cut=3), ("gone/else", 1): QueueLoss(messages=2, cut=0)})
    dropped, first, second = found(started(loss))
    assert (dropped.code, dropped.file, dropped.start, dropped.count) == ("broker_drops_messages", "commitlog/0", 700, 3)
    assert (first.code, first.topic, first.count) == ("broker_skips_messages", "T", 2)
    assert second.file == "consumequeue/gone%2Felse/1" and second.count == 2
    assert found(started(Loss())) == []


def test_a_start_that_never_ends() -> None:
    (finding,) = found(started(Loss(), hangs_at=400))
    assert (finding.code, finding.phy_offset, finding.message) == ("broker_hangs", 400, "a start waits here and never ends")
    (finding,) = found(started(Loss(), hangs_at=400, hangs_why=LIGHT_OFFSET))
    assert finding.message.endswith(
        "never ends: commitlog/0: the message at physical offset 400 names the LMQ offset 'x', which is no number"
    )


def test_an_election_that_never_ends() -> None:
    def message(*elected: Elected) -> str:
        evidence = started(Loss(), hangs_at=400, hangs_why=LIGHT_OFFSET)
        assert evidence.prediction is not None
        evidence.prediction.controller = Fenced(0, (), *elected)
        return found(evidence)[0].message

    why = str(refusal_sentence(LIGHT_OFFSET))
    fenced = message(Elected(Epoch(1, 0), True, ()))
    assert fenced == f"the election waits here and never ends, and the broker stays fenced: {why}"
    assert message() == f"a start waits here and never ends: {why}"


def test_offsets_beyond_the_new_end_are_a_loss_to_consumers_only_where_messages_are_lost() -> None:
    offset = ("G", "T", 0)
    config = StoreConfig(topics={"T": {}}, offsets={offset: 9}, offsets_file=CONSUMER_OFFSETS, delay_offsets={1: 4})
    for loss, severity in ((Loss(), NOTE), (Loss({KEY: QueueLoss(messages=1, cut=0)}), REBUILDABLE)):
        group = next(f for f in found(started(loss, config=config)) if f.code == "consumer_offset_beyond_end")
        assert (group.weight, group.queue_offset, group.expected) == (severity, 9, "at most 5")
        assert (group.file, group.start, group.end, group.message) == (CONSUMER_OFFSETS, 0, 30, "group G")
        level = next(f for f in found(started(loss, config=config)) if f.code == "delay_offset_beyond_end")
        assert (level.file, level.queue_offset, level.message) == (DELAY_OFFSETS, 4, "delay level 1")
    assert not any(f.code == "consumer_offset_beyond_end" for f in found(started(Loss(), entries=9, config=config)))


def test_a_refusal_names_its_whole_path_whatever_the_names_in_it_hold() -> None:
    """Of a file that is not there, and in whose topic's name a colon is; and a database's folder without a slash at its end."""
    for kind, path in (
        (RefusalKind.QUEUE_FILE_EMPTY, "consumequeue/a:b/0/00000000000000000000"),
        (RefusalKind.CONFIG_DATABASE_FAMILIES, "config/rdb"),
        (RefusalKind.CONFIG_DATABASE_VALUE, "config/rdb"),
    ):
        prediction = Prediction(False, False, refusal=Refusal(kind, path, actual="x"))
        assert [f.file for f in found(evidence_of(copy_of(), prediction=prediction))] == [path]
