"""explain-code: every code, in three forms."""

from __future__ import annotations

import json
import re

import pytest

from jobs.cli import options
from jobs.commands import explain_code
from jobs.report.texts.finding_words import all_codes
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from store_io.base.errors import UsageError


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert explain_code.run(options.parse(["explain-code", *words])) == 0
    return capsys.readouterr().out


def test_no_stop_reason_has_a_findings_name() -> None:
    assert not CATALOGUE.keys() & STOP_REASONS.keys()
    assert list(all_codes()) == [*CATALOGUE, *STOP_REASONS]


def test_a_finding_says_what_follows_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "segment_missing", "body_crc")
    assert text.startswith("segment_missing: finding, loss; CommitLog\n  Meaning         A segment is missing: ")
    assert "Exit code 20" in text and "file sizes in broker.conf" in text and "\n\nbody_crc: stop reason\n" in text
    assert max(map(len, text.splitlines())) <= 110
    assert "\n  After a repair  Any repair of the copy cures it. " in shown(capsys, "queue_entry_missing")
    assert "Above a note: " in shown(capsys, "commitlog_torn_tail")
    assert "Nothing, unless" in shown(capsys, "unwritten")
    assert "commitlog/ was left out" in shown(capsys, "no_commitlog")


def test_what_may_be_a_loss_names_both_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for code in ("config_table_lost", "rocksdbstore_damaged"):
        text = " ".join(shown(capsys, code).split())
        assert "Exit code 10; 20 if" in text and "leaves the exit code" not in text, code


def test_a_note_says_what_follows_where_that_is_something(capsys: pytest.CaptureFixture[str]) -> None:
    for code, row in CATALOGUE.items():
        assert row.severity == "note" or not row.unread, code
    for code in ("file_not_regular", "file_unreadable", "replica_diverged", "tiered_messages", "store_repaired", "live_copy"):
        text = shown(capsys, code)
        assert "healthy" not in text and ("exit code 3" in text) == CATALOGUE[code].unread, code


def test_without_a_code_each_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys).splitlines()
    assert [line.split()[0] for line in lines] == list(all_codes())


def test_json_has_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in shown(capsys, "--format", "json").splitlines()]
    assert [row["code"] for row in rows] == list(all_codes())
    assert rows[0]["severity"] == "loss" and rows[-1]["kind"] == "stop reason"


def test_a_code_that_does_not_exist() -> None:
    with pytest.raises(
        UsageError, match=r"'queue_entry_mising' is neither a finding nor a stop reason \(did you mean queue_entry_missing\?\)"
    ):
        explain_code.run(options.parse(["explain-code", "queue_entry_mising"]))


def test_single_codes_in_markdown_have_a_section_each(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "segment_missing", "body_crc", "--format", "markdown")
    assert text.startswith("## segment_missing\n\nFinding, loss; CommitLog.\n\n* **Meaning**: ") and "\n\n## body_crc\n" in text
    assert "* **What to do**: " in text


def test_all_codes_in_markdown_are_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--format", "markdown")
    assert sorted(re.findall(r'^\* <a id="(\w+)"></a>`\1`', text, re.MULTILINE)) == sorted(all_codes())
    assert max(map(len, text.splitlines())) <= 130


@pytest.mark.parametrize("code", ["0", "3", "10", "20"])
def test_an_exit_code_is_answered_as_such(code: str) -> None:
    with pytest.raises(UsageError, match=f"{code} is an exit code, not a finding: [a-z]"):
        explain_code.run(options.parse(["explain-code", code]))
