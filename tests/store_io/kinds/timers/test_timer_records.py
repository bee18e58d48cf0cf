"""Timer messages and their copies, as a scan collects them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from store_io.broker.releases import broker_rules
from store_io.kinds.timers.timer_records import DELETES, DELIVERED, NO_HASH, ROLLED, TimerCollector
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, StoreBuilder, java_hash
from tests.support.stores.timers import TOPIC, delivered, message

TIME = 1_700_000_100_000


def rows_of(root: Path, messages: list[Message], most: int = 100, window: int = 4 << 20) -> tuple[np.ndarray, int]:
    builder = StoreBuilder()
    for one in messages:
        builder.put(one)
    store = builder.write(root)
    path = sorted((root / "commitlog").iterdir())[0]
    task = SegmentTask(
        0, f"commitlog/{path.name}", 0, store.sizes.segment, StoreLocation(str(root)), broker_rules("5.3.3"),
        timers=TimerCollector(most), window_bytes=window, probe=False,
    )  # fmt: skip
    summary = scan_segment(task)
    assert not summary.problem and summary.timers is not None
    return summary.timers, summary.timers_dropped


@pytest.mark.parametrize("window", [64, 700, 4 << 20])
def test_message_and_copy_share_their_identity(tmp_path: Path, window: int) -> None:
    other = Message("orders", body=b"timer 1", uniq=f"U{1:031d}")  # neither a timer message nor a copy
    rows, dropped = rows_of(
        tmp_path,
        [message(1, TIME), other, message(2, TIME), delivered(1, TIME), message(3, TIME, uniq=False), delivered(3, TIME, False)],
        window=window,
    )
    assert dropped == 0 and rows["flags"].tolist() == [0, 0, DELIVERED, 0, DELIVERED]
    assert rows["out_time"].tolist() == [TIME] * 5 and rows["queue_offset"].tolist()[:2] == [0, 1]
    first, second, copy, third, third_copy = rows["identity"].tolist()
    assert first == copy and third == third_copy and len({first, second, third}) == 3
    assert rows["topic_hash"][0] == np.int32(java_hash("orders")) and rows["unique"][3] == 0


def test_rolled_deleting_and_odd_ones(tmp_path: Path) -> None:
    name = f"U{1:031d}"
    rows, _ = rows_of(
        tmp_path,
        [
            message(1, TIME),
            message(1, TIME, (("TIMER_DEQUEUE_MS", "5"), ("TIMER_ROLL_TIMES", "1"))),
            message(2, TIME, (("TIMER_DEL_UNIQKEY", name),)),
            message(3, TIME, (("TIMER_DEL_UNIQKEY", f"orders+{name}"),)),
            Message(TOPIC, body=b"x", properties=(("TIMER_OUT_MS", "12x"), ("REAL_TOPIC", "\u8ba2"))),
            Message(TOPIC, queue_id=1, body=b"x", properties=(("TIMER_OUT_MS", "12"),)),  # read by no timer
        ],
    )
    assert rows["flags"].tolist() == [0, ROLLED, DELETES, DELETES, NO_HASH]
    assert rows["identity"][0] == rows["identity"][1] and rows["out_time"].tolist() == [*[TIME] * 4, -1]
    assert rows["unique"][2] == rows["unique"][3] == rows["unique"][0]


@pytest.mark.parametrize("window", [700, 4 << 20])
def test_more_than_may_be_held_are_counted(tmp_path: Path, window: int) -> None:
    rows, dropped = rows_of(tmp_path, [message(i, TIME + i) for i in range(15)], most=9, window=window)
    assert rows["out_time"].tolist() == [*range(TIME, TIME + 9)] and dropped == 6
