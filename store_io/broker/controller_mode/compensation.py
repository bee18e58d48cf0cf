"""Follows load() over the messages after confirmOffset: it reads them for the queues' next numbers, and throws over some.

Source: ConsumeQueueStore.compensateForHA, 5.2.0 and later in controller mode, 5.0.0 and later with duplicationEnable;
DefaultMessageStore.selectOneMessageByOffset (controller.md 3, recovery.md 7).
"""

from __future__ import annotations

from schemas import commitlog_layout
from schemas.advice import Refusal, RefusalKind
from schemas.finding_codes import Code
from schemas.rows import SegmentSummary
from store_io.broker.controller_mode.election import FencedBroker
from store_io.broker.prediction import LogFile, Refused, ScanId

THROWS = "throws"  # how such a walk ends where the broker throws; elsewhere it just ends
LONGEST_V1_TOPIC = 127  # bytes; a broker writes V2 for longer names


def compensate(broker: FencedBroker) -> None:
    """Follow the walk to its end. Raises Refused if load() fails over it."""
    at = max(broker.confirm.value, 0)
    while (found := broker.find_segment(at)) is not None:
        number, file = found
        at = max(at, file.file.start)  # 0 finds the first segment, wherever that begins, and the walk begins there
        position = at - file.file.start
        if position + 4 > file.wrote:
            return
        if not position and _is_plain(broker, number, file):
            at = file.file.start + file.file.size
            continue
        scan = ScanId("ha", number, position, file.wrote)
        summary = broker.scans.get(scan)
        if summary is None:
            broker.needs.scans.add(scan)
            return
        stop = summary.broker
        if stop.kind == THROWS:
            confirmed, at = broker.confirm.value, file.file.start + stop.position
            raise Refused(
                Refusal(
                    RefusalKind.CONFIRMED_RECORD, file.file.path, confirmed, stop.reason, position=stop.position, phy_offset=at
                )
            )
        if stop.kind != "end":
            return
        at = file.file.start + file.file.size


def _is_plain(broker: FencedBroker, number: int, file: LogFile) -> bool:
    """Whether recovery's own scan shows that the walk passes the whole segment."""
    whole: SegmentSummary | None = broker.scans.get(ScanId("segment", number))
    if whole is None or not broker.rules.check_crc or broker.rules.checks_phy_offset:
        return False
    passed = whole.broker.kind == "end" or whole.broker.position == file.wrote
    if any(finding.code == Code.FILLER_WRONG_SIZE for finding in whole.findings):
        return False  # this walk goes by the size
    return passed and not any(len(topic.encode("utf-8", "replace")) > LONGEST_V1_TOPIC for topic, _ in whole.queues)


def judged(head: bytes, left: int) -> str:
    """Say why the broker throws over a frame that its check refuses; empty if it does not.

    left: bytes up to the log's end.
    """
    size = int.from_bytes(head[:4], "big", signed=True)
    if len(head) < 4 or size > left:
        return ""
    if size < commitlog_layout.FRAME_BYTES:
        return f"its size is {size}"
    magic = int.from_bytes(head[4:8], "big", signed=True)
    if magic == commitlog_layout.MAGIC_V2:
        return "it is of the form V2, as messages with a long topic name are"
    if magic not in (commitlog_layout.MAGIC_V1, commitlog_layout.MAGIC_BLANK):
        return f"its magic is 0x{magic & 0xFFFFFFFF:08x}"
    return ""
