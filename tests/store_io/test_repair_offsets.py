"""Positions beyond the new ends: told, and set back only when asked for."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

from tests import corpus_tools
from tests.repaired import content, plan_of, repaired

CASE = next(c for c in corpus_tools.cases() if c.name == "g14-533-torn-old-seen")


def parsed(path: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(re.sub(r"([{,]\s*)(\d+):", r'\1"\2":', path.read_text()))
    return found


def test_offsets_beyond_the_cut(tmp_path: Path) -> None:
    root = CASE.unpack(tmp_path)
    ends = {
        (topic, int(queue)): state["maxOffsetInQueue"]
        for topic, by_id in CASE.expected["converged"]["queues"].items()
        for queue, state in by_id.items()
    }
    topic, end = "Topic0", ends["Topic0", 0]
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(
        f'{{"offsetTable":{{"{topic}@behind":{{0:{end + 5},1:3}},"{topic}@within":{{0:{end}}}}},"dataVersion":{{"counter":7}}}}'
    )
    (root / "config" / "delayOffset.json").write_text(f'{{"offsetTable":{{1:{ends["SCHEDULE_TOPIC_XXXX", 0] + 1},2:0}}}}')
    (root / "config" / "timercheck").write_bytes(struct.pack(">qqqq", 1, 2, 900, 950) + bytes(16))
    (root / "timerlog").mkdir()
    unit = struct.pack(">iqiqiqiiq", 52, -1, 0, 1, 1, 10_000_000, 200, 7, 0)
    (root / "timerlog" / f"{0:020d}").write_bytes(
        unit + unit.replace(struct.pack(">q", 10_000_000), struct.pack(">q", 5)) + bytes(4000)
    )
    plan = plan_of(root, CASE.release, CASE.broker_conf)

    plain = repaired(root, tmp_path / "plain", plan)
    assert plain.exit_code == 0
    kinds = {row["kind"]: row for row in plain.report["offsets"]}
    assert sorted(row["kind"] for row in plain.report["offsets"]) == ["delay", "group", "timer", "timer_queue"]
    assert (kinds["group"]["group"], kinds["group"]["offset"], kinds["group"]["new_max"]) == ("behind", end + 5, end)
    assert kinds["timer"]["units"] == 1 and kinds["timer_queue"]["new_max"] == 0
    for name in ("consumerOffset.json", "delayOffset.json", "timercheck"):
        assert (tmp_path / "plain" / "config" / name).read_bytes() == (root / "config" / name).read_bytes()

    fixed = repaired(root, tmp_path / "fixed", plan, fix_offsets=True)
    assert fixed.report["offsets_set_back"] == ["config/consumerOffset.json", "config/delayOffset.json", "config/timercheck"]
    groups = parsed(tmp_path / "fixed" / "config" / "consumerOffset.json")
    assert groups["offsetTable"] == {f"{topic}@behind": {"0": end, "1": 3}, f"{topic}@within": {"0": end}}
    assert groups["dataVersion"] == {"counter": 7}
    assert "0:" in (tmp_path / "fixed" / "config" / "consumerOffset.json").read_text().replace(" ", "").replace('"0"', "")
    delays = parsed(tmp_path / "fixed" / "config" / "delayOffset.json")["offsetTable"]
    assert delays == {"1": ends["SCHEDULE_TOPIC_XXXX", 0], "2": 0}
    assert struct.unpack(">qqqq", (tmp_path / "fixed" / "config" / "timercheck").read_bytes()[:32]) == (1, 2, 0, 0)
    again = plan_of(tmp_path / "fixed", CASE.release, CASE.broker_conf)
    assert [r["kind"] for r in repaired(tmp_path / "fixed", tmp_path / "more", again, fix_offsets=True).report["offsets"]] == [
        "timer"
    ]
    assert content(tmp_path / "more") == content(tmp_path / "fixed")
