"""Messages as a table and as JSON lines, without a store."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from jobs.report.texts.query_text import JsonLines, Table
from tests.support.handmade import samples

COLUMNS = ("topic", "queue_id", "store_time", "body")
ROW = {
    "topic": samples.HOSTILE,
    "queue_id": 7,
    "store_time": datetime(2026, 11, 20, 21, 20, 30, tzinfo=UTC),
    "body": b"\xe6\xb6\x88\x00",
    "status": "plausible",
}


def table(width: int, colour: bool) -> str:
    written: list[str] = []
    shown = Table(COLUMNS, "text", width, colour, written.append)
    shown.add(ROW)
    shown.finish()
    return "".join(written)


def test_a_table_steers_nothing_and_is_no_wider_than_asked() -> None:
    plain = table(60, colour=False)
    assert not set(plain) & set("\x1b\u202e\x00") and "2026-11-20" in plain
    assert all(len(line) <= 60 for line in plain.splitlines()) and len(plain.splitlines()) == 2
    assert "\x1b[1m" in table(60, colour=True)


def test_an_empty_text_is_seen_in_a_table_and_an_absent_one_is_none() -> None:
    written: list[str] = []
    shown = Table(("topic", "tags", "keys", "note"), "text", 80, False, written.append)
    shown.add({"topic": "", "tags": None, "keys": "\u3164", "note": "said"})
    shown.add({"topic": "t", "tags": "", "keys": "k", "note": ""})
    shown.finish()
    assert [line.split() for line in written[1:]] == [['""', "\\u3164", "said"], ["t", '""', "k"]]


def test_json_lines_hold_what_was_stored() -> None:
    written: list[str] = []
    for body in ("text", "base64"):
        JsonLines(COLUMNS, body, written.append).add(ROW)
    text, encoded = map(json.loads, written)
    assert text == {"topic": samples.HOSTILE, "queue_id": 7, "store_time": "2026-11-20T21:20:30.000Z", "body": "消\0"}
    assert encoded["body"] == "5raIAA==" and list(text) == list(COLUMNS)
