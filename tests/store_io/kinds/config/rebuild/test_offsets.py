"""Positions beyond the new ends: told, and set back only when asked for."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from schemas.repair import FileDigest, PositionBeyond
from store_io.base.errors import StoreError
from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS
from store_io.kinds.config import config_reader
from store_io.kinds.config.config_reader import read_config
from store_io.kinds.config.rebuild.offsets import set_back
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source import byte_source
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.stores import corpus_tools

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
    kinds = {row.kind: row for row in plain.report.offsets}
    assert sorted(row.kind for row in plain.report.offsets) == ["delay", "group"]
    assert (kinds["group"].group, kinds["group"].offset, kinds["group"].new_max) == ("behind", end + 5, end)
    assert plain.report.timers.rebuilt  # so that nothing of the timer is beyond an end any more
    for name in ("consumerOffset.json", "delayOffset.json"):
        assert (tmp_path / "plain" / "config" / name).read_bytes() == (root / "config" / name).read_bytes()

    fixed = repaired(root, tmp_path / "fixed", plan, fix_offsets=True)
    assert fixed.report.offsets_set_back == ("config/consumerOffset.json", "config/delayOffset.json")
    groups = parsed(tmp_path / "fixed" / "config" / "consumerOffset.json")
    assert groups["offsetTable"] == {f"{topic}@behind": {"0": end, "1": 3}, f"{topic}@within": {"0": end}}
    assert groups["dataVersion"] == {"counter": 7}
    assert "0:" in (tmp_path / "fixed" / "config" / "consumerOffset.json").read_text().replace(" ", "").replace('"0"', "")
    delays = parsed(tmp_path / "fixed" / "config" / "delayOffset.json")["offsetTable"]
    assert delays == {"1": ends["SCHEDULE_TOPIC_XXXX", 0], "2": 0}
    assert struct.unpack(">qqqq", (tmp_path / "fixed" / "config" / "timercheck").read_bytes()[:32])[1:] == (0, 0, 0)
    again = plan_of(tmp_path / "fixed", CASE.release, CASE.broker_conf)
    assert repaired(tmp_path / "fixed", tmp_path / "more", again, fix_offsets=True).report.offsets == ()
    assert content(tmp_path / "more") == content(tmp_path / "fixed")


def test_positions_are_set_back_in_the_file_that_was_judged_and_not_in_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = CASE.unpack(tmp_path)
    end = CASE.expected["converged"]["queues"]["Topic0"]["0"]["maxOffsetInQueue"]
    config = root / "config"
    config.mkdir(exist_ok=True)
    monkeypatch.setattr(byte_source, "SMALL_BYTES", 5000)
    text = f'{{"offsetTable":{{"Topic0@behind":{{0:{end + 5}}},"Topic0@within":{{0:{end}}}}}}}'
    (config / "consumerOffset.json").write_text(text + " " * 6000)
    (config / "consumerOffset.json.bak").write_text(f'{{"offsetTable":{{"Topic0@behind":{{0:{end + 5}}}}}}}')
    fixed = repaired(root, tmp_path / "fixed", plan_of(root, CASE.release, CASE.broker_conf), fix_offsets=True)
    assert fixed.exit_code == 0 and "config/consumerOffset.json" in fixed.report.offsets_set_back
    path = tmp_path / "fixed" / "config" / "consumerOffset.json"
    assert parsed(path)["offsetTable"] == {"Topic0@behind": {"0": end}, "Topic0@within": {"0": end}}


def test_digests_are_told_of_written_files_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = CASE.unpack(tmp_path)
    end = CASE.expected["converged"]["queues"]["Topic0"]["0"]["maxOffsetInQueue"]
    (root / "config").mkdir(exist_ok=True)
    table = {f"Topic0@{number}": {"0": end + 5} for number in range(400)}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    monkeypatch.setattr(byte_source, "SMALL_BYTES", 5000)
    fixed = repaired(root, tmp_path / "fixed", plan_of(root, CASE.release, CASE.broker_conf), fix_offsets=True)
    path = tmp_path / "fixed" / "config" / "consumerOffset.json"
    assert path.stat().st_size > 5000
    digest = FileDigest("config/consumerOffset.json", path.stat().st_size, content(path.parent)[path.name])
    assert digest in fixed.report.digests


def test_positions_that_cannot_be_read_again_are_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("commitlog", "config"):
        (tmp_path / name).mkdir()
    (tmp_path / CONSUMER_OFFSETS).write_text('{"offsetTable":{"T@g":{0:9}}}')
    (tmp_path / f"{CONSUMER_OFFSETS}.bak").write_text('{"offsetTable":{}}')
    location = StoreLocation(str(tmp_path))
    source, listing = open_source(location), list_store(location)
    config = read_config(source, listing, broker_rules("5.3.3"))
    monkeypatch.setattr(config_reader, "MAX_FILE_BYTES", 20)
    rows = [PositionBeyond("group", "why", "g", "T", 0, offset=9, new_max=1)]
    with pytest.raises(StoreError, match=r"config/consumerOffset\.json cannot be set back: config/consumerOffset\.json: "):
        set_back(cast(StoreWriter, None), source, config, rows)


def test_positions_that_stand_as_texts_are_set_back_too(tmp_path: Path) -> None:
    for name in ("commitlog", "config"):
        (tmp_path / name).mkdir()
    text = '{"offsetTable":{"T@g":{0:"9",1:"3"},"T@h":{0:"8"}},"lmqOffsetTable":{"%LMQ%a@g":"9"}}'
    (tmp_path / CONSUMER_OFFSETS).write_text(text)
    location = StoreLocation(str(tmp_path))
    source = open_source(location)
    config = read_config(source, list_store(location), broker_rules("5.3.3"))
    assert config.offsets["g", "T", 0] == 9
    rows = [PositionBeyond("group", "why", "g", topic, 0, offset=9, new_max=1) for topic in ("T", "%LMQ%a")]
    written: dict[str, bytes] = {}
    writer = cast(StoreWriter, SimpleNamespace(put=written.__setitem__))
    assert set_back(writer, source, config, rows) == {CONSUMER_OFFSETS: 2}
    (table,) = written.values()
    tables = json.loads(re.sub(r"([{,]\s*)(\d+):", r'\1"\2":', table.decode()))
    assert tables == {"offsetTable": {"T@g": {"0": 1, "1": "3"}, "T@h": {"0": "8"}}, "lmqOffsetTable": {"%LMQ%a@g": 1}}
